// The decision log over HTTP: pages, and the gang or namespace that is asked for.

#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class DecisionRoutesTest : public AdminFixture {
 protected:
  void Log(const std::string& ns, const std::string& name, DecisionKind kind = DecisionKind::kBound,
           const std::string& why = "") {
    snapshot_.decisions.Add({.when = clock_.WallNow(),
                             .gang = {.key = {ns, name}, .single = false},
                             .kind = kind,
                             .pods = 0,
                             .where = "",
                             .message = why});
  }
};

TEST_F(DecisionRoutesTest, WithoutDecisionsNothingIsShown) {
  EXPECT_EQ(Get("/v1/decisions").body, (Json{{"decisions", Json::array()}}));
}

TEST_F(DecisionRoutesTest, TheOldestIsFirstAndIdsGoOn) {
  Log("a", "x", DecisionKind::kBlocked, "no room");
  GangDecision placed;
  placed.key = {"a", "x"};
  placed.pods.push_back({.name = "x-0", .uid = "u", .node = "n0"});
  placed.slices = {{.domain = "us-0", .shape = "4x4x1", .origin = "0,0,0", .nodes = {"n0"}}};
  snapshot_.decisions.Add(LoggedOf(DecisionKind::kPlaced, placed, clock_.WallNow()));
  const Json body = Get("/v1/decisions").body;
  ASSERT_THAT(body["decisions"], SizeIs(2));
  const Json& blocked = body["decisions"][0];
  EXPECT_EQ(blocked["decision"], "Blocked");
  EXPECT_EQ(blocked["message"], "no room");
  EXPECT_EQ(blocked["time"], FormatMicroTime(clock_.WallNow()));
  EXPECT_FALSE(blocked.contains("where"));
  EXPECT_EQ(body["decisions"][1]["where"], "us-0 4x4x1+0,0,0");
  EXPECT_EQ(body["decisions"][1]["pods"], 1);
  const auto id = blocked["id"].get<std::uint64_t>();
  EXPECT_EQ(body["oldest"], id);
  EXPECT_EQ(body["newest"], id + 1);
  EXPECT_THAT(Get("/v1/decisions?from=" + std::to_string(id + 1)).body["decisions"], SizeIs(1));
  EXPECT_THAT(Get("/v1/decisions?from=" + std::to_string(id + 2)).body["decisions"], IsEmpty());
}

TEST_F(DecisionRoutesTest, OnlyTheLastOnesAreKeptAndTheyAreReadInPages) {
  const std::size_t most = DecisionLog::kEntriesMost;
  for (std::size_t i = 0; i < most + 100; ++i) Log("a", i % 2 == 0 ? "x" : "y");
  std::uint64_t from = 0, seen = 0, last = 0;
  for (;;) {
    const Json body = Get("/v1/decisions?from=" + std::to_string(from)).body;
    for (const Json& row : body["decisions"]) {
      const auto id = row["id"].get<std::uint64_t>();
      ASSERT_TRUE(seen == 0 || id == last + 1) << id << " after " << last;
      last = id;
      ++seen;
    }
    if (!body.contains("next")) break;
    from = body["next"].get<std::uint64_t>();
  }
  EXPECT_EQ(seen, most);
  EXPECT_EQ(last, snapshot_.decisions.end() - 1);
  EXPECT_THAT(Get("/v1/decisions?gang=a/y&from=" + std::to_string(last - 9)).body["decisions"],
              SizeIs(5));
}

TEST_F(DecisionRoutesTest, WhoMayReadOneNamespaceReadsItsDecisions) {
  Identities({{.name = "team",
               .token = Sha256("team"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {"a"}}});
  Log("a", "x");
  Log("b", "x");
  token_ = "team";
  EXPECT_EQ(Get("/v1/decisions").status, 403);
  EXPECT_EQ(Get("/v1/decisions?namespace=b").status, 403);
  const Outcome mine = Get("/v1/decisions?namespace=a");
  EXPECT_EQ(mine.status, 200);
  EXPECT_THAT(mine.body["decisions"], SizeIs(1));
  EXPECT_EQ(mine.body["decisions"][0]["namespace"], "a");
}

}  // namespace
}  // namespace tahoma::controller
