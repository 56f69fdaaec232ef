#include "controller/run/leader_label.h"

#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/requests.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

LeaderLabel::LeaderLabel(kube::Transport& transport, const Clock& clock, kube::ObjectKey pod,
                         std::function<void(const std::string& line)> log)
    : transport_(transport), clock_(clock), pod_(std::move(pod)), log_(std::move(log)) {}

void LeaderLabel::Tend(bool leads) {
  if (pod_.name.empty() || written_ == leads) return;
  const MonotonicTime now = clock_.MonotonicNow();
  if (failed_at_ && failed_for_ == leads && now - *failed_at_ < kRetry) return;
  const absl::Status status = Write(leads);
  const std::string trouble(Message(status));
  if (trouble != std::exchange(trouble_, trouble) && !status.ok()) {
    log_(fmt::format("the label {} of pod {} cannot be written: {}", kName, pod_.ToString(),
                     trouble));
  }
  failed_for_ = leads;
  if (status.ok()) {
    written_ = leads;
    failed_at_.reset();
  } else {
    written_.reset();  // a write without an answer may have been carried out
    failed_at_ = now;
  }
}

absl::Status LeaderLabel::Write(bool leads) {
  const Json label = leads ? Json("true") : Json(nullptr);
  return kube::StatusOf(transport_.Send(kube::PatchRequest(
      kube::kPods, pod_, kube::PatchType::kMerge, {{"metadata", {{"labels", {{kName, label}}}}}})));
}

}  // namespace tahoma::controller
