#include "lib/isa/check.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "lib/base/ascii.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/isa/rules.h"
#include "lib/isa/slice.h"

namespace tahoma::isa {
namespace {

absl::Status CheckName(std::string_view name) {
  const auto fits = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-';
  };
  if (!name.empty() && name.size() <= kNameBytesMax && IsLetter(name.front()) &&
      std::ranges::all_of(name, fits)) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "a buffer's name has {} bytes or is not made of letters, digits, _ . -; expected 1 to {}, "
      "the "
      "first a letter",
      name.size(), kNameBytesMax);
}

// The bytes that a buffer may have: in HBM all, else in a partition.
std::int64_t Capacity(Memory memory) {
  if (memory == Memory::kHbm) return kHbmBytes;
  return memory == Memory::kSbuf ? kSbufBytes : kPsumBytes;
}

absl::Status CheckShape(const Buffer& buffer) {
  if (buffer.shape.empty() || buffer.shape.size() > kDimensionsMax) {
    return InvalidArgument("the shape has {} dimensions; expected 1 to {}", buffer.shape.size(),
                           kDimensionsMax);
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : buffer.shape) {
    if (extent < 1 || extent > kElementsMax / elements) {
      return InvalidArgument("a dimension is {}; expected at least 1, all together at most {}",
                             extent, kElementsMax);
    }
    elements *= extent;
  }
  if (buffer.memory != Memory::kHbm && buffer.shape.front() > kPartitions) {
    return InvalidArgument("{} partitions; {} has {}", buffer.shape.front(), Name(buffer.memory),
                           kPartitions);
  }
  return absl::OkStatus();
}

absl::Status CheckAddress(const Buffer& buffer) {
  const auto unit = static_cast<std::int64_t>(Size(buffer.type));
  const std::int64_t bytes = BytesOf(buffer);
  const std::int64_t capacity = Capacity(buffer.memory);
  const std::string_view place = buffer.memory == Memory::kHbm ? "" : " of a partition";
  if (bytes > capacity) {
    return InvalidArgument("{} bytes; {} has {}{}", bytes, Name(buffer.memory), capacity, place);
  }
  if (!buffer.address) return absl::OkStatus();
  if (*buffer.address < 0 || *buffer.address > capacity - bytes) {
    return InvalidArgument("the address is {}; expected 0 to {}, for {} bytes in {} of {}{}",
                           *buffer.address, capacity - bytes, bytes, capacity, Name(buffer.memory),
                           place);
  }
  if (*buffer.address % unit != 0) {
    return InvalidArgument("the address is {}; expected a multiple of {}, the bytes of {}",
                           *buffer.address, unit, Name(buffer.type));
  }
  return absl::OkStatus();
}

absl::Status CheckBuffers(const Program& program) {
  if (program.buffers.size() > kBuffersMax) {
    return InvalidArgument("{} buffers; at most {}", program.buffers.size(), kBuffersMax);
  }
  absl::flat_hash_set<std::string> names;
  for (const Buffer& buffer : program.buffers) {
    TAHOMA_RETURN_IF_ERROR(CheckBuffer(buffer));
    if (!names.insert(buffer.name).second) {
      return InvalidArgument("two buffers are called {}; each needs a name of its own",
                             buffer.name);
    }
  }
  return absl::OkStatus();
}

// The steps of a view in HBM may be of any size that stays in a buffer.
absl::Status CheckStep(const Step& step, std::int64_t most_count, std::int64_t most_stride) {
  if (step.count < 1 || step.count > most_count) {
    return InvalidArgument("has a step of {} elements; expected 1 to {}", step.count, most_count);
  }
  if (step.stride < -most_stride || step.stride > most_stride) {
    return InvalidArgument("has a stride of {}; expected {} to {}", step.stride, -most_stride,
                           most_stride);
  }
  if (step.count > 1 && std::abs(step.stride) > kElementsMax / (step.count - 1)) {
    return InvalidArgument("has {} elements {} apart, more than a buffer can hold", step.count,
                           step.stride);
  }
  return absl::OkStatus();
}

absl::Status CheckPartitions(const Buffer& buffer, const View& view) {
  if (view.rows.count < 1 || view.rows.count > kPartitions || view.rows.stride != 1) {
    return InvalidArgument("takes {} partitions {} apart; expected 1 to {}, each beside the next",
                           view.rows.count, view.rows.stride, kPartitions);
  }
  if (view.partition < 0 || view.partition > buffer.shape.front() - view.rows.count) {
    return InvalidArgument("takes {} partitions from {}; {} has {}", view.rows.count,
                           view.partition, buffer.name, buffer.shape.front());
  }
  return absl::OkStatus();
}

