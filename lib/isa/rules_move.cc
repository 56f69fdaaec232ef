#include "lib/isa/rules_move.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string_view>

#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

constexpr std::int64_t kQuadrant = 32;       // partitions that the vector engine exchanges
constexpr std::int64_t kKept = 255;          // in a mask: the partition of dst stays
constexpr std::int64_t kGpSimdGroup = 16;    // partitions of one of the engine's processors
constexpr std::int64_t kIndicesMax = 4'096;  // of a processor

std::string_view NameOf(const Instruction& instruction, std::size_t operand) {
  return RowOf(instruction.opcode).operands[operand].name;
}

// Moves without a cast: `operand` has the type of dst.
absl::Status CheckSameType(const Program& program, const Instruction& instruction) {
  const ElementType to = program.Of(instruction.operands[0]).type;
  const ElementType from = program.Of(instruction.operands[1]).type;
  if (to == from) return absl::OkStatus();
  return InvalidArgument("dst is {} and {} {}; expected the same type", Name(to),
                         NameOf(instruction, 1), Name(from));
}

absl::Status CheckSameRows(const Instruction& instruction, std::size_t operand) {
  const std::int64_t dst = instruction.operands[0].rows.count;
  const std::int64_t other = instruction.operands[operand].rows.count;
  if (dst == other) return absl::OkStatus();
  return InvalidArgument("dst has {} partitions and {} {}; expected as many", dst,
                         NameOf(instruction, operand), other);
}

// The tensor engine writes a type of 8 bits as the lower half of 16.
absl::Status CheckPairs(const Buffer& buffer, const View& dst) {
  if (Size(buffer.type) != 1) return absl::OkStatus();
  const auto is_odd = [](const Step& step) { return step.count > 1 && step.stride % 2 != 0; };
  if (dst.offset % 2 == 0 && std::ranges::none_of(dst.free, is_odd)) return absl::OkStatus();
  return InvalidArgument(
      "dst is {}, of which the tensor engine writes each element to the first of two bytes: "
      "expected an even offset and even strides",
      Name(buffer.type));
}

absl::Status CheckTensorTranspose(const Program& program, const Instruction& instruction) {
  const Buffer& to = program.Of(instruction.operands[0]);
  const Buffer& from = program.Of(instruction.operands[1]);
  if (to.memory != Memory::kPsum || from.memory != Memory::kSbuf) {
    return InvalidArgument(
        "dst is in {} and data in {}; the engine tensor writes psum and reads sbuf, and vector "
        "takes both of both",
        Name(to.memory), Name(from.memory));
  }
  TAHOMA_RETURN_IF_ERROR(CheckPairs(to, instruction.operands[0]));
  return CheckBank(to, instruction.operands[0]);
}

// The numbers of an affine pattern: an offset, the step of partitions, then step and count of each
// dimension, the outermost first. All values are int32.
absl::Status CheckPattern(const Instruction& instruction) {
  constexpr std::size_t kSteps = 2;  // where the dimensions begin
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::int64_t>& numbers = instruction.numbers;
  if (numbers.size() <= kSteps || numbers.size() % 2 != 0) {
    return InvalidArgument(
        "pattern has {} numbers; expected an offset, the step of partitions, then step and count "
        "of each of 1 to 4 dimensions",
        numbers.size());
  }
  const View& dst = instruction.operands[0];
  std::int64_t elements = 1;
  std::int64_t low = numbers[0];
  std::int64_t high = numbers[0];
  const auto reach = [&](std::int64_t step, std::int64_t count) {
    (step < 0 ? low : high) += step * (count - 1);
  };
  for (const std::int64_t number : numbers) {
    if (number >= kLeast && number <= kMost) continue;
    return InvalidArgument("pattern has {}; expected {} to {}", number, kLeast, kMost);
  }
  reach(numbers[1], dst.rows.count);
  for (std::size_t at = kSteps; at < numbers.size(); at += 2) {
    const std::int64_t count = numbers[at + 1];
    if (count < 1 || count > dst.FreeCount() / elements) {
      return InvalidArgument("pattern has a dimension of {}; expected 1 or more, all together {}",
                             count, dst.FreeCount());
    }
    elements *= count;
    reach(numbers[at], count);
  }
  if (elements != dst.FreeCount()) {
    return InvalidArgument("pattern has {} elements; expected {}, as dst has in a partition",
                           elements, dst.FreeCount());
  }
  if (low >= kLeast && high <= kMost) return absl::OkStatus();
  return FailedPrecondition("pattern reaches from {} to {}; the chip computes in int32: {} to {}",
                            low, high, kLeast, kMost);
}

}  // namespace

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

absl::Status CheckTranspose(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckSameType(program, instruction));
  const View& dst = instruction.operands[0];
  const View& data = instruction.operands[1];
  if (dst.rows.count != data.FreeCount() || dst.FreeCount() != data.rows.count) {
    return InvalidArgument(
        "dst has {} partitions of {} elements and data {} of {}; expected {} of {}", dst.rows.count,
        dst.FreeCount(), data.rows.count, data.FreeCount(), data.FreeCount(), data.rows.count);
  }
  if (instruction.engine == Engine::kTensor) return CheckTensorTranspose(program, instruction);
  if (std::max(data.rows.count, data.FreeCount()) <= kQuadrant) return absl::OkStatus();
  return InvalidArgument(
      "data has {} partitions of {} elements; the engine vector transposes at most {} of {}: split "
      "the instruction, or take the engine tensor",
      data.rows.count, data.FreeCount(), kQuadrant, kQuadrant);
}

