#include "controller/core/queue/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "controller/core/queue/end_terms.h"
#include "controller/core/queue/queue_lines.h"
#include "controller/core/queue/victim_rules.h"
#include "controller/plan/decision.h"
#include "controller/plan/victims.h"

namespace tahoma::controller {
namespace {

GangRef RefOf(const GangSpec& gang) { return {gang.key, gang.single_pod}; }

}  // namespace

// The fleet during a search.
struct Preemption::Field {
  ClusterState fleet;  // without `ending`
  BudgetRoom budgets;
  bool guarded = false;                     // a budget has kept a run from ending
  ClusterState beyond = {};                 // without `runs` either
  std::vector<RunId> runs = {};             // may be ended
  std::vector<RunningGang> may_end = {};    // the same runs
  Runs ending = {};                         // end anyway, or because of the search
  std::optional<WallTime> kept_until = {};  // when a minRuntime is over
};

void Preemption::OnSettled(const GangRef& ref) {
  ended_for_.erase(ref);
  if (const auto due = due_of_.find(ref); due != due_of_.end()) {
    due_.erase({due->second, ref});
    due_of_.erase(due);
  }
  by_budget_.erase(ref);
  Unkeep(ref);
}

// The status of a budget changes with each of its pods: gangs are tried again once a while.
void Preemption::OnBudgets(WallTime now) {
  for (const GangRef& ref : std::exchange(by_budget_, {})) WaitUntil(ref, now + kBudgetPause);
}

BudgetRoom Preemption::RoomOfBudgets() {
  BudgetRoom room(runs_.facts());
  std::erase_if(ended_, [&](RunId id) { return runs_.FindRun(id) == nullptr; });
  for (const RunId id : ended_) room.Spend(*runs_.FindRun(id));
  return room;
}

void Preemption::Unkeep(const GangRef& ref) {
  if (ending_.erase(ref) > 0) promises_.OnSettled(ref);
}

bool Preemption::IsWaitedFor(const Runs& ending) const {
  return std::any_of(ending.begin(), ending.end(),
                     [&](RunId run) { return runs_.FindRun(run) != nullptr; });
}

void Preemption::OnBlocked(const Queue& blocked, const ClusterState& cluster, WallTime now) {
  Queue group;  // of one priority, kept away from the same hardware
  for (const auto& gang : blocked) {
    if (!gang->reservation.empty() || !gang->preempts) continue;
    const GangRef ref = RefOf(*gang);
    if (const auto known = ending_.find(ref); known != ending_.end()) {
      const Ending& ending = known->second;
      if (ending.place == PlaceOf(ref, *gang) && IsWaitedFor(ending.runs)) continue;
      Unkeep(ref);  // the ended runs were not enough
    }
    const bool apart = !group.empty() && (group.back()->priority != gang->priority ||
                                          promises_.BindingFixed(*group.back(), now) !=
                                              promises_.BindingFixed(*gang, now));
    if (apart) {
      Search(std::exchange(group, {}), cluster, now);
    }
    group.push_back(gang);
  }
  Search(std::move(group), cluster, now);
}

std::vector<GangRef> Preemption::DrainDue(WallTime now) {
  std::vector<GangRef> gangs;
  while (!due_.empty() && due_.begin()->first <= now) {
    gangs.push_back(due_.begin()->second);
    due_of_.erase(gangs.back());
    due_.erase(due_.begin());
  }
  return gangs;
}

std::optional<WallTime> Preemption::wake() const {
  return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
}

// Lets DrainDue return the gang at that time, or at an earlier time where one is set.
void Preemption::WaitUntil(const GangRef& ref, WallTime when) {
  const auto [known, added] = due_of_.try_emplace(ref, when);
  if (!added && known->second <= when) return;
  if (!added) due_.erase({known->second, ref});
  known->second = when;
  due_.insert({when, ref});
}

// Adds a run of lower priority, unless the minRuntime is not over.
void Preemption::AddRun(RunId id, WallTime now, Field& field) const {
  const GangRun& run = *runs_.FindRun(id);
  const GangDecision& decision = run.decision();
  const EndTerms terms = EndTermsOf(run, runs_.facts(), now);
  if (!run.ending() && terms.kept_until) {
    field.kept_until = std::min(field.kept_until.value_or(*terms.kept_until), *terms.kept_until);
    return;
  }
  if (!run.ending() && !field.budgets.MayEnd(run)) {
    field.guarded = true;
    return;
  }
  ReleaseDecided(decision, field.beyond);
  if (run.ending()) {
    ReleaseDecided(decision, field.fleet);
    field.ending.insert(id);
    return;
  }
  field.runs.push_back(id);
  field.may_end.push_back(RunningOf(decision, terms.work, terms.begun));
}

// Looks beyond the priorities, from the lowest on, until each gang of the group has a place.
void Preemption::Search(Queue group, const ClusterState& cluster, WallTime now) {
  const auto& all = runs_.preemptible();
  if (group.empty() || all.empty()) return;
  const std::int32_t priority = group.front()->priority;
  if (all.begin()->first >= priority && Queues() == nullptr) return;
  const GangSpec& last = *group.back();
  Field field = {
      .fleet = promises_.ViewOf(cluster, promises_.Binding(PlaceOf(RefOf(last), last), last, now)),
      .budgets = RoomOfBudgets()};
  field.beyond = field.fleet;
  std::size_t looked = 0;
  auto next = all.begin();
  const auto is_lower = [&] {
    const bool counts = next != all.end() && (next->first < priority || Queues() != nullptr);
    return counts && looked < kRunsMost;
  };
  for (int tier = 1; tier <= kTiersMost && is_lower() && !group.empty(); ++tier) {
    for (const std::int32_t of = next->first;
         is_lower() && (next->first == of || tier == kTiersMost); ++next, ++looked) {
      AddRun(next->second, now, field);
    }
    Queue rest;
    for (const Decision& decision : plan_(field.beyond, group, now, Explaining::kNone)) {
      const bool found = decision.placement && SearchFor(decision.gang, cluster, now, field);
      if (!found) rest.push_back(decision.gang);
    }
    group = std::move(rest);
  }
  for (const auto& gang : group) {
    if (field.kept_until) WaitUntil(RefOf(*gang), *field.kept_until);
    if (field.guarded) by_budget_.insert(RefOf(*gang));
  }
}

// Chooses among the runs; takes those out that budgets do not let end with the others of a choice.
std::optional<Victims> Preemption::ChooseWithin(const std::shared_ptr<const GangSpec>& gang,
                                                Field& field, std::vector<RunningGang>& among,
                                                std::vector<std::size_t>& index,
                                                WallTime now) const {
  const auto place = [&](const ClusterState& fleet) {
    return plan_(fleet, {gang}, now, Explaining::kNone).front().placement;
  };
  for (int i = 0; i < kChoicesMost; ++i) {
    auto victims = ChooseVictims(field.fleet, *gang, among, now, place);
    if (!victims) return std::nullopt;
    std::vector<const GangRun*> runs;
    for (const std::size_t one : victims->gangs) {
      runs.push_back(runs_.FindRun(field.runs[index[one]]));
    }
    std::vector<std::size_t> beyond = field.budgets.Beyond(runs);
    if (beyond.empty()) return victims;
    field.guarded = true;
    for (std::size_t& one : beyond) one = victims->gangs[one];
    std::ranges::sort(beyond, std::greater<>());
    for (const std::size_t one : beyond) {
      among.erase(among.begin() + static_cast<std::ptrdiff_t>(one));
      index.erase(index.begin() + static_cast<std::ptrdiff_t>(one));
    }
  }
  return std::nullopt;
}

// Ends the fewest runs for the gang. Returns whether the gang has a place then.
bool Preemption::SearchFor(const std::shared_ptr<const GangSpec>& gang, const ClusterState& cluster,
                           WallTime now, Field& field) {
  const auto ended = ended_for_.find(RefOf(*gang));
  const std::vector<Eighths> possible = PossibleNeeds(*gang, Queues());
  std::vector<RunningGang> among;
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < field.runs.size(); ++i) {
    const GangRun& run = *runs_.FindRun(field.runs[i]);
    if (field.ending.contains(run.id())) continue;
    if (!MayEndFor(*gang, possible, run.decision(), Queues())) continue;
    const GangRef ref{run.decision().key, run.decision().single};
    if (ended != ended_for_.end() && ended->second.contains(ref)) continue;
    among.push_back(field.may_end[i]);
    index.push_back(i);
  }
  const auto victims = ChooseWithin(gang, field, among, index, now);
  if (!victims) return false;
  const Placement& placement = victims->placement;
  const auto holdings = placement.Holdings(*gang, now);
  const Eighths need = EighthsOf(holdings, cluster);
  Runs ending;
  for (const std::size_t victim : victims->gangs) {
    const RunId run = field.runs[index[victim]];
    if (!MayEndFor(*gang, {&need, 1}, runs_.FindRun(run)->decision(), Queues())) return false;
    ending.insert(run);
  }
  for (const RunId run : ending) field.budgets.Spend(*runs_.FindRun(run));
  field.fleet = Without(field.fleet, among, victims->gangs);
  for (const auto& holding : holdings) {
    ending.merge(HoldersOf(*holding, field.ending, cluster));
    field.fleet.Hold(holding);
    field.beyond.Hold(holding);
  }
  field.ending.insert(ending.begin(), ending.end());
  Keep(gang, placement, std::move(ending), now);
  return true;
}

