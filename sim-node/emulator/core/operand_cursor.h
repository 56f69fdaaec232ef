// One operand of an instruction, whose elements are read or written in the view's order.
//
// A cursor moves over the view once, by as many elements at a time as the caller wants. Elements
// that lie side by side are moved together, across rows of HBM too; other strides cost a call each.
//
// Thread safety: none.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/isa/program.h"
#include "sim-node/emulator/core/core_memory.h"

namespace tahoma::sim {

// An instruction and what it works on.
struct Execution {
  const isa::Program& program;  // checked and assembled
  const isa::Instruction& instruction;
  CoreMemory& memory;
  HbmPort& hbm;
  // The other core's instruction of a meeting (isa::IsMeeting), and its memory.
  const isa::Instruction* other = nullptr;
  CoreMemory* other_memory = nullptr;
  // The instruction's own; without a seed results are rounded to nearest even.
  std::optional<std::uint64_t> rounding_seed = std::nullopt;
  // Where an instruction is carried out in parts, the number of this part's first element.
  std::uint64_t first_element = 0;

  // `operand` is the place in the instruction's row.
  bool Has(std::size_t operand) const { return instruction.Find(operand) != nullptr; }
  const isa::View& ViewOf(std::size_t operand) const { return *instruction.Find(operand); }
  ElementType TypeOf(std::size_t operand) const { return program.Of(ViewOf(operand)).type; }
  std::size_t ElementsOf(std::size_t operand) const;
  std::size_t RowsOf(std::size_t operand) const {
    return static_cast<std::size_t>(ViewOf(operand).rows.count);
  }
  // Rounds results to the type of an operand that is written, from its element number `first` on.
  void Round(std::size_t operand, std::size_t first, std::span<const float> values,
             std::byte* to) const;
};

// Bytes that an instruction moves as they are.
struct Moved {
  std::vector<std::byte> bytes;
  // Empty if all are written, else 0 for each byte that is not.
  std::vector<std::byte> written;
};

class OperandCursor {
 public:
  // `execution` must outlive the cursor.
  OperandCursor(const Execution& execution, std::size_t operand);

  // Whole elements, as many as the span holds: no more than the view has left.
  //
  // The failures of CoreMemory::Read and of HbmPort, with the operand's name.
  absl::Status Read(std::span<std::byte> to);
  absl::Status Write(std::span<const std::byte> from);
  // As Read and Write, for as many bytes as `moved` has. From SBUF and PSUM to SBUF and PSUM bytes
  // may be moved that nothing has written; nothing has written the bytes of dst then.
  absl::Status Take(Moved& moved);
  absl::Status Put(const Moved& moved);
  // Moves past elements that are neither read nor written.
  void Skip(std::size_t bytes);

 private:
  struct Dimension {
    isa::Step step;
    std::int64_t at = 0;
  };
  // Elements side by side.
  struct Run {
    int partition = 0;
    std::int64_t address = 0;
    std::size_t bytes = 0;
  };

  // The next run of `most` bytes or less; the cursor moves past it.
  Run Next(std::size_t most);
  absl::Status Annotated(const absl::Status& status) const;

  const Execution& execution_;
  const std::size_t operand_;
  const isa::Memory memory_;
  const std::int64_t element_bytes_;
  std::int64_t run_elements_ = 1;
  std::vector<Dimension> outer_;  // of the runs; the outermost first
  int partition_;
  std::int64_t offset_;     // of the current run, in elements from the buffer's first
  std::int64_t taken_ = 0;  // elements of the current run
};

// All elements of an operand, as they are. The caller bounds their number, here and below.
absl::StatusOr<std::vector<std::byte>> ReadBytes(const Execution& execution, std::size_t operand);
// The same for bytes that only move, and back to dst.
absl::StatusOr<Moved> TakeBytes(const Execution& execution, std::size_t operand);
absl::Status PutBytes(const Execution& execution, const Moved& moved);
// All elements of an operand as fp32, and back.
absl::StatusOr<std::vector<float>> ReadFp32(const Execution& execution, std::size_t operand);
// A number for each partition of dst: those of an operand of one element in each, or, when the
// operand is left out, the same number for all.
absl::StatusOr<std::vector<float>> ReadColumn(const Execution& execution, std::size_t operand,
                                              float number);
absl::Status WriteFp32(const Execution& execution, std::size_t operand,
                       std::span<const float> values);

}  // namespace tahoma::sim
