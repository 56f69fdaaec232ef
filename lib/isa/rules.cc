#include "lib/isa/rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/ranks.h"
#include "lib/isa/rules_alu.h"
#include "lib/isa/rules_move.h"
#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

absl::Status CheckDmaCopy(const Program&, const Instruction& instruction) {
  const View& dst = instruction.operands[0];
  const View& src = instruction.operands[1];
  if (dst.Count() == src.Count()) return absl::OkStatus();
  return InvalidArgument("dst has {} elements and src {}; expected as many", dst.Count(),
                         src.Count());
}

// Descriptors of hardware have one address that is read from memory, those of GpSimd one a row.
absl::Status CheckDmaCopyIndirect(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckDmaCopy(program, instruction));
  const View& indirect = *IndirectOf(instruction);
  const std::string_view side = instruction.scatter ? "dst" : "src";
  if (program.Of(indirect).memory != Memory::kHbm) {
    return InvalidArgument("{} is {}, which is in {}; expected hbm, for offsets from memory", side,
                           program.Of(indirect).name, Name(program.Of(indirect).memory));
  }
  if (instruction.numbers.size() != 1 || instruction.numbers[0] < 1 ||
      instruction.numbers[0] > kElementsMax) {
    return InvalidArgument(
        "step= is not a number from 1 to {}; expected the elements of {} from one offset to the "
        "next",
        kElementsMax, side);
  }
  const std::int64_t offsets = instruction.operands[2].rows.count;
  if (offsets == 1) return absl::OkStatus();
  for (std::size_t at = 0; at < 2; ++at) {
    const std::int64_t rows = instruction.operands[at].rows.count;
    if (rows == offsets) continue;
    return InvalidArgument(
        "offsets has {} partitions and {} {} rows; expected as many, or one offset", offsets,
        at == 0 ? "dst" : "src", rows);
  }
  if (instruction.engine == Engine::kGpSimd) return absl::OkStatus();
  return InvalidArgument("engine {}; expected gpsimd, for an offset of each row",
                         Name(instruction.engine));
}

absl::Status CheckMemset(const Program&, const Instruction& instruction) {
  if (instruction.value == instruction.value) return absl::OkStatus();
  return InvalidArgument("value is no number");
}

absl::Status CheckSendRecv(const Program& program, const Instruction& instruction) {
  const ElementType to = program.Of(instruction.operands[0]).type;
  const ElementType from = program.Of(instruction.operands[1]).type;
  if (to == from) return absl::OkStatus();
  return InvalidArgument("dst is {} and src {}; expected one type", Name(to), Name(from));
}

bool IsWide(ElementType type) { return type == ElementType::kFp32 || type == ElementType::kFp32r; }

absl::Status CheckMatmulTypes(const Program& program, const Instruction& instruction) {
  const ElementType stationary = program.Of(instruction.operands[1]).type;
  const ElementType moving = program.Of(instruction.operands[2]).type;
  if (IsWide(stationary) == IsWide(moving)) return absl::OkStatus();
  return InvalidArgument("stationary is {} and moving {}; fp32 and fp32r go with each other only",
                         Name(stationary), Name(moving));
}

// PSUM adds in fp32; a transposition passes elements on as they are.
absl::Status CheckMatmulDst(const Program& program, const Instruction& instruction) {
  const Buffer& dst = program.Of(instruction.operands[0]);
  const Buffer& stationary = program.Of(instruction.operands[1]);
  if (instruction.is_transpose) {
    if (instruction.accumulate) {
      return InvalidArgument("is_transpose and accumulate; expected at most one of both");
    }
    if (dst.type == stationary.type) return absl::OkStatus();
    return InvalidArgument("dst is {} and stationary {}; expected the same type, for is_transpose",
                           Name(dst.type), Name(stationary.type));
  }
  if (dst.type == ElementType::kFp32) return absl::OkStatus();
  return InvalidArgument("dst is {} of type {}; expected fp32", dst.name, Name(dst.type));
}

