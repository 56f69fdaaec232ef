#include "controller/replay/baselines.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "controller/model/cluster.h"
#include "controller/plan/planner.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

using Holdings = std::vector<std::shared_ptr<const Holding>>;

// A job's turn: priority, then age.
struct Turn {
  std::int32_t priority = 0;
  JobIndex job = 0;

  friend bool operator==(const Turn&, const Turn&) = default;
  friend std::strong_ordering operator<=>(const Turn& a, const Turn& b) {
    if (a.priority != b.priority) return b.priority <=> a.priority;
    return a.job <=> b.job;
  }
};

// A job's place, now or at a later time.
struct Place {
  WallTime start;
  WallTime end;  // by the job's limit
  Holdings holdings;
  std::vector<std::string> nodes;
};

void HoldAll(const Holdings& holdings, ClusterState& state) {
  for (const auto& holding : holdings) state.Hold(holding);
}
void ReleaseAll(const Holdings& holdings, ClusterState& state) {
  for (const auto& holding : holdings) state.Release(holding->claim_uid);
}
std::int64_t ChipsFreeIn(const ClusterState& state) {
  return static_cast<std::int64_t>(state.Count().free);
}

// The fleet with who runs where, and who waits: all that the policies have in common.
class Baseline : public ReplayPolicy {
 public:
  Baseline(const ReplayJobs& jobs, std::vector<NodeFacts> nodes) : jobs_(jobs) {
    for (NodeFacts& node : nodes) {
      fleet_.PutNode(node);
      nodes_.emplace(node.name, std::move(node));
    }
  }

  void Submit(JobIndex job, WallTime /*now*/) override {
    waiting_.insert(TurnOf(job));
    arrived_.push_back(job);
  }
  void Finish(JobIndex job) override { Free(job); }
  void Lose(JobIndex job) override {
    Free(job);
    fleet_lost_ = true;
  }
  void SetNode(const std::string& node, bool works) override {
    NodeFacts& facts = nodes_.at(node);
    facts.ready = works;
    fleet_.PutNode(facts);
    freed_ = true;
    (works ? fleet_grew_ : fleet_lost_) = true;
  }
  PolicyNews Decide(WallTime now) override {
    now_ = now;
    PolicyNews news;
    Serve(news);
    arrived_.clear();
    placeless_.clear();
    freed_ = fleet_lost_ = fleet_grew_ = false;
    return news;
  }
  std::optional<WallTime> wake() const override { return std::nullopt; }

 protected:
  virtual void Serve(PolicyNews& news) = 0;

  const ReplayJob& job(JobIndex index) const { return jobs_[index]; }
  Turn TurnOf(JobIndex index) const {
    return {.priority = jobs_[index].spec->priority, .job = index};
  }

  // Returns a place for the job in such a fleet.
  std::optional<Place> FindPlace(JobIndex index, const ClusterState& state, WallTime start) {
    const ReplayJob& wanted = job(index);
    if (wanted.chips > ChipsFreeIn(state)) return std::nullopt;
    const std::vector<Decision> decisions =
        planner_.Plan(state, {wanted.spec}, start, Explaining::kNone);
    if (!decisions.front().placement) return std::nullopt;
    const Placement& placement = *decisions.front().placement;
    Place place{.start = start,
                .end = EndOf(start, wanted.limit),
                .holdings = placement.Holdings(*wanted.spec, start),
                .nodes = {}};
    std::set<std::string> nodes;
    for (const MemberPlacement& member : placement.members) nodes.insert(member.node);
    place.nodes.assign(nodes.begin(), nodes.end());
    return place;
  }

  // The same in the fleet as it is. The fleet only fills while a policy decides: a kind of job
  // without a place has none until the next decision.
  std::optional<Place> FindPlaceNow(JobIndex index) {
    if (placeless_.contains(job(index).kind)) return std::nullopt;
    auto place = FindPlace(index, fleet_, now_);
    if (!place) placeless_.insert(job(index).kind);
    return place;
  }

  void Start(JobIndex index, Place place, PolicyNews& news) {
    HoldAll(place.holdings, fleet_);
    news.started.push_back({.job = index, .nodes = place.nodes});
    waiting_.erase(TurnOf(index));
    ends_.emplace(place.end, index);
    running_.emplace(index, std::move(place));
  }

