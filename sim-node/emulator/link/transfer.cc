#include "sim-node/emulator/link/transfer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// The most links of a route over EFA: two NICs, and an uplink and a downlink of each layer.
constexpr std::size_t kLinksMost = 2 + 2 * kNetworkLayers;

VirtualDuration TimeLeft(Wide left, std::uint64_t rate) {
  TAHOMA_CHECK(rate > 0);  // routes use links that are up, and shares are far above 1 B/s
  return VirtualDuration(static_cast<std::int64_t>((left + rate - 1) / rate));
}

}  // namespace

Transfer::Transfer(EventQueue& queue, Fabric& fabric)
    : queue_(queue),
      fabric_(fabric),
      islands_(static_cast<std::size_t>(fabric.domain_count()) + 1) {}

std::size_t Transfer::IslandOf(const Flow& flow) const {
  const int domain = Fabric::DomainOf(flow.from);
  if (flow.alike != nullptr) return islands_.size() - 1;
  return domain == Fabric::DomainOf(flow.to) ? static_cast<std::size_t>(domain)
                                             : islands_.size() - 1;
}

absl::StatusOr<std::vector<LinkId>> Transfer::RouteOf(const Flow& flow) const {
  const DomainChip from = Fabric::Split(flow.from);
  const DomainChip to = Fabric::Split(flow.to);
  if (from.domain != to.domain) return fabric_.efa().FindRoute(from, to);
  auto route = fabric_.domain(from.domain)
                   .FindRoute(Fabric::LocalOf(flow.from), Fabric::LocalOf(flow.to), flow.through);
  if (route.ok() || fabric_.domain_count() == 1) return route;
  return Annotate(route.status(), fmt::format("domain {}", from.domain));
}

absl::Status Transfer::SetRoute(std::size_t island, Running& running) {
  const Flow& flow = running.flow;
  if (flow.alike != nullptr) return SetRouteOfAll(running);
  // Whether an uplink is on a route depends on the other flows.
  const bool kept = island + 1 != islands_.size();
  auto& known = islands_[island].known_routes;
  const std::tuple ends(flow.from.value(), flow.to.value(), flow.through);
  if (const auto found = known.find(ends); kept && found != known.end()) {
    running.route.assign(found->second.begin(), found->second.end());
    return absl::OkStatus();
  }
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkId> route, RouteOf(flow));
  running.route.assign(route.begin(), route.end());
  if (kept) known[ends] = route;
  if (flow.places > 1 && island + 1 == islands_.size()) {
    running.counts.assign(route.size(), flow.places);
    running.counts.front() = running.counts.back() = 1;
  }
  return absl::OkStatus();
}

// Gives a flow that stands for others the links of all.
absl::Status Transfer::SetRouteOfAll(Running& running) const {
  const Flow& flow = running.flow;
  const EfaNetwork& network = fabric_.efa();
  running.route = {network.NicOf(Fabric::Split(flow.from), NicDirection::kOut)};
  running.counts = {flow.alike->at_sender};
  for (const AlikeFlows::Uplink& uplink : flow.alike->uplinks) {
    running.route.push_back(uplink.link);
    running.counts.push_back(uplink.flows * flow.places);
  }
  running.route.push_back(network.NicOf(Fabric::Split(flow.to), NicDirection::kIn));
  running.counts.push_back(flow.alike->at_receiver);
  for (const LinkId link : running.route) {
    if (network.capacity(link) == 0) {
      return FailedPrecondition("no EFA route: {} is down", network.Name(link));
    }
  }
  return absl::OkStatus();
}

VirtualDuration Transfer::Latency(const Running& running) const {
  if (running.flow.alike != nullptr) {
    return fabric_.efa().Latency(running.flow.alike->layers, fabric_.timing().step);
  }
  const int from = Fabric::DomainOf(running.flow.from);
  const int to = Fabric::DomainOf(running.flow.to);
  if (from != to) return fabric_.efa().Latency(from, to, fabric_.timing().step);
  return fabric_.domain(from).LatencyOf(running.route);
}