// Ports of the engines serve quarters of the partitions; DMA reaches each partition alone.
absl::Status CheckStartPartition(const View& view) {
  const int step = view.rows.count > 64 ? kPartitions : view.rows.count > 32 ? 64 : 32;
  if (view.partition % step == 0) return absl::OkStatus();
  constexpr std::array<std::string_view, 3> kStarts = {"0, 32, 64 or 96", "0 or 64", "0"};
  const std::string_view starts = kStarts.at(step == 32 ? 0 : step == 64 ? 1 : 2);
  return InvalidArgument("begins at partition {}; an engine takes {} partitions from {}",
                         view.partition, view.rows.count, starts);
}

absl::Status CheckExtent(const Buffer& buffer, const View& view) {
  const bool on_chip = buffer.memory != Memory::kHbm;
  const Hull hull = HullOf(buffer, view);
  const std::int64_t elements =
      on_chip ? ElementsOf(buffer) / buffer.shape.front() : ElementsOf(buffer);
  if (hull.low < 0 || hull.high >= elements) {
    return InvalidArgument("takes elements {} to {}{}; {} has 0 to {}", hull.low, hull.high,
                           on_chip ? " of a partition" : "", buffer.name, elements - 1);
  }
  return absl::OkStatus();
}

// All numbers of the view, so that computing with them cannot overflow.
absl::Status CheckView(const Buffer& buffer, const View& view) {
  const bool on_chip = buffer.memory != Memory::kHbm;
  if (view.free.empty() || view.free.size() > kFreeStepsMax) {
    return InvalidArgument("has {} free steps; expected 1 to {}", view.free.size(), kFreeStepsMax);
  }
  if (on_chip) {
    TAHOMA_RETURN_IF_ERROR(CheckPartitions(buffer, view));
  } else if (view.partition != 0) {
    return InvalidArgument("begins at partition {}; hbm has none: expected 0", view.partition);
  } else {
    TAHOMA_RETURN_IF_ERROR(CheckStep(view.rows, kElementsMax, kElementsMax));
  }
  if (view.offset < 0 || view.offset > kElementsMax) {
    return InvalidArgument("begins at element {}; expected 0 to {}", view.offset, kElementsMax);
  }
  std::int64_t elements = view.rows.count;
  for (const Step& step : view.free) {
    TAHOMA_RETURN_IF_ERROR(CheckStep(step, on_chip ? kStepCountMax : kElementsMax,
                                     on_chip ? kStrideMax : kElementsMax));
    if (step.count > kElementsMax / elements) {
      return InvalidArgument("takes more than {} elements: split the instruction", kElementsMax);
    }
    elements *= step.count;
  }
  return CheckExtent(buffer, view);
}

absl::Status CheckCounts(const OperandRow& row, const Instruction& instruction,
                         const Buffer& buffer, const View& view) {
  if (buffer.memory == Memory::kHbm) return absl::OkStatus();
  const std::int64_t held = buffer.memory == Memory::kSbuf ? kSbufElementsMax : kPsumElementsMax;
  // Two rows of the tensor engine's array share a partition.
  const std::int64_t rows = instruction.double_row && !row.written ? 2 : 1;
  const std::int64_t most =
      row.most_elements == 0 ? held : std::min(held, rows * row.most_elements);
  if (const std::int64_t count = view.FreeCount(); count > most) {
    return InvalidArgument("has {} elements in a partition; at most {}: split the instruction",
                           count, most);
  }
  if (view.rows.count > row.most_partitions) {
    return InvalidArgument("has {} partitions; at most {}: split the instruction", view.rows.count,
                           row.most_partitions);
  }
  return absl::OkStatus();
}

// An engine may finish the elements in any order: two elements must not land on a place.
absl::Status CheckWritten(const OperandRow& row, const Instruction& instruction,
                          const Buffer& buffer, const View& view) {
  if (buffer.use == Use::kInput) {
    return InvalidArgument("is {}, an input; a program writes outputs and internal buffers only",
                           buffer.name);
  }
  if (row.scratch) return absl::OkStatus();
  const bool own_offsets =
      IndirectOf(instruction) == &instruction.operands[0] && instruction.operands[2].rows.count > 1;
  const auto repeats = [](const Step& step) { return step.stride == 0 && step.count > 1; };
  if (std::ranges::any_of(view.free, repeats) ||
      (buffer.memory == Memory::kHbm && repeats(view.rows) && !own_offsets)) {
    return FailedPrecondition(
        "writes one place again and again (a stride of 0), and the element that stays is not "
        "defined; give each element its own place");
  }
  return absl::OkStatus();
}

