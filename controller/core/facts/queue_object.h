// Queues as objects of the Kubernetes API: the spec that is read, and the status that is shown.
//
//   absl::StatusOr<QueueObject> queue = ParseQueue(object);
//   const QueueStatus status = StatusOf(view);       // of a QueueView, in whole numbers
//   if (!Says(status, before)) Write(status);
//
// The rules of a single Queue are those of its CustomResourceDefinition. A Queue that breaks one is
// still read: QueueSpec::invalid names the first broken rule, and the other fields have what could
// be read. The rules of a set of queues are those of controller/share.
//
// Scope: values and pure functions. writes/queue_statuses.h decides when a status is written,
// publish/render_queue.h how.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/share/queue_spec.h"
#include "controller/share/queue_view.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline const kube::Resource kQueues{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "queues"};

// Since when a condition is as it is.
struct QueueCondition {
  bool holds = false;
  WallTime since;

  friend bool operator==(const QueueCondition&, const QueueCondition&) = default;
};

// The status of a Queue as a watch has seen the object.
struct QueueShown {
  std::string resource_version = {};
  std::uint64_t digest = 0;  // of the status; 0: unknown
  std::optional<QueueCondition> ready = {};
  std::optional<QueueCondition> stopped = {};
};

struct QueueObject {
  std::shared_ptr<const QueueSpec> spec;
  QueueShown shown;
};

// Reads the status of an object about queues. A status that cannot be read has no times.
QueueShown ShownBy(const Json& object, std::string resource_version);

// Fails with kInvalidArgument when the object is no Queue at all: its metadata has no name.
absl::StatusOr<QueueObject> ParseQueue(const Json& object);

struct QueueStatus {
  std::int64_t observed_generation = 0;
  QueueTrouble trouble = QueueTrouble::kNone;
  std::string message;
  QueueStop stop = QueueStop::kNo;
  std::int64_t waiting = 0;
  std::int64_t running = 0;
  ChipCounts held;
  ChipCounts borrowed;
  std::int64_t guaranteed_chips = 0;
  std::string period = {};  // as of QueueView
  std::optional<WallTime> next_change = {};
  std::int64_t share_percent = 0;
  int place = 0;
  // The past, which changes all the time.
  std::int64_t used_chip_hours = 0;
  std::int64_t used_share_percent = 0;
  // When the conditions last changed.
  WallTime ready_since;
  WallTime stopped_since;
};

// Returns the status without the times of conditions. The view must have a spec.
QueueStatus StatusOf(const QueueView& view);

// Compares all but the times: whether both say the same, and whether they do but for the past.
bool Says(const QueueStatus& a, const QueueStatus& b);
bool SaysButForPast(const QueueStatus& a, const QueueStatus& b);

// Returns the reason of the condition Ready: "Ready", "NoParent", …
std::string_view ToString(QueueTrouble trouble);
// Returns "Hold" or "Drain"; "" for kNo.
std::string_view ToString(QueueStop stop);

std::int64_t TotalOf(const ChipCounts& chips);

}  // namespace tahoma::controller