  // Whether nothing has happened that lets any job start that had no place before.
  bool nothing_freed() const { return !freed_; }

  ClusterState fleet_;
  std::set<Turn> waiting_;
  std::map<JobIndex, Place> running_;
  std::set<std::pair<WallTime, JobIndex>> ends_;  // of the running jobs, by their limits
  std::vector<JobIndex> arrived_;                 // since the last decision
  bool freed_ = false;
  bool fleet_lost_ = false;  // a node has failed
  bool fleet_grew_ = false;  // a node came back
  WallTime now_;

 private:
  void Free(JobIndex index) {
    const auto found = running_.find(index);
    TAHOMA_CHECK(found != running_.end());
    ReleaseAll(found->second.holdings, fleet_);
    ends_.erase({found->second.end, index});
    running_.erase(found);
    freed_ = true;
  }

  const ReplayJobs& jobs_;
  absl::flat_hash_map<std::string, NodeFacts> nodes_;
  std::set<std::uint32_t> placeless_;  // kinds of jobs, since the decision began
  Planner planner_;
};

class FirstFitPolicy final : public Baseline {
 public:
  using Baseline::Baseline;

 private:
  void Serve(PolicyNews& news) override {
    std::vector<JobIndex> turns;
    if (nothing_freed()) {
      turns = arrived_;
      std::ranges::sort(turns, {}, [this](JobIndex index) { return TurnOf(index); });
    } else {
      for (const Turn& turn : waiting_) turns.push_back(turn.job);
    }
    for (const JobIndex index : turns) {
      if (auto place = FindPlaceNow(index)) Start(index, *std::move(place), news);
    }
  }
};

class EasyPolicy final : public Baseline {
 public:
  using Baseline::Baseline;

 private:
  // The promise to the first job: the fleet as it will be then, and the job's place there.
  struct Promise {
    JobIndex job = 0;
    Place place;
    ClusterState fleet;
  };

  void Serve(PolicyNews& news) override {
    if (nothing_freed() && arrived_.empty()) return;
    while (!waiting_.empty()) {
      const JobIndex first = waiting_.begin()->job;
      auto place = FindPlaceNow(first);
      if (!place) return Backfill(Promised(first), news);
      Start(first, *std::move(place), news);
    }
  }

  // Returns nullopt when the job has no place even after all running jobs: nodes have failed.
  std::optional<Promise> Promised(JobIndex first) {
    ClusterState fleet = fleet_;
    for (auto end = ends_.begin(); end != ends_.end();) {
      const WallTime when = end->first;
      for (; end != ends_.end() && end->first == when; ++end) {
        ReleaseAll(running_.at(end->second).holdings, fleet);
      }
      if (auto place = FindPlace(first, fleet, when)) {
        return Promise{.job = first, .place = *std::move(place), .fleet = std::move(fleet)};
      }
    }
    return std::nullopt;
  }

  void Backfill(std::optional<Promise> promise, PolicyNews& news) {
    const std::vector<Turn> behind(std::next(waiting_.begin()), waiting_.end());
    for (const Turn& turn : behind) {
      auto place = FindPlaceNow(turn.job);
      if (place && promise && !MayStart(*place, *promise)) place = PlaceBeside(turn.job, *promise);
      if (!place) continue;
      if (promise && place->end > promise->place.start) HoldAll(place->holdings, promise->fleet);
      Start(turn.job, *std::move(place), news);
    }
  }

  // Whether the promise can be kept when the place is taken; perhaps in another place.
  bool MayStart(const Place& place, Promise& promise) {
    if (place.end <= promise.place.start) return true;
    ClusterState fleet = promise.fleet;
    HoldAll(place.holdings, fleet);
    auto moved = FindPlace(promise.job, fleet, promise.place.start);
    if (!moved) return false;
    promise.place = *std::move(moved);
    return true;
  }

  // Returns a place that does not touch the promised one.
  std::optional<Place> PlaceBeside(JobIndex index, const Promise& promise) {
    ClusterState fleet = fleet_;
    HoldAll(promise.place.holdings, fleet);
    return FindPlace(index, fleet, now_);
  }
};

