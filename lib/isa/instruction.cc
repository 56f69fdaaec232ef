#include "lib/isa/instruction.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <string>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::isa {
namespace {

using enum ElementType;

constexpr std::array kAnyType = {kUint8, kInt8, kFp8E3m4, kFp8E4m3, kFp8E5m2, kUint16, kInt16,
                                 kFp16,  kBf16, kUint32,  kInt32,   kFp32,    kFp32r};
constexpr std::array kMatmulTypes = {kBf16, kFp16, kFp8E3m4, kFp8E4m3, kFp8E5m2, kFp32, kFp32r};
constexpr std::array kMatmulDstTypes = {kFp32, kBf16, kFp16, kFp32r};
constexpr std::array kOnlyUint16 = {kUint16};
constexpr std::array kOnlyUint32 = {kUint32};
constexpr std::array kOffsetTypes = {kUint32, kInt32};
constexpr std::array kTwoOrFourBytes = {kUint16, kInt16, kFp16, kBf16,
                                        kUint32, kInt32, kFp32, kFp32r};
constexpr std::array kOnlyFp32 = {kFp32};
constexpr std::array kIndexTypes = {kUint16, kUint32};
constexpr std::array kReducedTypes = {kFp16, kBf16, kFp32};
constexpr std::array kFloats = {kFp8E3m4, kFp8E4m3, kFp8E5m2, kFp16, kBf16, kFp32, kFp32r};
constexpr std::array kBiasTypes = {kUint8, kInt8, kFp8E3m4, kFp8E4m3, kFp8E5m2, kUint16,
                                   kInt16, kFp16, kBf16,    kUint32,  kInt32,   kFp32};
constexpr std::array kPredicates = {kUint8, kUint16, kUint32};
constexpr std::array kNoWideIntegers = {kUint8,  kInt8,  kFp8E3m4, kFp8E4m3, kFp8E5m2,
                                        kUint16, kInt16, kFp16,    kBf16,    kFp32};

constexpr std::array kHbmOrSbuf = {Memory::kHbm, Memory::kSbuf};
constexpr std::array kSbufOrPsum = {Memory::kSbuf, Memory::kPsum};
constexpr std::array kOnlyHbm = {Memory::kHbm};
constexpr std::array kOnlySbuf = {Memory::kSbuf};
constexpr std::array kOnlyPsum = {Memory::kPsum};

constexpr std::array kDmaEngines = {Engine::kSync, Engine::kScalar, Engine::kGpSimd};
constexpr std::array kTensorEngine = {Engine::kTensor};
constexpr std::array kAllEngines = {Engine::kGpSimd, Engine::kVector, Engine::kScalar,
                                    Engine::kTensor, Engine::kSync};
constexpr std::array kCollectiveEngines = {Engine::kGpSimd, Engine::kSync, Engine::kScalar,
                                           Engine::kVector, Engine::kTensor};
constexpr std::array kArithmeticEngines = {Engine::kVector, Engine::kGpSimd};
constexpr std::array kIndirectEngines = {Engine::kGpSimd, Engine::kSync, Engine::kScalar};
constexpr std::array kTransposeEngines = {Engine::kTensor, Engine::kVector};
constexpr std::array kVectorEngine = {Engine::kVector};
constexpr std::array kScalarEngine = {Engine::kScalar};
constexpr std::array kGpSimdEngine = {Engine::kGpSimd};
constexpr std::array kCopyEngines = {Engine::kVector, Engine::kScalar, Engine::kGpSimd};

constexpr std::array kDmaCopyOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kHbmOrSbuf, .types = kAnyType},
    OperandRow{.name = "src", .memories = kHbmOrSbuf, .types = kAnyType}};
// NKI's dma_copy again, where .ap has an offset in memory.
constexpr std::array kDmaCopyIndirectOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kHbmOrSbuf, .types = kAnyType},
    OperandRow{.name = "src", .memories = kHbmOrSbuf, .types = kAnyType},
    OperandRow{
        .name = "offsets", .memories = kOnlySbuf, .types = kOffsetTypes, .most_elements = 1}};
constexpr std::array kMatmulOperands = {
    OperandRow{.name = "dst",
               .written = true,
               .memories = kOnlyPsum,
               .types = kMatmulDstTypes,
               .most_elements = 512},
    OperandRow{
        .name = "stationary", .memories = kOnlySbuf, .types = kMatmulTypes, .most_elements = 128},
    OperandRow{
        .name = "moving", .memories = kOnlySbuf, .types = kMatmulTypes, .most_elements = 512}};
