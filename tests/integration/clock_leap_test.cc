// The real controller while its machine's clock is set: ahead by months for a moment, and back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/base/json.h"
#include "tests/integration/buyer.h"
#include "tests/integration/standalone.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

class ClockLeapTest : public ::testing::Test {
 protected:
  ClockLeapTest() {
    SetClock(seconds(0));
    ::setenv("TAHOMA_CLOCK_OFFSET", offset_.c_str(), 1);
    ::setenv("LD_PRELOAD", Bin("libsettable_clock.so").c_str(), 1);
    controller_ = std::make_unique<Standalone>(dir_.path(), RealController);
    ::unsetenv("LD_PRELOAD");
  }
  // Sets it to so far ahead of the machine's.
  void SetClock(seconds off) {
    std::ofstream(offset_ + ".new") << off.count();
    ASSERT_EQ(std::rename((offset_ + ".new").c_str(), offset_.c_str()), 0);
  }
  bool Says(const std::string& what) {
    return controller_->Eventually(
        [&] { return controller_->program().log().find(what) != std::string::npos; });
  }

  TempDir dir_;
  const std::string offset_ = dir_.path() + "/offset";
  std::unique_ptr<Standalone> controller_;
};

TEST_F(ClockLeapTest, AClockLeapOfMonthsAndBackBeginsNoBlockAndALeapOfHoursIsShown) {
  ASSERT_TRUE(controller_->started()) << controller_->program().log();
  MakeNode(controller_->api(), "n0");
  Buyer buyer(dir_.path());
  std::string offering;
  ASSERT_TRUE(controller_->Eventually([&] { return !(offering = buyer.Offering()).empty(); }));
  const Json bought = buyer.Buy(offering, "t");
  ASSERT_TRUE(bought.contains("name")) << bought.dump();
  const std::string block = "/v1/capacityblocks/default/" + bought.at("name").get<std::string>();
  const auto begun = [&] { return buyer.Look(block).at("state") != "scheduled"; };
  ASSERT_FALSE(begun());

  SetClock(hours(24 * 90));
  EXPECT_TRUE(Says("the machine's clock leapt ahead")) << controller_->program().log();
  const Json meanwhile = buyer.Buy(buyer.Offering(), "meanwhile");  // which takes a step
  EXPECT_TRUE(meanwhile.contains("name")) << "what is sold goes on as before: " << meanwhile.dump();
  EXPECT_FALSE(begun());
  SetClock(seconds(0));
  EXPECT_TRUE(Says("the machine's clock is back")) << controller_->program().log();
  EXPECT_FALSE(begun());
  EXPECT_EQ(buyer.Look("/v1/clock").at("blocksAheadSeconds"), 0);

  // Half a day is believed, and does not go back.
  SetClock(hours(23));
  const std::string later = buyer.Offering();
  EXPECT_TRUE(buyer.Buy(later, "u").is_object());  // news for the core
  SetClock(seconds(0));
  EXPECT_TRUE(Says("Capacity Blocks have lived until")) << controller_->program().log();
  EXPECT_GT(buyer.Look("/v1/clock").at("blocksAheadSeconds"), 22 * 3600);
}

}  // namespace
}  // namespace tahoma::testing
