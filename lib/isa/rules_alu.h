// Rules of the instructions that name operators, and of selections: what their rows cannot say.
//
// Scope: rules.h calls these functions, and says what has been checked before.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include "lib/isa/program.h"

namespace tahoma::isa {

// All fail as CheckOwnRule.
absl::Status CheckTensorTensor(const Program& program, const Instruction& instruction);
absl::Status CheckTensorScalar(const Program& program, const Instruction& instruction);
absl::Status CheckScalarTensorTensor(const Program& program, const Instruction& instruction);
absl::Status CheckTensorScalarReduce(const Program& program, const Instruction& instruction);
absl::Status CheckTensorTensorScan(const Program& program, const Instruction& instruction);
absl::Status CheckTensorCopyPredicated(const Program& program, const Instruction& instruction);
absl::Status CheckTensorScalarCumulative(const Program& program, const Instruction& instruction);
absl::Status CheckRangeSelect(const Program& program, const Instruction& instruction);

}  // namespace tahoma::isa