constexpr OperandRow kAnyDst = {
    .name = "dst", .written = true, .memories = kSbufOrPsum, .types = kAnyType};
constexpr OperandRow Tile(std::string_view name) {
  return {.name = name, .shape = OperandShape::kAsDst, .memories = kSbufOrPsum, .types = kAnyType};
}

// Partitions and elements by a rule of the instruction's own.
constexpr OperandRow OwnTile(std::string_view name, std::int64_t most_elements = 0) {
  return {.name = name, .memories = kSbufOrPsum, .types = kAnyType, .most_elements = most_elements};
}
// An operand of one element in each partition. Written ones and numbers may be left out.
constexpr OperandRow Column(std::string_view name, bool written = false) {
  return {.name = name,
          .written = written,
          .optional = true,
          .shape = OperandShape::kColumn,
          .memories = kSbufOrPsum,
          .types = kAnyType};
}
constexpr OperandRow OfTypes(std::span<const ElementType> types, OperandRow row) {
  row.types = types;
  return row;
}
constexpr OperandRow Needed(OperandRow row) {
  row.optional = false;
  return row;
}
constexpr OperandRow Optional(OperandRow row) {
  row.optional = true;
  return row;
}

constexpr std::array kTensorCopyOperands = {kAnyDst, Tile("src")};
constexpr std::array kMemsetOperands = {kAnyDst};
constexpr std::array kTensorTensorOperands = {kAnyDst, Tile("data1"), Tile("data2")};
constexpr std::array kTensorScalarOperands = {kAnyDst, Tile("data"), Column("operand0"),
                                              Column("operand1")};
constexpr std::array kScalarTensorTensorOperands = {kAnyDst, Tile("data"), Column("operand0"),
                                                    Tile("operand1")};
constexpr std::array kTensorScalarReduceOperands = {kAnyDst, Column("reduce_res", true),
                                                    Tile("data"), Column("operand0")};
constexpr std::array kTensorTensorScanOperands = {kAnyDst, Tile("data0"), Tile("data1"),
                                                  Column("initial")};
constexpr std::array kTensorCopyPredicatedOperands = {kAnyDst, Optional(Tile("src")),
                                                      OfTypes(kPredicates, Tile("predicate"))};
constexpr std::array kTensorScalarCumulativeOperands = {
    OfTypes(kNoWideIntegers, kAnyDst), OfTypes(kNoWideIntegers, Tile("src")),
    OfTypes(kOnlyFp32, Column("imm0")), OfTypes(kOnlyFp32, Column("imm1"))};
constexpr std::array kRangeSelectOperands = {
    kAnyDst, Column("reduce_res", true), OfTypes(kFloats, Tile("on_true_tile")),
    OfTypes(kOnlyFp32, Needed(Column("bound0"))), OfTypes(kOnlyFp32, Needed(Column("bound1")))};

constexpr std::array kTransposeOperands = {
    OperandRow{.name = "dst",
               .written = true,
               .memories = kSbufOrPsum,
               .types = kAnyType,
               .most_elements = 128},
    OperandRow{.name = "data", .memories = kSbufOrPsum, .types = kAnyType, .most_elements = 128}};
constexpr std::array kStreamShuffleOperands = {
    kAnyDst, OperandRow{.name = "src", .memories = kSbufOrPsum, .types = kAnyType}};
constexpr std::array kDmaTransposeOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kOnlySbuf, .types = kTwoOrFourBytes},
    OperandRow{.name = "src", .memories = kHbmOrSbuf, .types = kTwoOrFourBytes}};
constexpr OperandRow kSbufDst = {
    .name = "dst", .written = true, .memories = kOnlySbuf, .types = kAnyType};
constexpr std::array kIotaOperands = {kSbufDst};
constexpr std::array kAffineSelectOperands = {kSbufDst, OperandRow{.name = "on_true_tile",
                                                                   .shape = OperandShape::kAsDst,
                                                                   .memories = kOnlySbuf,
                                                                   .types = kAnyType}};
constexpr std::array kLocalGatherOperands = {
    kSbufDst, OperandRow{.name = "src_buffer", .memories = kOnlySbuf, .types = kAnyType},
    OperandRow{.name = "index", .memories = kOnlySbuf, .types = kOnlyUint16}};
