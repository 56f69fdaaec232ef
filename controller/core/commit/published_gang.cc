#include "controller/core/commit/published_gang.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "controller/plan/decision.h"
#include "lib/base/check.h"

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

// Gives pods that are not bound the slice of their rank: ranks go slice by slice, and each slice
// has as many. Without the Gang nobody knows how many: all are in the first one then.
void AssignSlices(const GangFact* gang, const std::vector<bool>& bound,
                  std::vector<DecidedPod>& pods) {
  if (gang == nullptr || gang->slices < 1 || gang->members % gang->slices != 0) return;
  const auto each = static_cast<std::uint32_t>(gang->members / gang->slices);
  if (each == 0) return;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (!bound[i]) pods[i].slice = pods[i].rank / each;
  }
}

// Reads where the slices lie from the annotations of the bound pods.
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

// Reads from the gang as it is now, and from its pods, how long it may run and where.
void TakeTerms(const GangRef& ref, const std::vector<std::shared_ptr<const PodFact>>& pods,
               const Facts& facts, GangDecision& decision) {
  const PodFact& first = *pods.front();
  decision.max_runtime = first.max_runtime;
  decision.preemptible = first.preemptible;
  decision.priority = first.priority;
  const auto gang = facts.gangs.Find(ref.key);
  if (!ref.single && gang != nullptr) {
    decision.max_runtime = gang->max_runtime;
    decision.preemptible = gang->preemptible;
    decision.priority = PriorityOf(*gang, pods);
  }
  decision.queue = QueueOf(ref.single ? nullptr : gang.get(), pods);
  decision.grace = {};
  for (const auto& pod : pods) {
    decision.grace = std::max(decision.grace, pod->grace());
    if (decision.reservation.empty()) decision.reservation = pod->bound_reservation;
    if (!pod->scheduled_at) continue;
    decision.placed = std::min(decision.placed.value_or(*pod->scheduled_at), *pod->scheduled_at);
  }
  if (decision.placed && decision.max_runtime) {
    decision.end = EndOf(*decision.placed, *decision.max_runtime);
  }
  // Calendars of queues tell preemptible gangs outside of blocks a time, too.
  if (decision.preemptible && decision.reservation.empty()) decision.reclaim.reset();
}

}  // namespace

std::optional<PublishedGang> ReadPublished(const GangRef& ref,
                                           const std::vector<std::shared_ptr<const PodFact>>& pods,
                                           const Facts& facts,
                                           const std::function<bool(const ClaimKey&)>& in_run,
                                           const ReadPublishedOptions& options) {
  TAHOMA_CHECK(!pods.empty());
  auto decision = std::make_shared<GangDecision>();
  decision->key = ref.key;
  decision->single = ref.single;
  PublishedGang gang{.decision = decision, .all_held = true, .all_placed = true};
  std::vector<bool> bound;
  std::map<std::string, std::uint32_t> claim_index;
  for (const auto& pod : pods) {
    const auto index = static_cast<std::uint32_t>(decision->pods.size());
    DecidedPod decided{.name = pod->key.name,
                       .uid = pod->uid,
                       .node = pod->node,
                       .rank = pod->bound_rank,
                       .slice = pod->bound_slice};
    bound.push_back(!pod->node.empty() && !pod->bound_gang_uid.empty());
    if (pod->scheduled_at) {
      gang.bound_at = std::max(gang.bound_at.value_or(*pod->scheduled_at), *pod->scheduled_at);
    }
    if (bound.back()) decision->uid = pod->bound_gang_uid;
    if (bound.back() && pod->bound_reclaim) decision->reclaim = pod->bound_reclaim;
    for (const PodClaim& entry : pod->claims) {
      const auto claim = facts.claims.Find(ClaimKey{pod->key.ns, entry.claim});
      const bool allocated = claim != nullptr && claim->allocation != nullptr;
      const bool ours = allocated && claim->ReservedFor(pod->uid);
      gang.all_held = gang.all_held && (ours || entry.none);
      // The first write to a claim adds its finalizer; a commit that came no further is cleared,
      // too.
      const bool begun = !options.journal_beside_api && claim != nullptr && !allocated &&
                         claim->protected_by_finalizer;
      if (!ours && !begun) continue;
      const bool shared = in_run(claim->key);
      if (shared && !ours) continue;
      if (decided.node.empty() && allocated) decided.node = claim->allocation->node;
      const auto [at, added] =
          claim_index.try_emplace(entry.claim, static_cast<std::uint32_t>(decision->claims.size()));
      if (added) {
        DecidedClaim adopted;
        adopted.name = entry.claim;
        adopted.uid = claim->uid;
        adopted.allocated_before = shared;
        if (shared) {
          adopted.allocation.node = claim->allocation->node;
        } else if (allocated) {
          adopted.allocation = *claim->allocation;
        }
        decision->claims.push_back(std::move(adopted));
      }
      decision->claims[at->second].consumers.push_back(index);
    }
    gang.all_placed = gang.all_placed && !decided.node.empty();
    decision->pods.push_back(std::move(decided));
  }
  gang.any_bound = std::find(bound.begin(), bound.end(), true) != bound.end();
  gang.all_bound = std::find(bound.begin(), bound.end(), false) == bound.end();
  const bool all_shared = std::all_of(decision->claims.begin(), decision->claims.end(),
                                      [](const DecidedClaim& c) { return c.allocated_before; });
  if (!gang.any_bound && all_shared) return std::nullopt;
  AssignRanks(decision->pods, bound);
  if (!ref.single) AssignSlices(facts.gangs.Find(ref.key).get(), bound, decision->pods);
  if (decision->uid.empty()) decision->uid = pods.front()->uid;
  TakeTerms(ref, pods, facts, *decision);
  PublishedSlices(pods, bound, *decision);
  return gang;
}

bool CameBack(const GangRun& run, const Facts& facts) {
  if (run.phase() != RunPhase::kBound) return false;
  const GangDecision& decision = run.decision();
  for (std::size_t i = 0; i < decision.claims.size(); ++i) {
    if (!run.claim_released(i)) continue;
    const DecidedClaim& decided = decision.claims[i];
    const auto claim = facts.claims.Find(ClaimKey{decision.key.ns, decided.name});
    const bool allocated =
        claim != nullptr && claim->uid == decided.uid && claim->allocation != nullptr;
    const bool in_use =
        std::any_of(decided.consumers.begin(), decided.consumers.end(), [&](std::uint32_t user) {
          const DecidedPod& pod = decision.pods[user];
          const auto fact = facts.pods.Find(PodKey{decision.key.ns, pod.name});
          return fact != nullptr && fact->uid == pod.uid && !fact->finished &&
                 (fact->node.empty() || (allocated && claim->ReservedFor(pod.uid)));
        });
    if (in_use) return true;
  }
  return false;
}

}  // namespace tahoma::controller
