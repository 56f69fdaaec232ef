// Whether a NeuronCore can run a program, before anything runs.
//
//   TAHOMA_RETURN_IF_ERROR(CheckProgram(program));
//   // "line 7: nc_matmul: moving has 1024 elements in a partition; at most 512: split the
//   // instruction"
//
// Programs come from strangers: each number is bounded before anything is computed from it. A
// checked program has no index, size or address outside of its memory.
//
// Scope: limits of instructions, views and buffers (instruction.h,
// docs/reference/trainium2.md#instructions). Whether the buffers fit beside each other is found by
// Assemble, whether memory is read before anything wrote it by who runs the program.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/isa/program.h"

namespace tahoma::isa {

inline constexpr std::size_t kBuffersMax = 1'048'576;
inline constexpr std::size_t kInstructionsMax = 4'194'304;
inline constexpr std::size_t kDimensionsMax = 5;
inline constexpr std::size_t kFreeStepsMax = 4;
inline constexpr std::size_t kOperandsMax = 8;
inline constexpr std::size_t kNameBytesMax = 63;  // of a buffer
inline constexpr std::size_t kProgramNameBytesMax = 255;
inline constexpr std::int64_t kElementsMax = (std::int64_t{1} << 40U) - 1;  // of a buffer
// In SBUF and PSUM, of a step: 16 bits, unsigned and signed.
inline constexpr std::int64_t kStepCountMax = 65'535;
inline constexpr std::int64_t kStrideMax = 32'767;
// Elements that an instruction takes of a partition.
inline constexpr std::int64_t kSbufElementsMax = std::int64_t{64} << 10U;
inline constexpr std::int64_t kPsumElementsMax = std::int64_t{4} << 10U;

// kInvalidArgument for a program that is wrong, kFailedPrecondition for one whose result is not
// defined on the chip. The message names the buffer, or line, instruction and operand, and says
// what would be right.
absl::Status CheckProgram(const Program& program);

// The same of a single buffer, whose name may be another buffer's, too.
absl::Status CheckBuffer(const Buffer& buffer);

// "line 7: nc_matmul", or "instruction 12: nc_matmul" where no line is known.
std::string PlaceOf(const Program& program, std::size_t instruction);

}  // namespace tahoma::isa
