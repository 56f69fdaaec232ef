// Cordon and drain: what is written on the Nodes, which pods are evicted, and that no promise is
// broken silently.

#include "controller/core/blocks/block_hosts.h"
#include "controller/model/cordoned_chips.h"
#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CordonTest : public AdminFixture {
 protected:
  CordonTest() {
    AddUltraServer(fleet_, "us-0");
    AddUltraServer(fleet_, "us-1");
    for (int i = 0; i < 2; ++i) {
      for (int z = 0; z < 4; ++z) {
        const Json node = {
            {"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", Name(i, z)}}}};
        EXPECT_EQ(Call("POST", "/api/v1/nodes", node).status, 201);
      }
    }
  }
  static std::string Name(int ultra, int z) {
    return "us-" + std::to_string(ultra) + "-n" + std::to_string(z);
  }
  Json NodeNow(const std::string& name) { return Call("GET", "/api/v1/nodes/" + name).body; }
  bool IsCordoned(const std::string& name) {
    return NodeNow(name)["spec"].value("unschedulable", false);
  }
  std::string ChipsOf(const std::string& name) {
    return NodeNow(name)["metadata"]
        .value("annotations", Json::object())
        .value(std::string(kCordonedChips), "");
  }

  // A gang of whole nodes, with its pods in the API.
  void RunGang(const std::string& name, const std::vector<std::string>& nodes,
               const std::string& device = "neuron-node") {
    auto decision = std::make_shared<GangDecision>();
    decision->key = {"default", name};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string pod = name + "-" + std::to_string(i);
      const auto made = Call("POST", "/api/v1/namespaces/default/pods", PodOf(pod));
      ASSERT_EQ(made.status, 201) << made.text;
      decision->pods.push_back(
          {.name = pod, .uid = made.body["metadata"]["uid"], .node = nodes[i]});
      DecidedClaim claim;
      claim.name = pod;
      claim.allocation.node = nodes[i];
      claim.allocation.results.emplace_back();
      claim.allocation.results.back().device = device;
      decision->claims.push_back(claim);
    }
    GangView view;
    view.ref = {.key = decision->key, .single = false};
    view.phase = GangPhase::kRunning;
    view.decision = decision;
    snapshot_.gangs.Put(view.ref, std::make_shared<const GangView>(view));
  }
  bool PodIsThere(const std::string& name) {
    const auto pod = Call("GET", "/api/v1/namespaces/default/pods/" + name);
    return pod.status == 200 && !pod.body["metadata"].contains("deletionTimestamp");
  }

  // Sells `count` of the two UltraServers, today and tomorrow.
  void Sell(int count, BlockState state, const std::vector<std::string>& hosts = {}) {
    const Slot today = SlotOf(clock_.WallNow());
    const Pool pool = HostOf(fleet_, *fleet_.FindDomain("us-0"))->pool;
    Block block;
    block.reservation = "cr-1";
    block.key = {"team-a", "b"};
    block.state = state;
    block.bought = {.product = pool.product,
                    .count = count,
                    .zone = pool.zone,
                    .start = StartOf(today),
                    .end = StartOf(today + 2)};
    block.end = block.bought.end;
    block.cells = {{.cell = pool.cell, .hosts = count}};
    block.hosts = hosts;
    snapshot_.block_list.Put("cr-1", std::make_shared<const Block>(block));
    snapshot_.profile = TimeProfile(today);
    const PoolId id = snapshot_.profile.IdOf(pool);
    snapshot_.profile.SetSupply(id, {.healthy = 2, .spare = 0});
    snapshot_.profile.Book(id, block.slots(), count);
  }
};

TEST_F(CordonTest, ANodeIsCordonedAsKubectlDoesItAndTakenBack) {
  const Outcome answer = Post("/v1/nodes/us-0-n1/cordon");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body["nodes"], Json({"us-0-n1"}));
  EXPECT_TRUE(IsCordoned("us-0-n1"));
  EXPECT_FALSE(IsCordoned("us-0-n0"));
  EXPECT_EQ(Post("/v1/nodes/us-0-n1/cordon").status, 200) << "again";
  EXPECT_EQ(Post("/v1/nodes/us-0-n1/uncordon").status, 200);
  EXPECT_FALSE(NodeNow("us-0-n1")["spec"].contains("unschedulable"));
}