class ConservativePolicy final : public Baseline {
 public:
  using Baseline::Baseline;

  void Finish(JobIndex job) override {
    finished_.push_back({job, running_.at(job).end});
    Baseline::Finish(job);
  }
  std::optional<WallTime> wake() const override {
    std::optional<WallTime> first;
    for (const auto& [turn, place] : promises_) {
      if (!first || place.start < *first) first = place.start;
    }
    return first;
  }

 private:
  void Serve(PolicyNews& news) override {
    const bool early = std::ranges::any_of(
        finished_, [this](const auto& finished) { return finished.second > now_; });
    finished_.clear();
    std::vector<Turn> arrived;
    for (const JobIndex index : arrived_) arrived.push_back(TurnOf(index));
    std::ranges::sort(arrived);
    // A job that goes before others, or less hardware, makes all promises void.
    const bool passes =
        !arrived.empty() && !promises_.empty() && arrived.front() < promises_.rbegin()->first;
    if (fleet_lost_ || fleet_grew_ || passes) {
      promises_.clear();
      arrived.assign(waiting_.begin(), waiting_.end());
    } else if (early) {
      for (auto& [turn, place] : promises_) {
        const auto sooner = Earliest(turn.job, &turn);
        if (sooner && sooner->start < place.start) place = *sooner;
      }
    }
    for (const Turn& turn : arrived) {
      if (auto place = Earliest(turn.job, nullptr)) promises_.emplace(turn, *std::move(place));
    }
    for (auto promise = promises_.begin(); promise != promises_.end();) {
      if (promise->second.start > now_) {
        ++promise;
        continue;
      }
      Start(promise->first.job, std::move(promise->second), news);
      promise = promises_.erase(promise);
    }
  }

  // Returns the earliest place beside the running jobs and all promises but `own`: nullopt when
  // there is none even after all of them, because nodes have failed.
  std::optional<Place> Earliest(JobIndex index, const Turn* own) {
    std::set<WallTime> moments = {now_};
    std::vector<const Place*> coming;
    for (const auto& [end, running] : ends_) moments.insert(std::max(end, now_));
    for (const auto& [turn, place] : promises_) {
      if (own != nullptr && turn == *own) continue;
      moments.insert(place.end);
      coming.push_back(&place);
    }
    std::ranges::stable_sort(coming, {}, [](const Place* place) { return place->start; });
    std::multimap<WallTime, const Place*> held;  // promises that the fleet holds, by their ends
    ClusterState fleet = fleet_;
    auto end = ends_.begin();
    auto next = coming.begin();
    for (const WallTime when : moments) {
      for (; end != ends_.end() && end->first <= when; ++end) {
        ReleaseAll(running_.at(end->second).holdings, fleet);
      }
      while (!held.empty() && held.begin()->first <= when) {
        ReleaseAll(held.begin()->second->holdings, fleet);
        held.erase(held.begin());
      }
      for (; next != coming.end() && (*next)->start < EndOf(when, job(index).limit); ++next) {
        if ((*next)->end <= when) continue;
        HoldAll((*next)->holdings, fleet);
        held.emplace((*next)->end, *next);
      }
      if (auto place = FindPlace(index, fleet, when)) return place;
    }
    return std::nullopt;
  }

  std::map<Turn, Place> promises_;
  std::vector<std::pair<JobIndex, WallTime>> finished_;  // and when they would have by their limits
};

}  // namespace

std::unique_ptr<ReplayPolicy> MakeBaseline(BaselineKind kind, const ReplayJobs& jobs,
                                           std::vector<NodeFacts> nodes) {
  switch (kind) {
    case BaselineKind::kFirstFit:
      return std::make_unique<FirstFitPolicy>(jobs, std::move(nodes));
    case BaselineKind::kEasy:
      return std::make_unique<EasyPolicy>(jobs, std::move(nodes));
    case BaselineKind::kConservative:
      return std::make_unique<ConservativePolicy>(jobs, std::move(nodes));
  }
  TAHOMA_CHECK(false);
  return nullptr;
}

}  // namespace tahoma::controller