template <typename Values>
std::string Listed(const Values& values) {
  std::string text;
  for (std::size_t at = 0; at < values.size(); ++at) {
    text += fmt::format("{}{}",
                        at == 0                   ? ""
                        : at + 1 == values.size() ? " or "
                                                  : ", ",
                        Name(values[at]));
  }
  return text;
}

absl::Status CheckOperand(const Program& program, const Instruction& instruction,
                          const OperandRow& row, const View& view) {
  if (static_cast<std::size_t>(view.buffer) >= program.buffers.size()) {
    return InvalidArgument("is buffer {}; the program has {}",
                           static_cast<std::uint32_t>(view.buffer), program.buffers.size());
  }
  const Buffer& buffer = program.Of(view);
  if (std::ranges::find(row.memories, buffer.memory) == row.memories.end()) {
    return InvalidArgument("is {}, which is in {}; expected {}", buffer.name, Name(buffer.memory),
                           Listed(row.memories));
  }
  if (std::ranges::find(row.types, buffer.type) == row.types.end()) {
    return InvalidArgument("is {} of type {}; expected {}", buffer.name, Name(buffer.type),
                           Listed(row.types));
  }
  if (buffer.memory != Memory::kHbm && buffer.core != instruction.core) {
    return InvalidArgument("is {}, in the {} of core {}; expected a buffer of core {}", buffer.name,
                           Name(buffer.memory), buffer.core, instruction.core);
  }
  TAHOMA_RETURN_IF_ERROR(CheckView(buffer, view));
  TAHOMA_RETURN_IF_ERROR(CheckCounts(row, instruction, buffer, view));
  if (row.written) TAHOMA_RETURN_IF_ERROR(CheckWritten(row, instruction, buffer, view));
  if (IsDma(instruction.opcode) || buffer.memory == Memory::kHbm) return absl::OkStatus();
  if (instruction.engine == Engine::kGpSimd && buffer.memory != Memory::kSbuf) {
    return InvalidArgument("is {}, which is in {}; the engine gpsimd reaches sbuf only",
                           buffer.name, Name(buffer.memory));
  }
  return CheckStartPartition(view);
}

// The partitions and elements of an operand, as its row compares them with those of dst.
absl::Status CheckAgainstDst(const OperandRow& row, const View& dst, const View& other) {
  if (row.shape == OperandShape::kOwn) return absl::OkStatus();
  if (dst.rows.count != other.rows.count) {
    return InvalidArgument("dst has {} partitions and {} {}; expected as many", dst.rows.count,
                           row.name, other.rows.count);
  }
  if (row.shape == OperandShape::kColumn) {
    if (other.FreeCount() == 1) return absl::OkStatus();
    return InvalidArgument("{} has {} elements in a partition; expected 1", row.name,
                           other.FreeCount());
  }
  if (dst.FreeCount() == other.FreeCount()) return absl::OkStatus();
  return InvalidArgument("dst has {} elements in a partition and {} {}; expected as many",
                         dst.FreeCount(), row.name, other.FreeCount());
}

// Whether the row's operands are there, and no others.
absl::Status CheckPresent(const InstructionRow& row, const Instruction& instruction) {
  std::size_t expected = 0;
  for (std::size_t at = 0; at < row.operands.size(); ++at) {
    const bool there = (instruction.left_out >> at & 1U) == 0;
    if (!there && !row.operands[at].optional) {
      return InvalidArgument("{} is left out; only optional operands may be",
                             row.operands[at].name);
    }
    expected += there ? 1 : 0;
  }
  if (instruction.left_out >> row.operands.size() != 0) {
    return InvalidArgument("an operand behind the last is left out");
  }
  if (instruction.operands.size() == expected) return absl::OkStatus();
  return InvalidArgument("{} operands; expected {}", instruction.operands.size(), expected);
}

// Whether an option stands for nothing: no row names the option, or an operand is in its place.
bool IsUnused(const InstructionRow& row, const Instruction& instruction, OptionField field) {
  const auto option = std::ranges::find(row.options, field, &OptionRow::field);
  if (option == row.options.end()) return true;
  const auto operand = std::ranges::find(row.operands, option->name, &OperandRow::name);
  return operand != row.operands.end() &&
         instruction.Find(static_cast<std::size_t>(operand - row.operands.begin())) != nullptr;
}