TEST_F(CordonTest, AnUltraServerIsAllOfItsNodes) {
  EXPECT_EQ(Ask("POST", "/v1/ultraservers/us-1/cordon", "", "").status, 200) << "without a body";
  for (int z = 0; z < 4; ++z) {
    EXPECT_TRUE(IsCordoned(Name(1, z)));
    EXPECT_FALSE(IsCordoned(Name(0, z)));
  }
  EXPECT_EQ(Post("/v1/ultraservers/us-1/uncordon").status, 200);
  EXPECT_FALSE(IsCordoned("us-1-n3"));
}

TEST_F(CordonTest, AChipIsCordonedByTheAnnotationOfItsNode) {
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/5/cordon").status, 200);
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/3/cordon").status, 200);
  EXPECT_EQ(ChipsOf("us-0-n0"), "3,5");
  EXPECT_FALSE(IsCordoned("us-0-n0"));
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/5/uncordon").status, 200);
  EXPECT_EQ(ChipsOf("us-0-n0"), "3");
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/3/uncordon").status, 200);
  EXPECT_EQ(ChipsOf("us-0-n0"), "");
}

TEST_F(CordonTest, DrainingEndsWholeGangsAndSaysWhatIsLeft) {
  RunGang("wide", {"us-0-n0", "us-1-n0"});
  RunGang("other", {"us-1-n1"});
  const Outcome answer = Post("/v1/nodes/us-0-n0/drain");
  ASSERT_EQ(answer.status, 202) << answer.body;
  EXPECT_EQ(answer.body["gangs"],
            (Json{{{"namespace", "default"}, {"name", "wide"}, {"kind", "Gang"}, {"pods", 2}}}));
  EXPECT_EQ(answer.body["podsEnding"], 2);
  EXPECT_EQ(answer.body["drained"], false);
  EXPECT_TRUE(IsCordoned("us-0-n0"));
  EXPECT_FALSE(PodIsThere("wide-0"));
  EXPECT_FALSE(PodIsThere("wide-1")) << "a gang is whole or absent";
  EXPECT_TRUE(PodIsThere("other-0"));
  snapshot_.gangs.Erase(GangRef{{"default", "wide"}, false});
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/drain").body["drained"], true);
}

TEST_F(CordonTest, AnotherPodOfTheSameNameIsNotEvicted) {
  RunGang("train", {"us-0-n0"});
  EXPECT_EQ(Call("DELETE", "/api/v1/namespaces/default/pods/train-0").status, 200);
  EXPECT_EQ(Call("POST", "/api/v1/namespaces/default/pods", PodOf("train-0")).status, 201);
  const Outcome answer = Post("/v1/nodes/us-0-n0/drain");
  EXPECT_EQ(answer.body["podsEnding"], 0) << answer.body;
  EXPECT_TRUE(PodIsThere("train-0"));
}

TEST_F(CordonTest, DrainingAChipEndsWhoUsesIt) {
  RunGang("five", {"us-0-n0"}, "neuron-device-5");
  RunGang("six", {"us-0-n0"}, "neuron-device-6");
  RunGang("core", {"us-0-n0"}, "neuron-core-5-lnc2-0");
  const Outcome answer = Post("/v1/nodes/us-0-n0/chips/5/drain");
  EXPECT_EQ(answer.status, 202);
  EXPECT_THAT(answer.body["gangs"], SizeIs(2));
  EXPECT_FALSE(PodIsThere("five-0"));
  EXPECT_FALSE(PodIsThere("core-0"));
  EXPECT_TRUE(PodIsThere("six-0"));
  EXPECT_EQ(ChipsOf("us-0-n0"), "5");
}

