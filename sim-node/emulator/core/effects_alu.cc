// Arithmetic of the Vector and GpSimd engines.

#include <vector>

#include "lib/base/status.h"
#include "lib/numeric/alu.h"
#include "sim-node/emulator/core/effects.h"

namespace tahoma::sim {

absl::Status TensorTensor(const Execution& execution) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<float> values, ReadFp32(execution, 1));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<float> others, ReadFp32(execution, 2));
  Apply(execution.instruction.op, values, others, /*reversed=*/false);
  return WriteFp32(execution, 0, values);
}

}  // namespace tahoma::sim
