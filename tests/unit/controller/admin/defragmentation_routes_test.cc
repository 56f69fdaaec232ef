// Moves of gangs over REST: plans, and the objects that carry them out.

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "tests/unit/controller/admin/admin_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kAll = "/v1/defragmentations";
constexpr const char* kPlan = "/v1/moves/plan";

class DefragmentationRoutesTest : public AdminFixture {
 protected:
  DefragmentationRoutesTest() {
    std::ifstream crd("charts/tahoma/crds/tahoma.dev_defragmentations.yaml");
    TAHOMA_CHECK_OK(server_->InstallCrd(std::string((std::istreambuf_iterator<char>(crd)), {})));
  }
  // A holding of the node's chips that nobody moves.
  void HoldNode(const std::string& node) {
    Holding holding;
    holding.claim = {"default", node};
    holding.claim_uid = node;
    holding.holder = "gang default/stays";
    holding.devices = {{.node = node, .device = "neuron-node"}};
    fleet_.Hold(std::make_shared<const Holding>(holding));
  }
};

TEST_F(DefragmentationRoutesTest, APlaceThatIsFreeNeedsNoMoves) {
  AddUltraServer(fleet_, "us-0");
  const Outcome answer = Post(kPlan, {{"shape", "4x4x4"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body["possible"], true);
  EXPECT_EQ(answer.body["place"], "us-0 4x4x4+0,0,0");
  EXPECT_THAT(answer.body["moves"], SizeIs(0));
}

TEST_F(DefragmentationRoutesTest, APlaceThatNoMovesMakeIsExplained) {
  AddUltraServer(fleet_, "us-0");
  HoldNode("us-0-n1");
  const Outcome answer = Post(kPlan, {{"shape", "4x4x4"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body["possible"], false);
  EXPECT_THAT(answer.body["message"].get<std::string>(),
              HasSubstr("it has none even without all gangs that may move"));
  const Outcome gang = Post(kPlan, {{"forGang", {{"namespace", "a"}, {"name", "b"}}}});
  EXPECT_EQ(gang.body["message"], "gang a/b does not wait for hardware");
}

TEST_F(DefragmentationRoutesTest, WishesThatSayNothingOrTooMuchAreRefused) {
  EXPECT_EQ(Post(kPlan).status, 400);
  const Outcome both = Post(kPlan, {{"shape", "4x4"}, {"ultraServers", 1}});
  EXPECT_EQ(both.status, 400);
  EXPECT_THAT(both.detail(), HasSubstr("must have one of shape, ultraServers and forGang"));
  EXPECT_THAT(Post(kPlan, {{"shape", "3x5"}}).detail(), HasSubstr("each side must be 1, 2 or 4"));
  EXPECT_EQ(Post(kPlan, {{"shape", "4x4"}, {"maxMoves", 0}}).status, 400);
  EXPECT_EQ(Post(kAll, {{"shape", "4x4"}, {"keepFor", "25h"}}).status, 400);
}

TEST_F(DefragmentationRoutesTest, AnObjectIsMadeShownAndAborted) {
  const Outcome made = Post(kAll, {{"name", "clear"}, {"shape", "4x4x4"}, {"apply", true}});
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.body["name"], "clear");
  EXPECT_EQ(made.body["apply"], true);
  const Outcome unnamed = Post(kAll, {{"ultraServers", 2}});
  ASSERT_EQ(unnamed.status, 201) << unnamed.body;
  EXPECT_THAT(unnamed.body["name"].get<std::string>(), HasSubstr("defragment-"));
  EXPECT_EQ(unnamed.body["apply"], false);
  const Outcome all = Get(kAll);
  ASSERT_EQ(all.status, 200) << all.body;
  EXPECT_THAT(all.body["defragmentations"], SizeIs(2));
  const Outcome aborted = Ask("DELETE", std::string(kAll) + "/clear");
  ASSERT_EQ(aborted.status, 202) << aborted.body;
  EXPECT_EQ(aborted.body["abort"], true);
  EXPECT_EQ(Ask("DELETE", std::string(kAll) + "/nothing").status, 404);
}

}  // namespace
}  // namespace tahoma::controller
