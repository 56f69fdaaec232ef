// Tests that the work of a decision does not grow with the fleet: it is counted, not timed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/plan/fleet_index.h"
#include "controller/plan/planner.h"
#include "controller/plan/search.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

// A fleet that is busy everywhere but in its last domains: of each UltraServer but those, one chip
// of each node is held.
ClusterState BusyFleet(int ultra_servers, int idle) {
  ClusterState state;
  for (int u = 0; u < ultra_servers; ++u) {
    const std::string id = fmt::format("us-{}", u);
    AddUltraServer(state, id, false);
    for (int z = 0; z < 4 && u + idle < ultra_servers; ++z) {
      Holding holding;
      holding.claim_uid = fmt::format("{}-{}", id, z);
      holding.devices = {{.node = fmt::format("{}-n{}", id, z), .device = "neuron-device-5"}};
      state.Hold(std::make_shared<const Holding>(std::move(holding)));
    }
  }
  return state;
}

GangSpec PodsOfShape(int members, std::int64_t chips, const std::string& shape) {
  GangSpec gang = GangOf("g", members, [&](const std::string& p) { return ChipClaim(p, chips); });
  gang.shape_text = shape;
  return gang;
}

struct Looked {
  bool placed = false;
  std::size_t tried = 0;    // domains that the search looked at
  std::size_t changed = 0;  // domains that differ from before, which the index looks at again
};

Looked Place(const ClusterState& view, const GangSpec& gang) {
  ClusterState state = view;
  FleetIndex index;
  index.Sync(state);
  const ChipChoice choice;
  Eligibility eligibility;
  Search search(index, choice, eligibility, state);
  Compiler compiler;
  const auto compiled = compiler.Compile(std::make_shared<const GangSpec>(gang));
  EXPECT_TRUE(compiled->valid.ok()) << compiled->valid;
  Looked looked;
  looked.placed = search.Place(*compiled, WallTime{}).has_value();
  looked.tried = search.obstacle().domains_tried;
  ClusterState::ForEachChangedDomain(view, state, [&](DomainId) { ++looked.changed; });
  return looked;
}

TEST(PlannerScaleTest, ADecisionLooksAtAsManyDomainsInALargeFleetAsInASmallOne) {
  const ClusterState small = BusyFleet(12, 2);
  const ClusterState large = BusyFleet(600, 2);
  std::vector<std::pair<std::string, GangSpec>> gangs;
  gangs.emplace_back("a whole UltraServer", PodsOfShape(4, 16, "4x4x4"));
  gangs.emplace_back("a node", PodsOfShape(1, 16, "4x4"));
  gangs.emplace_back("a box on a busy node", PodsOfShape(1, 4, "2x2"));
  gangs.emplace_back("two pods without a box", PodsOfShape(2, 8, ""));
  gangs.emplace_back("three chips", PodsOfShape(1, 3, ""));
  gangs.emplace_back("more than there is", PodsOfShape(12, 16, "4x4x4"));
  gangs.back().second.slices = 3;
  for (const auto& [what, gang] : gangs) {
    SCOPED_TRACE(what);
    const Looked in_small = Place(small, gang);
    const Looked in_large = Place(large, gang);
    EXPECT_EQ(in_small.placed, in_large.placed);
    EXPECT_EQ(in_small.placed, what != "more than there is");
    EXPECT_EQ(in_small.tried, in_large.tried);
    EXPECT_LE(in_large.tried, 4U);
    EXPECT_LE(in_large.changed, 2 * PersistentVector<DomainState>::kLeaf);
  }
}

TEST(PlannerScaleTest, ACopyOfTheFleetSharesAllButWhatChanges) {
  ClusterState state = BusyFleet(300, 1);
  const ClusterState before = state;
  std::size_t changed = 0;
  state.Release("us-150-2");
  state.PutNode(NodeFactsOf({.name = "us-7-n1",
                             .type = "trn2u.48xlarge",
                             .ultra_server = "us-7",
                             .z = 1,
                             .cores = false,
                             .broken = 1}));
  ClusterState::ForEachChangedDomain(before, state, [&](DomainId) { ++changed; });
  EXPECT_LE(changed, 2 * PersistentVector<DomainState>::kLeaf);
  EXPECT_EQ(before.Count().broken, 0U);
  EXPECT_EQ(state.Count().broken, 1U);
}

}  // namespace
}  // namespace tahoma::controller