absl::Status CheckOptions(const InstructionRow& row, const Instruction& instruction) {
  const Instruction plain = Plain(row);
  for (int at = 0; at < kOptionFields; ++at) {
    const auto field = static_cast<OptionField>(at);
    if (field == OptionField::kNumbers) continue;
    const std::uint64_t bits = BitsOf(instruction, field);
    if (IsUnused(row, instruction, field) && bits != BitsOf(plain, field)) {
      return InvalidArgument("has {}, which is no option of the instruction here", Name(field));
    }
  }
  for (const OptionRow& option : row.options) {
    const bool operand =
        std::ranges::find(row.operands, option.name, &OperandRow::name) != row.operands.end();
    const float value =
        option.field == OptionField::kValue1 ? instruction.value1 : instruction.value;
    if (operand && !std::isfinite(value)) {
      return InvalidArgument("{} is {}; expected a finite number", option.name, value);
    }
  }
  const auto numbers = std::ranges::find(row.options, OptionField::kNumbers, &OptionRow::field);
  const std::size_t most = numbers == row.options.end() ? 0 : numbers->most_numbers;
  if (instruction.numbers.size() <= most) return absl::OkStatus();
  return InvalidArgument("has {} numbers; expected at most {}", instruction.numbers.size(), most);
}

absl::Status CheckInstruction(const Program& program, const Instruction& instruction) {
  const InstructionRow& row = RowOf(instruction.opcode);
  if (std::ranges::find(row.engines, instruction.engine) == row.engines.end()) {
    return InvalidArgument("engine {}; expected {}", Name(instruction.engine), Listed(row.engines));
  }
  TAHOMA_RETURN_IF_ERROR(CheckPresent(row, instruction));
  TAHOMA_RETURN_IF_ERROR(CheckOptions(row, instruction));
  for (std::size_t at = 0; at < row.operands.size(); ++at) {
    const OperandRow& operand = row.operands[at];
    const View* view = instruction.Find(at);
    if (view == nullptr) continue;
    const absl::Status status = CheckOperand(program, instruction, operand, *view);
    if (!status.ok()) {
      return absl::Status(status.code(), fmt::format("{} {}", operand.name, Message(status)));
    }
    TAHOMA_RETURN_IF_ERROR(CheckAgainstDst(operand, instruction.operands[0], *view));
  }
  return CheckOwnRule(program, instruction);
}

absl::Status CheckCores(const Program& program) {
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    const int core = program.instructions[at].core;
    if (core >= 0 && core < kCoresMax) continue;
    return InvalidArgument("instruction {}: core {}; expected 0 to {}", at, core, kCoresMax - 1);
  }
  return absl::OkStatus();
}

// Whether two instructions of two cores can be carried out together.
absl::Status CheckMeeting(const Program& program, const Instruction& one,
                          const Instruction& other) {
  if (one.opcode != other.opcode) {
    return InvalidArgument("meets a {} of core 0; expected the same instruction",
                           RowOf(one.opcode).name);
  }
  const View& to = one.operands.front();
  const View& from = other.operands.back();
  if (one.opcode != Opcode::kSendRecv) return absl::OkStatus();
  if (to.rows.count == from.rows.count && to.FreeCount() == from.FreeCount() &&
      program.Of(to).type == program.Of(from).type) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "sends {} x {} elements of {}, and core 0 takes {} x {} of {}; expected as many of one type",
      from.rows.count, from.FreeCount(), Name(program.Of(from).type), to.rows.count, to.FreeCount(),
      Name(program.Of(to).type));
}

// The cores of a program meet as often as each other, and alike.
absl::Status CheckMeetings(const Program& program) {
  std::array<std::vector<std::size_t>, kCoresMax> meetings;
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    const Instruction& instruction = program.instructions[at];
    if (!IsMeeting(instruction.opcode)) continue;
    meetings.at(static_cast<std::size_t>(instruction.core)).push_back(at);
  }
  for (std::size_t at = 0; at < std::max(meetings[0].size(), meetings[1].size()); ++at) {
    const std::size_t lacks = at >= meetings[0].size() ? 0 : 1;
    if (at >= meetings[lacks].size()) {
      return InvalidArgument("{}: core {} has no instruction that meets this one",
                             PlaceOf(program, meetings.at(1 - lacks)[at]), lacks);
    }
    const Instruction& one = program.instructions[meetings[0][at]];
    const Instruction& other = program.instructions[meetings[1][at]];
    const absl::Status met = CheckMeeting(program, one, other);
    if (!met.ok()) return Annotate(met, PlaceOf(program, meetings[1][at]));
  }
  return absl::OkStatus();
}

