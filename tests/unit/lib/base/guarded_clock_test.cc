// A machine's clock that is set far ahead is followed when it stays there, and not before.

#include "lib/base/guarded_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// A clock that can be set.
class SetClock final : public Clock {
 public:
  WallTime WallNow() const override { return base_.WallNow() + off; }
  MonotonicTime MonotonicNow() const override { return base_.MonotonicNow(); }
  void Advance(nanoseconds by) { base_.Advance(by); }

  nanoseconds off{0};

 private:
  ManualClock base_{*ParseTime("2026-11-23T09:00:00Z")};
};

class GuardedClockTest : public ::testing::Test {
 protected:
  // Lets a minute pass. Returns how far the clock is behind the machine's then.
  nanoseconds Later() {
    machine_.Advance(minutes(1));
    return machine_.WallNow() - clock_.WallNow();
  }

  SetClock machine_;
  std::string log_;
  const GuardedClock clock_{machine_, [this](const std::string& line) { log_ += line + "\n"; }};
  const WallTime begin_ = clock_.WallNow();
};

TEST_F(GuardedClockTest, IsTheMachinesWhichMayBeSetByADayOrBack) {
  EXPECT_EQ(clock_.WallNow(), machine_.WallNow());
  EXPECT_EQ(clock_.MonotonicNow(), machine_.MonotonicNow());
  for (const nanoseconds step : {nanoseconds(hours(24)), nanoseconds(-hours(24 * 90)),
                                 nanoseconds(seconds(-1)), nanoseconds(hours(1))}) {
    machine_.off += step;
    EXPECT_EQ(Later(), seconds(0));
  }
  machine_.Advance(hours(24 * 365));  // nobody asked for a year
  EXPECT_EQ(clock_.WallNow(), machine_.WallNow());
  EXPECT_EQ(log_, "");
}

TEST_F(GuardedClockTest, ALeapOfMonthsThatIsCorrectedWasNeverSeen) {
  machine_.off = hours(24 * 90);
  for (int minute = 1; minute < 10; ++minute) EXPECT_EQ(Later(), hours(24 * 90));
  EXPECT_EQ(clock_.leap(), hours(24 * 90));
  EXPECT_EQ(clock_.WallNow(), begin_ + minutes(9));
  EXPECT_THAT(log_, HasSubstr("leapt ahead to 2027-02-21T09:01:00Z: Capacity Blocks and gangs go "
                              "on at 2026-11-23T09:01:00Z; it is believed when it stays so for 10 "
                              "minutes"));
  machine_.off = seconds(0);
  EXPECT_EQ(Later(), seconds(0));
  EXPECT_EQ(clock_.leap(), nanoseconds(0));
  EXPECT_THAT(log_, HasSubstr("the machine's clock is back"));
}

TEST_F(GuardedClockTest, ALeapThatLastsIsBelieved) {
  machine_.off = hours(24 * 90);
  for (int minute = 1; minute <= 10; ++minute) EXPECT_EQ(Later(), hours(24 * 90));
  EXPECT_EQ(Later(), seconds(0));
  EXPECT_EQ(clock_.leap(), nanoseconds(0));
  EXPECT_THAT(log_, HasSubstr("has stayed ahead: it is 2027-02-21T09:11:00Z now"));
  // And from there the next one counts.
  machine_.off += hours(25);
  EXPECT_EQ(Later(), hours(25));
}

TEST_F(GuardedClockTest, AClockThatIsSetAgainMeanwhileIsWaitedForAnew) {
  machine_.off = hours(24 * 90);
  for (int minute = 0; minute < 9; ++minute) Later();
  machine_.off = hours(24 * 30);
  for (int minute = 0; minute < 10; ++minute) EXPECT_EQ(Later(), hours(24 * 30));
  EXPECT_EQ(Later(), seconds(0));
}

// Adjustments by parts of a second do not count.
TEST_F(GuardedClockTest, ALeapIsProvedByAClockThatIsSlewed) {
  machine_.off = hours(24 * 90);
  for (int minute = 0; minute < 10; ++minute) {
    Later();
    machine_.off += std::chrono::milliseconds(500);
  }
  EXPECT_EQ(Later(), seconds(0));
}

TEST_F(GuardedClockTest, TheTimeAtAProcessStartIsBelieved) {
  machine_.off = hours(24 * 90);
  const GuardedClock started(machine_, [](const std::string&) {});
  EXPECT_EQ(started.WallNow(), machine_.WallNow());
}

}  // namespace
}  // namespace tahoma::controller
