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
enum class CostForm : std::uint8_t { kDma, kMatmul, kElements, kFill, kTwoInputs };

struct OperandRow {
  std::string_view name;  // as NKI calls the operand
  bool written = false;
  std::span<const Memory> memories;
  std::span<const ElementType> types;
  std::int64_t most_partitions = kPartitions;
  std::int64_t most_elements = 0;  // of a partition; 0: what the memory has
};

struct InstructionRow {
  Opcode opcode;
  std::string_view name;
  std::span<const Engine> engines;  // the default first
  std::span<const OperandRow> operands;
  CostForm cost;
  std::string_view meaning;  // a sentence
};

const InstructionRow& RowOf(Opcode opcode);
const InstructionRow* RowByName(std::string_view name);
std::span<const InstructionRow> AllRows();
// kUnimplemented for an instruction of NKI that has no row yet, kInvalidArgument for a name that is
// none of NKI's; both list the rows.
absl::StatusOr<Opcode> ParseOpcode(std::string_view name);
// The names that ParseOpcode answers with kUnimplemented.
std::span<const std::string_view> NotBuilt();

// An engine only triggers such an instruction and goes on; the DMA engines do the work.
inline bool IsDma(Opcode opcode) { return RowOf(opcode).cost == CostForm::kDma; }

}  // namespace tahoma::isa
