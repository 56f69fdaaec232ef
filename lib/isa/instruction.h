// The instructions as table rows: which engines take one, what its operands may be.
//
//   const InstructionRow& row = RowOf(Opcode::kMatmul);
//   row.name;                        // "nc_matmul"
//   row.operands[0].memories;        // Memory::kPsum
//   RowByName("nc_matmul");          // the same row; nullptr when there is none
//
// Names and limits are those of AWS's NKI ISA (docs/reference/trainium2.md#instructions). The
// checker, the text form and the table of docs/formats/program.md read these rows.
//
// Thread safety: immutable.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/isa/program.h"

namespace tahoma::isa {

// How the time of an instruction follows from its operands (sim-node/emulator/core/cost.h).
// kInput counts the elements of the first operand that is read, the others those of dst.
enum class CostForm : std::uint8_t {
  kDma,
  kMatmul,
  kElements,
  kFill,
  kTwoInputs,
  kTranspose,
  kLocalGather,
  kInput,
  kBarrier,
  kScalarTwoInputs,  // with a number for each partition first
  kReduced,          // and a number for each partition is read out
  kOneCycle,         // an element
  kTwoCycles,        // an element
  kPredicated,
  kCollective,  // by the links between the ranks (lib/isa/ranks.h), not by the operands alone
};

// How many partitions an operand has, and elements in each.
enum class OperandShape : std::uint8_t {
  kOwn,     // a rule of the instruction's own
  kAsDst,   // the partitions of dst, and as many elements in each
  kColumn,  // the partitions of dst, and one element in each
};

struct OperandRow {
  std::string_view name;  // as NKI calls the operand
  bool written = false;
  bool optional = false;  // in the text NAME=VIEW, behind the operands that must be there
  bool scratch = false;   // a stride of 0 may write one place again and again: the last stays
  OperandShape shape = OperandShape::kOwn;
  std::span<const Memory> memories;
  std::span<const ElementType> types;
  std::int64_t most_partitions = kPartitions;
  std::int64_t most_elements = 0;  // of a partition; 0: what the memory has
};

// The field of an Instruction that an option is.
enum class OptionField : std::uint8_t {
  kAccumulate,
  kIsTranspose,
  kStationaryOnezero,
  kMovingOnezero,
  kNegate,
  kReverse,
  kReverse1,
  kOp,
  kOp1,
  kFunction,
  kValue,
  kValue1,
  kNumbers,
  kScatter,
  kSkip,
  kDoubleRow,
};
inline constexpr int kOptionFields = 16;

// An option of an instruction. An optional operand of the same name stands for the option's number:
// scale=2 or scale=VIEW.
struct OptionRow {
  std::string_view name;
  OptionField field;
  float value = 0;               // kValue, kValue1: when the option is left out
  std::size_t most_numbers = 0;  // kNumbers
};

struct InstructionRow {
  Opcode opcode;
  std::string_view name;
  std::span<const Engine> engines;  // the default first
  std::span<const OperandRow> operands;
  CostForm cost;
  std::string_view meaning;  // a sentence
  std::span<const OptionRow> options = {};
};

inline constexpr std::size_t kNumbersMax = 32;  // of an option

const InstructionRow& RowOf(Opcode opcode);
const InstructionRow* RowByName(std::string_view name);
std::span<const InstructionRow> AllRows();
// kUnimplemented for an instruction of NKI that has no row yet, kInvalidArgument for a name that is
// none of NKI's; both list the rows.
absl::StatusOr<Opcode> ParseOpcode(std::string_view name);
// The names that ParseOpcode answers with kUnimplemented.
std::span<const std::string_view> NotBuilt();

// An instruction whose options are those that are left out.
Instruction Plain(const InstructionRow& row);
// An option as a whole number below BoundOf: a flag, the number of an operator (of op1 after 0 for
// none), the bits of a fp32. Not for kNumbers.
std::uint64_t BitsOf(const Instruction& instruction, OptionField field);
void SetBits(Instruction& instruction, OptionField field, std::uint64_t bits);
std::uint64_t BoundOf(OptionField field);
// "accumulate", "op1", "value", as Instruction calls the field.
std::string_view Name(OptionField field);

// Calls each(row of the operand, view) for the operands that are there, which must be as many as
// the row and `left_out` say.
template <typename Each>
void ForEachOperand(const Instruction& instruction, const Each& each) {
  const InstructionRow& row = RowOf(instruction.opcode);
  for (std::size_t at = 0; at < row.operands.size(); ++at) {
    if (const View* view = instruction.Find(at)) each(row.operands[at], *view);
  }
}

// The two cores of a program carry such an instruction out together: the n-th of one core with the
// n-th of the other.
inline bool IsMeeting(Opcode opcode) {
  return opcode == Opcode::kCoreBarrier || opcode == Opcode::kSendRecv;
}

// The operand whose place an offset in memory decides: it may be anywhere in its buffer. nullptr:
// none.
inline const View* IndirectOf(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kDmaCopyIndirect) return nullptr;
  return &instruction.operands[instruction.scatter ? 0 : 1];
}

// An engine only triggers such an instruction and goes on; the DMA engines do the work.
inline bool IsDma(Opcode opcode) { return RowOf(opcode).cost == CostForm::kDma; }

// All ranks of a group carry such an instruction out together: the n-th of one rank with the n-th
// of each other.
inline bool IsCollective(Opcode opcode) { return RowOf(opcode).cost == CostForm::kCollective; }

// The engine goes on before the instruction has ended.
inline bool IsAsynchronous(Opcode opcode) { return IsDma(opcode) || IsCollective(opcode); }

}  // namespace tahoma::isa
