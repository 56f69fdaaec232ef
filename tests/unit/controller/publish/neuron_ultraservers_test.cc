// NeuronUltraServers as links break, nodes go and gangs of workloads come and end.

#include "controller/publish/neuron_ultraservers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Pair {
  int a = 0, b = 0;
  bool vertical = false;
};
// The pairs whose Z links are those of the chips at places 0, 1, 2 and 3 to the chips above them.
constexpr Pair kPairs[] = {{0, 1, true}, {1, 2, false}, {2, 3, true}, {3, 0, false}};

class NeuronUltraServersTest : public ::testing::Test {
 protected:
  NeuronUltraServersTest() {
    for (int z = 0; z < 4; ++z) PutNode(0, z);
  }

  static std::string NodeName(int server, int z) { return fmt::format("us-{}-n{}", server, z); }
  void PutNode(int server, int z, const std::vector<std::string>& links_down = {},
               bool ready = true) {
    NodeFacts node = NodeFactsOf({.name = NodeName(server, z),
                                  .type = "trn2u.48xlarge",
                                  .ultra_server = fmt::format("us-{}", server),
                                  .z = z,
                                  .cores = false,
                                  .links_down = links_down});
    node.ready = ready;
    state_.PutNode(std::move(node));
  }
  // A workload's gang with a slice on each server, of the nodes at those places.
  void PutGang(const std::string& name, const std::vector<int>& servers,
               const std::vector<int>& places, GangReason reason = GangReason::kCommitting) {
    auto decision = std::make_shared<GangDecision>();
    decision->placed = *ParseTime("2026-11-23T08:00:00Z");
    for (std::uint32_t slice = 0; slice < servers.size(); ++slice) {
      DecidedSlice& decided = decision->slices.emplace_back();
      decided.domain = fmt::format("us-{}", servers[slice]);
      for (const int place : places) {
        const auto rank = static_cast<std::uint32_t>(decision->pods.size());
        decision->pods.insert(decision->pods.begin(),  // in no order of ranks
                              {.name = fmt::format("{}-{}", name, rank),
                               .uid = "",
                               .node = NodeName(servers[slice], place),
                               .rank = rank,
                               .slice = slice});
      }
    }
    auto view = std::make_shared<GangView>();
    view->ref = {{"team-a", name}, false};
    view->phase = reason == GangReason::kBound ? GangPhase::kRunning : GangPhase::kPlaced;
    view->reason = reason;
    view->decision = std::move(decision);
    view->neuron_workload = true;
    Put(view);
  }
  void Put(const std::shared_ptr<const GangView>& view) { now_.gangs.Put(view->ref, view); }
  GangView ViewOf(const std::string& name) const {
    return **now_.gangs.Find(GangRef{{"team-a", name}, false});
  }

  // Looks, and takes the changes over. Returns how many there were.
  std::size_t Look() {
    now_.cluster = std::make_shared<const ClusterState>(state_);
    const auto changes = servers_.Look(now_, time_);
    for (const auto& [name, content] : changes) {
      if (content.is_null()) objects_.erase(name);
      if (!content.is_null()) objects_[name] = content;
    }
    return changes.size();
  }
  const Json& Spec() { return objects_.at("us-0").at("spec"); }
  const Json& Status() { return objects_.at("us-0").at("status"); }
  // "Ready=True …", each with the minute since then.
  std::vector<std::string> Conditions() {
    std::vector<std::string> texts;
    for (const Json& condition : Status().at("conditions")) {
      const auto text = [&](const char* field) { return condition.at(field).get<std::string>(); };
      texts.push_back(fmt::format("{}={} {} {}", text("type"), text("status"), text("reason"),
                                  text("lastTransitionTime").substr(11, 5)));
    }
    return texts;
  }

  ClusterState state_;
  Snapshot now_;
  WallTime time_ = *ParseTime("2026-11-23T09:00:00Z");
  NeuronUltraServers servers_;
  std::map<std::string, Json> objects_;
};

