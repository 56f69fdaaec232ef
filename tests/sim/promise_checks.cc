#include "tests/sim/promise_checks.h"

#include <algorithm>

#include "controller/core/queue/service_place.h"
#include "controller/timeline/promise.h"
#include "tests/sim/checks.h"

namespace tahoma::simulation {
namespace {

using controller::ClusterState;
using controller::DomainId;
using controller::DomainState;
using controller::GangReason;
using controller::GangRef;
using controller::GangView;
using controller::kPromiseGrain;
using controller::Promise;
using controller::PromiseKind;

// A core that takes no step for so long cannot keep a time.
constexpr std::chrono::seconds kAway{10};
// The promises of gangs settle within so long after something has happened.
constexpr std::chrono::seconds kSettles{5};
// Pods take so long to end and to start, beside the grain.
constexpr std::chrono::seconds kSlack{45};

constexpr std::string_view kEndedForOthers = " needs its hardware";

GangRef RefOf(const controller::GangDecision& decision) { return {decision.key, decision.single}; }

// Returns whether the domain can do less than before.
bool HasLost(const DomainState& before, const DomainState& now) {
  return before.name != now.name || (before.present & ~now.present) != 0 ||
         before.down.plus != now.down.plus || !(before.modes == now.modes);
}

// Returns the physical cores of a device, by node.
void AddCores(const std::string& node, const std::string& device,
              std::set<std::pair<std::string, int>>& cores) {
  for (const int core : CoresOf(device, controller::kChipsPerNode)) cores.emplace(node, core);
}

// Returns whether the promise has whole chips only. Cores of a chip are not judged: their start may
// move when other cores of the chip come free.
bool IsOfChips(const Promise& promise) {
  return std::ranges::none_of(promise.holdings, [](const auto& holding) {
    return std::ranges::any_of(holding->devices, [](const auto& device) {
      return device.device.starts_with("neuron-core");
    });
  });
}

// Returns whether others hold hardware of the promise beyond the start: a gang that is served
// before took the hardware, or a run went on, and the promise is mended soon.
bool IsTaken(const Promise& promise, const controller::ClusterState& fleet) {
  std::set<std::pair<std::string, int>> promised;
  for (const auto& holding : promise.holdings) {
    for (const auto& device : holding->devices) AddCores(device.node, device.device, promised);
  }
  bool taken = false;
  fleet.ForEachHolding([&](const controller::Holding& holding) {
    if (holding.end && *holding.end <= promise.from + kPromiseGrain) return;
    std::set<std::pair<std::string, int>> held;
    for (const auto& device : holding.devices) AddCores(device.node, device.device, held);
    taken = taken ||
            std::ranges::any_of(held, [&](const auto& core) { return promised.contains(core); });
  });
  return taken;
}

bool WaitsForRoom(const GangView& view) {
  return view.service.has_value() && view.reason == GangReason::kWaitsForCapacity;
}

}  // namespace

void PromiseChecks::OnBegin() {
  seen_.reset();
  decided_.clear();
  undone_ = false;
}

const GangView* PromiseChecks::ViewOf(const Gangs& gangs, const GangRef& ref) const {
  const auto* view = gangs.Find(ref);
  return view == nullptr ? nullptr : view->get();
}

std::optional<GangRef> PromiseChecks::RefOf(const std::string& holder) const {
  const std::size_t space = holder.find(' ');
  const std::size_t slash = holder.find('/');
  if (space == std::string::npos || slash == std::string::npos) return std::nullopt;
  return GangRef{{holder.substr(space + 1, slash - space - 1), holder.substr(slash + 1)},
                 holder.substr(0, space) == "pod"};
}

void PromiseChecks::OnUndoing(const controller::GangUndoing& undoing) {
  undone_ = true;
  const std::string& why = undoing.reason;
  const std::size_t at = why.find(kEndedForOthers);
  if (undoing.cause != controller::EndCause::kPreempted || at == std::string::npos) return;
  world_.Meet("gang ended for another");
  preemptors_.emplace(why.substr(0, why.find(" of priority")), why);
}

bool PromiseChecks::Binds(const PromisePtr& promise,
                          const controller::GangDecision& decision) const {
  const auto holder = RefOf(promise->holder);
  const GangRef ref = simulation::RefOf(decision);
  if (!holder || *holder == ref) return false;
  if (!Meets(*promise, world_.ControllersNow(), decision.max_runtime)) return false;
  if (promise->kind == PromiseKind::kPreempt) return true;
  const GangView* const first = ViewOf(seen_->gangs, *holder);
  const GangView* const view = ViewOf(seen_->gangs, ref);
  if (first == nullptr || view == nullptr || !first->service || !view->service) return false;
  const bool has_own = std::ranges::any_of(
      seen_->promises, [&](const PromisePtr& own) { return RefOf(own->holder) == ref; });
  const bool of_other_queue = world_.swarm.queues && first->queue != view->queue;
  return has_own || of_other_queue || *first->service < *view->service;
}

void PromiseChecks::OnPlaced(const controller::GangDecision& decision,
                             const controller::Snapshot& snapshot) {
  if (IsLeftOut()) return;
  decided_.push_back(decision);
  preemptors_.erase(Describe(simulation::RefOf(decision)));
  if (!seen_) return;
  std::set<std::pair<std::string, int>> given;
  for (const auto& claim : decision.claims) {
    if (claim.allocated_before) continue;
    for (const auto& result : claim.allocation.results) {
      if (result.driver == controller::kNeuronDriver) AddCores(result.pool, result.device, given);
    }
  }
  for (const PromisePtr& promise : seen_->promises) {
    // A promise that was changed in the same step is judged by its start alone.
    if (std::ranges::find(snapshot.promises, promise) == snapshot.promises.end()) continue;
    if (!Binds(promise, decision)) continue;
    world_.Meet("promise binds a gang that begins");
    std::set<std::pair<std::string, int>> promised;
    for (const auto& holding : promise->holdings) {
      for (const auto& device : holding->devices) AddCores(device.node, device.device, promised);
    }
    for (const auto& [node, core] : given) {
      if (!promised.contains({node, core})) continue;
      return world_.Fail("{} was given chip {} of {}, which is promised: {} {}",
                         Describe(simulation::RefOf(decision)), core / 8, node, promise->holder,
                         Describe(*promise));
    }
  }
}

bool PromiseChecks::HasLostHardware(const controller::Snapshot& snapshot) const {
  bool lost = false;
  const std::size_t count = snapshot.cluster->domain_count();
  const std::size_t both = std::min(seen_->fleet->domain_count(), count);
  ClusterState::ForEachChangedDomain(*seen_->fleet, *snapshot.cluster, [&](DomainId id) {
    const bool gone = id.value() >= count;
    const bool in_both = id.value() < both;
    lost = lost || gone ||
           (in_both && HasLost(seen_->fleet->domain(id), snapshot.cluster->domain(id)));
  });
  return lost;
}

bool PromiseChecks::IsDisturbed(const controller::Snapshot& snapshot, WallTime now) const {
  if (!seen_ || undone_ || now - seen_->when > kAway || HasLostHardware(snapshot)) return true;
  // Hardware of a lost pod may be kept for the next pod, beyond the run's end.
  bool shrunk = false;
  seen_->gangs.ForEach([&](const GangRef& ref, const auto& before) {
    if (before->decision == nullptr) return;
    const GangView* const after = ViewOf(snapshot.gangs, ref);
    if (after == nullptr || after->decision == before->decision) return;
    shrunk = shrunk || after->decision == nullptr ||
             after->decision->pods.size() < before->decision->pods.size();
  });
  if (shrunk) return true;
  bool overrun = false;
  snapshot.cluster->ForEachHolding([&](const controller::Holding& holding) {
    overrun = overrun || (holding.end && *holding.end < now);
  });
  return overrun;
}

// A preemptor may go, lose pods, or wait for hardware that has failed since.
void PromiseChecks::ForgetPreemptors(const controller::Snapshot& snapshot) {
  if (seen_ && HasLostHardware(snapshot)) preemptors_.clear();
  std::erase_if(preemptors_, [&](const auto& preemptor) {
    const auto ref = RefOf(preemptor.first);
    const GangView* const view = ref ? ViewOf(snapshot.gangs, *ref) : nullptr;
    return view == nullptr || !WaitsForRoom(*view);
  });
}

// Forgets the starts of gangs behind a gang that has a new promise, has begun without a promise, or
// has grown.
void PromiseChecks::ForgetBehind(const controller::Snapshot& snapshot) {
  const auto forget = [&](const GangRef& ref, const controller::ServicePlace& place,
                          const std::string& queue) {
    std::erase_if(bounds_, [&](const auto& bound) {
      const GangView* const view = ViewOf(seen_->gangs, bound.first);
      const bool apart = world_.swarm.queues && view != nullptr && view->queue != queue;
      return bound.first != ref && !apart && place < bound.second.place;
    });
  };
  for (const PromisePtr& promise : snapshot.promises) {
    const auto ref = RefOf(promise->holder);
    const GangView* const view = ref ? ViewOf(snapshot.gangs, *ref) : nullptr;
    if (view == nullptr || !view->service || bounds_.contains(*ref)) continue;
    forget(*ref, *view->service, view->queue);
  }
  const auto forget_behind = [&](const controller::GangDecision& decision) {
    const GangRef ref = simulation::RefOf(decision);
    if (bounds_.contains(ref)) return;
    const GangView* const view = ViewOf(seen_->gangs, ref);
    controller::ServicePlace place{.in_no_block = decision.reservation.empty(),
                                   .behind = -std::int64_t{decision.priority},
                                   .begins = !begun_.contains(ref),
                                   .preemptible = decision.preemptible,
                                   .created = WallTime::min(),
                                   .gang = ref};
    if (view != nullptr && view->service) place = *view->service;
    forget(ref, place, decision.queue);
  };
  for (const controller::GangDecision& decision : decided_) forget_behind(decision);
  // A gang with minMembers that runs may have got one pod more.
  snapshot.gangs.ForEach([&](const GangRef& ref, const auto& gang) {
    const GangView* const before = ViewOf(seen_->gangs, ref);
    if (gang->decision == nullptr || before == nullptr || before->decision == nullptr) return;
    if (gang->decision != before->decision) forget_behind(*gang->decision);
  });
}

void PromiseChecks::CheckStart(const controller::Snapshot& snapshot, const GangRef& ref,
                               const Bound& bound, WallTime now, std::set<GangRef>& over) {
  const GangView* const view = ViewOf(snapshot.gangs, ref);
  const bool late = now > bound.start + kPromiseGrain + kSlack;
  if (view == nullptr || view->decision != nullptr || !WaitsForRoom(*view)) {
    over.insert(ref);
    if (view == nullptr || view->decision == nullptr) return;
    world_.Meet("gang with a promise begun");
    if (late) {
      world_.Fail("{} has begun at {} and was promised {}", Describe(ref), FormatTime(now),
                  FormatTime(bound.start));
    }
    return;
  }
  const auto promise = std::ranges::find_if(
      snapshot.promises, [&](const PromisePtr& one) { return RefOf(one->holder) == ref; });
  if (promise == snapshot.promises.end()) {
    world_.Meet("promise lost");  // not judged yet: docs/defects.md 54
    over.insert(ref);
    return;
  }
  if ((*promise)->kind != PromiseKind::kStart) {
    over.insert(ref);
    return;
  }
  if ((*promise)->from > bound.start + kPromiseGrain) {
    return world_.Fail("the start of {} was moved from {} to {} without a cause", Describe(ref),
                       FormatTime(bound.start), FormatTime((*promise)->from));
  }
  if (late) {
    world_.Fail("{} was promised {} and waits at {}: {}", Describe(ref), FormatTime(bound.start),
                FormatTime(now), view->message);
  }
}

void PromiseChecks::Print(const controller::Snapshot& snapshot, bool disturbed) const {
  if (!world_.verbose || (seen_ && seen_->promises == snapshot.promises)) return;
  fmt::print("promises{}:\n", disturbed ? ", disturbed" : "");
  for (const controller::GangDecision& decision : decided_) {
    fmt::print("  {} has a place, until {}\n", Describe(simulation::RefOf(decision)),
               decision.end ? FormatTime(*decision.end) : "");
  }
  for (const PromisePtr& promise : snapshot.promises) {
    const auto ref = RefOf(promise->holder);
    const GangView* const view = ref ? ViewOf(snapshot.gangs, *ref) : nullptr;
    const bool known = view != nullptr && view->service;
    fmt::print(
        "  {} priority {} until {}: {}\n", promise->holder, known ? -view->service->behind : 0,
        promise->until == WallTime::max() ? "" : FormatTime(promise->until), Describe(*promise));
  }
}

void PromiseChecks::OnStep(const controller::Snapshot& snapshot) {
  if (IsLeftOut() || !snapshot.synced || snapshot.cluster == nullptr) return;
  const WallTime now = world_.ControllersNow();
  Print(snapshot, IsDisturbed(snapshot, now));
  ForgetPreemptors(snapshot);
  if (IsDisturbed(snapshot, now)) disturbed_ = now;
  if (now - disturbed_ < kSettles) {
    bounds_.clear();
  } else {
    ForgetBehind(snapshot);
  }
  std::set<GangRef> over;
  for (const auto& [ref, bound] : bounds_) CheckStart(snapshot, ref, bound, now, over);
  for (const GangRef& ref : over) bounds_.erase(ref);
  for (const PromisePtr& promise : snapshot.promises) {
    const auto ref = RefOf(promise->holder);
    const GangView* const view = ref ? ViewOf(snapshot.gangs, *ref) : nullptr;
    if (view == nullptr || !WaitsForRoom(*view) || promise->kind != PromiseKind::kStart) continue;
    if (!IsOfChips(*promise)) continue;
    if (!bounds_.contains(*ref) && IsTaken(*promise, *snapshot.cluster)) continue;
    const auto [bound, is_new] =
        bounds_.try_emplace(*ref, Bound{.start = promise->from, .place = *view->service});
    if (is_new) world_.Meet("start promised");
    bound->second.start = std::min(bound->second.start, promise->from);
    bound->second.place = *view->service;
  }
  for (const auto& decision : decided_) begun_.insert(simulation::RefOf(decision));
  decided_.clear();
  undone_ = false;
  seen_ = Seen{.when = now,
               .fleet = snapshot.cluster,
               .gangs = snapshot.gangs,
               .promises = snapshot.promises};
}

void PromiseChecks::AtRest(const controller::Snapshot& snapshot) const {
  if (IsLeftOut()) return;
  for (const auto& [holder, why] : preemptors_) {
    const auto ref = RefOf(holder);
    const GangView* const view = ref ? ViewOf(snapshot.gangs, *ref) : nullptr;
    if (view == nullptr) continue;
    world_.Fail("a gang was ended as {}, and {} has had no place since: {}", why, holder,
                view->message);
  }
}

}  // namespace tahoma::simulation
