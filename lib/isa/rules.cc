#include "lib/isa/rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

absl::Status CheckDmaCopy(const Program&, const Instruction& instruction) {
  const auto count = [](const View& view) { return view.rows.count * view.FreeCount(); };
  const View& dst = instruction.operands[0];
  const View& src = instruction.operands[1];
  if (count(dst) == count(src)) return absl::OkStatus();
  return InvalidArgument("dst has {} elements and src {}; expected as many", count(dst),
                         count(src));
}

absl::Status CheckMemset(const Program&, const Instruction& instruction) {
  if (instruction.value == instruction.value) return absl::OkStatus();
  return InvalidArgument("value is no number");
}

absl::Status CheckTensorTensor(const Program& program, const Instruction& instruction) {
  if (sim::IsUnary(instruction.op)) {
    return InvalidArgument("op {} takes one operand; expected an operator of two",
                           Name(instruction.op));
  }
  if (sim::KindOf(instruction.op) == sim::AluKind::kBits) {
    return Unimplemented("op {} is not built yet for tensor_tensor", Name(instruction.op));
  }
  if (program.Of(instruction.operands[1]).memory == Memory::kPsum &&
      program.Of(instruction.operands[2]).memory == Memory::kPsum) {
    return InvalidArgument("data1 and data2 are in psum; at most one may be");
  }
  return absl::OkStatus();
}

absl::Status CheckSendRecv(const Program& program, const Instruction& instruction) {
  const ElementType to = program.Of(instruction.operands[0]).type;
  const ElementType from = program.Of(instruction.operands[1]).type;
  if (to == from) return absl::OkStatus();
  return InvalidArgument("dst is {} and src {}; expected one type", Name(to), Name(from));
}

absl::Status CheckMatmulTypes(const Program& program, const Instruction& instruction) {
  const ElementType stationary = program.Of(instruction.operands[1]).type;
  const ElementType moving = program.Of(instruction.operands[2]).type;
  if ((stationary == ElementType::kFp32) == (moving == ElementType::kFp32)) {
    return absl::OkStatus();
  }
  return InvalidArgument("stationary is {} and moving {}; fp32 goes with fp32 only",
                         Name(stationary), Name(moving));
}

// A buffer without an address gets banks of its own if a bank is too small, and else lies inside of
// a bank.
absl::Status CheckBank(const Buffer& buffer, const View& view) {
  const auto unit = static_cast<std::int64_t>(Size(buffer.type));
  const std::int64_t address = buffer.address.value_or(0);
  const Hull hull = HullOf(buffer, view);
  const std::int64_t low = address + hull.low * unit;
  const std::int64_t high = address + (hull.high + 1) * unit - 1;
  if (low / kPsumBankBytes == high / kPsumBankBytes) return absl::OkStatus();
  return InvalidArgument("dst has bytes {} to {} of a partition; expected one bank of {} bytes",
                         low, high, kPsumBankBytes);
}

absl::Status CheckMatmul(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckMatmulTypes(program, instruction));
  const View& dst = instruction.operands[0];
  const View& stationary = instruction.operands[1];
  const View& moving = instruction.operands[2];
  if (stationary.rows.count != moving.rows.count) {
    return InvalidArgument("stationary has {} partitions and moving {}; expected as many",
                           stationary.rows.count, moving.rows.count);
  }
  if (dst.rows.count != stationary.FreeCount()) {
    return InvalidArgument("dst has {} partitions; expected {}, as stationary has elements in one",
                           dst.rows.count, stationary.FreeCount());
  }
  if (dst.FreeCount() != moving.FreeCount()) {
    return InvalidArgument("dst has {} elements in a partition; expected {}, as moving has",
                           dst.FreeCount(), moving.FreeCount());
  }
  return CheckBank(program.Of(dst), dst);
}

using OwnRule = absl::Status (*)(const Program&, const Instruction&);
constexpr std::array<std::pair<Opcode, OwnRule>, 5> kOwnRules = {{
    {Opcode::kDmaCopy, CheckDmaCopy},
    {Opcode::kMatmul, CheckMatmul},
    {Opcode::kMemset, CheckMemset},
    {Opcode::kTensorTensor, CheckTensorTensor},
    {Opcode::kSendRecv, CheckSendRecv},
}};

}  // namespace

absl::Status CheckOwnRule(const Program& program, const Instruction& instruction) {
  const auto rule =
      std::ranges::find(kOwnRules, instruction.opcode, &decltype(kOwnRules)::value_type::first);
  return rule == kOwnRules.end() ? absl::OkStatus() : rule->second(program, instruction);
}

}  // namespace tahoma::isa