std::uint64_t Transfer::capacity(std::size_t island, LinkId link) const {
  return island + 1 == islands_.size() ? fabric_.efa().capacity(link)
                                       : fabric_.domain(static_cast<int>(island)).capacity(link);
}

void Transfer::Start(std::vector<Flow> flows, Done done, std::function<void()> sent) {
  const std::uint64_t id = next_batch_++;
  batches_[id] = {.done = std::move(done),
                  .sent = std::move(sent),
                  .arrivals = std::vector<VirtualTime>(flows.size(), queue_.now()),
                  .running = flows.size()};
  std::set<std::size_t> touched;
  std::size_t last = islands_.size();  // mostly all are on one
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const std::size_t at = IslandOf(flows[i]);
    if (at != last && touched.insert(at).second) AdvanceToNow(islands_[at]);
    last = at;
    const Wide left = static_cast<Wide>(flows[i].bytes) * kPicosecondsPerSecond;
    islands_[at].running.push_back({.flow = flows[i],
                                    .route = {},
                                    .counts = {},
                                    .left = left,
                                    .rate = 0,
                                    .batch = id,
                                    .index = i});
  }
  if (flows.empty()) FinishLater(id);
  Go(std::move(touched));
}

// Routes, solves and waits on islands where something has changed; they must be advanced to now.
void Transfer::Go(std::set<std::size_t> islands) {
  Failed failed;
  for (const std::size_t island : islands) RouteAgain(island, failed);
  islands.merge(End(failed));
  for (const std::size_t island : islands) {
    Solve(island);
    Wait(island);
  }
}

// Gives a route to every flow that has none or whose route has lost a link.
void Transfer::RouteAgain(std::size_t island, Failed& failed) {
  for (Running& running : islands_[island].running) {
    const bool whole = std::all_of(running.route.begin(), running.route.end(),
                                   [&](LinkId link) { return capacity(island, link) != 0; });
    if (whole && !running.route.empty()) continue;
    const absl::Status set = SetRoute(island, running);
    if (!set.ok()) failed.try_emplace(running.batch, set);
  }
}

// Takes the batches away; returns the islands that they were on, advanced to now.
std::set<std::size_t> Transfer::End(const Failed& failed) {
  std::set<std::size_t> touched;
  if (failed.empty()) return touched;
  const auto ends = [&](const Running& running) { return failed.contains(running.batch); };
  for (std::size_t island = 0; island < islands_.size(); ++island) {
    std::vector<Running>& running = islands_[island].running;
    if (std::none_of(running.begin(), running.end(), ends)) continue;
    AdvanceToNow(islands_[island]);
    std::erase_if(running, ends);
    touched.insert(island);
  }
  for (const auto& [batch, status] : failed) {
    queue_.Schedule(queue_.now(), EventPriority::kArrival,
                    [this, id = batch, why = status] { Finish(id, why); });
  }
  return touched;
}

// Gives every flow the rate of its slowest link if no two have a link in common.
bool Transfer::SolveDisjoint(std::size_t at) {
  Island& island = islands_[at];
  ++island.looks;
  for (Running& running : island.running) {
    running.rate = kUnlimitedRate;
    for (const LinkId link : running.route) {
      if (island.seen_in.size() <= link) island.seen_in.resize(std::size_t{link} + 1);
      if (std::exchange(island.seen_in[link], island.looks) == island.looks) return false;
      running.rate = std::min(running.rate, capacity(at, link));
    }
  }
  return true;
}

