#include "controller/model/device.h"

#include <optional>

namespace tahoma::controller {

Toleration ManagedToleration() {
  return {.key = "tahoma.dev/managed",
          .op = TolerationOperator::kExists,
          .value = "",
          .effect = TaintEffect::kNoSchedule,
          .seconds = std::nullopt};
}

}  // namespace tahoma::controller
