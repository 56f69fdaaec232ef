#include "controller/core/forecast/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "controller/core/blocks/block_hosts.h"
#include "controller/core/forecast/move_question.h"
#include "controller/plan/score.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The ends of blocks, in Timeline's numbers, come behind those of holdings.
constexpr std::uint64_t kFirstBlock = std::uint64_t{1} << 32;

std::int64_t ChipsOf(const GangSpec& gang) {
  std::int64_t chips = 0;
  for (const MemberSpec& member : gang.members) {
    chips += member.claims.front().requests.front().alternatives.front().count;
  }
  return chips;
}

// Returns the chips that become free when the holding ends.
std::int64_t ChipsOf(const Holding& holding, const ClusterState& cluster) {
  std::int64_t chips = 0;
  std::vector<std::string_view> seen;
  for (const Holding::HeldDevice& held : holding.devices) {
    if (std::find(seen.begin(), seen.end(), held.node) != seen.end()) continue;
    seen.push_back(held.node);
    const auto id = cluster.FindNode(held.node);
    if (!id || cluster.node(*id).node == nullptr) continue;
    chips += std::popcount(controller::ChipsOf(holding, *cluster.node(*id).node));
  }
  return chips;
}

ForeseenPlace Foresee(const GangSpec& gang, const Placement& placement, const ClusterState& state,
                      WallTime when) {
  ForeseenPlace place{.decision = DecisionOf(gang, placement, when), .predicted_all_reduce = ""};
  const auto held = placement.Holdings(gang, when);
  std::vector<const Holding*> holdings;
  for (const auto& holding : held) holdings.push_back(holding.get());
  if (const auto time = PredictAllReduce(state, holdings)) {
    place.predicted_all_reduce = TimeText(*time);
  }
  return place;
}

// Returns whether the promise would bind the gang, which has none: as Promises::Binding says, and
// where the holder is no gang that waits.
bool Binds(const Snapshot& snapshot, const Promise& promise, const GangSpec& gang, bool by_queue) {
  if (!promise.gang) return true;
  const auto* holder = snapshot.gangs.Find(GangRef{*promise.gang, promise.single_pod});
  if (holder == nullptr || !(*holder)->service) return true;
  if (*(*holder)->service < PlaceOf({gang.key, gang.single_pod}, gang)) return true;
  if (!gang.reservation.empty()) return false;
  return promise.kind == PromiseKind::kPreempt || (by_queue && (*holder)->queue != gang.queue);
}

std::vector<std::shared_ptr<const Promise>> BindingOn(const Snapshot& snapshot,
                                                      const GangSpec& gang, bool by_queue) {
  std::vector<std::shared_ptr<const Promise>> binding;
  for (const auto& promise : snapshot.promises) {
    if (Binds(snapshot, *promise, gang, by_queue)) binding.push_back(promise);
  }
  return binding;
}

// Returns the fleet with these promises held but those beyond the gang's end.
ClusterState WithPromises(const Snapshot& snapshot,
                          const std::vector<std::shared_ptr<const Promise>>& promises,
                          const GangSpec& gang, WallTime now) {
  ClusterState fleet = *snapshot.cluster;
  for (const auto& promise : promises) {
    if (!controller::Binds(*promise, gang, now)) continue;
    for (const auto& holding : promise->holdings) fleet.Hold(holding);
  }
  return fleet;
}

// Returns whether more cores of the holding's devices are in use in the fleet than in the snapshot.
bool Differs(const Holding& holding, const ClusterState& fleet, const Snapshot& snapshot) {
  return std::ranges::any_of(holding.devices, [&](const Holding::HeldDevice& device) {
    const auto id = fleet.FindNode(device.node);
    if (!id || fleet.node(*id).node == nullptr) return false;
    const std::uint16_t chips = fleet.node(*id).node->ChipsNamed(device.device);
    const auto& before = snapshot.cluster->node(*id).busy_cores;
    const auto& now = fleet.node(*id).busy_cores;
    for (std::size_t chip = 0; chip < now.size(); ++chip) {
      if (((chips >> chip) & 1U) != 0 && now[chip] != before[chip]) return true;
    }
    return false;
  });
}

