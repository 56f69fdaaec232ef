#include "controller/core/queue/end_terms.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "controller/plan/decision.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

// The words of the Gang and the pods of a run, as far as these objects still exist.
struct Said {
  std::optional<seconds> min_runtime;
  bool checkpointable = true;
  std::optional<WallTime> checkpoint;  // the last
};

Said SaidOf(const GangDecision& decision, const Facts& facts) {
  Said said;
  const auto see = [&](const std::optional<WallTime>& checkpoint) {
    if (checkpoint) said.checkpoint = std::max(said.checkpoint.value_or(*checkpoint), *checkpoint);
  };
  const auto take = [&](const auto& fact) {
    said.min_runtime = fact.min_runtime;
    said.checkpointable = fact.checkpointable;
    see(fact.checkpoint);
  };
  if (!decision.single) {
    const auto gang = facts.gangs.Find(decision.key);
    if (gang != nullptr && gang->uid == decision.uid) take(*gang);
  }
  for (const DecidedPod& one : decision.pods) {
    const auto pod = facts.pods.Find(PodKey{decision.key.ns, one.name});
    if (pod == nullptr || pod->uid != one.uid) continue;
    if (decision.single) take(*pod);
    if (!decision.single) see(pod->checkpoint);
  }
  return said;
}

}  // namespace

std::int64_t DevicesOf(const GangDecision& decision) {
  std::int64_t count = 0;
  for (const DecidedClaim& claim : decision.claims) {
    count += std::ssize(claim.allocation.results);
  }
  return count;
}

RunTerms RunTermsOf(const GangRun& run, const Facts& facts) {
  const Said said = SaidOf(run.decision(), facts);
  RunTerms terms;
  terms.run = run.id();
  terms.ending = run.ending();
  terms.bound = run.bound_at().has_value();
  terms.begun = terms.bound ? run.bound_at() : run.decision().placed;
  terms.checkpointable = said.checkpointable;
  terms.checkpoint = said.checkpoint;
  terms.min_runtime = said.min_runtime;
  terms.devices = DevicesOf(run.decision());
  return terms;
}

EndTerms TermsAt(const RunTerms& run, WallTime now) {
  EndTerms terms;
  terms.begun = run.begun.value_or(now);
  terms.checkpointable = run.checkpointable;
  terms.tells_checkpoints = run.checkpoint.has_value();
  terms.since = terms.begun;
  if (run.checkpointable && run.checkpoint) terms.since = std::max(terms.since, *run.checkpoint);
  if (terms.since < now) {
    terms.work = run.devices * std::chrono::duration_cast<seconds>(now - terms.since).count();
  }
  if (run.min_runtime) {
    const WallTime end = EndOf(run.bound ? terms.begun : now, *run.min_runtime);
    if (end > now) terms.kept_until = end;
  }
  return terms;
}

EndTerms EndTermsOf(const GangRun& run, const Facts& facts, WallTime now) {
  return TermsAt(RunTermsOf(run, facts), now);
}

}  // namespace tahoma::controller