constexpr std::array kGatherOperands = {
    kSbufDst, OperandRow{.name = "data", .memories = kOnlySbuf, .types = kAnyType},
    OperandRow{.name = "indices",
               .shape = OperandShape::kAsDst,
               .memories = kOnlySbuf,
               .types = kOnlyUint32}};
constexpr OperandRow DmaSource(std::string_view name, bool optional) {
  return {.name = name, .optional = optional, .memories = kHbmOrSbuf, .types = kAnyType};
}
constexpr std::array kDmaComputeOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kHbmOrSbuf, .types = kAnyType},
    DmaSource("src0", false), DmaSource("src1", false), DmaSource("src2", true),
    DmaSource("src3", true)};

constexpr std::array kMatmulOptions = {
    OptionRow{"accumulate", OptionField::kAccumulate},
    OptionRow{"is_transpose", OptionField::kIsTranspose},
    OptionRow{"is_stationary_onezero", OptionField::kStationaryOnezero},
    OptionRow{"is_moving_onezero", OptionField::kMovingOnezero},
    OptionRow{"double_row", OptionField::kDoubleRow}};
constexpr std::array kCoreBarrierOperands = {
    OperandRow{.name = "data", .written = true, .memories = kHbmOrSbuf, .types = kAnyType}};
constexpr std::array kSendRecvOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kOnlySbuf, .types = kAnyType},
    OperandRow{
        .name = "src", .shape = OperandShape::kAsDst, .memories = kOnlySbuf, .types = kAnyType}};

constexpr std::array kGatheredOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kOnlyHbm, .types = kAnyType},
    OperandRow{.name = "src", .memories = kOnlyHbm, .types = kAnyType}};
constexpr std::array kReducedOperands = {OfTypes(kReducedTypes, kGatheredOperands[0]),
                                         OfTypes(kReducedTypes, kGatheredOperands[1])};
constexpr OptionRow kRanks = {.name = "ranks", .field = OptionField::kNumbers, .most_numbers = 2};
constexpr std::array kGatheredOptions = {kRanks};
constexpr std::array kReducedOptions = {OptionRow{"op", OptionField::kOp}, kRanks};

constexpr std::array kDmaCopyIndirectOptions = {
    OptionRow{.name = "step", .field = OptionField::kNumbers, .most_numbers = 1},
    OptionRow{"scatter", OptionField::kScatter}, OptionRow{"skip", OptionField::kSkip}};
constexpr std::array kMemsetOptions = {OptionRow{"value", OptionField::kValue}};
constexpr std::array kTensorTensorOptions = {OptionRow{"op", OptionField::kOp}};
constexpr OptionRow kPattern = {
    .name = "pattern", .field = OptionField::kNumbers, .most_numbers = 10};
constexpr std::array kStreamShuffleOptions = {
    OptionRow{.name = "shuffle_mask", .field = OptionField::kNumbers, .most_numbers = kNumbersMax}};
constexpr std::array kIotaOptions = {kPattern};
constexpr std::array kAffineSelectOptions = {kPattern, OptionRow{"cmp_op", OptionField::kOp},
                                             OptionRow{"on_false_value", OptionField::kValue}};
constexpr std::array kLocalGatherOptions = {
    OptionRow{.name = "num_elem_per_idx", .field = OptionField::kNumbers, .most_numbers = 1}};
// Kernels that want the sums alone give the results one place.
constexpr OperandRow kScratchDst = {
    .name = "dst", .written = true, .scratch = true, .memories = kSbufOrPsum, .types = kAnyType};
constexpr std::array kActivationOperands = {kScratchDst, Column("reduce_res", /*written=*/true),
                                            Tile("data"), OfTypes(kOnlyFp32, Column("scale")),
                                            OfTypes(kBiasTypes, Column("bias"))};
constexpr std::array kActivationReduceOperands = {
    kScratchDst, Needed(Column("reduce_res", /*written=*/true)), Tile("data"),
    OfTypes(kOnlyFp32, Column("scale")), OfTypes(kBiasTypes, Column("bias"))};
constexpr std::array kReciprocalOperands = {kAnyDst, Tile("data")};
constexpr std::array kTensorReduceOperands = {kAnyDst, OwnTile("data")};
constexpr std::array kTensorPartitionReduceOperands = {
    OperandRow{.name = "dst",
               .written = true,
               .memories = kOnlySbuf,
               .types = kAnyType,
               .most_partitions = 1},
    OperandRow{.name = "data", .memories = kOnlySbuf, .types = kAnyType}};