// Returns the place, of many slices or nodes only the first.
std::string ShortText(const Placement& placement) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> places;
  for (const SlicePlacement& slice : placement.slices) places.push_back(slice.ToString());
  for (const MemberPlacement& member : placement.members) {
    if (!placement.slices.empty()) break;
    if (places.empty() || places.back() != member.node) places.push_back(member.node);
  }
  const std::size_t named = std::min(places.size(), kNamed);
  std::string text = fmt::format(
      "{}", fmt::join(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (places.size() > named) text += fmt::format(" and {} more", places.size() - named);
  return text;
}

Forecast Waits(std::string message) {
  Forecast forecast;
  forecast.blocked.emplace();
  forecast.blocked->message = std::move(message);
  return forecast;
}

}  // namespace

// A snapshot's future: the ends of holdings and blocks, the promises, and the booked hosts.
class WhatIf::Future {
 public:
  Future(const Snapshot& snapshot, std::vector<std::shared_ptr<const Promise>> promises,
         const GangSpec& gang, WallTime now)
      : snapshot_(snapshot),
        promises_(std::move(promises)),
        time_(snapshot.block_time),
        profile_(snapshot.profile),
        runtime_(gang.max_runtime),
        now_(now) {
    profile_.AdvanceTo(SlotOf(time_.ToBlock(now)));
    FindEnds();
    FindHosts();
  }

  // Returns a timeline, valid as long as this object.
  Timeline MakeTimeline() const {
    TimelineParts parts{.fleet = *snapshot_.cluster,
                        .now = now_,
                        .release = [this](std::uint64_t what, ClusterState& fleet) {
                          if (what < kFirstBlock) return fleet.Release(holdings_[what]->claim_uid);
                          Vacate(*blocks_[what - kFirstBlock], fleet);
                        }};
    for (std::size_t i = 0; i < holdings_.size(); ++i) {
      parts.ends.push_back({.when = *holdings_[i]->end, .what = i});
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const WallTime end = time_.ToWall(blocks_[i]->end);
      if (end > now_) parts.ends.push_back({.when = end, .what = kFirstBlock + i});
    }
    std::ranges::sort(parts.ends);
    parts.chips = [this](std::uint64_t what) {
      return what < kFirstBlock ? ChipsOf(*holdings_[what], *snapshot_.cluster)
                                : std::int64_t{blocks_[what - kFirstBlock]->chips()};
    };
    parts.keep = [this](WallTime when, ClusterState& fleet) { KeepBooked(when, fleet); };
    parts.promises = promises_;
    return Timeline(std::move(parts));
  }

 private:
  bool EndsBy(const Block& block, WallTime when) const { return time_.ToWall(block.end) <= when; }

  void KeepBooked(WallTime when, ClusterState& fleet) const {
    std::set<std::string_view> bound;
    for (const Block* block : blocks_) {
      if (EndsBy(*block, when) || !Meets(*block, when)) continue;
      bound.insert(block->hosts.begin(), block->hosts.end());
    }
    for (const auto& [pool, hosts] : hosts_) KeepHosts(pool, hosts, bound, when, fleet);
  }

  void FindEnds() {
    snapshot_.cluster->ForEachHolding([&](const Holding& holding) {
      if (!holding.end || *holding.end <= now_) return;
      holdings_.push_back(&holding);
    });
    std::ranges::sort(holdings_, {}, [](const Holding* holding) {
      return std::tie(*holding->end, holding->claim_uid);
    });
    snapshot_.block_list.ForEach([&](const std::string&, const auto& block) {
      if (!HoldsCapacity(block->state)) return;
      blocks_.push_back(block.get());
    });
    std::ranges::sort(blocks_, {},
                      [](const Block* block) { return std::tie(block->end, block->reservation); });
  }

  // Notes the healthy hosts of each pool in which something is booked.
  void FindHosts() {
    const ClusterState& cluster = *snapshot_.cluster;
    for (std::size_t i = 0; i < cluster.domain_count() && !blocks_.empty(); ++i) {
      const auto host = HostOf(cluster, DomainId(i));
      if (!host || !host->healthy) continue;
      if (const auto pool = profile_.Find(host->pool)) hosts_[*pool].push_back(DomainId(i));
    }
  }

  // A block's gangs end with the block.
  static void Vacate(const Block& block, ClusterState& state) {
    for (const std::string& host : block.hosts) {
      const auto domain = state.FindDomain(host);
      if (!domain) continue;
      for (const NodeId node : state.domain(*domain).nodes) {
        if (!node.valid()) continue;
        const auto holdings = state.node(node).holdings;
        for (const auto& holding : holdings) state.Release(holding->claim_uid);
      }
    }
  }

