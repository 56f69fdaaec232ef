// A clock that was set back behind what Capacity Blocks have lived is told of once.

#include "controller/run/ahead_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AheadLogTest, SaysOnceThatBlocksStandStillAndOnceThatTheyGoOn) {
  std::vector<std::string> lines;
  AheadLog log([&](const std::string& line) { lines.push_back(line); });
  const WallTime now = *ParseTime("2026-11-23T09:00:00Z");
  Snapshot snapshot;
  log.Look(snapshot, now);  // nothing has happened yet
  snapshot.block_now = now;
  log.Look(snapshot, now);
  log.Look(snapshot, now - seconds(60));
  EXPECT_THAT(lines, ElementsAre());
  for (const int back : {48, 24, 1}) log.Look(snapshot, now - hours(back));
  log.Look(snapshot, now - seconds(1));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("until 2026-11-23T09:00:00Z and the clock is 172800 s "
                                           "behind")));
  log.Look(snapshot, now);
  log.Look(snapshot, now + hours(1));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("behind"), HasSubstr("caught up")));
}

}  // namespace
}  // namespace tahoma::controller
