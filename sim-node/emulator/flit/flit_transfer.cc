#include "sim-node/emulator/flit/flit_transfer.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/torus/path.h"

namespace tahoma::sim {

FlitTransfer::FlitTransfer(EventQueue& queue, const TorusLinks& links, const FlitConfig& config)
    : queue_(queue), links_(links), network_(links.torus(), config, /*seed=*/0) {
  TAHOMA_CHECK(config.ties == TieRule::kByParity);
  const auto fitting = FlitConfig::Of(links);
  TAHOMA_CHECK(fitting.ok());
  TAHOMA_CHECK(fitting->link_period == config.link_period);
  for (const std::uint64_t rate : links.capacities()) rate_ = std::max(rate_, rate);
}

absl::Status FlitTransfer::CheckRoute(const Flow& flow) const {
  for (const torus::Hop& hop : torus::Route(links_.torus(), flow.from, flow.to)) {
    const LinkId link = TorusLinks::IdOf(hop.from, hop.axis, hop.direction);
    if (links_.permille(link) != TorusLinks::kHealthy) {
      return FailedPrecondition("{} is not healthy; the flit level knows only links at full rate",
                                TorusLinks::Name(link));
    }
    if ((flow.through & torus::MaskOf(hop.to)) == 0) {
      return FailedPrecondition(
          "the route of dimension order from chip {} to chip {} leaves the chips of the flow",
          flow.from.value(), flow.to.value());
    }
  }
  if (network_.deadlock()) return Aborted("{}", network_.deadlock()->ToString());
  return absl::OkStatus();
}

VirtualTime FlitTransfer::TimeOf(std::uint64_t cycle) const {
  const auto bytes = static_cast<std::uint64_t>(network_.config().flit_bytes);
  return awake_since_ + TransferTime((cycle - awake_cycle_) * bytes, rate_);
}

void FlitTransfer::Start(std::vector<Flow> flows, Done done) {
  const std::uint64_t id = next_batch_++;
  Batch& batch = batches_[id];
  batch = {.done = std::move(done),
           .arrivals = std::vector<VirtualTime>(flows.size(), queue_.now()),
           .running = 0};
  for (const Flow& flow : flows) {
    if (const absl::Status status = CheckRoute(flow); !status.ok()) {
      return FinishAt(queue_.now(), id, status);
    }
  }
  const auto flit_bytes = static_cast<std::uint64_t>(network_.config().flit_bytes);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].from == flows[i].to) continue;
    const auto hops = static_cast<VirtualDuration::rep>(
        torus::Route(links_.torus(), flows[i].from, flows[i].to).size());
    const std::uint64_t flits = std::max<std::uint64_t>(
        flows[i].bytes / flit_bytes + (flows[i].bytes % flit_bytes != 0), 1);
    const std::uint64_t tag = next_flow_++;
    running_[tag] = {.batch = id, .index = i, .flits = flits, .hops = links_.timing().hop * hops};
    ++batch.running;
    network_.Send({.from = flows[i].from, .to = flows[i].to, .flits = flits, .tag = tag});
  }
  if (batch.running == 0) return FinishAt(queue_.now(), id, absl::OkStatus());
  if (ticking_) return;
  ticking_ = true;
  awake_since_ = queue_.now();
  awake_cycle_ = network_.cycle();
  queue_.Schedule(queue_.now(), EventPriority::kStart, [this] { Tick(); });
}

// Runs the cycle that begins now.
void FlitTransfer::Tick() {
  for (const FlitNetwork::Arrival& packet : network_.Step()) Arrive(packet);
  if (network_.deadlock()) {
    const absl::Status status = Aborted("{}", network_.deadlock()->ToString());
    for (const auto& [id, batch] : batches_) {
      if (batch.running != 0) FinishAt(queue_.now(), id, status);
    }
    running_.clear();
    return;  // for good: ticking_ stays set
  }
  ticking_ = network_.busy();
  if (!ticking_) return;
  queue_.Schedule(TimeOf(network_.cycle()), EventPriority::kStart, [this] { Tick(); });
}

void FlitTransfer::Arrive(const FlitNetwork::Arrival& packet) {
  const auto found = running_.find(packet.tag);
  Running& flow = found->second;
  flow.flits -= static_cast<std::uint64_t>(packet.flits);
  if (flow.flits != 0) return;
  Batch& batch = batches_.at(flow.batch);
  batch.arrivals[flow.index] = TimeOf(network_.cycle()) + flow.hops;  // the cycle's end
  if (--batch.running == 0) {
    FinishAt(*std::max_element(batch.arrivals.begin(), batch.arrivals.end()), flow.batch,
             absl::OkStatus());
  }
  running_.erase(found);
}

void FlitTransfer::FinishAt(VirtualTime time, std::uint64_t batch, absl::Status status) {
  queue_.Schedule(time, EventPriority::kArrival, [this, batch, why = std::move(status)] {
    const Batch ended = std::move(batches_.extract(batch).mapped());
    ended.done(why, ended.arrivals);
  });
}

}  // namespace tahoma::sim
