#include "sim-node/link/transfer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/link/max_min.h"

namespace tahoma::sim {
namespace {

VirtualDuration TimeLeft(Wide left, std::uint64_t rate) {
  TAHOMA_CHECK(rate > 0);  // routes use links that are up, and shares are far above 1 B/s
  return VirtualDuration(static_cast<std::int64_t>((left + rate - 1) / rate));
}

}  // namespace

void Transfer::Start(std::vector<Flow> flows, Done done) {
  AdvanceToNow();
  const std::uint64_t id = next_batch_++;
  batches_[id] = {.done = std::move(done),
                  .arrivals = std::vector<VirtualTime>(flows.size(), queue_.now()),
                  .running = flows.size()};
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Wide left = static_cast<Wide>(flows[i].bytes) * kPicosecondsPerSecond;
    running_.push_back(
        {.flow = flows[i], .route = {}, .left = left, .rate = 0, .batch = id, .index = i});
  }
  if (flows.empty()) FinishLater(id);
  RouteAndWait();
}

// Gives a route to every flow that has none or whose route has lost a link; ends the batches for
// which there is none.
void Transfer::RouteAgain() {
  std::map<std::uint64_t, absl::Status> failed;
  for (Running& running : running_) {
    const bool whole = std::all_of(running.route.begin(), running.route.end(),
                                   [&](LinkId link) { return links_.capacity(link) != 0; });
    if (whole && !running.route.empty()) continue;
    auto route = links_.FindRoute(running.flow.from, running.flow.to, running.flow.through);
    if (route.ok()) {
      running.route = *std::move(route);
    } else {
      failed.try_emplace(running.batch, route.status());
    }
  }
  for (const auto& [batch, status] : failed) {
    std::erase_if(running_, [id = batch](const Running& running) { return running.batch == id; });
    queue_.Schedule(queue_.now(), EventPriority::kArrival,
                    [this, id = batch, why = status] { Finish(id, why); });
  }
}

// Solves the rates and waits for the flow that ends first.
void Transfer::RouteAndWait() {
  RouteAgain();
  if (completion_) queue_.Cancel(*completion_);
  completion_.reset();
  if (running_.empty()) return;
  std::vector<std::span<const LinkId>> paths;
  paths.reserve(running_.size());
  for (const Running& running : running_) paths.emplace_back(running.route);
  const std::vector<std::uint64_t> rates = MaxMinRates(paths, links_.capacities());
  VirtualTime next = VirtualTime::max();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    running_[i].rate = rates[i];
    const VirtualTime end = rates[i] == kUnlimitedRate
                                ? queue_.now()
                                : queue_.now() + TimeLeft(running_[i].left, rates[i]);
    next = std::min(next, end);
  }
  completion_ = queue_.Schedule(next, EventPriority::kArrival, [this] { OnCompletion(); });
}

void Transfer::AdvanceToNow() {
  const auto elapsed = static_cast<Wide>((queue_.now() - last_advance_).count());
  last_advance_ = queue_.now();
  for (Running& running : running_) {
    const bool at_once = running.rate == kUnlimitedRate;
    running.left -= at_once ? running.left : std::min(running.left, elapsed * running.rate);
  }
}

void Transfer::OnCompletion() {
  completion_.reset();
  AdvanceToNow();
  std::erase_if(running_, [this](const Running& running) {
    if (running.left != 0) return false;
    Batch& batch = batches_.at(running.batch);
    batch.arrivals[running.index] = queue_.now() + links_.LatencyOf(running.route);
    if (--batch.running == 0) FinishLater(running.batch);
    return true;
  });
  RouteAndWait();
}

void Transfer::FinishLater(std::uint64_t batch) {
  VirtualTime last = queue_.now();
  for (const VirtualTime arrival : batches_.at(batch).arrivals) last = std::max(last, arrival);
  queue_.Schedule(last, EventPriority::kArrival,
                  [this, batch] { Finish(batch, absl::OkStatus()); });
}

void Transfer::Finish(std::uint64_t batch, const absl::Status& status) {
  const Batch ended = std::move(batches_.extract(batch).mapped());
  ended.done(status, ended.arrivals);
}

absl::Status Transfer::SetPermille(LinkId link, std::uint16_t permille) {
  TAHOMA_RETURN_IF_ERROR(links_.SetPermille(link, permille));
  AdvanceToNow();
  RouteAndWait();
  return absl::OkStatus();
}

}  // namespace tahoma::sim
