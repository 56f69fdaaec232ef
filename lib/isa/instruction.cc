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
constexpr std::array kAllEngines = {Engine::kGpSimd, Engine::kVector, Engine::kScalar,
                                    Engine::kTensor, Engine::kSync};
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
constexpr OperandRow kAnyDst = {
    .name = "dst", .written = true, .memories = kSbufOrPsum, .types = kAnyType};
constexpr OperandRow Tile(std::string_view name) {
  return {.name = name, .shape = OperandShape::kAsDst, .memories = kSbufOrPsum, .types = kAnyType};
}

constexpr std::array kTensorCopyOperands = {kAnyDst, Tile("src")};
constexpr std::array kMemsetOperands = {kAnyDst};
constexpr std::array kTensorTensorOperands = {kAnyDst, Tile("data1"), Tile("data2")};

constexpr std::array kCoreBarrierOperands = {
    OperandRow{.name = "data", .written = true, .memories = kHbmOrSbuf, .types = kAnyType}};
constexpr std::array kSendRecvOperands = {
    OperandRow{.name = "dst", .written = true, .memories = kOnlySbuf, .types = kAnyType},
    OperandRow{
        .name = "src", .shape = OperandShape::kAsDst, .memories = kOnlySbuf, .types = kAnyType}};

constexpr std::array kMatmulOptions = {OptionRow{"accumulate", OptionField::kAccumulate}};
constexpr std::array kMemsetOptions = {OptionRow{"value", OptionField::kValue}};
constexpr std::array kTensorTensorOptions = {OptionRow{"op", OptionField::kOp}};

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
                   "Writes the src of the other core's sendrecv to dst."}};

// With the rows above the entries of `nki.isa` that public kernels for this chip use.
constexpr std::array<std::string_view, 28> kNotBuilt = {"activation",
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

std::string_view Name(OptionField field) {
  constexpr std::array<std::string_view, kOptionFields> kNames = {
      "accumulate", "negate",   "reverse", "reverse1", "op",
      "op1",        "function", "value",   "value1",   "numbers"};
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

std::uint64_t BitsOf(const Instruction& instruction, OptionField field) {
  switch (field) {
    case OptionField::kAccumulate:
      return instruction.accumulate ? 1 : 0;
    case OptionField::kNegate:
      return instruction.negate ? 1 : 0;
    case OptionField::kReverse:
      return instruction.reverse ? 1 : 0;
    case OptionField::kReverse1:
      return instruction.reverse1 ? 1 : 0;
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
    case OptionField::kNumbers:
      break;
  }
  TAHOMA_CHECK(false);
  return 0;
}

void SetBits(Instruction& instruction, OptionField field, std::uint64_t bits) {
  TAHOMA_CHECK(bits < BoundOf(field));
  const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  switch (field) {
    case OptionField::kAccumulate:
      instruction.accumulate = bits == 1;
      return;
    case OptionField::kNegate:
      instruction.negate = bits == 1;
      return;
    case OptionField::kReverse:
      instruction.reverse = bits == 1;
      return;
    case OptionField::kReverse1:
      instruction.reverse1 = bits == 1;
      return;
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
    case OptionField::kNumbers:
      break;
  }
  TAHOMA_CHECK(false);
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