constexpr OperandRow OwnDst(std::int64_t most_elements) {
  OperandRow row = kAnyDst;
  row.most_elements = most_elements;
  return row;
}
constexpr std::array kBnStatsOperands = {OwnDst(6), OwnTile("data", 512)};
constexpr std::array kBnAggrOperands = {OwnDst(2), OwnTile("data")};
constexpr std::array kMax8Operands = {OwnDst(8), OwnTile("src", 16384)};
constexpr std::array kFindIndex8Operands = {OperandRow{.name = "dst",
                                                       .written = true,
                                                       .memories = kSbufOrPsum,
                                                       .types = kIndexTypes,
                                                       .most_elements = 8},
                                            OwnTile("data", 16384), OwnTile("vals", 8)};
constexpr std::array kMatchReplace8Operands = {OwnDst(16384),
                                               OperandRow{.name = "dst_idx",
                                                          .written = true,
                                                          .optional = true,
                                                          .memories = kSbufOrPsum,
                                                          .types = kIndexTypes,
                                                          .most_elements = 8},
                                               Tile("data"), OwnTile("vals", 8)};

constexpr std::array kActivationOptions = {OptionRow{"op", OptionField::kFunction},
                                           OptionRow{"scale", OptionField::kValue, 1},
                                           OptionRow{"bias", OptionField::kValue1}};
constexpr std::array kMatchReplace8Options = {OptionRow{"imm", OptionField::kValue}};
constexpr std::array kTensorReduceOptions = {OptionRow{"op", OptionField::kOp},
                                             OptionRow{"negate", OptionField::kNegate}};
constexpr std::array kTensorScalarOptions = {
    OptionRow{"op0", OptionField::kOp},           OptionRow{"operand0", OptionField::kValue},
    OptionRow{"reverse0", OptionField::kReverse}, OptionRow{"op1", OptionField::kOp1},
    OptionRow{"operand1", OptionField::kValue1},  OptionRow{"reverse1", OptionField::kReverse1}};
constexpr std::array kScalarTensorTensorOptions = {
    OptionRow{"op0", OptionField::kOp}, OptionRow{"operand0", OptionField::kValue},
    OptionRow{"reverse0", OptionField::kReverse}, OptionRow{"op1", OptionField::kOp1},
    OptionRow{"reverse1", OptionField::kReverse1}};
constexpr std::array kTensorScalarReduceOptions = {OptionRow{"op0", OptionField::kOp},
                                                   OptionRow{"operand0", OptionField::kValue},
                                                   OptionRow{"reduce_op", OptionField::kOp1}};
constexpr std::array kTensorTensorScanOptions = {
    OptionRow{"initial", OptionField::kValue}, OptionRow{"op0", OptionField::kOp},
    OptionRow{"op1", OptionField::kOp1}, OptionRow{"reverse0", OptionField::kReverse},
    OptionRow{"reverse1", OptionField::kReverse1}};
constexpr std::array kTensorCopyPredicatedOptions = {
    OptionRow{"src", OptionField::kValue}, OptionRow{"reverse_pred", OptionField::kReverse}};
constexpr std::array kTensorScalarCumulativeOptions = {OptionRow{"op0", OptionField::kOp},
                                                       OptionRow{"op1", OptionField::kOp1},
                                                       OptionRow{"imm0", OptionField::kValue}};
constexpr std::array kRangeSelectOptions = {OptionRow{"comp_op0", OptionField::kOp},
                                            OptionRow{"comp_op1", OptionField::kOp1},
                                            OptionRow{"range_start", OptionField::kValue}};

