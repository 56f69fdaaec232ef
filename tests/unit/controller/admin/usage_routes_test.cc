// The chip time of gangs over HTTP and as a metric: rows, pages, and whose they are.

#include "controller/admin/usage_routes.h"

#include <chrono>
#include <string>

#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class UsageRoutesTest : public AdminFixture {
 protected:
  void Put(const std::string& ns, const std::string& queue, std::int64_t chip_seconds,
           std::int64_t eighths = 0) {
    snapshot_.gang_usage.Put({ns, queue}, {.as_of = clock_.WallNow(),
                                           .types = {{.type = "trn2.48xlarge",
                                                      .eighth_ms = chip_seconds * 8000,
                                                      .eighths = eighths}}});
  }
};

TEST_F(UsageRoutesTest, RunningGangsCountUpToNow) {
  Put("team-a", "nightly", 3600, 16 * kEighthsOfChip);
  Put("team-a", "tests", 1, 1);
  clock_.Advance(std::chrono::hours(1));
  const Json body = Get("/v1/usage").body;
  EXPECT_EQ(body["asOf"], FormatTime(clock_.WallNow()));
  EXPECT_EQ(body["usage"][0], (Json{{"namespace", "team-a"},
                                    {"queue", "nightly"},
                                    {"instanceType", "trn2.48xlarge"},
                                    {"chipSeconds", 17 * 3600},
                                    {"chipHours", "17.00"},
                                    {"chips", "16"}}));
  EXPECT_EQ(body["usage"][1]["chipSeconds"], 451);
  EXPECT_EQ(body["usage"][1]["chips"], "0.125");
}

TEST_F(UsageRoutesTest, RowsAreInOrderInPagesOfTheNamespaceAndQueueAskedFor) {
  for (int i = 0; i < 1500; ++i) Put(fmt::format("ns-{:04}", i), i % 2 == 0 ? "a" : "b", 10);
  const Json first = Get("/v1/usage").body;
  ASSERT_THAT(first["usage"], SizeIs(1000));
  EXPECT_EQ(first["next"], "ns-1000/a");
  const Json second = Get("/v1/usage?from=ns-1000/a").body;
  ASSERT_THAT(second["usage"], SizeIs(500));
  EXPECT_EQ(second["usage"][0]["namespace"], "ns-1000");
  EXPECT_FALSE(second.contains("next"));
  EXPECT_THAT(Get("/v1/usage?namespace=ns-0007").body["usage"], SizeIs(1));
  EXPECT_THAT(Get("/v1/usage?queue=b").body["usage"], SizeIs(750));
}

TEST_F(UsageRoutesTest, WhoMayReadOneNamespaceReadsItsUsage) {
  Identities({{.name = "team",
               .token = Sha256("team"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {"a"}}});
  Put("a", "x", 1);
  Put("b", "x", 1);
  token_ = "team";
  EXPECT_EQ(Get("/v1/usage").status, 403);
  EXPECT_EQ(Get("/v1/usage?namespace=b").status, 403);
  EXPECT_THAT(Get("/v1/usage?namespace=a").body["usage"], SizeIs(1));
}

TEST_F(UsageRoutesTest, TheMetricHasASeriesForEachQueue) {
  Put("team-a", "nightly", 3600, 8);
  clock_.Advance(std::chrono::seconds(10));
  rest::Metrics metrics;
  const auto snapshot = std::make_shared<const Snapshot>(snapshot_);
  AddChipSeconds(
      metrics, [&] { return snapshot; }, clock_);
  EXPECT_THAT(metrics.Text(),
              HasSubstr("tahoma_chip_seconds_total{namespace=\"team-a\",queue=\"nightly\"} 3610"));
}

}  // namespace
}  // namespace tahoma::controller