  // Whether the block, which has not ended, has its hardware at some time while the gang would run.
  bool Meets(const Block& block, WallTime when) const {
    return !runtime_ || time_.ToWall(block.start()) < EndOf(when, *runtime_);
  }

  int BookedFrom(PoolId pool, WallTime when) const {
    const Slot beyond = profile_.today() + kSlotsAhead;
    Slot last = beyond;
    if (runtime_) last = std::min(beyond, SlotOf(time_.ToBlock(EndOf(when, *runtime_))) + 1);
    int most = 0;
    for (Slot slot = SlotOf(time_.ToBlock(when)); slot < last; ++slot) {
      most = std::max(most, profile_.Booked(pool, slot));
    }
    return most;
  }

  // Keeps as many hosts as are booked: first those that blocks have chosen, then those that are in
  // use, then others. A host that was kept before is not changed, so that little differs between
  // two moments.
  void KeepHosts(PoolId pool, const std::vector<DomainId>& hosts,
                 const std::set<std::string_view>& bound, WallTime when,
                 ClusterState& state) const {
    using Rank = std::tuple<bool, bool, std::string_view, DomainId>;
    std::vector<Rank> ranked;
    ranked.reserve(hosts.size());
    for (const DomainId id : hosts) {
      // Names stay where they are in the snapshot, while the states of the domains are copied.
      const DomainState& domain = state.domain(id);
      const std::string_view name = snapshot_.cluster->domain(id).name;
      ranked.emplace_back(!bound.contains(name), domain.free == domain.present, name, id);
    }
    std::sort(ranked.begin(), ranked.end());
    int left = BookedFrom(pool, when);
    for (const auto& [chosen_not, idle, name, id] : ranked) {
      BlockUse use;
      if (!chosen_not || left > 0) use.kept_from = now_;
      --left;
      if (state.domain(id).block != use) state.SetBlockUse(std::string(name), use);
    }
  }

  const Snapshot& snapshot_;
  const std::vector<std::shared_ptr<const Promise>> promises_;  // that bind the gang
  const BlockTime time_;  // of profile and blocks; all else here is by the wall's clock
  TimeProfile profile_;
  const std::optional<std::chrono::seconds> runtime_;
  const WallTime now_;
  std::vector<const Holding*> holdings_;  // of the snapshot with an end, by their ends
  std::vector<const Block*> blocks_;      // that hold capacity, by their ends
  std::map<PoolId, std::vector<DomainId>> hosts_;
};

std::optional<ForeseenPlace> WhatIf::PlaceIn(const ClusterState& state,
                                             const std::shared_ptr<const GangSpec>& gang,
                                             WallTime when, std::optional<Blocked>* blocked) {
  std::vector<Decision> decisions = planner_.Plan(state, {gang}, when);
  Decision& decision = decisions.front();
  if (decision.placement) return Foresee(*gang, *decision.placement, state, when);
  *blocked = std::move(decision.blocked);
  return std::nullopt;
}

// A question about a gang outside of Capacity Blocks.
class WhatIf::Question {
 public:
  Question(const Snapshot& snapshot, Planner& planner, WallTime now, AskFor what)
      : snapshot_(snapshot),
        now_(now),
        what_(what),
        queues_(snapshot, now),
        plan_([&planner](const ClusterState& fleet, const Queue& queue, WallTime when,
                         Explaining explaining) {
          return planner.Plan(fleet, queue, when, explaining);
        }) {}

  Forecast Answer(const GangSpec& asked) {
    auto gang = std::make_shared<GangSpec>(asked);
    gang->created = now_;
    const auto refusal = queues_.Enter(*gang);
    const std::shared_ptr<const GangSpec> entered = std::move(gang);
    Forecast forecast;
    if (refusal) {
      forecast = Waits(refusal->message);
      forecast.by_queue = refusal->reason;
    } else {
      forecast = Look(entered, Explaining::kEach);
    }
    if (queues_.ordered()) forecast.queue = entered->queue;
    if (forecast.now) return forecast;
    if (!refusal) LookFurther(entered, forecast);
    forecast.change = ChangeOf(entered, forecast);
    return forecast;
  }

 private:
  std::vector<std::shared_ptr<const Promise>> Binding(const GangSpec& gang) const {
    return BindingOn(snapshot_, gang, queues_.ordered());
  }