constexpr std::array<InstructionRow, kOpcodes> kRows = {
    InstructionRow{
        Opcode::kDmaCopy, "dma_copy", kDmaEngines, kDmaCopyOperands, CostForm::kDma,
        "Copies as many elements as dst has, in order; another type is rounded by fp32."},
    InstructionRow{Opcode::kMatmul, "nc_matmul", kTensorEngine, kMatmulOperands, CostForm::kMatmul,
                   "Writes the transposed stationary times moving, or adds it to dst.",
                   kMatmulOptions},
    InstructionRow{Opcode::kTensorCopy, "tensor_copy", kCopyEngines, kTensorCopyOperands,
                   CostForm::kElements,
                   "Copies each partition's elements in order; another type is rounded by fp32."},
    InstructionRow{Opcode::kMemset, "memset", kArithmeticEngines, kMemsetOperands, CostForm::kFill,
                   "Writes one value everywhere, rounded to the type of dst.", kMemsetOptions},
    InstructionRow{Opcode::kTensorTensor, "tensor_tensor", kArithmeticEngines,
                   kTensorTensorOperands, CostForm::kTwoInputs,
                   "Writes what an operator makes of each two elements, in fp32.",
                   kTensorTensorOptions},
    InstructionRow{Opcode::kCoreBarrier, "core_barrier", kAllEngines, kCoreBarrierOperands,
                   CostForm::kBarrier,
                   "Ends when both cores are there; what each wrote to data before, both read."},
    InstructionRow{Opcode::kSendRecv, "sendrecv", kDmaEngines, kSendRecvOperands, CostForm::kDma,
                   "Writes the src of the other core's sendrecv to dst."},
    InstructionRow{Opcode::kTranspose, "nc_transpose", kTransposeEngines, kTransposeOperands,
                   CostForm::kTranspose, "Writes a partition of dst for each element of data's."},
    InstructionRow{Opcode::kStreamShuffle, "nc_stream_shuffle", kVectorEngine,
                   kStreamShuffleOperands, CostForm::kOneCycle,
                   "Copies the partition that a mask names to each of 32 partitions.",
                   kStreamShuffleOptions},
    InstructionRow{Opcode::kDmaTranspose, "dma_transpose", kDmaEngines, kDmaTransposeOperands,
                   CostForm::kDma, "Swaps rows and innermost elements; those between stay."},
    InstructionRow{Opcode::kIota, "iota", kGpSimdEngine, kIotaOperands, CostForm::kElements,
                   "Writes the whole numbers of an affine pattern.", kIotaOptions},
    InstructionRow{Opcode::kAffineSelect, "affine_select", kGpSimdEngine, kAffineSelectOperands,
                   CostForm::kElements,
                   "Keeps elements where an affine pattern compares with 0 as asked, else a value.",
                   kAffineSelectOptions},
    InstructionRow{Opcode::kLocalGather, "local_gather", kGpSimdEngine, kLocalGatherOperands,
                   CostForm::kLocalGather,
                   "Copies the elements that an index names, the same of 16 partitions.",
                   kLocalGatherOptions},
    InstructionRow{Opcode::kGather, "nc_n_gather", kGpSimdEngine, kGatherOperands,
                   CostForm::kElements, "Copies the elements that each partition's indices name."},
    InstructionRow{Opcode::kDmaCompute, "dma_compute", kDmaEngines, kDmaComputeOperands,
                   CostForm::kDma, "Writes the sum of two to four sources, in fp32."},
    InstructionRow{Opcode::kActivation, "activation", kScalarEngine, kActivationOperands,
                   CostForm::kInput,
                   "Writes a function of data times scale plus bias, and its sums to reduce_res.",
                   kActivationOptions},
    InstructionRow{Opcode::kActivationReduce, "activation_reduce", kScalarEngine,
                   kActivationReduceOperands, CostForm::kInput,
                   "Is an activation whose sums are always written.", kActivationOptions},
    InstructionRow{Opcode::kReciprocal, "reciprocal", kVectorEngine, kReciprocalOperands,
                   CostForm::kInput, "Writes one divided by each element, in fp32."},
    InstructionRow{Opcode::kTensorReduce, "tensor_reduce", kVectorEngine, kTensorReduceOperands,
                   CostForm::kInput,
                   "Reduces as many elements at a time as data has for each of dst.",
                   kTensorReduceOptions},
    InstructionRow{Opcode::kTensorPartitionReduce, "tensor_partition_reduce", kGpSimdEngine,
                   kTensorPartitionReduceOperands, CostForm::kInput,
                   "Reduces the partitions of data to one.", kTensorTensorOptions},
    InstructionRow{Opcode::kBnStats, "bn_stats", kVectorEngine, kBnStatsOperands, CostForm::kInput,
                   "Writes count, mean and variance times count of even and of odd elements."},
    InstructionRow{Opcode::kBnAggr, "bn_aggr", kVectorEngine, kBnAggrOperands, CostForm::kInput,
                   "Writes mean and variance of what several bn_stats have counted."},
    InstructionRow{Opcode::kMax8, "max8", kVectorEngine, kMax8Operands, CostForm::kInput,
                   "Writes the eight largest elements of each partition, the largest first."},
    InstructionRow{Opcode::kFindIndex8, "nc_find_index8", kVectorEngine, kFindIndex8Operands,
                   CostForm::kInput, "Writes where eight values are among the elements of data."},
    InstructionRow{Opcode::kMatchReplace8, "nc_match_replace8", kVectorEngine,
                   kMatchReplace8Operands, CostForm::kInput,
                   "Writes data with the first matches of eight values replaced by a number.",
                   kMatchReplace8Options},
    InstructionRow{Opcode::kTensorScalar, "tensor_scalar", kCopyEngines, kTensorScalarOperands,
                   CostForm::kElements,
                   "Writes what one or two operators make of each element and numbers.",
                   kTensorScalarOptions},
    InstructionRow{Opcode::kScalarTensorTensor, "scalar_tensor_tensor", kVectorEngine,
                   kScalarTensorTensorOperands, CostForm::kScalarTwoInputs,
                   "Writes what an operator makes of each element and a number, and another of "
                   "that and the element of a tile.",
                   kScalarTensorTensorOptions},
    InstructionRow{Opcode::kTensorScalarReduce, "tensor_scalar_reduce", kVectorEngine,
                   kTensorScalarReduceOperands, CostForm::kReduced,
                   "Writes what an operator makes of each element and a number, and each "
                   "partition's results reduced to one.",
                   kTensorScalarReduceOptions},
    InstructionRow{Opcode::kTensorTensorScan, "tensor_tensor_scan", kVectorEngine,
                   kTensorTensorScanOperands, CostForm::kTwoCycles,
                   "Writes what two operators make of each two elements and the result before.",
                   kTensorTensorScanOptions},
    InstructionRow{Opcode::kTensorCopyPredicated, "tensor_copy_predicated", kVectorEngine,
                   kTensorCopyPredicatedOperands, CostForm::kPredicated,
                   "Copies the elements whose predicate is not 0; the others stay.",
                   kTensorCopyPredicatedOptions},
    InstructionRow{Opcode::kTensorScalarCumulative, "tensor_scalar_cumulative", kVectorEngine,
                   kTensorScalarCumulativeOperands, CostForm::kOneCycle,
                   "Writes what an operator makes of each element and a number, reduced with all "
                   "results before.",
                   kTensorScalarCumulativeOptions},
    InstructionRow{Opcode::kRangeSelect, "range_select", kVectorEngine, kRangeSelectOperands,
                   CostForm::kOneCycle,
                   "Copies the elements whose index is in a range; the others become the least "
                   "number of fp32.",
                   kRangeSelectOptions},
    InstructionRow{Opcode::kDmaCopyIndirect, "dma_copy_indirect", kIndirectEngines,
                   kDmaCopyIndirectOperands, CostForm::kDma,
                   "Is a dma_copy of rows whose places in HBM are read from memory.",
                   kDmaCopyIndirectOptions},
    InstructionRow{Opcode::kAllReduce, "all_reduce", kCollectiveEngines, kReducedOperands,
                   CostForm::kCollective,
                   "Writes what an operator makes of the src of all ranks of a group.",
                   kReducedOptions},
    InstructionRow{Opcode::kAllGather, "all_gather", kCollectiveEngines, kGatheredOperands,
                   CostForm::kCollective,
                   "Writes the src of all ranks of a group, one after the other.",
                   kGatheredOptions},
    InstructionRow{Opcode::kReduceScatter, "reduce_scatter", kCollectiveEngines, kReducedOperands,
                   CostForm::kCollective, "Writes the rank's part of what all_reduce would.",
                   kReducedOptions},
    InstructionRow{Opcode::kAllToAll, "all_to_all", kCollectiveEngines, kGatheredOperands,
                   CostForm::kCollective,
                   "Writes the rank's part of the src of each rank of a group.", kGatheredOptions}};

