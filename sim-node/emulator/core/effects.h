// The effects of instructions on memory, a function of an opcode each.
//
// Scope: execute.h chooses the function, checks nothing and says where a failure was; effects_*.cc
// are the functions by kind: copies and products, arithmetic, movements,
// functions and reductions.
//
// Thread safety: none; instructions on different memories may be executed at once.

#pragma once

#include <absl/status/status.h>

#include "sim-node/emulator/core/operand_cursor.h"

namespace tahoma::sim {

// All fail as OperandCursor does.
absl::Status Copy(const Execution& execution);  // dma_copy and tensor_copy: dst <- src
// kFailedPrecondition where an option promises 0 and 1 of an operand that has other numbers.
absl::Status Matmul(const Execution& execution);  // dst <- stationary, moving
// nc_matmul is_transpose. kFailedPrecondition unless each column of moving is 0 but for a single 1.
absl::Status TransposeByMatmul(const Execution& execution);
absl::Status Fill(const Execution& execution);          // memset: dst <- value
absl::Status Meet(const Execution& execution);          // core_barrier: nothing
absl::Status Exchange(const Execution& execution);      // sendrecv: each dst <- the other's src
absl::Status TensorTensor(const Execution& execution);  // dst <- data1 op data2
// dst <- (data op operand0) op1 operand1, the operands numbers of a partition
absl::Status TensorScalar(const Execution& execution);
// dst <- (data op operand0) op1 operand1, operand0 a number of a partition
absl::Status ScalarTensorTensor(const Execution& execution);
// dst <- data op operand0; reduce_res <- the results reduced by op1
absl::Status TensorScalarReduce(const Execution& execution);
// dst <- (data0 op the result before) op1 data1
absl::Status TensorTensorScan(const Execution& execution);
absl::Status TensorCopyPredicated(const Execution& execution);  // dst <- src where predicate
// dst <- (src op imm0) op1 the result before
absl::Status TensorScalarCumulative(const Execution& execution);
// dst <- on_true_tile where the index is in the range; reduce_res <- the largest
absl::Status RangeSelect(const Execution& execution);

// nc_transpose and dma_transpose: dst[i, m, row] <- src[row, m, i].
absl::Status Transpose(const Execution& execution);
absl::Status StreamShuffle(const Execution& execution);  // partitions of dst <- those of src
absl::Status Iota(const Execution& execution);           // dst <- pattern
// dst <- on_true_tile where the pattern compares with 0, else on_false_value.
absl::Status AffineSelect(const Execution& execution);
// kFailedPrecondition for an index behind the last element.
absl::Status LocalGather(const Execution& execution);  // dst <- src_buffer[index], of 16 partitions
absl::Status Gather(const Execution& execution);       // nc_n_gather: dst <- data[indices]
// dma_copy_indirect. kFailedPrecondition for a row that leaves its buffer, without skip.
absl::Status CopyIndirect(const Execution& execution);
absl::Status DmaCompute(const Execution& execution);  // dst <- src0 + src1 + src2 + src3
// activation and activation_reduce: dst <- function(data scale + bias), reduce_res <- sums
absl::Status Activate(const Execution& execution);
absl::Status TakeReciprocal(const Execution& execution);         // dst <- 1 / data
absl::Status TensorReduce(const Execution& execution);           // dst <- data, R to one
absl::Status TensorPartitionReduce(const Execution& execution);  // dst <- data's partitions
absl::Status BnStats(const Execution& execution);                // dst <- statistics of data
absl::Status BnAggr(const Execution& execution);                 // dst <- mean, variance
absl::Status Max8(const Execution& execution);                   // dst <- the largest of src
absl::Status FindIndex8(const Execution& execution);             // dst <- where data has vals
absl::Status MatchReplace8(const Execution& execution);          // dst <- data with value for vals

}  // namespace tahoma::sim
