// Tells those who use a node's devices of their health: a condition of each device in the status of
// its claim, and events.
//
//   HealthReporter reporter(transport, "node-a");
//   absl::Status told = reporter.Report(checkpoint, *pool, clock.WallNow());   // after each change
//
// A claim on healthy devices is left as it is, since a fleet has many. One that had an unhealthy
// device shows in `status.devices` a condition of each of its devices: type Healthy, status False
// and a reason such as HbmUncorrectable, or True and Working, also after the repair. Each change of
// a claim is an event of the claim, each change of a chip one of the Node.
//
// Scope: this driver's entries of the status, by server-side apply. The server takes them away with
// the allocation. Conditions are of KEP-4817 (docs/reference/kubernetes-dra.md#health).
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/status.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "dra-plugin/claims/checkpoint.h"
#include "dra-plugin/inventory/pool.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::dra {

class HealthReporter {
 public:
  // `transport` must outlive this object.
  HealthReporter(kube::Transport& transport, std::string node_name)
      : node_name_(std::move(node_name)), api_(transport, no_sleep_, Rng(0), {.attempts = 1}) {}

  // Devices that are not in the pool are taken for healthy. The first failure; unless the server
  // is away the rest is reported nevertheless, and what failed by the next call.
  absl::Status Report(const Checkpoint& claims, const DevicePool& pool, WallTime now);

 private:
  // Devices' reasons of being unhealthy, by name.
  using Reasons = std::map<std::string, std::string>;

  absl::Status ReportChips(const Reasons& reasons, WallTime now);
  absl::Status ReportClaim(const PreparedClaim& claim, const Reasons& reasons, WallTime now);
  absl::Status SendEvent(const Json& about, bool good, const std::string& message, WallTime now);

  const std::string node_name_;
  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated: the caller asks again
  kube::Client api_;
  Reasons chips_;                          // as told last
  std::map<std::string, Reasons> claims_;  // by uid; what is not there is not known
};

}  // namespace tahoma::dra
