// The calls of the kubelet to the driver, without gRPC.
//
// Thread safety: implementations may be called from any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <vector>

#include "dra-plugin/claims/allocation.h"
#include "dra-plugin/claims/checkpoint.h"

namespace tahoma::dra {

class DriverCalls {
 public:
  virtual ~DriverCalls() = default;
  // Both may be repeated and must then answer the same.
  virtual absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim) = 0;
  virtual absl::Status Unprepare(const ClaimRef& claim) = 0;
};

}  // namespace tahoma::dra
