// One running sim-node: its parts, started in order and stopped in the reverse; or a fleet
// (running_fleet.h).
//
// Thread safety: Start and Stop belong to one thread.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "sim-node/app/options.h"

namespace tahoma::sim {

class SimNode {
 public:
  virtual ~SimNode() = default;

  // Every failure names the option or the address it is about; nothing is left
  // running then.
  static absl::StatusOr<std::unique_ptr<SimNode>> Start(const Options& options);

  // Ends the pods with their grace, then closes the sockets.
  virtual void Stop() = 0;
};

}  // namespace tahoma::sim
