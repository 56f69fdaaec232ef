// Questions over HTTP that queues and promises answer: simulate, promises, why.

#include "controller/admin/promise_routes.h"
#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kAsk = "/v1/placements/team-a/simulate";
constexpr const char* kUltraType = "trn2u.48xlarge";

class AskRoutesTest : public AdminFixture {
 protected:
  QueueView& PutQueue(const std::string& name, const std::string& parent = "") {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = name;
    spec->parent = parent;
    spec->namespaces = {kEveryNamespace};
    spec->limit = {{kUltraType, 32}};
    auto view = std::make_shared<QueueView>();
    view->name = name;
    view->spec = std::move(spec);
    QueueView& edited = *view;
    snapshot_.queues.Put(name, std::move(view));
    return edited;
  }
  GangView& PutWaiting(const std::string& name, const std::string& queue, std::int64_t priority) {
    auto view = std::make_shared<GangView>();
    view->ref = {{"team-a", name}, false};
    view->reason = GangReason::kWaitsForCapacity;
    view->queue = queue;
    view->service = ServicePlace{.behind = -priority, .created = WallTime{}, .gang = view->ref};
    GangView& edited = *view;
    snapshot_.gangs.Put(view->ref, view);
    return edited;
  }
  void AddPromise(const std::string& gang, PromiseKind kind, WallTime from) {
    Promise promise;
    promise.kind = kind;
    promise.holder = "gang team-a/" + gang;
    promise.gang = GangKey{"team-a", gang};
    promise.from = from;
    promise.place = "us-0 4x4x4+0,0,0";
    for (int z = 0; z < 4; ++z) {
      Holding holding;
      holding.claim_uid = gang + std::to_string(z);
      holding.devices = {{.node = "us-0-n" + std::to_string(z), .device = "neuron-node"}};
      promise.holdings.push_back(std::make_shared<const Holding>(holding));
    }
    snapshot_.promises.push_back(std::make_shared<const Promise>(std::move(promise)));
  }
};

