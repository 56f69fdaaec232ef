// The effects of instructions on memory, a function of an opcode each.
//
//   TAHOMA_RETURN_IF_ERROR(Matmul({program, instruction, memory, hbm}));
//
// Scope: execute.h chooses the function, checks nothing and says where a failure was; effects_*.cc
// are the functions by kind: copies and products, arithmetic, movements.
//
// Thread safety: none; instructions on different memories may be executed at once.

#pragma once

#include <absl/status/status.h>

#include "sim-node/emulator/core/operand_cursor.h"

namespace tahoma::sim {

// All fail as OperandCursor does.
absl::Status Copy(const Execution& execution);          // dma_copy and tensor_copy: dst <- src
absl::Status Matmul(const Execution& execution);        // dst <- stationary, moving
absl::Status Fill(const Execution& execution);          // memset: dst <- value
absl::Status Meet(const Execution& execution);          // core_barrier: nothing
absl::Status Exchange(const Execution& execution);      // sendrecv: each dst <- the other's src
absl::Status TensorTensor(const Execution& execution);  // dst <- data1 op data2

}  // namespace tahoma::sim
