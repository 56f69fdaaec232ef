// The part of Core that takes over gangs which are published in the API but not in the journal: the
// disk was lost, or a stand-by with an empty one takes over. Whatever is wholly or partly bound is
// rolled forward, whatever is only partly allocated is rolled back.

#include <algorithm>
#include <utility>

#include "controller/ledger/core.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Gives the gang's pods ranks: published ones stay, the others fill the gaps in name order.
void AssignRanks(std::vector<DecidedPod>& pods, const std::vector<bool>& known) {
  std::vector<bool> used(pods.size(), false);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (known[i] && pods[i].rank < pods.size()) used[pods[i].rank] = true;
  }
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (known[i]) continue;
    while (next < pods.size() && used[next]) ++next;
    pods[i].rank = next++;
  }
}

// Where the slices lie, from the annotations of the pods that are bound.
void PublishedSlices(const std::vector<std::shared_ptr<const PodFact>>& pods,
                     const std::vector<bool>& bound, GangDecision& decision) {
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (!bound[i] || pods[i]->bound_placement.empty()) continue;
    const std::size_t slice = decision.pods[i].slice;
    if (slice >= pods.size()) continue;
    if (decision.slices.size() <= slice) decision.slices.resize(slice + 1);
    std::vector<std::string> nodes = std::move(decision.slices[slice].nodes);
    decision.slices[slice] = ParsePlacement(pods[i]->bound_placement);
    if (std::find(nodes.begin(), nodes.end(), pods[i]->node) == nodes.end()) {
      nodes.push_back(pods[i]->node);
    }
    decision.slices[slice].nodes = std::move(nodes);
  }
}

}  // namespace

// Claims that the journal has released, and the API shows them in use by pods of the run, or such a
// pod unbound: it was restored from a backup of before. The records cannot say that; they are
// dropped, and the gang is taken over as it is published, or decided anew.
void Core::DropWhatCameBack() {
  std::vector<RunId> back;
  for (const auto& [id, entry] : runs_) {
    const GangDecision& decision = entry.run.decision();
    for (std::size_t i = 0; i < decision.claims.size(); ++i) {
      if (entry.run.phase() != RunPhase::kBound || !entry.run.claim_released(i)) continue;
      const auto claim = facts_.claims.Find(ClaimKey{decision.key.ns, decision.claims[i].name});
      const bool allocated =
          claim != nullptr && claim->uid == decision.claims[i].uid && claim->allocation != nullptr;
      const auto& users = decision.claims[i].consumers;
      const bool came_back = std::any_of(users.begin(), users.end(), [&](std::uint32_t user) {
        const DecidedPod& pod = decision.pods[user];
        const auto fact = facts_.pods.Find(PodKey{decision.key.ns, pod.name});
        return fact != nullptr && fact->uid == pod.uid && !fact->finished &&
               (fact->node.empty() || (allocated && claim->ReservedFor(pod.uid)));
      });
      if (!came_back) continue;
      back.push_back(id);
      break;
    }
  }
  for (const RunId id : back) Commit(GangReleased{id});
}

void Core::Adopt() {
  DropWhatCameBack();
  std::map<GangRef, std::vector<std::shared_ptr<const PodFact>>> orphans;
  facts_.pods.ForEach([&](const PodFact& pod) {
    const GangRef ref = GangOf(pod);
    if (run_of_gang_.contains(ref) || pod.finished) return;
    if (!pod.node.empty() && pod.bound_gang_uid.empty()) return;  // somebody else bound it
    orphans[ref].push_back(facts_.pods.Find(pod.key));
  });
  for (auto& [ref, pods] : orphans) {
    std::sort(pods.begin(), pods.end(),
              [](const auto& a, const auto& b) { return NaturalLess(a->key.name, b->key.name); });
    AdoptGang(ref, pods);
  }
}

// A run has ended, for the API shows other pods by the names of its own, which were bound for a run
// that the journal has dropped: the API was restored to before the gang was made anew.
void Core::AdoptSuccessors() {
  for (const GangRef& ref : std::exchange(left_behind_, {})) {
    if (run_of_gang_.contains(ref)) continue;
    std::vector<std::shared_ptr<const PodFact>> pods;
    const auto add = [&](const std::string& name) {
      auto pod = facts_.pods.Find(PodKey{ref.key.ns, name});
      if (pod != nullptr && !pod->finished) pods.push_back(std::move(pod));
    };
    if (ref.single) add(ref.key.name);
    if (!ref.single) {
      for (const std::string& name : roster_.PodsOf(ref.key)) add(name);
    }
    if (!pods.empty()) AdoptGang(ref, pods);
  }
}