TEST_F(AskRoutesTest, AQuestionOfAFullQueueNamesTheLimitAndTheSmallerShape) {
  AddUltraServer(fleet_, "us-0");
  PutQueue("research");
  const Outcome answer = Post(kAsk, {{"shape", "4x4x4"}, {"queue", "research"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body["fits"], false);
  EXPECT_EQ(answer.body["queue"], "research");
  EXPECT_EQ(answer.body["reason"], "QueueLimit");
  EXPECT_THAT(answer.body["message"].get<std::string>(),
              HasSubstr("queue research holds 0 of at most 32"));
  EXPECT_FALSE(answer.body.contains("wouldEnd"));
  const Json& change = answer.body["cheapestChange"];
  EXPECT_EQ(change["kind"], "Queue") << "the queue default takes all";
  PutQueue("default");
  const Json smaller = Post(kAsk, {{"shape", "4x4x4"}, {"queue", "research"}}).body;
  EXPECT_EQ(smaller["cheapestChange"]["kind"], "Shape");
  EXPECT_EQ(smaller["cheapestChange"]["value"], "4x4x2");
  EXPECT_EQ(smaller["cheapestChange"]["givesUpPercent"], 50);
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4x2"}, {"queue", "research"}}).body["fits"], true);
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4"}, {"queue", "none"}}).body["reason"], "QueueUnknown");
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4"}, {"priority", 1e12}}).status, 400);
}

TEST_F(AskRoutesTest, OnlyPromisesToGangsThatAreServedBeforeBindAQuestion) {
  AddUltraServer(fleet_, "us-0");
  PutWaiting("big", "default", 10);
  AddPromise("big", PromiseKind::kStart, clock_.WallNow() + hours(2));
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4"}}).body["fits"], false);
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4"}, {"priority", 20}}).body["fits"], true);
  const Json shorter = Post(kAsk, {{"shape", "4x4"}, {"maxRuntime", "3h"}}).body;
  EXPECT_EQ(shorter["cheapestChange"]["kind"], "MaxRuntime");
  EXPECT_EQ(shorter["cheapestChange"]["value"], "2h");
}

TEST_F(AskRoutesTest, PromisesComeInTheirOrderWithTheGangsThatHaveNone) {
  PutWaiting("big", "research", 0);
  PutWaiting("other", "research", 0);
  AddPromise("big", PromiseKind::kStart, *ParseTime("2026-12-01T14:00:00Z"));
  AddPromise("kept", PromiseKind::kPatience, WallTime::min());
  EXPECT_EQ(Get("/v1/promises").body,
            (Json{{"promises", Json::array({{{"kind", "Start"},
                                             {"holder", "gang team-a/big"},
                                             {"namespace", "team-a"},
                                             {"name", "big"},
                                             {"queue", "research"},
                                             {"from", "2026-12-01T14:00:00Z"},
                                             {"place", "us-0 4x4x4+0,0,0"}},
                                            {{"kind", "Patience"},
                                             {"holder", "gang team-a/kept"},
                                             {"namespace", "team-a"},
                                             {"name", "kept"},
                                             {"place", "us-0 4x4x4+0,0,0"}}})},
                  {"waiting", 2},
                  {"waitingWithout", 0}}));
  EXPECT_THAT(Get("/v1/promises?namespace=other").body["promises"], SizeIs(0));
  EXPECT_EQ(Get("/v1/queues/research/gangs").status, 200);
  EXPECT_EQ(Get("/v1/queues/research/gangs").body["gangs"][0]["promise"]["kind"], "Start");
}

TEST_F(AskRoutesTest, WhyHasThePlaceInTheQueueAndThePromiseThatIsInTheWay) {
  AddUltraServer(fleet_, "us-0");
  PutQueue("fleet").place = 1;
  QueueView& research = PutQueue("research", "fleet");
  research.place = 1;
  PutQueue("serving", "fleet").place = 2;
  PutWaiting("big", "research", 10);
  PutWaiting("elsewhere", "serving", 10);
  const auto spec = GangOfRequest({.members = 0, .shape = "4x4"}, GangKey{"team-a", "small"});
  ASSERT_TRUE(spec.ok());
  auto small = std::make_shared<GangSpec>(**spec);
  small->queue = "research";
  PutWaiting("small", "research", 0).spec = small;
  AddPromise("big", PromiseKind::kPatience, WallTime::min());
  const Json why = Get("/v1/why/team-a/small").body;
  EXPECT_EQ(why["order"], (Json{{"place", 2}, {"of", 2}}));
  ASSERT_THAT(why["queues"], SizeIs(2));
  EXPECT_EQ(why["queues"][0]["queue"]["name"], "research");
  EXPECT_EQ(why["queues"][0]["siblings"], 2);
  EXPECT_EQ(why["queues"][1]["queue"]["name"], "fleet");
  ASSERT_THAT(why["keptBy"], SizeIs(1));
  EXPECT_EQ(why["keptBy"][0]["holder"], "gang team-a/big");
  EXPECT_FALSE(why.contains("promise"));
  EXPECT_EQ(Get("/v1/why/team-a/big").body["promise"]["kind"], "Patience");
  EXPECT_FALSE(Get("/v1/why/team-a/big").body.contains("keptBy"));
}

TEST_F(AskRoutesTest, WhoMayReadOneNamespaceSeesItsPromisesAlone) {
  Identities({{.name = "team",
               .token = Sha256("team"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {"team-a"}}});
  token_ = "team";
  EXPECT_EQ(Get("/v1/promises").status, 403);
  EXPECT_EQ(Get("/v1/promises?namespace=team-a").status, 200);
  EXPECT_EQ(Get("/v1/promises?namespace=other").status, 403);
}

}  // namespace
}  // namespace tahoma::controller