// Returns the runs of `among` with chips of the holding, wholly or in part: cores of two sizes
// exclude each other on a chip.
Preemption::Runs Preemption::HoldersOf(const Holding& holding, const Runs& among,
                                       const ClusterState& cluster) const {
  Runs holders;
  for (const Holding::HeldDevice& device : holding.devices) {
    const std::optional<NodeId> id = cluster.FindNode(device.node);
    if (device.admin_access || !id) continue;
    const NodeState& node = cluster.node(*id);
    for (const auto& other : node.holdings) {
      const GangRun* run = runs_.FindHolder(other->claim);
      if (run == nullptr || !among.contains(run->id())) continue;
      const bool shared = (ChipsOf(*other, *node.node) & node.node->ChipsNamed(device.device)) != 0;
      if (shared) holders.insert(run->id());
    }
  }
  return holders;
}

// Ends the runs, and promises the placement to the gang.
void Preemption::Keep(const std::shared_ptr<const GangSpec>& gang, const Placement& placement,
                      Runs ending, WallTime now) {
  if (ending.empty()) return;  // nobody is in the way
  const GangRef ref = RefOf(*gang);
  Promise promise;
  promise.kind = PromiseKind::kPreempt;
  SetHolder(*gang, promise);
  promise.place = placement.ToString();
  promise.holdings = PromisedHoldings(*gang, placement, now);
  if (!promises_.Keep(gang, std::move(promise))) return;  // there are promises enough
  for (const RunId id : ending) {
    const GangRun& run = *runs_.FindRun(id);
    if (run.ending()) continue;
    ended_.insert(id);
    ended_for_[ref].insert({run.decision().key, run.decision().single});
    runs_.End(id, EndCause::kPreempted,
              fmt::format("{} of priority {} needs its hardware", Describe(ref), gang->priority));
  }
  ending_[ref] = {.place = PlaceOf(ref, *gang), .runs = std::move(ending)};
}

}  // namespace tahoma::controller