absl::Status CheckDoubleRow(const Program& program, const Instruction& instruction) {
  if (!instruction.double_row) return absl::OkStatus();
  for (std::size_t at = 1; at < 3; ++at) {
    const std::string_view name = RowOf(instruction.opcode).operands[at].name;
    const View& view = instruction.operands[at];
    const ElementType type = program.Of(view).type;
    if (type != ElementType::kFp8E4m3 && type != ElementType::kFp8E5m2) {
      return InvalidArgument("{} is {}; expected fp8_e4m3 or fp8_e5m2, for double_row", name,
                             Name(type));
    }
    if (view.FreeCount() % 2 == 0) continue;
    return InvalidArgument(
        "{} has {} elements in a partition; expected an even number: two rows, for double_row",
        name, view.FreeCount());
  }
  return absl::OkStatus();
}

absl::Status CheckMatmul(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckMatmulDst(program, instruction));
  TAHOMA_RETURN_IF_ERROR(CheckMatmulTypes(program, instruction));
  TAHOMA_RETURN_IF_ERROR(CheckDoubleRow(program, instruction));
  const View& dst = instruction.operands[0];
  const View& stationary = instruction.operands[1];
  const View& moving = instruction.operands[2];
  if (stationary.rows.count != moving.rows.count) {
    return InvalidArgument("stationary has {} partitions and moving {}; expected as many",
                           stationary.rows.count, moving.rows.count);
  }
  const std::int64_t rows = instruction.double_row ? 2 : 1;
  if (dst.rows.count * rows != stationary.FreeCount()) {
    return InvalidArgument("dst has {} partitions; expected {}, as stationary has elements in {}",
                           dst.rows.count, stationary.FreeCount() / rows,
                           instruction.double_row ? "a row of one" : "one");
  }
  if (dst.FreeCount() * rows != moving.FreeCount()) {
    return InvalidArgument("dst has {} elements in a partition; expected {}, as moving has{}",
                           dst.FreeCount(), moving.FreeCount() / rows,
                           instruction.double_row ? " in a row" : "");
  }
  return CheckBank(program.Of(dst), dst);
}

// Operand `at` has the partitions of dst, and so many elements in each. The row has the most.
absl::Status CheckElements(const Instruction& instruction, std::size_t at, std::int64_t least) {
  const View* view = instruction.Find(at);
  if (view == nullptr) return absl::OkStatus();
  const OperandRow& row = RowOf(instruction.opcode).operands[at];
  if (view->rows.count != instruction.operands[0].rows.count) {
    return InvalidArgument("dst has {} partitions and {} {}; expected as many",
                           instruction.operands[0].rows.count, row.name, view->rows.count);
  }
  if (view->FreeCount() >= least) return absl::OkStatus();
  return InvalidArgument("{} has {} elements in a partition; expected {}{}", row.name,
                         view->FreeCount(), row.most_elements == least ? "" : "at least ", least);
}

absl::Status CheckTensorReduce(const Program&, const Instruction& instruction) {
  if (!sim::IsReduction(instruction.op)) {
    return InvalidArgument("op {} does not reduce; expected an operator such as add or maximum",
                           Name(instruction.op));
  }
  if (sim::KindOf(instruction.op) == sim::AluKind::kBits) {
    return Unimplemented("op {} is not built yet for tensor_reduce", Name(instruction.op));
  }
  TAHOMA_RETURN_IF_ERROR(CheckElements(instruction, 1, 1));
  const std::int64_t results = instruction.operands[0].FreeCount();
  const std::int64_t elements = instruction.operands[1].FreeCount();
  if (elements % results == 0) return absl::OkStatus();
  return InvalidArgument(
      "dst has {} elements in a partition and data {}; expected as many elements of data for each",
      results, elements);
}

absl::Status CheckTensorPartitionReduce(const Program&, const Instruction& instruction) {
  if (sim::KindOf(instruction.op) == sim::AluKind::kBits && sim::IsReduction(instruction.op)) {
    return Unimplemented("op {} is not built yet for tensor_partition_reduce",
                         Name(instruction.op));
  }
  if (instruction.op != AluOp::kAdd && instruction.op != AluOp::kMaximum) {
    return InvalidArgument("op {}; expected add or maximum", Name(instruction.op));
  }
  const std::int64_t results = instruction.operands[0].FreeCount();
  const std::int64_t elements = instruction.operands[1].FreeCount();
  if (elements == results) return absl::OkStatus();
  return InvalidArgument("dst has {} elements in a partition and data {}; expected as many",
                         results, elements);
}

