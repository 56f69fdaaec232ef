#include "tests/unit/lib/isa/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"

namespace tahoma::isa {
namespace {

std::int64_t Between(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(high - low + 1)));
}

template <typename Values>
auto AnyOf(Rng& rng, const Values& values) {
  return values[rng.Below(values.size())];
}

Buffer RandomBuffer(Rng& rng, int number, bool addresses) {
  Buffer buffer = {.name = fmt::format("{}{}", rng.Chance(1, 2) ? "b_" : "B-x.", number)};
  buffer.memory = static_cast<Memory>(rng.Below(3));
  buffer.type =
      AnyOf(rng, std::vector{ElementType::kFp32, ElementType::kFp32, ElementType::kBf16,
                             ElementType::kFp8E4m3, ElementType::kInt32, ElementType::kFp32r});
  const bool on_chip = buffer.memory != Memory::kHbm;
  if (buffer.memory == Memory::kPsum) buffer.type = ElementType::kFp32;
  buffer.shape.push_back(on_chip ? AnyOf(rng, std::vector<std::int64_t>{1, 4, 33, 64, 128})
                                 : Between(rng, 1, 6));
  for (auto more = rng.Below(4); more > 0; --more) buffer.shape.push_back(Between(rng, 1, 5));
  if (!on_chip && rng.Chance(1, 3)) buffer.use = Use::kInput;
  if (addresses && rng.Chance(1, 3)) buffer.address = 4 * Between(rng, 0, 40);
  return buffer;
}

// Steps over `count` elements, whose product it is.
std::vector<Step> RandomSteps(Rng& rng, std::int64_t count) {
  std::vector<Step> steps;
  while (steps.size() < 3 && rng.Chance(1, 2)) {
    const std::int64_t part = Between(rng, 1, 4);
    if (count % part != 0) continue;
    steps.push_back({.stride = Between(rng, -3, 12), .count = part});
    count /= part;
  }
  steps.push_back({.stride = rng.Chance(2, 3) ? 1 : Between(rng, -3, 6), .count = count});
  return steps;
}

View RandomView(Rng& rng, const Program& program, BufferId id, std::int64_t rows,
                std::int64_t free) {
  const Buffer& buffer = program.Of(id);
  if (rng.Chance(1, 3)) return program.Whole(id);
  View view = {.buffer = id, .free = RandomSteps(rng, free)};
  const std::int64_t elements = ElementsOf(buffer);
  if (buffer.memory == Memory::kHbm) {
    view.rows = {.stride = rng.Chance(1, 2) ? buffer.shape.back() : Between(rng, -4, 12),
                 .count = rows};
    view.offset = Between(rng, 0, elements - 1);
  } else {
    view.rows.count = rows;
    view.partition = static_cast<int>(32 * rng.Below(4));
    view.offset = Between(rng, 0, elements / buffer.shape.front() - 1);
  }
  return view;
}

// A mask, a pattern or other numbers.
std::vector<std::int64_t> RandomNumbers(Rng& rng, std::size_t most,
                                        const Instruction& instruction) {
  std::vector<std::int64_t> numbers;
  if (most == kNumbersMax && rng.Chance(3, 4)) {
    while (numbers.size() < most) numbers.push_back(rng.Chance(1, 4) ? 255 : 0);
  } else if (most > 1 && rng.Chance(1, 4)) {
    numbers = {Between(rng, -99, 99), Between(rng, -9, 9), Between(rng, -9, 9),
               instruction.operands[0].FreeCount()};
  } else {
    for (auto left = rng.Below(most + 1); left > 0; --left) {
      numbers.push_back(Between(rng, -4, 40));
    }
  }
  return numbers;
}

