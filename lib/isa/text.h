// The text form of a program, for people (docs/formats/program.md).
//
//   TAHOMA_ASSIGN_OR_RETURN(const Program program, ParseText(text, "matmul"));
//   FormatText(program);      // reads back as the same program, but for the lines
//
// A line is a buffer or an instruction:
//
//   tensor a  bf16 [128, 512] in
//   sbuf   at bf16 [128, 512]
//   dma_copy at <- a                    # a comment
//
// Scope: the form. Whether the program can run is CheckProgram's answer.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/isa/program.h"

namespace tahoma::isa {

inline constexpr std::size_t kTextBytesMax = std::size_t{16} << 20U;

// The text has no name of the program in it. kInvalidArgument, or kUnimplemented for an instruction
// of NKI that is not built yet: the message names line and column and says what was expected.
absl::StatusOr<Program> ParseText(std::string_view text, std::string_view name);

// The program is checked.
std::string FormatText(const Program& program);

}  // namespace tahoma::isa
