// `kubectl tahoma usage`: from the admin API's answer to a report.

#include "controller/ctl/gang_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

const std::vector<GangUsageLine> kLines = {{"team-a", "nightly", "trn2.48xlarge", 7200, 16},
                                           {"team-a", "nightly", "trn2u.48xlarge", 3600, 0.125},
                                           {"team-a", "tests", "trn2.48xlarge", 1800, 0},
                                           {"team-b", "nightly", "trn2.48xlarge", 900, 1}};

TEST(GangUsageReportTest, EachQueueOfEachNamespaceHasALine) {
  EXPECT_EQ(GangUsageTable(kLines, UsageBy::kBoth, false),
            "NAMESPACE   QUEUE     CHIP-HOURS   CHIPS-NOW\n"
            "team-a      nightly   3.00         16.125\n"
            "team-a      tests     0.50         0\n"
            "team-b      nightly   0.25         1\n"
            "all                   3.75         17.125\n");
  EXPECT_EQ(GangUsageTable({}, UsageBy::kBoth, false), "No gang has held chips.\n");
}

TEST(GangUsageReportTest, NamespacesOrQueuesAreAddedUp) {
  EXPECT_EQ(GangUsageTable(kLines, UsageBy::kNamespace, false),
            "NAMESPACE   CHIP-HOURS   CHIPS-NOW\n"
            "team-a      3.50         16.125\n"
            "team-b      0.25         1\n"
            "all         3.75         17.125\n");
  EXPECT_EQ(GangUsageTable(kLines, UsageBy::kQueue, true),
            "QUEUE     TYPE             CHIP-HOURS   CHIPS-NOW\n"
            "nightly   trn2.48xlarge    2.25         17\n"
            "nightly   trn2u.48xlarge   1.00         0.125\n"
            "tests     trn2.48xlarge    0.50         0\n"
            "all                        3.75         17.125\n");
}

TEST(GangUsageReportTest, ProgramsReadTheSame) {
  const Json rows = GangUsageJson(kLines, UsageBy::kQueue);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0], (Json{{"queue", "nightly"},
                           {"instanceType", "trn2.48xlarge"},
                           {"chipSeconds", 8100},
                           {"chipHours", "2.25"},
                           {"chips", 17.0}}));
}

}  // namespace
}  // namespace tahoma::controller