  static Forecast Denied(const QueueDenial& denial) {
    Forecast forecast = Waits(denial.message);
    const bool stopped = denial.kind == QueueDenial::Kind::kStopped;
    forecast.by_queue = stopped ? GangReason::kQueueStopped : GangReason::kQueueLimit;
    return forecast;
  }

  // Looks where the gang would go now.
  Forecast Look(const std::shared_ptr<const GangSpec>& gang, Explaining explaining) {
    if (const auto denial = queues_.Deny(*gang)) return Denied(*denial);
    const ClusterState fleet = WithPromises(snapshot_, Binding(*gang), *gang, now_);
    std::vector<Decision> decisions = plan_(fleet, {gang}, now_, explaining);
    Decision& decision = decisions.front();
    Forecast forecast;
    if (!decision.placement) {
      forecast.blocked = std::move(decision.blocked);
      return forecast;
    }
    const auto denial = queues_.Deny(*gang, *decision.placement, *snapshot_.cluster, now_);
    if (denial) return Denied(*denial);
    forecast.now = Foresee(*gang, *decision.placement, fleet, now_);
    place_ = ShortText(*decision.placement);
    return forecast;
  }

  // Adds when the gang would start, and who would end for it.
  void LookFurther(const std::shared_ptr<const GangSpec>& gang, Forecast& forecast) {
    const bool by_capacity =
        !forecast.by_queue && forecast.blocked->reason == BlockedReason::kWaitsForCapacity;
    if (by_capacity || forecast.by_queue == GangReason::kQueueLimit) {
      forecast.earliest = FindEarliest(gang);
    }
    if (!by_capacity) return;
    const ClusterState fleet = WithPromises(snapshot_, Binding(*gang), *gang, now_);
    forecast.victims = ForeseeVictims(snapshot_, queues_, gang, fleet, now_, plan_);
    if (what_ == AskFor::kNoMoves) return;
    forecast.moves = AskMoves(snapshot_, {.gang = gang, .moves_most = kMovesMost}, now_, plan_);
  }

  std::optional<Earliest> FindEarliest(const std::shared_ptr<const GangSpec>& gang) {
    const auto plan = [this](const ClusterState& fleet, const Queue& queue, WallTime when,
                             Explaining explaining) {
      std::vector<Decision> decisions = plan_(fleet, queue, when, explaining);
      for (Decision& decision : decisions) {
        if (!decision.placement) continue;
        if (!queues_.Deny(*decision.gang, *decision.placement, fleet, when)) continue;
        decision.placement.reset();
        decision.blocked.emplace();
      }
      return decisions;
    };
    const Future future(snapshot_, Binding(*gang), *gang, now_);
    const auto start = future.MakeTimeline().FindEarliest(gang, plan);
    if (!start) return std::nullopt;
    return Earliest{.when = start->when,
                    .exact = start->exact,
                    .place = Foresee(*gang, start->placement, start->fleet, start->when)};
  }

  std::optional<Change> ChangeOf(const std::shared_ptr<const GangSpec>& gang,
                                 const Forecast& forecast) {
    const bool refused = forecast.by_queue && forecast.by_queue != GangReason::kQueueLimit &&
                         forecast.by_queue != GangReason::kQueueStopped;
    const auto fits =
        [&](const std::shared_ptr<const GangSpec>& changed) -> std::optional<std::string> {
      auto entering = std::make_shared<GangSpec>(*changed);
      if (queues_.Enter(*entering)) return std::nullopt;
      if (!Look(entering, Explaining::kNone).now) return std::nullopt;
      return place_;
    };
    ChangesAsked asked{.gang = gang, .fits = fits};
    if (forecast.by_queue) asked.queues = queues_.Others(*gang);
    if (!refused) asked.runtimes = Runtimes(*gang);
    if (forecast.earliest) asked.earliest = forecast.earliest->when;
    if (forecast.victims) asked.end_for_it = forecast.victims->gangs.size();
    return FindChange(asked, now_);
  }