bool Core::HoldsWhatOthersHave(const GangDecision& decision) const {
  return std::any_of(decision.claims.begin(), decision.claims.end(),
                     [&](const DecidedClaim& claim) {
                       const Holding* holding = cluster_.FindHolding(claim.uid);
                       return holding != nullptr && cluster_.IsSharedWithOthers(*holding);
                     });
}

void Core::AdoptGang(const GangRef& ref, const std::vector<std::shared_ptr<const PodFact>>& pods) {
  auto decision = std::make_shared<GangDecision>();
  decision->key = ref.key;
  decision->single = ref.single;
  std::vector<bool> bound;
  std::map<std::string, std::uint32_t> claim_index;
  bool all_held = true;
  bool all_placed = true;
  for (const auto& pod : pods) {
    const auto index = static_cast<std::uint32_t>(decision->pods.size());
    DecidedPod decided{.name = pod->key.name,
                       .uid = pod->uid,
                       .node = pod->node,
                       .rank = pod->bound_rank,
                       .slice = pod->bound_slice};
    bound.push_back(!pod->node.empty() && !pod->bound_gang_uid.empty());
    if (bound.back()) decision->uid = pod->bound_gang_uid;
    for (const PodClaim& entry : pod->claims) {
      const auto claim = facts_.claims.Find(ClaimKey{pod->key.ns, entry.claim});
      const bool allocated = claim != nullptr && claim->allocation != nullptr;
      const bool ours = allocated && claim->ReservedFor(pod->uid);
      all_held = all_held && (ours || entry.none);
      // The first write to a claim is its finalizer; what came no further is cleared too. With the
      // journal beside the API no commit is unknown, and claims are made with the finalizer.
      const bool begun = !options_.journal_beside_api && claim != nullptr && !allocated &&
                         claim->protected_by_finalizer;
      if ((!ours && !begun) || runs_of_claim_.contains(claim->key)) continue;
      if (decided.node.empty() && allocated) decided.node = claim->allocation->node;
      const auto [at, added] =
          claim_index.try_emplace(entry.claim, static_cast<std::uint32_t>(decision->claims.size()));
      if (added) {
        DecidedClaim adopted;
        adopted.name = entry.claim;
        adopted.uid = claim->uid;
        if (allocated) adopted.allocation = *claim->allocation;
        decision->claims.push_back(std::move(adopted));
      }
      decision->claims[at->second].consumers.push_back(index);
    }
    all_placed = all_placed && !decided.node.empty();
    decision->pods.push_back(std::move(decided));
  }
  const bool any_bound = std::find(bound.begin(), bound.end(), true) != bound.end();
  if (!any_bound && decision->claims.empty()) return;  // nothing of ours is published
  AssignRanks(decision->pods, bound);
  if (decision->uid.empty()) decision->uid = pods.front()->uid;
  PublishedSlices(pods, bound, *decision);
  Commit(GangPrepared{decision});
  const RunId run = run_of_gang_.at(ref);
  FindRun(run)->run.MarkRestored();
  FindRun(run)->restored = true;
  for (const DecidedPod& pod : decision->pods) TellRunsOfPod({ref.key.ns, pod.name});
  for (const DecidedClaim& claim : decision->claims) TellRunsOfClaim({ref.key.ns, claim.name});
  // Binds are sent when all claims are held: one may still be on its way.
  if (any_bound || all_held) Commit(GangAllocated{run});
  // The journal wins over a gang that had ended and that only a restored backup knows.
  const bool overtaken = HoldsWhatOthersHave(*decision);
  if (overtaken) {
    CommitAndTell(GangUndoing{run, "its devices were given to others before the API was restored"});
  } else if (!any_bound || !all_held || !all_placed) {
    CommitAndTell(GangUndoing{run, "the controller's journal was lost before the gang was whole"});
  } else if (std::find(bound.begin(), bound.end(), false) == bound.end()) {
    Commit(GangBound{run});
  }
  touched_runs_.insert(run);
  touched_gangs_.insert(ref);
}

}  // namespace tahoma::controller
