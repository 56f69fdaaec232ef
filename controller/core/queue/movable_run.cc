#include "controller/core/queue/movable_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "controller/core/queue/end_terms.h"
#include "controller/core/queue/victim_rules.h"

namespace tahoma::controller {
namespace {

// Returns whether each pod of the decision has an owner that makes the pod anew.
bool AllControlled(const GangDecision& decision, const Facts& facts) {
  return std::ranges::all_of(decision.pods, [&](const DecidedPod& pod) {
    const auto fact = facts.pods.Find(PodKey{decision.key.ns, pod.name});
    return fact != nullptr && fact->uid == pod.uid && fact->controlled;
  });
}

// Returns why a run on these terms is never moved; "" when the terms allow a move.
std::string StaysAlways(const GangDecision& decision, const EndTerms& terms, const Facts& facts) {
  if (decision.single) return "is a pod without a Gang";
  if (!decision.reservation.empty()) return "runs in a Capacity Block";
  if (!terms.checkpointable) return "has checkpointable: false";
  if (!decision.preemptible && !terms.tells_checkpoints) {
    return fmt::format("is not preemptible, and has no annotation {}", kCheckpointAnnotation);
  }
  if (!AllControlled(decision, facts)) return "has pods that nobody makes anew";
  return "";
}

}  // namespace

std::shared_ptr<const MovableRun> MovableOf(const GangRun& run, const Facts& facts,
                                            std::string from, const MovableRun* before) {
  const GangDecision& decision = run.decision();
  const WallTime bound = run.bound_at().value_or(decision.placed.value_or(WallTime()));
  const EndTerms terms = EndTermsOf(run, facts, bound);
  auto movable = std::make_shared<MovableRun>();
  movable->gang = {decision.key, decision.single};
  movable->run = run.id();
  movable->decision = run.shared_decision();
  movable->from = std::move(from);
  movable->devices = DevicesOf(decision);
  movable->begun = terms.begun;
  movable->since = terms.since;
  movable->kept_until = terms.kept_until;
  movable->stays = run.ending() ? "ends" : StaysAlways(decision, terms, facts);
  if (!movable->stays.empty()) return movable;
  if (before != nullptr && before->spec != nullptr && before->decision == movable->decision) {
    movable->spec = before->spec;
    return movable;
  }
  const Readiness placed = GangMembership::AssessPlaced(decision, facts);
  movable->spec = placed.spec;
  if (placed.spec == nullptr) movable->stays = "is not whole: " + placed.message;
  return movable;
}

std::string StaysBecause(const MovableRun& run, WallTime now) {
  if (!run.stays.empty()) return run.stays;
  if (!run.kept_until || *run.kept_until <= now) return "";
  return fmt::format("has minRuntime until {}", FormatTime(*run.kept_until));
}

std::int64_t WorkLostBy(const MovableRun& run, WallTime now) {
  if (run.since >= now) return 0;
  return run.devices * std::chrono::duration_cast<std::chrono::seconds>(now - run.since).count();
}

RunningGang RunningOf(const MovableRun& run, WallTime now) {
  return RunningOf(*run.decision, WorkLostBy(run, now), run.begun);
}

}  // namespace tahoma::controller
