// Helpers for tests of collectives over several topology domains: fabrics, their members, and what
// a plan does to real data.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/hw/catalogue.h"
#include "sim-node/emulator/collective/domains/composition.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/participants/test_pattern.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim::testing {

inline constexpr std::int64_t kEfaRate = hw::kTrainium2.links.efa;

inline Fabric Joined(const TorusLinks& domain, int domains, const EfaTiming& efa = {},
                     const LayerSizes& layers = {.domains_under_layer3 = 1'000'000}) {
  return {std::vector<TorusLinks>(static_cast<std::size_t>(domains), domain), kEfaRate, efa,
          RegularPlaces(domains, layers)};
}
inline Fabric UltraServers(int domains) { return Joined(UltraServer(), domains); }
inline Fabric Instances(int domains) { return Joined(Instance(), domains); }

// The chips of the mask in each domain.
inline std::vector<Member> Everywhere(const Fabric& fabric, torus::ChipMask chips = kAllChips,
                                      int ranks = 1) {
  std::vector<Member> members;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    for (const Member& local : MembersOf(chips, ranks)) {
      const torus::ChipIndex chip = Fabric::ChipOf(domain, local.chip.value());
      if (fabric.Contains(chip)) members.push_back({.chip = chip, .ranks = ranks});
    }
  }
  return members;
}

// A plan of this kind, without times.
inline Plan Composed(const Request& request, const std::vector<Member>& members,
                     const Fabric& fabric, int chunks, bool meshes,
                     InterAlgorithm between = InterAlgorithm::kMesh) {
  std::vector<int> weights;
  for (const Member& member : members) weights.push_back(member.ranks);
  const Layout layout = Layout::Weighted(weights, request.bytes / Size(request.type), 4);
  const HierarchyChoice choice{.between = between, .chunks = chunks};
  const DomainSet set(members, fabric);
  auto schedule = ComposePhases({request, layout, set, fabric, choice, meshes});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return {.algorithm = Algorithm::kHier, .schedule = *std::move(schedule), .times = {}};
}

// The plan with its scheduled steps in any order in which each stands after those that it waits
// for. It is for making, not for timing: numbers of steps mean the old order.
inline Plan Shuffled(Plan plan, Rng& rng) {
  Schedule& schedule = plan.schedule;
  std::vector<std::size_t> waits;
  std::vector<std::size_t> ready;
  std::vector<std::vector<std::size_t>> followers(schedule.scheduled.size());
  for (std::size_t i = 0; i < schedule.scheduled.size(); ++i) {
    waits.push_back(schedule.scheduled[i].after.size());
    for (const std::uint32_t before : schedule.scheduled[i].after) followers[before].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  std::vector<ScheduledStep> order;
  while (!ready.empty()) {
    std::swap(ready[rng.Below(ready.size())], ready.back());
    const std::size_t next = ready.back();
    ready.pop_back();
    order.push_back(schedule.scheduled[next]);
    for (const std::size_t follower : followers[next]) {
      if (--waits[follower] == 0) ready.push_back(follower);
    }
  }
  EXPECT_EQ(order.size(), schedule.scheduled.size());
  schedule.scheduled = std::move(order);
  return plan;
}

// Elements that are wrong on any member after the plan has really been carried out.
inline std::uint64_t WrongElements(const Plan& plan, const Request& request, ReduceOp op,
                                   const std::vector<Member>& members) {
  int ranks = 0;
  for (const Member& member : members) ranks += member.ranks;
  const TestPattern pattern(request, op, ranks, /*seed=*/7, plan.sources);
  std::vector<std::vector<std::byte>> storage;
  std::vector<ChipBuffer> buffers;
  std::vector<RankRange> ranges;
  int first = 0;
  storage.reserve(members.size());
  for (const Member& member : members) {
    ranges.push_back({.first = first, .count = member.ranks});
    first += member.ranks;
    const std::uint64_t bytes = ChipBufferBytes(request, member.ranks);
    storage.emplace_back(bytes + plan.schedule.relay_bytes);
    pattern.FillChip(ranges.back(), std::span(storage.back()).first(bytes));
    buffers.push_back({.chip = member.chip, .bytes = storage.back()});
  }
  Execute(plan.schedule, request.type, op, buffers);
  const std::vector<std::byte> expected = pattern.Expected();
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::uint64_t bytes = ChipBufferBytes(request, members[i].ranks);
    wrong += pattern.CountWrong(ranges[i], std::span(storage[i]).first(bytes), expected);
  }
  return wrong;
}

}  // namespace tahoma::sim::testing