TEST_F(NeuronUltraServersTest, AHealthyUltraServerHasFourNodesAndAllLinks) {
  EXPECT_EQ(Look(), 1U);
  EXPECT_EQ(Spec().at("instanceType"), "trn2u.48xlarge");
  ASSERT_EQ(Spec().at("topology").size(), 4U);
  for (int z = 0; z < 4; ++z) {
    EXPECT_EQ(Spec().at("topology").at(static_cast<std::size_t>(z)),
              (Json{{"nodeId", z},
                    {"nodeName", NodeName(0, z)},
                    {"linkStatusHorizontal", "up"},
                    {"linkStatusVertical", "up"}}));
  }
  EXPECT_EQ(Status().at("state"), "Ready");
  EXPECT_EQ(Status().at("allocations"), Json::array());
  EXPECT_THAT(Conditions(), ElementsAre("Ready=True OK 09:00", "Degraded=False OK 09:00",
                                        "Allocated=False NotAllocated 09:00"));
  EXPECT_EQ(Look(), 0U);
}

TEST_F(NeuronUltraServersTest, ABrokenLinkOfAnyChipIsDownAtItsTwoNodes) {
  for (int z = 0; z < 4; ++z) {
    for (std::size_t chip = 0; chip < 16; chip += 5) {
      SCOPED_TRACE(fmt::format("chip {} of node {}", chip, z));
      std::vector<std::string> down(16);
      down[chip] = "z+";
      PutNode(0, z, down);
      Look();
      const Pair& pair = kPairs[z];
      for (const Json& node : Spec().at("topology")) {
        const bool is_end = node.at("nodeId") == pair.a || node.at("nodeId") == pair.b;
        EXPECT_EQ(node.at("linkStatusVertical"), is_end && pair.vertical ? "down" : "up");
        EXPECT_EQ(node.at("linkStatusHorizontal"), is_end && !pair.vertical ? "down" : "up");
      }
      EXPECT_EQ(Status().at("state"), "Degraded");
      PutNode(0, z);
    }
  }
}

TEST_F(NeuronUltraServersTest, ALinkInsideOfANodeDegradesAndLeavesTheOthersUp) {
  PutNode(0, 2, {"x+"});
  Look();
  for (const Json& node : Spec().at("topology")) {
    EXPECT_EQ(node.at("linkStatusVertical"), "up");
    EXPECT_EQ(node.at("linkStatusHorizontal"), "up");
  }
  EXPECT_THAT(Conditions(),
              ElementsAre("Ready=False Impaired 09:00", "Degraded=True Impaired 09:00",
                          "Allocated=False NotAllocated 09:00"));
}

TEST_F(NeuronUltraServersTest, LinksToANodeThatIsNotReadyOrMissingAreDown) {
  const auto links = [&] {
    std::string text;
    for (const Json& node : Spec().at("topology")) {
      text += fmt::format("{}:{},{} ", node.at("nodeId").get<int>(),
                          node.at("linkStatusHorizontal").get<std::string>(),
                          node.at("linkStatusVertical").get<std::string>());
    }
    return text;
  };
  PutNode(0, 1, {}, false);
  Look();
  EXPECT_EQ(links(), "0:up,down 1:down,down 2:down,up 3:up,up ");
  EXPECT_EQ(Status().at("state"), "Degraded");
  state_.RemoveNode(NodeName(0, 1));
  Look();
  EXPECT_EQ(links(), "0:up,down 2:down,up 3:up,up ");
  for (const int z : {0, 2, 3}) state_.RemoveNode(NodeName(0, z));
  Look();
  EXPECT_THAT(objects_, IsEmpty());
}

TEST_F(NeuronUltraServersTest, OnlyUltraServersHaveAnObject) {
  state_.PutNode(NodeFactsOf({.name = "alone"}));
  state_.PutNode(NodeFactsOf({.name = "lone", .type = "trn2u.48xlarge"}));
  Look();
  EXPECT_THAT(objects_, ElementsAre(::testing::Key("us-0")));
}

