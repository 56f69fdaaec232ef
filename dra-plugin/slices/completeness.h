// Says in a condition of the plugin's Node whether the API server can be shown all that the plugin
// is configured to show, and if not, what is missing, why, and what would cure it.
//
//   const Completeness found =
//       CompletenessOf(*pool, {.counters = CounterSupport::kNone, .minor = 35});
//   CompletenessReporter reporter(transport, "node-a");
//   absl::Status status = reporter.Report(node, found, clock.WallNow());  // `node`: as it was read
//
// Kubernetes before 1.36 drops counters and taints of devices unless its feature gates are on
// (docs/reference/kubernetes-dra.md#counters): what needs them is left out, and nobody looks for
// that in a node's log. Only what is configured can be missing: chips alone need no counters.
//
// Scope: one condition, kDevicesComplete; the others are left alone. What is faulty is not missing:
// health_reporter.h.
//
// Thread safety: pure functions; the reporter: one thread at a time.

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

// What an API server was seen to keep of ResourceSlices.
struct ServerSupport {
  CounterSupport counters = CounterSupport::kApart;
  int minor = 0;                              // of its version: 36 is Kubernetes 1.36
  std::set<std::string> dropped_fields = {};  // as DroppedFields names them
};

struct Completeness {
  bool complete = true;
  std::string reason;  // "AllShown"; "NoCounters", "FewCounters", "NoTaints", "FieldsDropped", or
                       // several of them: "NoCountersAndNoTaints"
  std::string message;
};

// Judges by the pool as it would be shown where everything is kept. A server that keeps no taints
// is always said, not only while something is unhealthy: a fault is a bad time to learn of it.
Completeness CompletenessOf(const Pool& pool, const ServerSupport& server);

class CompletenessReporter {
 public:
  // `transport` must outlive this object.
  CompletenessReporter(kube::Transport& transport, std::string node_name)
      : node_name_(std::move(node_name)), api_(transport, no_sleep_, Rng(0), {.attempts = 1}) {}

  // Writes the condition unless `node`, the Node as it was read, has it. The server's error.
  absl::Status Report(const Json& node, const Completeness& found, WallTime now);

 private:
  const std::string node_name_;
  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated: the caller reports again
  kube::Client api_;
};

}  // namespace tahoma::dra
