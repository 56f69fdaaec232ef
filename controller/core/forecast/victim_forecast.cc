#include "controller/core/forecast/victim_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "controller/core/queue/preemption.h"
#include "controller/core/queue/queue_lines.h"
#include "controller/core/queue/victim_rules.h"
#include "controller/plan/victims.h"

namespace tahoma::controller {
namespace {

using Rank = std::pair<std::int32_t, RunId>;
using Ranked = std::map<Rank, const GangView*>;

// Returns the runs that may be ended for others, the lowest priorities first. Those of the gang's
// priority and above count only where queues do.
Ranked Endable(const Snapshot& snapshot, const GangSpec& gang, bool by_queue) {
  Ranked runs;
  snapshot.gangs.ForEach([&](const GangRef&, const auto& view) {
    if (view->decision == nullptr || !view->run || !view->decision->preemptible) return;
    if (!by_queue && view->decision->priority >= gang.priority) return;
    const Rank rank{view->decision->priority, view->run->run};
    if (runs.size() >= Preemption::kRunsMost && !(rank < runs.rbegin()->first)) return;
    runs.emplace(rank, view.get());
    if (runs.size() > Preemption::kRunsMost) runs.erase(std::prev(runs.end()));
  });
  return runs;
}

class VictimQuestion {
 public:
  VictimQuestion(const ClusterState& cluster, const AskedQueues& queues,
                 const std::shared_ptr<const GangSpec>& gang, const ClusterState& fleet,
                 WallTime now, const PlanFunction& plan)
      : cluster_(cluster),
        queues_(queues),
        gang_(gang),
        now_(now),
        plan_(plan),
        fleet_(fleet),
        beyond_(fleet) {
    needs_ = PossibleNeeds(*gang, Queues());
  }

  // Looks beyond the priorities, from the lowest on, until the gang has a place.
  ForeseenVictims Find(const Ranked& runs) {
    auto next = runs.begin();
    for (int tier = 1; tier <= Preemption::kTiersMost && next != runs.end(); ++tier) {
      const bool last = tier == Preemption::kTiersMost;
      const std::int32_t priority = next->first.first;
      for (; next != runs.end() && (last || next->first.first == priority); ++next) {
        Add(*next->second);
      }
      if (!PlaceIn(beyond_)) continue;
      if (auto found = Choose()) return *std::move(found);
    }
    return {.gangs = {}, .placement = std::nullopt, .why = Why()};
  }

 private:
  std::optional<Placement> PlaceIn(const ClusterState& fleet) const {
    return plan_(fleet, {gang_}, now_, Explaining::kNone).front().placement;
  }

  void Add(const GangView& view) {
    const EndTerms terms = TermsAt(*view.run, now_);
    if (!view.run->ending && terms.kept_until) {
      ++kept_;
      return;
    }
    ReleaseDecided(*view.decision, beyond_);
    if (view.run->ending) {
      ReleaseDecided(*view.decision, fleet_);
      ending_.push_back(&view);
      return;
    }
    views_.push_back(&view);
    runs_.push_back(RunningOf(*view.decision, terms.work, terms.begun));
  }

  const QueueShares* Queues() const { return queues_.ordered() ? &queues_.shares() : nullptr; }

  std::optional<ForeseenVictims> Choose() {
    std::vector<RunningGang> among;
    std::vector<const GangView*> of;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (!MayEndFor(*gang_, needs_, *views_[i]->decision, Queues())) continue;
      among.push_back(runs_[i]);
      of.push_back(views_[i]);
    }
    may_end_ = among.size();
    const auto place = [this](const ClusterState& fleet) { return PlaceIn(fleet); };
    auto victims = ChooseVictims(fleet_, *gang_, among, now_, place);
    if (!victims) return std::nullopt;
    const auto holdings = victims->placement.Holdings(*gang_, now_);
    const Eighths need = EighthsOf(holdings, fleet_);
    ForeseenVictims found;
    for (const std::size_t i : victims->gangs) {
      if (!MayEndFor(*gang_, {&need, 1}, *of[i]->decision, Queues())) return std::nullopt;
      found.gangs.push_back(Ending(*of[i]));
    }
    for (const GangView* view : ending_) {
      if (IsInTheWay(*view, holdings)) found.gangs.push_back(Ending(*view));
    }
    std::ranges::sort(found.gangs, {},
                      [](const EndingGang& one) { return std::pair(one.priority, one.ref); });
    found.placement = std::move(victims->placement);
    return found;
  }

  EndingGang Ending(const GangView& view) const {
    return {.ref = view.ref,
            .queue = view.decision->queue,
            .priority = view.decision->priority,
            .work = TermsAt(*view.run, now_).work,
            .ending = view.run->ending};
  }

  // Returns whether the run has chips of the holdings, wholly or in part.
  bool IsInTheWay(const GangView& view,
                  const std::vector<std::shared_ptr<const Holding>>& holdings) const {
    std::set<std::string> claims;
    for (const DecidedClaim& claim : view.decision->claims) claims.insert(claim.uid);
    const auto overlaps = [&](const Holding::HeldDevice& device) {
      const std::optional<NodeId> id = cluster_.FindNode(device.node);
      if (!id || cluster_.node(*id).node == nullptr) return false;
      const NodeState& node = cluster_.node(*id);
      return std::ranges::any_of(node.holdings, [&](const auto& other) {
        return claims.contains(other->claim_uid) &&
               (ChipsOf(*other, *node.node) & node.node->ChipsNamed(device.device)) != 0;
      });
    };
    return std::ranges::any_of(holdings, [&](const auto& holding) {
      return std::ranges::any_of(holding->devices, overlaps);
    });
  }

  std::string Why() const {
    const std::size_t may_end = may_end_.value_or(runs_.size());
    if (may_end > 0) {
      return fmt::format("it has no place even without the {} gangs that may end for it", may_end);
    }
    if (kept_ > 0) {
      return fmt::format("the minRuntime of {} gangs that could end for it is not over", kept_);
    }
    if (!queues_.ordered()) return "no preemptible gang has a lower priority";
    return fmt::format(
        "no preemptible gang of queue {} has a lower priority, and none of another queue holds "
        "what "
        "queue {} is guaranteed",
        gang_->queue, gang_->queue);
  }

  const ClusterState& cluster_;
  const AskedQueues& queues_;
  const std::shared_ptr<const GangSpec>& gang_;
  const WallTime now_;
  const PlanFunction& plan_;
  ClusterState fleet_;   // without runs that end already
  ClusterState beyond_;  // without runs that may end either
  std::vector<Eighths> needs_;
  std::vector<const GangView*> views_;
  std::vector<RunningGang> runs_;  // of views_
  std::vector<const GangView*> ending_;
  std::optional<std::size_t> may_end_;  // of runs_, once a place was found without them
  std::size_t kept_ = 0;
};

}  // namespace

ForeseenVictims ForeseeVictims(const Snapshot& snapshot, const AskedQueues& queues,
                               const std::shared_ptr<const GangSpec>& gang,
                               const ClusterState& fleet, WallTime now, const PlanFunction& plan) {
  if (!gang->preempts) return {.gangs = {}, .placement = std::nullopt, .why = "it ends nobody"};
  const Ranked runs = Endable(snapshot, *gang, queues.ordered());
  return VictimQuestion(*snapshot.cluster, queues, gang, fleet, now, plan).Find(runs);
}

}  // namespace tahoma::controller
