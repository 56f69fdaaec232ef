// The Hamiltonian cycles of an UltraServer
// (docs/reference/collectives.md#cycles-of-an-ultraserver).

#include "sim-node/emulator/collective/algorithms/cycles.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lib/torus/path.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::UltraServer;
using torus::ChipIndex;

TEST(CyclesTest, AreFiveHamiltonianCyclesOverSingleLinks) {
  ASSERT_EQ(UltraServerCycles().size(), 5u);
  for (const auto& cycle : UltraServerCycles()) {
    EXPECT_EQ(cycle.size(), 64u);
    EXPECT_EQ(std::set(cycle.begin(), cycle.end()).size(), 64u);
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto route =
          torus::Route(torus::kUltraServerShape, cycle[i], cycle[(i + 1) % cycle.size()]);
      EXPECT_EQ(route.size(), 1u);
    }
  }
}

TEST(CyclesTest, TogetherUseEveryXAndYCableTwiceAndEveryZCableOnce) {
  const TorusLinks links = UltraServer();
  std::map<LinkId, int> uses;  // by the cable's end in plus direction
  for (const auto& cycle : UltraServerCycles()) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      torus::Hop hop = torus::Route(links.torus(), cycle[i], cycle[(i + 1) % cycle.size()]).front();
      const ChipIndex end = hop.direction == torus::Direction::kPlus ? hop.from : hop.to;
      ++uses[TorusLinks::IdOf(end, hop.axis, torus::Direction::kPlus)];
    }
  }
  EXPECT_EQ(uses.size(), 192u);
  for (const auto& [link, count] : uses) {
    EXPECT_EQ(count, links.HopOf(link).axis == torus::Axis::kZ ? 1 : 2) << TorusLinks::Name(link);
  }
}

TEST(CyclesTest, AnUltraServersRingUsesThemUntilACableOfOneBreaks) {
  TorusLinks links = UltraServer();
  std::vector<ChipIndex> chips;
  for (int chip = 0; chip < 64; ++chip) chips.emplace_back(chip);
  EXPECT_EQ(ChipSet(links, chips).Rings(links), UltraServerCycles());
  ASSERT_TRUE(links
                  .SetCablePermille(
                      TorusLinks::IdOf(ChipIndex(0), torus::Axis::kZ, torus::Direction::kPlus), 0)
                  .ok());
  EXPECT_EQ(ChipSet(links, chips).Rings(links).size(), 4u);
}

}  // namespace
}  // namespace tahoma::sim
