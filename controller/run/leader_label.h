// Labels the pod of the leading controller: a Service can select the leader. Stand-bys know no
// fleet, but are ready all the same.
//
//   LeaderLabel label(transport, clock, {"tahoma-system", "tahoma-controller-0"}, log);
//   label.Tend(leads);     // often; tahoma.dev/leader: "true" while the controller leads
//
// A new process does not know the label, and writes it: a restarted container removes the label of
// its predecessor. Only callers of the admin API depend on the label. A failed write is therefore
// logged once and tried again after each kRetry, without end.
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

  // Transport and clock must outlive the label. Without a pod name Tend does nothing.
  LeaderLabel(kube::Transport& transport, const Clock& clock, kube::ObjectKey pod,
              std::function<void(const std::string& line)> log);

  // Writes the label unless the pod is known to have the right value.
  void Tend(bool leads);

 private:
  absl::Status Write(bool leads);

  kube::Transport& transport_;
  const Clock& clock_;
  const kube::ObjectKey pod_;
  const std::function<void(const std::string& line)> log_;
  std::optional<bool> written_;
  std::optional<MonotonicTime> failed_at_;
  bool failed_for_ = false;  // the value that the failed write wanted
  std::string trouble_;      // as logged
};

}  // namespace tahoma::controller
