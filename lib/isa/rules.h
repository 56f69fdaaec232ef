// Rules of single instructions that no row can say, as functions of an opcode.
//
// Scope: CheckProgram (check.h) has checked what the row says before: operands, types, memories,
// counts, options.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/status.h>

#include "lib/isa/program.h"

namespace tahoma::isa {

// Fails as CheckProgram, without the place.
absl::Status CheckOwnRule(const Program& program, const Instruction& instruction);

}  // namespace tahoma::isa
