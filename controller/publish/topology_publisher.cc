#include "controller/publish/topology_publisher.h"

#include <utility>

#include "controller/model/fleet_summary_object.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

// A failed write is tried again by the next call of Tend.
TopologyPublisher::TopologyPublisher(kube::Transport& transport, const Clock& clock,
                                     TopologyPublisherOptions options)
    : clock_(clock),
      options_(std::move(options)),
      client_(transport, sleeper_, Rng(0), {.attempts = 1}) {}

TopologyPublisher::~TopologyPublisher() {
  sleeper_.Interrupt();
  if (thread_.joinable()) thread_.join();
}

void TopologyPublisher::Start() {
  thread_ = std::thread([this] {
    do {
      Tend();
    } while (sleeper_.Sleep(kSummaryPause));
  });
}

void TopologyPublisher::Tend() {
  const std::shared_ptr<const Snapshot> now = options_.snapshot();
  if (!now->synced || now->cluster == nullptr) return;
  if (now->cluster != seen_.lock()) {
    summary_ = SummarizeFleet(*now->cluster);
    seen_ = now->cluster;
  }
  const auto since = clock_.MonotonicNow() - written_at_;
  if (written_ == summary_ && since < kSummaryRenewal) return;
  if (options_.may_send && !options_.may_send()) return;
  const absl::Status status = Write(summary_);
  const std::string trouble(Message(status));
  if (trouble != std::exchange(trouble_, trouble) && !status.ok()) {
    options_.log(
        fmt::format("the summary for kubectl tahoma topology cannot be written: {}", trouble));
  }
  if (!status.ok()) return;
  written_ = summary_;
  written_at_ = clock_.MonotonicNow();
}

// No resourceVersion: the leader is always right. Metadata of other clients stays, such as the
// labels by which Helm knows that it may delete the object.
absl::Status TopologyPublisher::Write(const FleetSummary& summary) {
  const Json object = FleetSummaryObject({.summary = summary, .made = clock_.WallNow()});
  const absl::Status patched = client_
                                   .Patch(kube::kConfigMaps, {kSummaryNamespace, kSummaryName},
                                          kube::PatchType::kMerge, {{"data", object.at("data")}})
                                   .status();
  if (!absl::IsNotFound(patched)) return patched;
  return client_.Create(kube::kConfigMaps, kSummaryNamespace, object).status();
}

}  // namespace tahoma::controller
