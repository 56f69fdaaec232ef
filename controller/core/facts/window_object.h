// Maintenance windows as objects of the Kubernetes API: the spec that is read, and the status that
// is shown.
//
//   absl::StatusOr<WindowObject> window = ParseWindow(object);
//   if (PhaseAt(*window->spec, now) == WindowPhase::kActive) KeepAway(*window->spec);
//
// The rules of a MaintenanceWindow are those of its CustomResourceDefinition. A window that breaks
// a rule is still read: WindowSpec::invalid names the first broken rule, and such a window keeps
// nothing.
//
// Scope: values and pure functions. core/queue/windows.h says what a window keeps and ends,
// writes/window_statuses.h when a status is written, publish/render_window.h how.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline const kube::Resource kMaintenanceWindows{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "maintenancewindows"};

struct WindowSpec {
  std::string name;
  std::string uid;
  std::int64_t generation = 0;
  std::string invalid;  // the first broken rule; empty: none
  std::vector<std::string> nodes;
  std::vector<std::string> ultra_servers;
  WallTime from;   // in whole seconds
  WallTime until;  // later than `from`
  std::chrono::seconds warning{3600};
  std::string reason;
  bool drain = false;  // gangs that are not preemptible are ended, too

  friend bool operator==(const WindowSpec&, const WindowSpec&) = default;
};

enum class WindowPhase : std::uint8_t { kScheduled, kWarned, kActive, kOver, kInvalid };

// Returns the phase at that time, whatever the phase was before.
WindowPhase PhaseAt(const WindowSpec& window, WallTime now);
// Returns "Scheduled", "Warned", …
std::string_view ToString(WindowPhase phase);
// Returns "maintenance window night-fix (2026-12-01T01:00:00Z to 2026-12-01T03:00:00Z)".
std::string Describe(const WindowSpec& window);

// Since when a condition is as it is.
struct WindowCondition {
  bool holds = false;
  WallTime since;

  friend bool operator==(const WindowCondition&, const WindowCondition&) = default;
};

// The status of a window as a watch has seen the object.
struct WindowShown {
  std::string resource_version = {};
  std::uint64_t digest = 0;  // of the status; 0: unknown
  std::optional<WindowCondition> ready = {};
  std::optional<WindowCondition> drained = {};
};

struct WindowObject {
  std::shared_ptr<const WindowSpec> spec;
  WindowShown shown;
};

// Fails with kInvalidArgument when the object is no MaintenanceWindow at all: its metadata has no
// name.
absl::StatusOr<WindowObject> ParseWindow(const Json& object);

// The most names that each list of a status has.
inline constexpr std::size_t kWindowNamesMost = 8;

struct WindowStatus {
  std::int64_t observed_generation = 0;
  WindowPhase phase = WindowPhase::kScheduled;
  std::string invalid;
  std::int64_t nodes = 0;  // nodes of the window that exist
  std::int64_t gangs = 0;  // gangs that hold devices there
  std::vector<std::string> gang_names = {};
  std::int64_t missing = 0;  // names of the spec without a node
  std::vector<std::string> missing_names = {};
  std::vector<std::string> blocks = {};  // Capacity Blocks that have the hardware now
  // When the conditions last changed.
  WallTime ready_since;
  WallTime drained_since;

  bool ready() const { return phase != WindowPhase::kInvalid && missing == 0; }
  bool drained() const { return gangs == 0; }
};

// Compares all but the times.
bool Says(const WindowStatus& a, const WindowStatus& b);

}  // namespace tahoma::controller