absl::Status CheckBnStats(const Program&, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckElements(instruction, 0, 6));
  return CheckElements(instruction, 1, 1);
}

absl::Status CheckBnAggr(const Program&, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckElements(instruction, 0, 2));
  TAHOMA_RETURN_IF_ERROR(CheckElements(instruction, 1, 3));
  const std::int64_t elements = instruction.operands[1].FreeCount();
  if (elements % 3 == 0) return absl::OkStatus();
  return InvalidArgument("data has {} elements in a partition; expected a multiple of 3", elements);
}

absl::Status CheckMax8(const Program&, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckElements(instruction, 0, 8));
  return CheckElements(instruction, 1, 8);
}

absl::Status CheckFindIndex8(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckMax8(program, instruction));
  return CheckElements(instruction, 2, 8);
}

absl::Status CheckMatchReplace8(const Program&, const Instruction& instruction) {
  for (std::size_t at = 0; at < 4; ++at) {
    TAHOMA_RETURN_IF_ERROR(CheckElements(instruction, at, 8));
  }
  if (instruction.value == instruction.value) return absl::OkStatus();
  return InvalidArgument("imm is no number");
}

using OwnRule = absl::Status (*)(const Program&, const Instruction&);
constexpr auto kOwnRules = std::to_array<std::pair<Opcode, OwnRule>>({
    {Opcode::kDmaCopy, CheckDmaCopy},
    {Opcode::kMatmul, CheckMatmul},
    {Opcode::kMemset, CheckMemset},
    {Opcode::kTensorTensor, CheckTensorTensor},
    {Opcode::kSendRecv, CheckSendRecv},
    {Opcode::kTranspose, CheckTranspose},
    {Opcode::kStreamShuffle, CheckStreamShuffle},
    {Opcode::kDmaTranspose, CheckDmaTranspose},
    {Opcode::kIota, CheckIota},
    {Opcode::kAffineSelect, CheckAffineSelect},
    {Opcode::kLocalGather, CheckLocalGather},
    {Opcode::kGather, CheckGather},
    {Opcode::kDmaCompute, CheckDmaCompute},
    {Opcode::kTensorReduce, CheckTensorReduce},
    {Opcode::kTensorPartitionReduce, CheckTensorPartitionReduce},
    {Opcode::kBnStats, CheckBnStats},
    {Opcode::kBnAggr, CheckBnAggr},
    {Opcode::kMax8, CheckMax8},
    {Opcode::kFindIndex8, CheckFindIndex8},
    {Opcode::kMatchReplace8, CheckMatchReplace8},
    {Opcode::kTensorScalar, CheckTensorScalar},
    {Opcode::kScalarTensorTensor, CheckScalarTensorTensor},
    {Opcode::kTensorScalarReduce, CheckTensorScalarReduce},
    {Opcode::kTensorTensorScan, CheckTensorTensorScan},
    {Opcode::kTensorCopyPredicated, CheckTensorCopyPredicated},
    {Opcode::kTensorScalarCumulative, CheckTensorScalarCumulative},
    {Opcode::kRangeSelect, CheckRangeSelect},
    {Opcode::kDmaCopyIndirect, CheckDmaCopyIndirect},
    {Opcode::kAllReduce, CheckCollective},
    {Opcode::kAllGather, CheckCollective},
    {Opcode::kReduceScatter, CheckCollective},
    {Opcode::kAllToAll, CheckCollective},
});

}  // namespace

absl::Status CheckOwnRule(const Program& program, const Instruction& instruction) {
  const auto rule =
      std::ranges::find(kOwnRules, instruction.opcode, &decltype(kOwnRules)::value_type::first);
  return rule == kOwnRules.end() ? absl::OkStatus() : rule->second(program, instruction);
}

}  // namespace tahoma::isa
