#include "controller/core/queue/victim_rules.h"

#include <algorithm>
#include <string>

#include "controller/core/queue/queue_lines.h"

namespace tahoma::controller {

std::vector<Eighths> PossibleNeeds(const GangSpec& gang, const QueueShares* shares) {
  std::vector<Eighths> needs;
  if (shares == nullptr) return needs;
  const std::int64_t least = LeastEighthsOf(gang);
  for (const std::string& type : shares->FleetTypes()) needs.push_back({{type, least}});
  return needs;
}

bool MayEndFor(const GangSpec& gang, std::span<const Eighths> needs, const GangDecision& decision,
               const QueueShares* shares) {
  if (shares == nullptr || decision.queue == gang.queue) return decision.priority < gang.priority;
  return std::ranges::any_of(needs, [&](const Eighths& need) {
    return shares->MayReclaim(gang.queue, need, decision.queue);
  });
}

RunningGang RunningOf(const GangDecision& decision, std::int64_t work, WallTime begun) {
  RunningGang gang = {
      .claims = {}, .pods = {}, .work = work, .priority = decision.priority, .begun = begun};
  for (const DecidedClaim& claim : decision.claims) {
    if (!claim.allocated_before) gang.claims.push_back(claim.uid);
  }
  for (const DecidedPod& pod : decision.pods) gang.pods.push_back({decision.key.ns, pod.name});
  return gang;
}

}  // namespace tahoma::controller
