// Simulated placement: where a gang would go now, why it would wait, and until when.

#include "controller/core/blocks/block_hosts.h"
#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kAsk = "/v1/placements/default/simulate";

class PlacementTest : public AdminFixture {
 protected:
  // Holds all chips of the domain's nodes, until `end`.
  void Fill(const std::string& domain, std::optional<WallTime> end, const std::string& who) {
    for (const NodeId id : fleet_.domain(*fleet_.FindDomain(domain)).nodes) {
      Holding holding;
      const std::string node = fleet_.node(id).node->name;
      holding.claim = {"default", node};
      holding.claim_uid = node;
      holding.holder = "gang default/" + who;
      holding.devices = {{.node = node, .device = "neuron-node"}};
      holding.end = end;
      fleet_.Hold(std::make_shared<const Holding>(holding));
    }
  }
  WallTime In(int h) const { return clock_.WallNow() + hours(h); }
};

TEST_F(PlacementTest, AnswersWhereAndHowFast) {
  AddUltraServer(fleet_, "us-0");
  const Outcome answer = Post(kAsk, {{"shape", "4x4x2"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body["fits"], true);
  const Json& place = answer.body["placement"];
  EXPECT_EQ(place["pods"], 2);
  ASSERT_THAT(place["slices"], SizeIs(1));
  EXPECT_EQ(place["slices"][0]["domain"], "us-0");
  EXPECT_EQ(place["slices"][0]["shape"], "4x4x2");
  EXPECT_EQ(place["nodes"], Json({"us-0-n0", "us-0-n1"}));
  EXPECT_THAT(place["predictedAllReduce"].get<std::string>(), HasSubstr("ms"));
  EXPECT_FALSE(answer.body.contains("earliest"));
}

TEST_F(PlacementTest, AskingTakesNothing) {
  AddUltraServer(fleet_, "us-0");
  const Outcome first = Post(kAsk, {{"ultraServers", 1}});
  EXPECT_EQ(first.body["fits"], true);
  EXPECT_EQ(Post(kAsk, {{"ultraServers", 1}}).body, first.body);
  EXPECT_EQ(fleet_.Count().free, 64U);
}

TEST_F(PlacementTest, EachOfferedShapeAndCountFindsItsPlaceInAnEmptyFleet) {
  AddUltraServer(fleet_, "us-0");
  AddUltraServer(fleet_, "us-1");
  for (const char* shape : {"1x1x1", "2x1x1", "1x1x4", "2x2", "2x2x2", "4x2x2", "2x2x4", "1x4x4",
                            "4x4x4", "4x4x1", "4x4"}) {
    EXPECT_EQ(Post(kAsk, {{"shape", shape}}).body["fits"], true) << shape;
  }
  for (const int chips : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const Outcome answer = Post(kAsk, {{"chips", chips}});
    EXPECT_EQ(answer.body["fits"], true) << chips << answer.body;
    EXPECT_EQ(answer.body["placement"]["pods"], std::max(1, chips / 16)) << chips;
  }
  EXPECT_EQ(Post(kAsk, {{"chips", 16}, {"slices", 8}}).body["placement"]["slices"].size(), 8U);
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4x4"}, {"members", 16}}).body["placement"]["pods"], 16);
}

TEST_F(PlacementTest, AnswersWhyNotAndWhenTheFirstEndMakesRoom) {
  AddUltraServer(fleet_, "us-0");
  AddUltraServer(fleet_, "us-1");
  AddUltraServer(fleet_, "us-2");
  Fill("us-0", In(30), "long");
  Fill("us-1", In(3), "short");
  Fill("us-2", std::nullopt, "endless");
  const Outcome answer = Post(kAsk, {{"shape", "4x4x4"}});
  EXPECT_EQ(answer.body["fits"], false);
  EXPECT_EQ(answer.body["reason"], "WaitsForCapacity");
  EXPECT_THAT(answer.body["message"].get<std::string>(), HasSubstr("4x4x4"));
  const Json& earliest = answer.body["earliest"];
  EXPECT_EQ(earliest["time"], FormatTime(In(3)));
  EXPECT_EQ(earliest["exact"], true);
  EXPECT_EQ(earliest["placement"]["slices"][0]["domain"], "us-1");
  EXPECT_EQ(Post(kAsk, {{"chips", 128}}).body["earliest"]["time"], FormatTime(In(30)));
  const Outcome never = Post(kAsk, {{"chips", 192}});
  EXPECT_EQ(never.body["fits"], false);
  EXPECT_FALSE(never.body.contains("earliest")) << "one of the three has no end";
}

TEST_F(PlacementTest, TheFirstEndThatMakesRoomIsFoundAmongMany) {
  for (int i = 0; i < 200; ++i) {
    const std::string name = "us-" + std::to_string(i);
    AddUltraServer(fleet_, name, /*cores=*/false);
    Fill(name, In(1 + i), name);
  }
  const Outcome answer = Post(kAsk, {{"ultraServers", 137}});
  EXPECT_EQ(answer.body["earliest"]["time"], FormatTime(In(137)));
  EXPECT_EQ(answer.body["earliest"]["exact"], true) << "by counting, none before it has room";
}

TEST_F(PlacementTest, AGangThatWaitingCannotHelpHasNoStart) {
  AddUltraServer(fleet_, "us-0");
  const Outcome answer = Post(kAsk, {{"ultraServers", 2}});
  EXPECT_EQ(answer.body["reason"], "NeverFits");
  EXPECT_FALSE(answer.body.contains("earliest"));
}

class PlacementBesideBlocksTest : public PlacementTest {
 protected:
  PlacementBesideBlocksTest() {
    AddToCell("us-0");
    AddToCell("us-1");
  }
  // Adds an UltraServer beside the others.
  void AddToCell(const std::string& id) {
    for (int z = 0; z < 4; ++z) {
      NodeFacts facts = NodeFactsOf({.name = id + "-n" + std::to_string(z),
                                     .type = "trn2u.48xlarge",
                                     .ultra_server = id,
                                     .z = z,
                                     .cores = false});
      for (Device& device : facts.devices) {
        for (auto& attribute : device.attributes) {
          if (attribute.name.id == "networkNodeLayer1") attribute.value = std::string("cell");
        }
      }
      fleet_.PutNode(std::move(facts));
    }
  }
  // One pool of UltraServers, and a block of `count` from day `first` on and before day `last`.
  void Sell(int count, int first, int last, BlockState state = BlockState::kScheduled) {
    const Slot today = SlotOf(clock_.WallNow());
    const Pool host_pool = HostOf(fleet_, *fleet_.FindDomain("us-0"))->pool;
    snapshot_.profile = TimeProfile(today);
    block_.reservation = "cr-1";
    block_.key = {"default", "b"};
    block_.state = state;
    block_.bought = {.product = FindProduct("u-trn2x64"),
                     .count = count,
                     .zone = host_pool.zone,
                     .start = StartOf(today + first),
                     .end = StartOf(today + last)};
    block_.end = block_.bought.end;
    block_.cells = {{.cell = host_pool.cell, .hosts = count}};
    const PoolId pool = snapshot_.profile.IdOf(host_pool);
    snapshot_.profile.SetSupply(pool, {.healthy = 2});
    snapshot_.profile.Book(pool, block_.slots(), count);
    Keep();
  }
  void Keep() {
    const auto block = std::make_shared<const Block>(block_);
    snapshot_.block_list.Put(block_.reservation, block);
    snapshot_.blocks.Put(block_.key, std::make_shared<const BlockView>(BlockView{.block = block}));
  }
  Block block_;
};

TEST_F(PlacementBesideBlocksTest, KeptHardwareIsUsedOnlyByGangsThatEndBefore) {
  Sell(2, 2, 4);
  for (const char* name : {"us-0", "us-1"}) {
    fleet_.SetBlockUse(name, {.reservation = "", .kept_from = block_.start()});
  }
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4x4"}, {"maxRuntime", "2h"}}).body["fits"], true);
  const Outcome long_one = Post(kAsk, {{"shape", "4x4x4"}, {"maxRuntime", "100h"}});
  EXPECT_EQ(long_one.body["fits"], false);
  EXPECT_EQ(long_one.body["earliest"]["time"], FormatTime(block_.end));
  EXPECT_EQ(Post(kAsk, {{"shape", "4x4x4"}}).body["earliest"]["time"], FormatTime(block_.end));
}

TEST_F(PlacementBesideBlocksTest, OnlyTheBookedHostsOfAPoolAreKept) {
  Sell(1, 2, 4);
  Fill("us-0", In(3), "short");
  fleet_.SetBlockUse("us-1", {.reservation = "", .kept_from = block_.start()});
  const Outcome answer = Post(kAsk, {{"shape", "4x4x4"}});
  EXPECT_EQ(answer.body["fits"], false);
  EXPECT_EQ(answer.body["earliest"]["time"], FormatTime(In(3)))
      << "when us-0 is free one of the two is left for others";
}

TEST_F(PlacementBesideBlocksTest, AGangOfABlockGoesToItsHardwareFromItsStartOn) {
  Sell(1, 1, 3);
  const Json ask = {{"shape", "4x4x4"}, {"capacityBlock", "b"}, {"maxRuntime", "4h"}};
  const Outcome before = Post(kAsk, ask);
  EXPECT_EQ(before.body["fits"], false);
  EXPECT_THAT(before.body["message"].get<std::string>(), HasSubstr("begins"));
  EXPECT_EQ(before.body["earliest"]["time"], FormatTime(block_.start()));
  EXPECT_THAT(
      Post(kAsk, {{"chips", 128}, {"capacityBlock", "b"}}).body["message"].get<std::string>(),
      HasSubstr("has 64 chips, the gang asks for 128"));

  block_.state = BlockState::kActive;
  block_.bought.start = clock_.WallNow();
  block_.hosts = {"us-1"};
  Keep();
  fleet_.SetBlockUse("us-1", {.reservation = "cr-1", .kept_from = std::nullopt});
  const Outcome inside = Post(kAsk, ask);
  EXPECT_EQ(inside.body["placement"]["slices"][0]["domain"], "us-1") << inside.body;
  EXPECT_THAT(Post(kAsk, {{"shape", "4x4"}, {"capacityBlock", "b"}, {"maxRuntime", "900h"}})
                  .body["message"]
                  .get<std::string>(),
              HasSubstr("taken back from"));
  EXPECT_THAT(
      Post(kAsk, {{"shape", "4x4"}, {"capacityBlock", "none"}}).body["message"].get<std::string>(),
      HasSubstr("is not bought"));
}

TEST_F(PlacementTest, QuestionsThatMakeNoSenseAreRefused) {
  AddUltraServer(fleet_, "us-0");
  for (const auto& [body, says] : std::vector<std::pair<std::string, std::string>>{
           {R"({})", "shape, chips or ultraServers is missing"},
           {R"({"shape":""})", "shape, chips or ultraServers is missing"},
           {R"({"shape":"4x4","chips":16})", "only one of them"},
           {R"({"shape":"3x3"})", "each side must be 1, 2 or 4"},
           {R"({"shape":"99999999999999"})", "shape"},
           {R"({"chips":3})", "chips 3"},
           {R"({"chips":0})", "1 to 65536"},
           {R"({"chips":1e30})", "1 to 65536"},
           {R"({"ultraServers":1025})", "1 to 1024"},
           {R"({"chips":16,"slices":3,"members":4})", "slices 3"},
           {R"({"shape":"4x4","members":3})", "members 3"},
           {R"({"chips":16,"maxRuntime":"soon"})", "maxRuntime"},
           {R"({"chips":65536,"slices":1024})", "members"},
           {R"({"chips":16,"colour":"red"})", "colour: there is no such field"}}) {
    const Outcome answer = Ask("POST", kAsk, body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
    EXPECT_THAT(answer.detail(), HasSubstr(says)) << body;
  }
  EXPECT_EQ(Get(kAsk).status, 405);
}

TEST_F(PlacementTest, BeforeTheFirstSyncTheAnswerIsToComeAgain) {
  snapshot_.synced = false;
  const Outcome answer = Post(kAsk, {{"chips", 1}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("Retry-After"), "1");
}

TEST_F(PlacementTest, WhoMayReadGangsOfTheNamespaceMayAskAndLeavesNoLine) {
  Identities({{.name = "team",
               .token = Sha256("team"),
               .role = Role::kView,
               .groups = {},
               .namespaces = {"default"}}});
  AddUltraServer(fleet_, "us-0");
  token_ = "team";
  EXPECT_EQ(Post(kAsk, {{"chips", 1}}).status, 200);
  EXPECT_EQ(Post("/v1/placements/other/simulate", {{"chips", 1}}).status, 403);
  EXPECT_TRUE(audit_.empty());
}

}  // namespace
}  // namespace tahoma::controller