// With the rows above, collectives apart, the entries of `nki.isa` that public kernels for this
// chip use.
constexpr auto kNotBuilt =
    std::to_array<std::string_view>({"get_nc_version", "register_load", "register_alloc"});

std::string KnownNames() {
  std::string names;
  for (const InstructionRow& row : kRows) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

}  // namespace

const InstructionRow& RowOf(Opcode opcode) { return kRows.at(static_cast<std::size_t>(opcode)); }

const InstructionRow* RowByName(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &InstructionRow::name);
  return row == kRows.end() ? nullptr : &*row;
}

absl::StatusOr<Opcode> ParseOpcode(std::string_view name) {
  if (const InstructionRow* row = RowByName(name)) return row->opcode;
  if (std::ranges::find(kNotBuilt, name) != kNotBuilt.end()) {
    return Unimplemented("{} is not built yet; there are {}", name, KnownNames());
  }
  return InvalidArgument("unknown instruction \"{}\"; expected one of {}", name, KnownNames());
}

std::span<const InstructionRow> AllRows() { return kRows; }
std::span<const std::string_view> NotBuilt() { return kNotBuilt; }

std::string_view Name(OptionField field) {
  constexpr std::array<std::string_view, kOptionFields> kNames = {
      "accumulate",     "is_transpose", "stationary_onezero",
      "moving_onezero", "negate",       "reverse",
      "reverse1",       "op",           "op1",
      "function",       "value",        "value1",
      "numbers",        "scatter",      "skip",
      "double_row"};
  return kNames.at(static_cast<std::size_t>(field));
}

