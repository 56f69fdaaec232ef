// Says in a condition of the plugin's Node whether the API server can be shown everything that the
// plugin should show, and if not: the missing devices, the reason and the cure.
//
//   const Completeness found =
//       CompletenessOf(*pool, {.counters = CounterSupport::kNone, .minor = 35});
//   CompletenessReporter reporter(transport, "node-a");
//   absl::Status status = reporter.Report(node, found, clock.WallNow());  // `node`: as it was read
//
// Kubernetes before 1.36 drops counters and taints of devices unless its feature gates are on
// (docs/reference/kubernetes-dra.md#counters). Devices that need counters or taints are left out,
// and nobody looks for the reason in a node's log. Only configured devices can be missing: chips
// alone need no counters.
//
// Scope: the condition kDevicesComplete; other conditions are left alone. A faulty device is not
// missing; health_reporter.h shows faults.
//
// Thread safety: the reporter: one thread at a time.

#pragma once

#include <absl/status/status.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/inventory/shown_pool.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::dra {

inline constexpr std::string_view kDevicesComplete = "tahoma.dev/DevicesComplete";

// The parts of ResourceSlices that an API server was seen to keep.
struct ServerSupport {
  CounterSupport counters = CounterSupport::kApart;
  int minor = 0;                              // 36 is Kubernetes 1.36
  std::set<std::string> dropped_fields = {};  // as DroppedFields names fields
};

struct Completeness {
  bool complete = true;
  // "AllShown"; "NoCounters", "FewCounters", "NoTaints", "FieldsDropped", or several:
  // "NoCountersAndNoTaints"
  std::string reason;
  std::string message;
};

// Compares the pool with the pool that a complete server would be shown. A server without taints is
// always reported, not only during a fault: a fault is a bad time to learn about missing taints.
Completeness CompletenessOf(const DevicePool& pool, const ServerSupport& server);

class CompletenessReporter {
 public:
  // `transport` must outlive this object.
  CompletenessReporter(kube::Transport& transport, std::string node_name)
      : node_name_(std::move(node_name)), api_(transport, no_sleep_, Rng(0), {.attempts = 1}) {}

  // Writes the condition unless `node`, the Node as last read, has the condition. Fails with the
  // server's error.
  absl::Status Report(const Json& node, const Completeness& found, WallTime now);

 private:
  const std::string node_name_;
  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated: the caller reports again
  kube::Client api_;
};

}  // namespace tahoma::dra
