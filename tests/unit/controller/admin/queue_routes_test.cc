// The queues over HTTP and as metrics: pages, gangs in the order of service, and who may see them.

#include "controller/admin/queue_routes.h"

#include <limits>
#include <string>

#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class QueueRoutesTest : public AdminFixture {
 protected:
  QueueView& Put(const std::string& name, bool object = true) {
    auto view = std::make_shared<QueueView>();
    view->name = name;
    if (object) {
      auto spec = std::make_shared<QueueSpec>();
      spec->name = name;
      spec->guaranteed = {{"trn2.48xlarge", 64}};
      spec->weight = 3;
      view->spec = std::move(spec);
    }
    QueueView& edited = *view;
    snapshot_.queues.Put(name, std::move(view));
    return edited;
  }
  void PutGang(const std::string& name, const std::string& queue, std::int64_t priority) {
    auto view = std::make_shared<GangView>();
    view->ref = {{"team-a", name}, false};
    view->reason = GangReason::kWaitsForCapacity;
    view->message = "no room";
    view->queue = queue;
    view->service = ServicePlace{.behind = -priority, .created = WallTime{}, .gang = view->ref};
    snapshot_.gangs.Put(view->ref, view);
  }
  std::string Names(const std::string& target, const char* list) {
    std::string names;
    const Json body = Get(target).body;
    for (const Json& row : body.at(list)) names += row["name"].get<std::string>() + " ";
    return names;
  }
};

TEST_F(QueueRoutesTest, AQueueShowsItsSharesAndChips) {
  QueueView& view = Put("research");
  view.trouble = QueueTrouble::kNoParent;
  view.message = "its parent fleet does not exist";
  view.waiting = 2;
  view.held = {{"trn2.48xlarge", 80}};
  view.borrowed = {{"trn2.48xlarge", 16}};
  view.used_chip_hours = 12.6;
  view.share = 0.75;
  view.place = 1;
  view.period = "by-day/noon";
  const Json row = Get("/v1/queues/research").body;
  EXPECT_EQ(row, (Json{{"name", "research"},
                       {"object", true},
                       {"parent", ""},
                       {"weight", 3},
                       {"stop", ""},
                       {"reason", "NoParent"},
                       {"message", "its parent fleet does not exist"},
                       {"waiting", 2},
                       {"running", 0},
                       {"guaranteed", {{"trn2.48xlarge", 64}}},
                       {"limit", Json::object()},
                       {"period", "by-day/noon"},
                       {"held", {{"trn2.48xlarge", 80}}},
                       {"borrowed", {{"trn2.48xlarge", 16}}},
                       {"usedChipHours", 13},
                       {"sharePercent", 75},
                       {"usedSharePercent", 0},
                       {"place", 1}}));
  EXPECT_EQ(Get("/v1/queues").body, (Json{{"queues", Json::array({row})}}));
}

TEST_F(QueueRoutesTest, AQueueThatOnlyGangsNameHasNoObject) {
  Put("default", false).waiting = 7;
  const Json row = Get("/v1/queues/default").body;
  EXPECT_EQ(row["object"], false);
  EXPECT_EQ(row["waiting"], 7);
  EXPECT_EQ(Get("/v1/queues/none").status, 404);
  EXPECT_EQ(Get("/v1/queues/none/gangs").status, 404);
}

TEST_F(QueueRoutesTest, QueuesComeByNameInPages) {
  for (int i = 0; i < 1001; ++i) Put(fmt::format("q-{:04}", i));
  const Json first = Get("/v1/queues").body;
  ASSERT_THAT(first["queues"], SizeIs(1000));
  EXPECT_EQ(first["next"], "q-1000");
  EXPECT_EQ(Names("/v1/queues?from=q-1000", "queues"), "q-1000 ");
}

TEST_F(QueueRoutesTest, GangsComeInTheOrderOfServiceInPages) {
  Put("research");
  for (int i = 0; i < 1500; ++i) PutGang(fmt::format("g-{:04}", i), "research", i % 1000);
  PutGang("elsewhere", "default", 5000);
  const Json first = Get("/v1/queues/research/gangs").body;
  ASSERT_THAT(first["gangs"], SizeIs(1000));
  EXPECT_EQ(first["gangs"][0]["name"], "g-0999");
  EXPECT_EQ(first["gangs"][0]["priority"], 999);
  EXPECT_EQ(first["gangs"][0]["reason"], "WaitsForCapacity");
  EXPECT_EQ(first["next"], 1000);
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  std::size_t seen = 0;
  for (const char* page : {"0", "1000"}) {
    const Json body = Get(fmt::format("/v1/queues/research/gangs?from={}", page)).body;
    for (const Json& row : body.at("gangs")) {
      EXPECT_LE(row["priority"].get<std::int64_t>(), last);
      last = row["priority"].get<std::int64_t>();
      ++seen;
    }
  }
  EXPECT_EQ(seen, 1500U);
  EXPECT_THAT(Get("/v1/queues/research/gangs?from=999999999").body["gangs"], SizeIs(0));
}

TEST_F(QueueRoutesTest, WhoMayReadOneNamespaceSeesNoGangsOfOthers) {
  Put("research");
  Identities({{.name = "team",
               .token = Sha256("team"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {"team-a"}},
              {.name = "vera", .token = Sha256("vera"), .role = Role::kView, .groups = {}}});
  token_ = "team";
  EXPECT_EQ(Get("/v1/queues/research/gangs").status, 403);
  token_ = "vera";
  EXPECT_EQ(Get("/v1/queues/research/gangs").status, 200);
  EXPECT_EQ(Get("/v1/queues").status, 200);
}

TEST_F(QueueRoutesTest, MetricsAreThoseOfTheFirstQueuesByName) {
  for (int i = 0; i < 1001; ++i) Put(fmt::format("q-{:04}", i)).held = {{"trn2.48xlarge", i}};
  AddQueueMetrics(metrics_, [this] { return std::make_shared<const Snapshot>(snapshot_); });
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("tahoma_queue_waiting_gangs{queue=\"q-0000\"} 0"));
  EXPECT_THAT(text,
              HasSubstr("tahoma_queue_held_chips{instance_type=\"trn2.48xlarge\",queue=\"q-0999\"} "
                        "999"));
  EXPECT_THAT(text, Not(HasSubstr("q-1000")));
}

}  // namespace
}  // namespace tahoma::controller
