#include "lib/driver/ultraserver_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"

namespace tahoma::hw {
namespace {

using Modes = std::vector<UltraServerMode>;
using enum UltraServerMode;

TEST(UltraServerModeTest, NamesAreReadAsTheyAreWritten) {
  for (const UltraServerMode mode : kUltraServerModes) {
    ASSERT_TRUE(ParseMode(ModeName(mode)).ok());
    EXPECT_EQ(*ParseMode(ModeName(mode)), mode);
  }
  for (const char* bad : {"unset", "", "x4", "4", "X3"}) EXPECT_FALSE(ParseMode(bad).ok()) << bad;
  EXPECT_THAT(Message(ParseMode("X3").status()),
              ::testing::HasSubstr("\"X3\" is unknown; expected X4, X2H, X2V or X1"));
}

TEST(UltraServerModeTest, NumbersAreTheDrivers) {
  EXPECT_EQ(static_cast<int>(kX4), 1);
  EXPECT_EQ(static_cast<int>(kX2H), 2);
  EXPECT_EQ(static_cast<int>(kX2V), 3);
  EXPECT_EQ(static_cast<int>(kX1), 4);
}

TEST(UltraServerModeTest, EveryModePartsTheServerIntoGroupsOfItsSize) {
  for (const UltraServerMode mode : kUltraServerModes) {
    for (int place = 0; place < kUltraServerNodes; ++place) {
      const std::uint8_t group = PartnersOf(mode, place);
      EXPECT_EQ(std::popcount(group), NodesOf(mode)) << ModeName(mode) << " " << place;
      EXPECT_TRUE(group >> place & 1) << "a node works with itself";
      for (int other = 0; other < kUltraServerNodes; ++other) {
        if ((group >> other & 1) == 0) continue;
        EXPECT_EQ(PartnersOf(mode, other), group) << "partners agree about who they are";
      }
    }
  }
  EXPECT_EQ(PartnersOf(kUnset, 2), 0);
  EXPECT_EQ(NodesOf(kUnset), 0);
}

TEST(UltraServerModeTest, TheTwoKindsOfPairsCrossEachOther) {
  for (int place = 0; place < kUltraServerNodes; ++place) {
    EXPECT_EQ(PartnersOf(kX2V, place) & PartnersOf(kX2H, place), 1 << place);
  }
  EXPECT_EQ(PartnersOf(kX2V, 0), 0b0011);
  EXPECT_EQ(PartnersOf(kX2H, 0), 0b1001);
}

TEST(UltraServerModeTest, APairOverTheLeftCableIsPreferred) {
  EXPECT_EQ(ModeFor(4, Modes{kX4, kX2V, kX1}), kX4);
  EXPECT_EQ(ModeFor(2, Modes{kX2H, kX2V, kX1}), kX2V);
  EXPECT_EQ(ModeFor(2, Modes{kX2H, kX1}), kX2H);
  EXPECT_EQ(ModeFor(1, Modes{kX2H, kX1}), kX1);
  EXPECT_EQ(ModeFor(4, Modes{kX2V, kX1}), kUnset);
  EXPECT_EQ(ModeFor(2, Modes{}), kUnset);
  EXPECT_EQ(ModeFor(0, Modes{kX4, kX2H, kX2V, kX1}), kUnset);
}

TEST(UltraServerModeTest, TheLabelNamesTheSizes) {
  EXPECT_EQ(SizesLabel(Modes{kX4, kX2V, kX1}), "1_2_4");
  EXPECT_EQ(SizesLabel(Modes{kX2H, kX1}), "1_2");
  EXPECT_EQ(SizesLabel(Modes{kX2H, kX2V, kX1}), "1_2") << "a size is named once";
  EXPECT_EQ(SizesLabel(Modes{kX1}), "1");
}

}  // namespace
}  // namespace tahoma::hw