TEST_F(NeuronUltraServersTest, AWorkloadHasItsNodesFromTheDecisionToTheEndOfItsRun) {
  PutGang("train", {0}, {2, 3});
  Look();
  EXPECT_EQ(Status().at("allocations"), Json::array({{{"workloadRef", "team-a/train"},
                                                      {"ultraserverIndex", 0},
                                                      {"nodeCount", 2},
                                                      {"allocatedNodes", {"us-0-n2", "us-0-n3"}},
                                                      {"leaderNodeName", "us-0-n2"},
                                                      {"phase", "Pending"},
                                                      {"allocatedAt", "2026-11-23T08:00:00Z"}}}));
  EXPECT_EQ(Conditions().back(), "Allocated=True Allocated 09:00");
  auto view = std::make_shared<GangView>(ViewOf("train"));
  view->phase = GangPhase::kRunning;
  view->reason = GangReason::kBound;
  Put(view);
  EXPECT_EQ(Look(), 1U);
  EXPECT_EQ(Status().at("allocations").at(0).at("phase"), "Bound");
  auto same = std::make_shared<GangView>(*view);
  same->message = "3 of 4 pods are ready";
  Put(same);
  EXPECT_EQ(Look(), 0U);
  auto waiting = std::make_shared<GangView>(*same);
  waiting->decision = nullptr;
  Put(waiting);
  EXPECT_EQ(Look(), 1U);
  EXPECT_EQ(Status().at("allocations"), Json::array());
}

TEST_F(NeuronUltraServersTest, TwoGroupsOfAWorkloadOnOneUltraServerAreTwoEntries) {
  PutGang("train", {0, 0}, {1});
  Look();
  ASSERT_EQ(Status().at("allocations").size(), 2U);
  EXPECT_EQ(Status().at("allocations").at(1).at("ultraserverIndex"), 1);
}

TEST_F(NeuronUltraServersTest, AGangOfNoWorkloadIsNotShown) {
  PutGang("train", {0}, {0});
  auto view = std::make_shared<GangView>(ViewOf("train"));
  view->neuron_workload = false;
  Put(view);
  Look();
  EXPECT_EQ(Status().at("allocations"), Json::array());
}

TEST_F(NeuronUltraServersTest, TheTimesOfConditionsOutliveARestart) {
  Look();
  time_ += std::chrono::minutes(5);
  PutNode(0, 2, {"x+"});
  Look();
  EXPECT_THAT(Conditions(),
              ElementsAre("Ready=False Impaired 09:05", "Degraded=True Impaired 09:05",
                          "Allocated=False NotAllocated 09:00"));
  time_ += std::chrono::minutes(5);
  servers_ = NeuronUltraServers();
  servers_.OnSeen("us-0", objects_.at("us-0"));
  const Json before = objects_.at("us-0");
  EXPECT_EQ(Look(), 1U);
  EXPECT_EQ(objects_.at("us-0"), before);
}

// Whatever has happened, what was told of changes adds up to what a new controller finds.
TEST_F(NeuronUltraServersTest, ChangesAddUpToTheWholeFleet) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    for (int step = 0; step < 60; ++step) {
      const int server = static_cast<int>(rng.Below(3)), z = static_cast<int>(rng.Below(4));
      const std::string gang = fmt::format("gang-{}", rng.Below(3));
      switch (rng.Below(5)) {
        case 0:
          PutNode(server, z, {rng.Chance(1, 2) ? "z-" : ""}, rng.Chance(3, 4));
          break;
        case 1:
          state_.RemoveNode(NodeName(server, z));
          break;
        case 2:
          PutGang(gang, {server, static_cast<int>(rng.Below(3))}, {z},
                  rng.Chance(1, 2) ? GangReason::kCommitting : GangReason::kBound);
          break;
        case 3:
          now_.gangs.Erase(GangRef{{"team-a", gang}, false});
          break;
        default:
          time_ += std::chrono::minutes(1);
          Look();
      }
    }
    Look();
    NeuronUltraServers fresh;
    for (const auto& [name, object] : objects_) fresh.OnSeen(name, object);
    std::map<std::string, Json> found;
    for (const auto& [name, content] : fresh.Look(now_, time_)) found[name] = content;
    EXPECT_EQ(found, objects_);
  }
}

}  // namespace
}  // namespace tahoma::controller