Instruction Plain(const InstructionRow& row) {
  Instruction plain = {.opcode = row.opcode, .engine = row.engines.front()};
  for (const OptionRow& option : row.options) {
    if (option.field == OptionField::kValue) plain.value = option.value;
    if (option.field == OptionField::kValue1) plain.value1 = option.value;
  }
  return plain;
}

namespace {

// The field of a flag; nullptr for a field of another kind.
template <typename AnyInstruction>
auto* FlagOf(AnyInstruction& instruction, OptionField field) {
  switch (field) {
    case OptionField::kAccumulate:
      return &instruction.accumulate;
    case OptionField::kIsTranspose:
      return &instruction.is_transpose;
    case OptionField::kStationaryOnezero:
      return &instruction.stationary_onezero;
    case OptionField::kMovingOnezero:
      return &instruction.moving_onezero;
    case OptionField::kNegate:
      return &instruction.negate;
    case OptionField::kReverse:
      return &instruction.reverse;
    case OptionField::kReverse1:
      return &instruction.reverse1;
    case OptionField::kScatter:
      return &instruction.scatter;
    case OptionField::kSkip:
      return &instruction.skip;
    case OptionField::kDoubleRow:
      return &instruction.double_row;
    default:
      return static_cast<decltype(&instruction.negate)>(nullptr);
  }
}

}  // namespace

std::uint64_t BitsOf(const Instruction& instruction, OptionField field) {
  if (const bool* flag = FlagOf(instruction, field)) return *flag ? 1 : 0;
  switch (field) {
    case OptionField::kOp:
      return static_cast<std::uint64_t>(instruction.op);
    case OptionField::kOp1:
      return instruction.op1 ? static_cast<std::uint64_t>(*instruction.op1) + 1 : 0;
    case OptionField::kFunction:
      return static_cast<std::uint64_t>(instruction.function);
    case OptionField::kValue:
      return std::bit_cast<std::uint32_t>(instruction.value);
    case OptionField::kValue1:
      return std::bit_cast<std::uint32_t>(instruction.value1);
    default:
      TAHOMA_CHECK(false);
      return 0;
  }
}

void SetBits(Instruction& instruction, OptionField field, std::uint64_t bits) {
  TAHOMA_CHECK(bits < BoundOf(field));
  if (bool* flag = FlagOf(instruction, field)) {
    *flag = bits == 1;
    return;
  }
  const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  switch (field) {
    case OptionField::kOp:
      instruction.op = static_cast<AluOp>(bits);
      return;
    case OptionField::kOp1:
      instruction.op1 = bits == 0 ? std::nullopt : std::optional(static_cast<AluOp>(bits - 1));
      return;
    case OptionField::kFunction:
      instruction.function = static_cast<Activation>(bits);
      return;
    case OptionField::kValue:
      instruction.value = value;
      return;
    case OptionField::kValue1:
      instruction.value1 = value;
      return;
    default:
      TAHOMA_CHECK(false);
  }
}

std::uint64_t BoundOf(OptionField field) {
  switch (field) {
    case OptionField::kOp:
      return kAluOps;
    case OptionField::kOp1:
      return kAluOps + 1;
    case OptionField::kFunction:
      return sim::kActivations;
    case OptionField::kValue:
    case OptionField::kValue1:
      return std::uint64_t{1} << 32U;
    case OptionField::kNumbers:
      return 0;
    default:
      return 2;
  }
}

}  // namespace tahoma::isa
