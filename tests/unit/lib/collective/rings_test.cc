// The Hamiltonian cycles of an UltraServer
// (docs/reference/collectives.md#cycles-of-an-ultraserver).

#include "lib/collective/rings.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lib/torus/path.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::Direction;

TEST(RingsTest, AreFiveHamiltonianCyclesOverSingleLinks) {
  ASSERT_EQ(UltraServerCycles().size(), 5u);
  for (const Ring& cycle : UltraServerCycles()) {
    EXPECT_EQ(cycle.size(), 64u);
    EXPECT_EQ(std::set(cycle.begin(), cycle.end()).size(), 64u);
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto route =
          torus::Route(torus::kUltraServerShape, cycle[i], cycle[(i + 1) % cycle.size()]);
      EXPECT_EQ(route.size(), 1u);
    }
  }
}

TEST(RingsTest, TogetherUseEveryXAndYCableTwiceAndEveryZCableOnce) {
  std::map<std::pair<ChipIndex, torus::Axis>, int> uses;  // by the cable's end in plus direction
  for (const Ring& cycle : UltraServerCycles()) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const torus::Hop hop =
          torus::Route(torus::kUltraServerShape, cycle[i], cycle[(i + 1) % cycle.size()]).front();
      ++uses[{hop.direction == Direction::kPlus ? hop.from : hop.to, hop.axis}];
    }
  }
  EXPECT_EQ(uses.size(), 192u);
  for (const auto& [end, count] : uses) {
    EXPECT_EQ(count, end.second == torus::Axis::kZ ? 1 : 2) << end.first.value();
  }
}

TEST(RingsTest, AnUltraServersRingUsesThemUntilACableOfOneBreaks) {
  DomainLinks links = UltraServer();
  const torus::ChipMask all = links.chips();
  EXPECT_EQ(RingsOf(links, all, ChipIndex(0)), UltraServerCycles());
  SlowCable(links, 0, torus::Axis::kZ, Direction::kPlus, 0);
  EXPECT_EQ(RingsOf(links, all, ChipIndex(0)).size(), 4u);
}

}  // namespace
}  // namespace tahoma::collective
