// Publishes the fleet's summary in the API: `kubectl tahoma topology` reads one object instead of
// the whole fleet.
//
//   TopologyPublisher topology(transport, clock, {.snapshot = [&] { return loop.snapshot(); }});
//   topology.Start();
//
// The object is written when the summary has changed, at most once in kSummaryPause, and otherwise
// once in kSummaryRenewal, to show readers that it is still renewed. The publisher reads snapshots:
// the core does nothing for it and does not wait for it. A failed write is logged once and tried
// again after kSummaryPause.
//
// Thread safety: Start from one thread. Tend by the thread of Start, or without Start by a test's
// thread.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "controller/core/snapshot.h"
#include "controller/model/fleet_summary.h"
#include "lib/base/clock.h"
#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

inline constexpr std::chrono::seconds kSummaryPause{3};
inline constexpr std::chrono::seconds kSummaryRenewal{20};

struct TopologyPublisherOptions {
  std::function<std::shared_ptr<const Snapshot>()> snapshot;
  // As PublisherOptions::may_send.
  std::function<bool()> may_send = nullptr;
  std::function<void(const std::string& line)> log = [](const std::string&) {};
};

class TopologyPublisher {
 public:
  // `transport` and `clock` must outlive the publisher.
  TopologyPublisher(kube::Transport& transport, const Clock& clock,
                    TopologyPublisherOptions options);
  // Waits for the request that is being sent.
  ~TopologyPublisher();
  TopologyPublisher(const TopologyPublisher&) = delete;
  TopologyPublisher& operator=(const TopologyPublisher&) = delete;

  void Start();
  // Writes the object if a write is due. Nothing is written before the controller has seen the
  // whole fleet.
  void Tend();

 private:
  absl::Status Write(const FleetSummary& summary);

  const Clock& clock_;
  const TopologyPublisherOptions options_;
  kube::InterruptibleSleeper sleeper_;
  kube::Client client_;
  std::weak_ptr<const ClusterState> seen_;  // of the summary; not kept alive for it
  FleetSummary summary_;
  std::optional<FleetSummary> written_;
  MonotonicTime written_at_{};
  std::string trouble_;  // as logged
  std::thread thread_;
};

}  // namespace tahoma::controller