// Follows what was written last to each buffer.
class Writes {
 public:
  explicit Writes(const Program& program)
      : program_(program), last_(program.buffers.size()), matmul_(program.buffers.size()) {}

  // PSUM adds to the sums of an earlier matmul; AWS says nothing about adding to other data.
  absl::Status Follow(const Instruction& instruction) {
    if (instruction.opcode == Opcode::kCoreBarrier) return absl::OkStatus();
    const View& dst = instruction.operands.front();
    const auto at = static_cast<std::size_t>(dst.buffer);
    const bool by_matmul = IsSum(instruction);
    if (instruction.accumulate) {
      const bool over_other =
          last_[at] != nullptr && !IsSum(*last_[at]) && last_[at]->operands.front() == dst;
      // At an address that the program gives, another buffer may hold the group's sums.
      const bool first = !matmul_[at] && !program_.Of(dst).address;
      if (first || over_other) {
        return FailedPrecondition(
            "accumulates on {}, which no {} has written; the first of a group must not accumulate",
            program_.Of(dst).name, RowOf(Opcode::kMatmul).name);
      }
    }
    last_[at] = &instruction;
    if (by_matmul) matmul_[at] = true;
    return absl::OkStatus();
  }

  // A matmul that transposes leaves no sum to add to.
  static bool IsSum(const Instruction& instruction) {
    return instruction.opcode == Opcode::kMatmul && !instruction.is_transpose;
  }

  absl::Status CheckOutputs() const {
    for (std::size_t at = 0; at < last_.size(); ++at) {
      const Buffer& buffer = program_.buffers[at];
      if (IsOutput(buffer.use) && last_[at] == nullptr) {
        return InvalidArgument("{} is an output that no instruction writes", buffer.name);
      }
    }
    return absl::OkStatus();
  }

 private:
  const Program& program_;
  std::vector<const Instruction*> last_;
  std::vector<bool> matmul_;
};

}  // namespace

absl::Status CheckBuffer(const Buffer& buffer) {
  TAHOMA_RETURN_IF_ERROR(CheckName(buffer.name));
  if (buffer.core < 0 || buffer.core >= (buffer.memory == Memory::kHbm ? 1 : kCoresMax)) {
    return InvalidArgument("{}: is of core {}; expected 0 to {}, in hbm 0", buffer.name,
                           buffer.core, kCoresMax - 1);
  }
  absl::Status status = CheckShape(buffer);
  if (status.ok()) status = CheckAddress(buffer);
  if (status.ok() && buffer.use != Use::kInternal && buffer.memory != Memory::kHbm) {
    status = InvalidArgument("an {} in {}; inputs and outputs are in hbm",
                             IsInput(buffer.use) ? "input" : "output", Name(buffer.memory));
  }
  return Annotate(status, buffer.name);
}

std::string PlaceOf(const Program& program, std::size_t instruction) {
  const Instruction& found = program.instructions[instruction];
  const std::string_view name = RowOf(found.opcode).name;
  if (found.line > 0) return fmt::format("line {}: {}", found.line, name);
  return fmt::format("instruction {}: {}", instruction, name);
}

absl::Status CheckProgram(const Program& program) {
  if (program.name.size() > kProgramNameBytesMax) {
    return InvalidArgument("the program's name has {} bytes; at most {}", program.name.size(),
                           kProgramNameBytesMax);
  }
  if (program.instructions.size() > kInstructionsMax) {
    return InvalidArgument("{} instructions; at most {}", program.instructions.size(),
                           kInstructionsMax);
  }
  TAHOMA_RETURN_IF_ERROR(CheckBuffers(program));
  TAHOMA_RETURN_IF_ERROR(CheckCores(program));
  Writes writes(program);
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    absl::Status status = CheckInstruction(program, program.instructions[at]);
    if (status.ok()) status = writes.Follow(program.instructions[at]);
    if (!status.ok()) return Annotate(status, PlaceOf(program, at));
  }
  TAHOMA_RETURN_IF_ERROR(CheckMeetings(program));
  return writes.CheckOutputs();
}

}  // namespace tahoma::isa