absl::Status CheckStreamShuffle(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckSameType(program, instruction));
  const View& dst = instruction.operands[0];
  const View& src = instruction.operands[1];
  const std::vector<std::int64_t>& mask = instruction.numbers;
  if (dst.FreeCount() != src.FreeCount()) {
    return InvalidArgument("dst has {} elements in a partition and src {}; expected as many",
                           dst.FreeCount(), src.FreeCount());
  }
  if (mask.size() != kQuadrant) {
    return InvalidArgument("shuffle_mask has {} numbers; expected {}, one for each partition",
                           mask.size(), kQuadrant);
  }
  for (const std::int64_t from : mask) {
    if ((from >= 0 && from < kQuadrant) || from == kKept) continue;
    return InvalidArgument("shuffle_mask has {}; expected 0 to {}, or {} to keep", from,
                           kQuadrant - 1, kKept);
  }
  for (std::int64_t row = 0; row < dst.rows.count; ++row) {
    const std::int64_t from = mask[static_cast<std::size_t>(row % kQuadrant)];
    const std::int64_t named = row / kQuadrant * kQuadrant + from;
    if (from == kKept || named < src.rows.count) continue;
    return InvalidArgument("shuffle_mask takes partition {} of src for {} of dst; src has {}",
                           named, row, src.rows.count);
  }
  // The longer view decides from where both may begin.
  const std::int64_t rows = std::max(dst.rows.count, src.rows.count);
  const int step = rows > 64 ? kPartitions : rows > 32 ? 64 : 32;
  for (std::size_t at = 0; at < 2; ++at) {
    const int begin = instruction.operands[at].partition;
    if (begin % step == 0) continue;
    return InvalidArgument(
        "{} begins at partition {}; expected a multiple of {}, for {} partitions",
        NameOf(instruction, at), begin, step, rows);
  }
  return absl::OkStatus();
}

absl::Status CheckDmaTranspose(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckSameType(program, instruction));
  const View& dst = instruction.operands[0];
  const View& src = instruction.operands[1];
  const std::int64_t inner = dst.rows.count;
  if (src.FreeCount() % inner != 0) {
    return InvalidArgument(
        "dst has {} partitions, and a row of src {} elements; expected a multiple: the innermost "
        "elements of src become the partitions of dst",
        inner, src.FreeCount());
  }
  const std::int64_t expected = src.FreeCount() / inner * src.rows.count;
  if (dst.FreeCount() == expected) return absl::OkStatus();
  return InvalidArgument(
      "dst has {} elements in a partition; expected {}, as src has beside the {}", dst.FreeCount(),
      expected, inner);
}

absl::Status CheckIota(const Program&, const Instruction& instruction) {
  return CheckPattern(instruction);
}

absl::Status CheckAffineSelect(const Program&, const Instruction& instruction) {
  using enum AluOp;
  constexpr std::array kComparisons = {kEqual,        kNotEqual, kGreater,
                                       kGreaterEqual, kLess,     kLessEqual};
  if (std::ranges::find(kComparisons, instruction.op) == kComparisons.end()) {
    return InvalidArgument(
        "cmp_op is {}; expected equal, not_equal, greater, greater_equal, less or less_equal",
        Name(instruction.op));
  }
  if (instruction.value != instruction.value) {
    return InvalidArgument("on_false_value is no number");
  }
  return CheckPattern(instruction);
}

absl::Status CheckLocalGather(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckSameType(program, instruction));
  constexpr std::array<std::int64_t, 6> kRuns = {1, 2, 4, 8, 16, 32};
  TAHOMA_RETURN_IF_ERROR(CheckSameRows(instruction, 1));
  TAHOMA_RETURN_IF_ERROR(CheckSameRows(instruction, 2));
  const View& dst = instruction.operands[0];
  const View& index = instruction.operands[2];
  if (dst.rows.count % kGpSimdGroup != 0) {
    return InvalidArgument("dst has {} partitions; expected a multiple of {}", dst.rows.count,
                           kGpSimdGroup);
  }
  const std::int64_t run = instruction.numbers.empty() ? 1 : instruction.numbers.front();
  if (std::ranges::find(kRuns, run) == kRuns.end()) {
    return InvalidArgument("num_elem_per_idx is {}; expected 1, 2, 4, 8, 16 or 32", run);
  }
  const std::int64_t most = std::min(kIndicesMax, kGpSimdGroup * index.FreeCount());
  if (dst.FreeCount() % run == 0 && dst.FreeCount() / run <= most) return absl::OkStatus();
  return InvalidArgument(
      "dst has {} elements in a partition; expected {} for each index, of which 16 partitions of "
      "index have {} and one instruction takes {}",
      dst.FreeCount(), run, kGpSimdGroup * index.FreeCount(), kIndicesMax);
}

absl::Status CheckGather(const Program& program, const Instruction& instruction) {
  TAHOMA_RETURN_IF_ERROR(CheckSameType(program, instruction));
  return CheckSameRows(instruction, 1);
}

absl::Status CheckDmaCompute(const Program&, const Instruction& instruction) {
  const std::int64_t expected = instruction.operands[0].Count();
  for (const View& view : instruction.operands) {
    if (view.Count() == expected) continue;
    return InvalidArgument("dst has {} elements and a source {}; expected as many", expected,
                           view.Count());
  }
  return absl::OkStatus();
}

}  // namespace tahoma::isa
