#include "controller/core/journal/gang_decision.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "lib/base/check.h"
#include "lib/driver/block_config.h"

namespace tahoma::controller {

void SayReclaim(WallTime reclaim, Allocation& allocation) {
  constexpr std::size_t kConfigsMost = 64;  // resource/v1: 2 * DeviceConfigMaxSize
  // A claim with so many configurations of its own goes without: it would be refused.
  if (allocation.configs.size() >= kConfigsMost) return;
  DeviceConfig config;
  config.driver = hw::kBlockConfigDriver;
  config.parameters = hw::EncodeBlockConfig({.reclaim_timestamp = ReclaimTimestamp(reclaim)});
  allocation.configs.push_back(std::move(config));
}

bool IsOwnClaim(const DecidedClaim& claim, std::uint32_t pod) {
  return !claim.allocated_before && claim.consumers == std::vector{pod};
}

std::vector<std::uint32_t> OwnClaims(const GangDecision& decision, std::uint32_t pod) {
  std::vector<std::uint32_t> own;
  for (std::uint32_t i = 0; i < decision.claims.size(); ++i) {
    if (IsOwnClaim(decision.claims[i], pod)) own.push_back(i);
  }
  return own;
}

std::chrono::seconds RuntimeUntil(WallTime end, WallTime now) {
  return std::chrono::duration_cast<std::chrono::seconds>(
      std::max<std::chrono::nanoseconds>(end - now, std::chrono::seconds(1)));
}

DecidedSlice DecidedSliceOf(const SlicePlacement& slice) {
  return {.domain = slice.domain,
          .shape = slice.box.size.ToString(),
          .origin = torus::ToString(slice.box.origin),
          .nodes = slice.nodes};
}

GangDecision DecisionOf(const GangSpec& spec, const Placement& placement, WallTime now) {
  TAHOMA_CHECK(placement.members.size() == spec.members.size());  // a gang is placed whole
  GangDecision decision;
  decision.key = spec.key;
  decision.uid = spec.uid;
  decision.single = spec.single_pod;
  if (spec.max_runtime) decision.end = EndOf(now, *spec.max_runtime);
  decision.reservation = spec.reservation;
  decision.queue = spec.queue;
  decision.placed = now;
  decision.max_runtime = spec.max_runtime;
  decision.preemptible = spec.preemptible;
  decision.priority = spec.priority;
  decision.grace = spec.grace;
  decision.reclaim = spec.reclaim;
  if (spec.reclaim) decision.end = std::min(decision.end.value_or(*spec.reclaim), *spec.reclaim);
  for (const SlicePlacement& slice : placement.slices) {
    decision.slices.push_back(DecidedSliceOf(slice));
  }
  absl::flat_hash_map<std::string, std::uint32_t> claim_index;  // by name
  for (const MemberPlacement& member : placement.members) {
    decision.pods.push_back({.name = member.pod.name,
                             .uid = member.uid,
                             .node = member.node,
                             .rank = static_cast<std::uint32_t>(member.rank),
                             .slice = static_cast<std::uint32_t>(member.slice)});
    for (const ClaimPlacement& claim : member.claims) {
      claim_index[claim.claim.name] = static_cast<std::uint32_t>(decision.claims.size());
      DecidedClaim decided;
      decided.name = claim.claim.name;
      decided.uid = claim.uid;
      decided.allocation = claim.allocation;
      if (spec.reclaim) SayReclaim(*spec.reclaim, decided.allocation);
      decision.claims.push_back(std::move(decided));
    }
  }
  for (const MemberSpec& member : spec.members) {
    const auto pod = std::find_if(decision.pods.begin(), decision.pods.end(),
                                  [&](const DecidedPod& p) { return p.name == member.pod.name; });
    TAHOMA_CHECK(pod != decision.pods.end());
    const auto index = static_cast<std::uint32_t>(pod - decision.pods.begin());
    for (const ClaimSpec& claim : member.claims) {
      const auto [found, added] = claim_index.try_emplace(
          claim.key.name, static_cast<std::uint32_t>(decision.claims.size()));
      if (added) {  // allocated before: only reserved for our pods
        DecidedClaim decided;
        decided.name = claim.key.name;
        decided.uid = claim.uid;
        decided.allocation.node = claim.allocated_node.value_or("");
        decided.allocated_before = true;
        decision.claims.push_back(std::move(decided));
      }
      auto& consumers = decision.claims[found->second].consumers;
      if (consumers.empty() || consumers.back() != index) consumers.push_back(index);
    }
  }
  // A claim without consumers would count as given back at once, and its chips as free.
  for (const DecidedClaim& claim : decision.claims) TAHOMA_CHECK(!claim.consumers.empty());
  return decision;
}

std::string PlacementText(const DecidedSlice& slice) {
  if (slice.domain.empty() || slice.shape.empty()) return slice.domain;
  return slice.domain + " " + slice.shape + "+" + slice.origin;
}

DecidedSlice ParsePlacement(std::string_view text) {
  DecidedSlice slice;
  const std::size_t space = text.find(' ');
  slice.domain = text.substr(0, space);
  if (space == std::string_view::npos) return slice;
  const std::size_t plus = text.find('+', space);
  if (plus == std::string_view::npos) return slice;
  slice.shape = text.substr(space + 1, plus - space - 1);
  slice.origin = text.substr(plus + 1);
  return slice;
}

}  // namespace tahoma::controller
