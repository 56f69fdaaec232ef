// `kubectl tahoma usage`: from CapacityBlocks to a report.

#include "controller/ctl/usage_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json Block(const std::string& ns, const std::string& name, const std::string& start,
           const std::string& used, const std::string& idle) {
  return {{"metadata", {{"namespace", ns}, {"name", name}}},
          {"status",
           {{"state", "active"},
            {"ultraserverType", "u-trn2x64"},
            {"instanceType", "trn2u.48xlarge"},
            {"count", 1},
            {"startDate", start},
            {"endDate", "2026-11-30T11:30:00Z"},
            {"upfrontFee", "3433.04"},
            {"usage",
             {{"chipHours",
               {{"bought", "1536.00"},
                {"used", used},
                {"lent", "10.50"},
                {"idle", idle},
                {"lost", "0.00"}}}}}}}};
}

std::vector<UsageLine> Lines(const std::vector<Json>& objects) {
  std::vector<UsageLine> lines;
  for (const Json& object : objects) {
    if (auto line = UsageLineOf(object)) lines.push_back(*std::move(line));
  }
  return lines;
}

const std::vector<Json> kThree = {Block("team-b", "c", "2026-11-24T11:30:00Z", "0.00", "0.00"),
                                  Block("team-a", "b", "2026-11-25T11:30:00Z", "89.50", "100.00"),
                                  Block("team-a", "a", "2026-11-24T11:30:00Z", "39.50", "50.00")};

TEST(UsageReportTest, EachBlockHasALineAndEachNamespaceWithSeveralASum) {
  EXPECT_EQ(UsageTable(Lines(kThree)),
            "NAMESPACE   NAME       STATE    TYPE        COUNT   START                  END        "
            "        "
            "    FEE        BOUGHT    USED     LENT    IDLE     LOST   UTILIZATION\n"
            "team-a      a          active   u-trn2x64   1       2026-11-24T11:30:00Z   "
            "2026-11-30T11:30:00Z   3433.04    1536.00   39.50    10.50   50.00    0.00   50%\n"
            "team-a      b          active   u-trn2x64   1       2026-11-25T11:30:00Z   "
            "2026-11-30T11:30:00Z   3433.04    1536.00   89.50    10.50   100.00   0.00   50%\n"
            "team-a      2 blocks                                                       "
            "                       6866.08    3072.00   129.00   21.00   150.00   0.00   50%\n"
            "team-b      c          active   u-trn2x64   1       2026-11-24T11:30:00Z   "
            "2026-11-30T11:30:00Z   3433.04    1536.00   0.00     10.50   0.00     0.00   100%\n"
            "all         3 blocks                                                       "
            "                       10299.12   4608.00   129.00   31.50   150.00   0.00   51%\n");
  EXPECT_EQ(UsageTable({}), "No Capacity Blocks.\n");
}

TEST(UsageReportTest, TheUtilizationIsCutAsInTheStatus) {
  const Json block = Block("team-a", "a", "2026-11-24T11:30:00Z", "0.00", "9.62");  // 52.19 %
  const Json half = Block("team-a", "a", "2026-11-24T11:30:00Z", "1.50", "0.01");   // 99.92 %
  const Json report = UsageJson(Lines({block, half}));
  EXPECT_EQ(report["capacityBlocks"][0]["utilization"], "52%");
  EXPECT_EQ(report["capacityBlocks"][1]["utilization"], "99%");
}

TEST(UsageReportTest, ABlockThatWasNotSoldHasNoLine) {
  Json refused = Block("team-a", "refused", "2026-11-24T11:30:00Z", "0.00", "0.00");
  refused["status"] = {{"reason", "InstanceLimitExceeded"}};
  Json unpaid = Block("team-a", "unpaid", "2026-11-24T11:30:00Z", "0.00", "0.00");
  unpaid["status"]["state"] = "payment-failed";
  EXPECT_TRUE(Lines({refused, unpaid, Json(), Json(7), {{"status", 7}}}).empty());
}

TEST(UsageReportTest, ABlockThatHasNotBegunHasNoUtilization) {
  Json scheduled = Block("team-a", "a", "2026-11-24T11:30:00Z", "0.00", "0.00");
  scheduled["status"]["state"] = "scheduled";
  scheduled["status"].erase("usage");
  const Json report = UsageJson(Lines({scheduled}));
  EXPECT_EQ(report["capacityBlocks"][0]["utilization"], "");
  EXPECT_EQ(report["capacityBlocks"][0]["chipHours"]["bought"], "0.00");
}

TEST(UsageReportTest, SpreadsheetsAndProgramsReadTheSame) {
  const std::string csv = UsageCsv(Lines(kThree));
  EXPECT_THAT(csv,
              HasSubstr("\r\nteam-a,a,active,u-trn2x64,1,2026-11-24T11:30:00Z,"
                        "2026-11-30T11:30:00Z,3433.04,1536.00,39.50,10.50,50.00,0.00,50%\r\n"));
  EXPECT_THAT(csv, Not(HasSubstr("blocks")));
  const Json report = UsageJson(Lines(kThree));
  EXPECT_EQ(report["total"]["upfrontFee"], "10299.12");
  EXPECT_EQ(report["total"]["chipHours"]["used"], "129.00");
  EXPECT_EQ(report["capacityBlocks"][1]["name"], "b");
}

TEST(UsageReportTest, AFieldWithACommaIsQuoted) {
  std::vector<UsageLine> lines = Lines(kThree);
  lines[0].type = "a,\"b\"";
  EXPECT_THAT(UsageCsv(lines), HasSubstr(",\"a,\"\"b\"\"\","));
}

}  // namespace
}  // namespace tahoma::controller