// Gives all flows max-min fair rates.
void Transfer::SolveMaxMin(std::size_t at, bool each_for_itself) {
  Island& island = islands_[at];
  std::vector<std::span<const LinkId>> paths;
  std::vector<std::span<const std::uint64_t>> counts;
  const std::vector<std::uint64_t> ones(each_for_itself ? 0 : kLinksMost, 1);
  paths.reserve(island.running.size());
  for (const Running& running : island.running) {
    paths.emplace_back(running.route);
    if (each_for_itself) continue;
    counts.push_back(running.counts.empty() ? std::span(ones).first(running.route.size())
                                            : std::span(running.counts));
  }
  const bool network = at + 1 == islands_.size();
  const std::vector<std::uint64_t> rates = MaxMinRates(
      paths,
      network ? fabric_.efa().capacities() : fabric_.domain(static_cast<int>(at)).capacities(),
      counts);
  for (std::size_t i = 0; i < rates.size(); ++i) island.running[i].rate = rates[i];
}

// Works out the rates of all flows, and when each ends.
void Transfer::Solve(std::size_t at) {
  Island& island = islands_[at];
  island.disjoint = SolveDisjoint(at);
  // A flow that stands for others shares its links with these, which end with it.
  const bool each_for_itself = std::ranges::all_of(
      island.running, [](const Running& running) { return running.counts.empty(); });
  if (!island.disjoint || !each_for_itself) SolveMaxMin(at, each_for_itself);
  for (Running& running : island.running) {
    running.end = queue_.now();
    if (running.rate != kUnlimitedRate) running.end += TimeLeft(running.left, running.rate);
  }
}

// Waits for the flow that ends first.
void Transfer::Wait(std::size_t at) {
  Island& island = islands_[at];
  if (island.completion) queue_.Cancel(*island.completion);
  island.completion.reset();
  if (island.running.empty()) return;
  VirtualTime next = VirtualTime::max();
  for (const Running& running : island.running) next = std::min(next, running.end);
  island.completion =
      queue_.Schedule(next, EventPriority::kArrival, [this, at] { OnCompletion(at); });
}

void Transfer::AdvanceToNow(Island& island) const {
  const auto elapsed = static_cast<Wide>((queue_.now() - island.last_advance).count());
  island.last_advance = queue_.now();
  for (Running& running : island.running) {
    const bool at_once = running.rate == kUnlimitedRate;
    running.left -= at_once ? running.left : std::min(running.left, elapsed * running.rate);
  }
}

void Transfer::OnCompletion(std::size_t at) {
  Island& island = islands_[at];
  island.completion.reset();
  std::erase_if(island.running, [this](const Running& running) {
    if (running.end > queue_.now()) return false;
    ++arrived_;
    Batch& batch = batches_.at(running.batch);
    batch.arrivals[running.index] = queue_.now() + Latency(running);
    if (--batch.running == 0) FinishLater(running.batch);
    return true;
  });
  if (island.disjoint) return Wait(at);  // the others go on as they do
  AdvanceToNow(island);
  Go({at});
}

void Transfer::FinishLater(std::uint64_t batch) {
  VirtualTime last = queue_.now();
  const Batch& all_sent = batches_.at(batch);
  if (all_sent.sent) queue_.Schedule(queue_.now(), EventPriority::kArrival, all_sent.sent);
  for (const VirtualTime arrival : all_sent.arrivals) last = std::max(last, arrival);
  queue_.Schedule(last, EventPriority::kArrival,
                  [this, batch] { Finish(batch, absl::OkStatus()); });
}

void Transfer::Finish(std::uint64_t batch, const absl::Status& status) {
  const Batch ended = std::move(batches_.extract(batch).mapped());
  ended.done(status, ended.arrivals);
}

absl::Status Transfer::SetPermille(LinkId link, std::uint16_t permille) {
  TAHOMA_RETURN_IF_ERROR(fabric_.SetPermille(link, permille));
  TAHOMA_ASSIGN_OR_RETURN(const Fabric::Place place, fabric_.Find(link));
  const auto at = static_cast<std::size_t>(place.island);
  AdvanceToNow(islands_[at]);
  islands_[at].known_routes.clear();
  if (place.island == fabric_.domain_count()) {
    // An uplink is on routes only while it can limit them.
    for (Running& running : islands_[at].running) running.route.clear();
  }
  Go({at});
  return absl::OkStatus();
}

}  // namespace tahoma::sim