TEST_F(CordonTest, HardwareOfABlockIsCordonedOnlyByForce) {
  Sell(1, BlockState::kActive, {"us-0"});
  for (const std::string path : {"/v1/nodes/us-0-n2/cordon", "/v1/ultraservers/us-0/drain",
                                 "/v1/nodes/us-0-n2/chips/1/cordon"}) {
    const Outcome refused = Post(path);
    EXPECT_EQ(refused.status, 409) << path << refused.body;
    EXPECT_THAT(refused.detail(), HasSubstr("team-a/b has us-0"));
    ASSERT_THAT(refused.body["blocks"], SizeIs(1));
    EXPECT_EQ(refused.body["blocks"][0]["capacityReservationId"], "cr-1");
  }
  EXPECT_FALSE(IsCordoned("us-0-n2"));
  EXPECT_EQ(ChipsOf("us-0-n2"), "");
  const Outcome other = Post("/v1/nodes/us-1-n2/cordon");
  EXPECT_EQ(other.status, 200) << "us-1 is nobody's: " << other.body;
  const Outcome forced = Post("/v1/nodes/us-0-n2/cordon", {{"force", true}});
  EXPECT_EQ(forced.status, 200);
  EXPECT_THAT(forced.body["blocks"], SizeIs(1));
  EXPECT_TRUE(IsCordoned("us-0-n2"));
}

TEST_F(CordonTest, BlocksThatHaveNoHostsYetCountToo) {
  Sell(2, BlockState::kScheduled);
  const Outcome refused = Post("/v1/nodes/us-0-n0/cordon");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.detail(), HasSubstr("none would be left over"));
  Sell(1, BlockState::kScheduled);
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/cordon").status, 200) << "the other one suffices";
}

TEST_F(CordonTest, AnUnknownNodeOrChipIsNotFoundAndNothingChanges) {
  for (const std::string path : {"/v1/nodes/none/cordon", "/v1/ultraservers/none/drain",
                                 "/v1/ultraservers/us-0-n0/cordon", "/v1/nodes/us-0/cordon"}) {
    EXPECT_EQ(Post(path).status, 404) << path;
  }
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/16/cordon").status, 400);
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/x/cordon").status, 400);
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/cordon", {{"force", "yes"}}).status, 400);
  EXPECT_EQ(Get("/v1/nodes/us-0-n0/cordon").status, 405);
  EXPECT_FALSE(IsCordoned("us-0-n0"));
}

TEST_F(CordonTest, ABodyWithAKeyTwiceIsRefused) {
  const Outcome refused =
      Ask("POST", "/v1/nodes/us-0-n0/cordon", R"({"force":false,"force":true})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.detail(), HasSubstr("the body has the key \"force\" twice"));
  EXPECT_FALSE(IsCordoned("us-0-n0"));
}

TEST_F(CordonTest, ANodeThatTheApiHasForgottenIsNotFound) {
  EXPECT_EQ(Call("DELETE", "/api/v1/nodes/us-0-n0").status, 200);
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/cordon").status, 404);
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/1/cordon").status, 404);
}

TEST_F(CordonTest, OnlyAdminsMayAndEachChangeLeavesALine) {
  Identities(
      {AdminOfToken("ops"),
       {.name = "ed", .token = Sha256("ed"), .role = Role::kEdit, .groups = {}, .namespaces = {}},
       {.name = "vera",
        .token = Sha256("v"),
        .role = Role::kView,
        .groups = {},
        .namespaces = {}}});
  token_ = "ed";
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/cordon").status, 403);
  token_ = "v";
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/chips/1/drain").status, 403);
  token_ = "";
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/cordon").status, 401);
  token_ = "ops";
  EXPECT_EQ(Post("/v1/nodes/us-0-n0/cordon").status, 200);
  ASSERT_THAT(audit_, SizeIs(3));
  const Json line = ParseJson(audit_[2]);
  EXPECT_EQ(line["verb"], "patch");
  EXPECT_EQ(line["objectRef"]["resource"], "nodes");
  EXPECT_EQ(line["objectRef"]["name"], "us-0-n0");
  EXPECT_EQ(line["requestURI"], "/v1/nodes/us-0-n0/cordon");
  EXPECT_EQ(line["responseStatus"]["code"], 200);
}

}  // namespace
}  // namespace tahoma::controller
