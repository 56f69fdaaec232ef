// Cordoned chips: the annotation's text, and what becomes of devices.

#include "controller/model/cordoned_chips.h"

#include <gtest/gtest.h>

#include "controller/model/cluster.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

TEST(CordonedChipsTest, TheTextIsReadAsItIsWritten) {
  for (unsigned chips = 0; chips < 65536; ++chips) {
    const auto mask = static_cast<std::uint16_t>(chips);
    ASSERT_EQ(ParseCordonedChips(CordonedChipsText(mask)), mask);
  }
  EXPECT_EQ(CordonedChipsText(0b101000), "3,5");
}

TEST(CordonedChipsTest, TextThatIsNoChipIsSkipped) {
  EXPECT_EQ(ParseCordonedChips(" 3 , 5"), 0b101000);
  for (const char* text : {"", ",", "x", "16", "-1", "3.5", "99999999999999999999", "0x1", "3 5"}) {
    EXPECT_EQ(ParseCordonedChips(text), 0) << text;
  }
  EXPECT_EQ(ParseCordonedChips("x,2,,77,2"), 0b100);
}

TEST(CordonedChipsTest, ACordonedChipIsNotPlacedOnAndItsPartsAreNot) {
  NodeFacts facts =
      NodeFactsOf({.name = "a", .type = "trn2u.48xlarge", .ultra_server = "us", .z = 0});
  AddCordonTaints(0b100, facts.devices);
  for (const Device& device : facts.devices) {
    const DeviceRole role = RoleOf(device);
    const bool touched = role.kind == DeviceKind::kNode || role.chip == 2;
    bool tainted = false;
    for (const Taint& taint : device.taints) tainted |= taint.key == kCordonedTaint;
    EXPECT_EQ(tainted, touched) << device.name;
  }
  ClusterState state;
  state.PutNode(facts);
  const DomainState& domain = state.domain(*state.FindDomain("us"));
  EXPECT_EQ(domain.free, 0xfffbU);
  EXPECT_EQ(domain.broken, 0b100U);
}

}  // namespace
}  // namespace tahoma::controller
