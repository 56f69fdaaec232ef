// Four sim-node programs elect their UltraServer over their peer links: at start, when a cable
// breaks and is repaired, and when one of them comes back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/call.h"
#include "lib/wire/messages.h"
#include "tests/integration/ultraserver_nodes.h"

namespace tahoma {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kNodes = testing::UltraServerNodes::kCount;
constexpr seconds kPatience{60};  // far below the 600 s after which an election gives up

class UltraServerElectionTest : public ::testing::Test {
 protected:
  // The node's state after a request to its admin API; null while it does not answer.
  json Admin(int node, const std::string& method, const std::string& target) {
    const json answer = TryParseJson(nodes_.Admin(node, method, target));
    return answer.is_discarded() ? json() : answer;
  }
  // Returns the contents of the class files of all nodes, in one line.
  std::string Elected() {
    std::string line;
    for (int node = 0; node < kNodes; ++node) {
      const json state = Admin(node, "GET", "/v1/state");
      if (!state.is_object() || !state["ultraServer"].contains("election")) return "not up";
      const json& files = state["ultraServer"]["election"]["classFiles"];
      line +=
          fmt::format("{}:{}/{} ", files["ultraserver_mode"].get<std::string>(),
                      files["node_id_4"].get<std::string>(), files["node_id_2"].get<std::string>());
    }
    return line;
  }
  std::string ElectedIs(const std::string& wanted) {
    const SystemClock clock;
    const MonotonicTime end = clock.MonotonicNow() + kPatience;
    std::string now = Elected();
    while (now != wanted && clock.MonotonicNow() < end) {
      if (nodes_[0].WaitEnd(milliseconds(20))) break;
      now = Elected();
    }
    return now;
  }
  void Call(int node, std::string_view method, const std::string& params) {
    wire::Client client("unix:" + nodes_.Path("socket", node));
    const auto reply = client.Call({.method = std::string(method), .params = params}, kPatience);
    EXPECT_TRUE(reply.ok()) << reply.status();
  }

  testing::UltraServerNodes nodes_;
};

const std::string kWhole = "1,3,4:0/0 1,3,4:1/1 1,3,4:2/0 1,3,4:3/1 ";
// Pairs over the right cables: 0 with 3 and 1 with 2.
const std::string kPairs = "2,4:-1/0 2,4:-1/0 2,4:-1/1 2,4:-1/1 ";

TEST_F(UltraServerElectionTest, FourProgramsElectAtStartAndWhenACableBreaksAndIsRepaired) {
  EXPECT_EQ(ElectedIs(kWhole), kWhole);
  EXPECT_TRUE(Admin(0, "POST", "/v1/links/5/z+/down").is_object());
  EXPECT_TRUE(Admin(1, "POST", "/v1/links/5/z-/down").is_object());
  EXPECT_EQ(ElectedIs(kPairs), kPairs);
  EXPECT_TRUE(Admin(0, "POST", "/v1/links/5/z+/up").is_object());
  EXPECT_TRUE(Admin(1, "POST", "/v1/links/5/z-/up").is_object());
  EXPECT_EQ(ElectedIs(kWhole), kWhole);
}

TEST_F(UltraServerElectionTest, ACableThatBreaksUnderAClaimWaitsForItsRelease) {
  EXPECT_EQ(ElectedIs(kWhole), kWhole);
  for (int node = 0; node < kNodes; ++node) {
    wire::ApplyParams params;
    params.grant.claim_uid = "uid";
    params.grant.name_space = "default";
    params.grant.name = "claim";
    params.grant.chips = {0};
    Call(node, wire::kApplyClaim, wire::EncodeApplyParams(params));
  }
  EXPECT_TRUE(Admin(0, "POST", "/v1/links/5/z+/down").is_object());
  const json broken = Admin(1, "POST", "/v1/links/5/z-/down");
  EXPECT_EQ(broken["ultraServer"]["election"]["reason"],
            "a new election waits until all cores are idle");
  EXPECT_EQ(Admin(1, "POST", "/v1/ultraserver/elect")["status"], 409);
  EXPECT_EQ(Elected(), kWhole);
  for (int node = 0; node < kNodes; ++node) {
    Call(node, wire::kReleaseClaim, R"({"claimUid":"uid"})");
  }
  EXPECT_EQ(ElectedIs(kPairs), kPairs);
}

TEST_F(UltraServerElectionTest, ANodeThatDiesAndComesBackIsTakenIn) {
  EXPECT_EQ(ElectedIs(kWhole), kWhole);
  nodes_[2].Kill(SIGKILL);
  EXPECT_EQ(nodes_[2].Wait(), std::nullopt);
  nodes_.Start(2);
  EXPECT_EQ(ElectedIs(kWhole), kWhole);
}

}  // namespace
}  // namespace tahoma