  // Returns the run times below which some hardware is not kept from the gang.
  std::vector<std::chrono::seconds> Runtimes(const GangSpec& gang) const {
    std::set<std::chrono::seconds> runtimes;
    for (const auto& promise : Binding(gang)) {
      if (promise->from <= now_) continue;
      runtimes.insert(std::chrono::floor<std::chrono::seconds>(promise->from - now_));
    }
    const ClusterState& cluster = *snapshot_.cluster;
    for (std::size_t i = 0; i < cluster.domain_count(); ++i) {
      const auto longest = LongestRuntime(cluster.domain(DomainId(i)).block, gang, now_);
      if (longest) runtimes.insert(*longest);
    }
    return {runtimes.begin(), runtimes.end()};
  }

  const Snapshot& snapshot_;
  const WallTime now_;
  const AskFor what_;
  const AskedQueues queues_;
  const PlanFunction plan_;
  std::string place_;  // that Look found last
};

Forecast WhatIf::AskInBlock(const Snapshot& snapshot, const GangSpec& gang, WallTime now) {
  const BlockKey key{gang.key.ns, gang.block};
  const std::string name = fmt::format("Capacity Block {}", ToString(key));
  const auto* view = snapshot.blocks.Find(key);
  if (view == nullptr || (*view)->block == nullptr) return Waits(name + " is not bought");
  const Block& block = *(*view)->block;
  if (!HoldsCapacity(block.state)) {
    return Waits(fmt::format("{} is {}", name, StateName(block.state)));
  }
  const WallTime start = std::max(now, snapshot.block_time.ToWall(block.start()));
  const WallTime reclaim = snapshot.block_time.ToWall(block.reclaim());
  if (block.reclaiming || (gang.max_runtime && EndOf(start, *gang.max_runtime) > reclaim)) {
    return Waits(fmt::format("{} is taken back from {} on, before the gang would have ended", name,
                             FormatTime(block.reclaim())));
  }
  if (block.state != BlockState::kActive) {
    Forecast forecast = Waits(fmt::format("{} is {} and begins {}", name, StateName(block.state),
                                          FormatTime(block.start())));
    const std::int64_t chips = ChipsOf(gang);
    if (chips > std::int64_t{block.bought.instances()} * kChipsPerNode) {
      return Waits(fmt::format("{} has {} chips, the gang asks for {}", name,
                               block.bought.instances() * kChipsPerNode, chips));
    }
    forecast.earliest = Earliest{.when = start, .exact = true, .place = std::nullopt};
    return forecast;
  }
  auto inside = std::make_shared<GangSpec>(gang);
  inside->reservation = block.reservation;
  inside->block_hosts = block.hosts;
  inside->reclaim = reclaim;
  Forecast forecast;
  forecast.now = PlaceIn(*snapshot.cluster, inside, now, &forecast.blocked);
  return forecast;
}

std::vector<std::shared_ptr<const Promise>> WhatIf::KeptBy(const Snapshot& snapshot,
                                                           const GangView& gang, WallTime now) {
  if (gang.spec == nullptr || gang.reason != GangReason::kWaitsForCapacity) return {};
  const auto is_own = [&](const std::shared_ptr<const Promise>& promise) {
    return promise->gang == gang.ref.key && promise->single_pod == gang.ref.single;
  };
  const bool promised = std::ranges::any_of(snapshot.promises, is_own);
  const bool by_queue = snapshot.queues.size() > 0;
  std::vector<std::shared_ptr<const Promise>> others;
  for (const auto& promise : snapshot.promises) {
    if (is_own(promise) || !controller::Meets(*promise, now, gang.spec->max_runtime)) continue;
    if (promised || Binds(snapshot, *promise, *gang.spec, by_queue)) others.push_back(promise);
  }
  if (others.empty()) return {};
  const auto decisions = planner_.Plan(*snapshot.cluster, {gang.spec}, now, Explaining::kNone);
  if (!decisions.front().placement) return {};
  ClusterState fleet = *snapshot.cluster;
  for (const auto& holding : decisions.front().placement->Holdings(*gang.spec, now)) {
    fleet.Hold(holding);
  }
  std::erase_if(others, [&](const auto& promise) {
    return std::ranges::none_of(promise->holdings,
                                [&](const auto& one) { return Differs(*one, fleet, snapshot); });
  });
  return others;
}

Forecast WhatIf::Ask(const Snapshot& snapshot, const std::shared_ptr<const GangSpec>& gang,
                     WallTime now, AskFor what) {
  if (!gang->block.empty()) return AskInBlock(snapshot, *gang, now);
  return Question(snapshot, planner_, now, what).Answer(*gang);
}

}  // namespace tahoma::controller
