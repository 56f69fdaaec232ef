#include "lib/isa/ranks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

// Groups of `size` ranks, `stride` apart.
struct Groups {
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

Groups GroupsOf(const Instruction& collective, int ranks) {
  const std::vector<std::int64_t>& numbers = collective.numbers;
  return {.size = numbers.empty() ? ranks : numbers[0],
          .stride = numbers.size() < 2 ? 1 : numbers[1]};
}

// Whether the elements of a view in HBM lie side by side, in the view's order.
bool IsRun(const View& view) {
  const bool rows_follow = view.rows.count == 1 || view.rows.stride == view.FreeCount();
  return view.AdjacentCount() == view.FreeCount() && rows_follow;
}

// Bytes from the program's first; without an address those of the buffer alone.
Hull HullOfBytes(const Buffer& buffer, const View& view) {
  const auto unit = static_cast<std::int64_t>(Size(buffer.type));
  const Hull elements = HullOf(buffer, view);
  const std::int64_t address = buffer.address.value_or(0);
  return {.low = address + elements.low * unit, .high = address + (elements.high + 1) * unit - 1};
}

absl::Status CheckPlaces(const Program& program, const Instruction& collective) {
  const View& dst = collective.operands[0];
  const View& src = collective.operands[1];
  const bool comparable =
      dst.buffer == src.buffer || (program.Of(dst).address && program.Of(src).address);
  if (!comparable) return absl::OkStatus();
  const Hull to = HullOfBytes(program.Of(dst), dst);
  const Hull from = HullOfBytes(program.Of(src), src);
  if (to.high < from.low || from.high < to.low) return absl::OkStatus();
  const bool in_place = collective.opcode == Opcode::kAllReduce;
  if (in_place && to.low == from.low && to.high == from.high) return absl::OkStatus();
  return InvalidArgument("dst and src share bytes; expected places apart{}",
                         in_place ? ", or one place" : "");
}

absl::Status CheckNumbers(const Instruction& collective) {
  const auto fits = [](std::int64_t number) { return number >= 1 && number <= kRanksMax; };
  if (std::ranges::all_of(collective.numbers, fits)) return absl::OkStatus();
  return InvalidArgument(
      "ranks= has a number that is not 1 to {}; expected the ranks of a group and how far apart "
      "they are",
      kRanksMax);
}

// The elements of dst and src, in a group of so many ranks.
absl::Status CheckCounts(const Instruction& collective, std::int64_t size) {
  const std::int64_t dst = collective.operands[0].Count();
  const std::int64_t src = collective.operands[1].Count();
  const auto wrong = [&](std::string_view expected) {
    return InvalidArgument("dst has {} elements and src {} in groups of {} ranks; expected {}", dst,
                           src, size, expected);
  };
  switch (collective.opcode) {
    case Opcode::kAllGather:
      return dst / size == src && dst % size == 0 ? absl::OkStatus()
                                                  : wrong("in dst those of src for each rank");
    case Opcode::kReduceScatter:
      return src / size == dst && src % size == 0 ? absl::OkStatus()
                                                  : wrong("in src those of dst for each rank");
    case Opcode::kAllToAll:
      return dst == src && src % size == 0
                 ? absl::OkStatus()
                 : wrong("as many, as often as there are ranks in a group");
    default:
      return dst == src ? absl::OkStatus() : wrong("as many");
  }
}

absl::Status CheckIn(const Instruction& collective, int ranks) {
  const Groups groups = GroupsOf(collective, ranks);
  if (ranks % (groups.size * groups.stride) == 0) return CheckCounts(collective, groups.size);
  return InvalidArgument(
      "groups of {} ranks, {} apart, in a run of {}; expected groups that {} ranks can be divided "
      "into",
      groups.size, groups.stride, ranks, ranks);
}

}  // namespace

absl::Status CheckCollective(const Program& program, const Instruction& instruction) {
  if (instruction.op != AluOp::kAdd && instruction.op != AluOp::kMaximum &&
      instruction.op != AluOp::kMinimum) {
    return InvalidArgument("op {}; expected add, maximum or minimum", Name(instruction.op));
  }
  TAHOMA_RETURN_IF_ERROR(CheckNumbers(instruction));
  const ElementType to = program.Of(instruction.operands[0]).type;
  const ElementType from = program.Of(instruction.operands[1]).type;
  if (to != from) {
    return InvalidArgument("dst is {} and src {}; expected one type", Name(to), Name(from));
  }
  for (std::size_t at = 0; at < instruction.operands.size(); ++at) {
    if (IsRun(instruction.operands[at])) continue;
    return InvalidArgument("{} has elements that do not lie side by side; expected one run of them",
                           RowOf(instruction.opcode).operands[at].name);
  }
  return CheckPlaces(program, instruction);
}

absl::Status CheckRanks(const Program& program, int ranks) {
  TAHOMA_CHECK(ranks >= 1 && ranks <= kRanksMax);
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    const Instruction& instruction = program.instructions[at];
    if (!IsCollective(instruction.opcode)) continue;
    TAHOMA_RETURN_IF_ERROR(Annotate(CheckIn(instruction, ranks), PlaceOf(program, at)));
  }
  return absl::OkStatus();
}

std::vector<int> GroupOf(const Instruction& collective, int rank, int ranks) {
  const Groups groups = GroupsOf(collective, ranks);
  const auto size = static_cast<int>(groups.size);
  const auto stride = static_cast<int>(groups.stride);
  const int first = rank / (size * stride) * (size * stride) + rank % stride;
  std::vector<int> group;
  for (int member = 0; member < size; ++member) group.push_back(first + member * stride);
  return group;
}

}  // namespace tahoma::isa
