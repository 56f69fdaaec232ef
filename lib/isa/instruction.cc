#include "lib/isa/instruction.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "lib/base/status.h"

namespace tahoma::isa {
namespace {

using enum ElementType;

constexpr std::array kAnyType = {kUint8, kInt8, kFp8E3m4, kFp8E4m3, kFp8E5m2, kUint16,
                                 kInt16, kFp16, kBf16,    kUint32,  kInt32,   kFp32};
constexpr std::array kMatmulTypes = {kBf16, kFp16, kFp8E3m4, kFp8E4m3, kFp8E5m2, kFp32};
constexpr std::array kOnlyFp32 = {kFp32};

constexpr std::array kHbmOrSbuf = {Memory::kHbm, Memory::kSbuf};
constexpr std::array kSbufOrPsum = {Memory::kSbuf, Memory::kPsum};
constexpr std::array kOnlySbuf = {Memory::kSbuf};
constexpr std::array kOnlyPsum = {Memory::kPsum};

constexpr std::array kDmaEngines = {Engine::kSync, Engine::kScalar, Engine::kGpSimd};
constexpr std::array kTensorEngine = {Engine::kTensor};
constexpr std::array kArithmeticEngines = {Engine::kVector, Engine::kGpSimd};
constexpr std::array kCopyEngines = {Engine::kVector, Engine::kScalar, Engine::kGpSimd};

constexpr std::array kDmaCopyOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kHbmOrSbuf, .types = kAnyType},
    OperandRow{.name = "src", .memories = kHbmOrSbuf, .types = kAnyType}};
constexpr std::array kMatmulOperands = {
    OperandRow{.name = "dst",
               .written = true,
               .memories = kOnlyPsum,
               .types = kOnlyFp32,
               .most_elements = 512},
    OperandRow{
        .name = "stationary", .memories = kOnlySbuf, .types = kMatmulTypes, .most_elements = 128},
    OperandRow{
        .name = "moving", .memories = kOnlySbuf, .types = kMatmulTypes, .most_elements = 512}};
constexpr std::array kTensorCopyOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kSbufOrPsum, .types = kAnyType},
    OperandRow{.name = "src", .memories = kSbufOrPsum, .types = kAnyType}};
constexpr std::array kMemsetOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kSbufOrPsum, .types = kAnyType}};
constexpr std::array kTensorTensorOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kSbufOrPsum, .types = kAnyType},
    OperandRow{.name = "data1", .memories = kSbufOrPsum, .types = kAnyType},
    OperandRow{.name = "data2", .memories = kSbufOrPsum, .types = kAnyType}};

constexpr std::array<InstructionRow, kOpcodes> kRows = {
    InstructionRow{
        Opcode::kDmaCopy, "dma_copy", kDmaEngines, kDmaCopyOperands, CostForm::kDma,
        "Copies as many elements as dst has, in order; another type is rounded by fp32."},
    InstructionRow{Opcode::kMatmul, "nc_matmul", kTensorEngine, kMatmulOperands, CostForm::kMatmul,
                   "Writes the transposed stationary times moving, or adds it to dst."},
    InstructionRow{Opcode::kTensorCopy, "tensor_copy", kCopyEngines, kTensorCopyOperands,
                   CostForm::kElements,
                   "Copies each partition's elements in order; another type is rounded by fp32."},
    InstructionRow{Opcode::kMemset, "memset", kArithmeticEngines, kMemsetOperands, CostForm::kFill,
                   "Writes one value everywhere, rounded to the type of dst."},
    InstructionRow{Opcode::kTensorTensor, "tensor_tensor", kArithmeticEngines,
                   kTensorTensorOperands, CostForm::kTwoInputs,
                   "Writes what an operator makes of each two elements, in fp32."}};

// With the rows above the entries of `nki.isa` that public kernels for this chip use.
constexpr std::array<std::string_view, 30> kNotBuilt = {"activation",
                                                        "tensor_scalar",
                                                        "nc_transpose",
                                                        "tensor_reduce",
                                                        "nc_stream_shuffle",
                                                        "dma_transpose",
                                                        "get_nc_version",
                                                        "reciprocal",
                                                        "scalar_tensor_tensor",
                                                        "activation_reduce",
                                                        "iota",
                                                        "sendrecv",
                                                        "core_barrier",
                                                        "tensor_scalar_reduce",
                                                        "tensor_tensor_scan",
                                                        "affine_select",
                                                        "max8",
                                                        "nc_match_replace8",
                                                        "nc_find_index8",
                                                        "range_select",
                                                        "dma_compute",
                                                        "register_load",
                                                        "register_alloc",
                                                        "tensor_partition_reduce",
                                                        "tensor_copy_predicated",
                                                        "bn_stats",
                                                        "bn_aggr",
                                                        "tensor_scalar_cumulative",
                                                        "local_gather",
                                                        "nc_n_gather"};

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

}  // namespace tahoma::isa