void SetRandomly(Rng& rng, const InstructionRow& row, const OptionRow& option,
                 Instruction& instruction) {
  for (std::size_t at = 0; at < row.operands.size(); ++at) {
    const bool there = instruction.Find(at) != nullptr;
    if (row.operands[at].name == option.name && there) return;  // in the option's place
  }
  const auto value = static_cast<float>(rng.Below(1000)) / 7 - 50;
  switch (option.field) {
    case OptionField::kValue:
      instruction.value = value;
      return;
    case OptionField::kValue1:
      instruction.value1 = value;
      return;
    case OptionField::kNumbers:
      instruction.numbers = RandomNumbers(rng, option.most_numbers, instruction);
      return;
    default:
      SetBits(instruction, option.field, rng.Below(BoundOf(option.field)));
  }
}

// An operator and, in HBM, runs of elements, as the checker wants them.
void MakeLikely(Rng& rng, Instruction& collective) {
  collective.op = AluOp::kAdd;
  for (View& view : collective.operands) {
    view.partition = 0;
    view.rows = {};
    view.free = {{.count = Between(rng, 1, 12)}};
  }
}

Instruction RandomInstruction(Rng& rng, const Program& program, Opcode opcode, int core) {
  const InstructionRow& row = RowOf(opcode);
  Instruction instruction = Plain(row);
  instruction.core = core;
  instruction.engine = AnyOf(rng, row.engines);
  const std::int64_t rows = AnyOf(rng, std::vector<std::int64_t>{1, 2, 4, 33, 64, 128});
  const std::int64_t free = Between(rng, 1, 12);
  for (std::size_t at = 0; at < row.operands.size(); ++at) {
    const auto id = BufferId(static_cast<std::uint32_t>(rng.Below(program.buffers.size())));
    const bool product = row.opcode == Opcode::kMatmul;
    const bool turned =
        at == 0 && (row.opcode == Opcode::kTranspose || row.opcode == Opcode::kDmaTranspose);
    if (row.operands[at].optional && rng.Chance(1, 2)) {
      instruction.left_out |= static_cast<std::uint8_t>(1U << at);
      continue;
    }
    const std::int64_t its = row.operands[at].shape == OperandShape::kColumn ? 1 : free;
    instruction.operands.push_back(RandomView(rng, program, id,
                                              turned || (product && at == 0) ? free : rows,
                                              turned || (product && at != 1) ? rows : its));
  }
  for (const OptionRow& option : row.options) SetRandomly(rng, row, option, instruction);
  if (IsCollective(opcode) && rng.Chance(3, 4)) MakeLikely(rng, instruction);
  return instruction;
}

}  // namespace

Program RandomProgram(Rng& rng, const RandomOptions& options) {
  Program program = {.name = "random"};
  for (int number = 0; number < options.buffers; ++number) {
    Buffer buffer = RandomBuffer(rng, number, options.addresses);
    const bool second = options.two_cores && buffer.memory != Memory::kHbm && rng.Chance(1, 2);
    buffer.core = second ? 1 : 0;
    program.Add(std::move(buffer));
  }
  for (int tries = 0; tries < 1500; ++tries) {
    if (program.instructions.size() == static_cast<std::size_t>(options.instructions)) break;
    const auto opcode = static_cast<Opcode>(rng.Below(kOpcodes));
    const std::size_t before = program.instructions.size();
    const int first = options.two_cores ? static_cast<int>(rng.Below(2)) : 0;
    for (int core = first; core >= 0; core = IsMeeting(opcode) && core == 1 ? 0 : -1) {
      program.instructions.push_back(RandomInstruction(rng, program, opcode, core));
      program.instructions.back().line = static_cast<std::int32_t>(rng.Below(1000));
    }
    if (!CheckProgram(program).ok()) program.instructions.resize(before);
  }
  for (const Instruction& instruction : program.instructions) {
    Buffer& dst = program.buffers[static_cast<std::size_t>(instruction.operands[0].buffer)];
    const bool barrier = instruction.opcode == Opcode::kCoreBarrier;
    if (dst.memory != Memory::kHbm || barrier || dst.use != Use::kInternal) continue;
    dst.use = rng.Chance(1, 4) ? Use::kInOut : Use::kOutput;
  }
  TAHOMA_CHECK_OK(CheckProgram(program));
  return program;
}

}  // namespace tahoma::isa
