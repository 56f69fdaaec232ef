// Marks the pod of the controller that leads, so that a Service can select it: stand-bys know no
// fleet, and are ready all the same.
//
//   LeaderLabel label(transport, clock, {"tahoma-system", "tahoma-controller-0"}, log);
//   label.Tend(leads);     // often; tahoma.dev/leader: "true" while it leads
//
// What is not known is written: a container that starts again takes the label of the one before it
// away. Nobody depends on it but callers of the admin API, so a write that fails is logged once and
// tried again after kRetry, for as long as it takes.
//
// Thread safety: one thread.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/kube/object.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

class LeaderLabel {
 public:
  static constexpr std::chrono::seconds kRetry{5};
  static constexpr const char* kName = "tahoma.dev/leader";

  // Transport and clock must outlive it. Without a name it does nothing.
  LeaderLabel(kube::Transport& transport, const Clock& clock, kube::ObjectKey pod,
              std::function<void(const std::string& line)> log);

  // Writes the label if the pod is not known to be as it should be.
  void Tend(bool leads);

 private:
  absl::Status Write(bool leads);

  kube::Transport& transport_;
  const Clock& clock_;
  const kube::ObjectKey pod_;
  const std::function<void(const std::string& line)> log_;
  std::optional<bool> written_;
  std::optional<MonotonicTime> failed_at_;
  bool failed_for_ = false;  // what the write that failed wanted
  std::string trouble_;      // as it was logged
};

}  // namespace tahoma::controller
