// Rules of instructions that move elements to other places, for CheckOwnRule (rules.h).
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include "lib/isa/program.h"

namespace tahoma::isa {

absl::Status CheckTranspose(const Program& program, const Instruction& instruction);
absl::Status CheckStreamShuffle(const Program& program, const Instruction& instruction);
absl::Status CheckDmaTranspose(const Program& program, const Instruction& instruction);
absl::Status CheckIota(const Program& program, const Instruction& instruction);
absl::Status CheckAffineSelect(const Program& program, const Instruction& instruction);
absl::Status CheckLocalGather(const Program& program, const Instruction& instruction);
absl::Status CheckGather(const Program& program, const Instruction& instruction);
absl::Status CheckDmaCompute(const Program& program, const Instruction& instruction);

// Whether a view lies in one bank of PSUM. A buffer without an address gets banks of its own if a
// bank is too small, and else lies inside of a bank.
absl::Status CheckBank(const Buffer& buffer, const View& view);

}  // namespace tahoma::isa
