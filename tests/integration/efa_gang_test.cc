// Real sim-node programs that only EFA joins: two UltraServers of four nodes, and two plain
// instances. nccom-test runs as the pods of a job; data is checked, the time equals the planned
// time, and a dead node ends the job on every rank.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "tests/integration/node_claims.h"
#include "tests/support/child_program.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using testing::Bin;
using testing::ChildProgram;
using ::testing::HasSubstr;

// Far below the 120 s of a join and the 30 s of a message.
constexpr seconds kSoon = testing::Patience(20);

struct Node {
  std::string name;
  std::string ultra_server{};  // empty: plain
  int node_id = 0;
  std::string efa{};  // further lines of the section in its configuration
};

class EfaGangTest : public ::testing::Test {
 protected:
  // Starts the programs of all nodes and makes a claim of all chips on each.
  void Start(std::vector<Node> nodes) {
    nodes_ = std::move(nodes);
    for (const Node& node : nodes_) {
      WriteConfig(node);
      programs_.push_back(std::make_unique<ChildProgram>(
          std::vector<std::string>{Bin("sim-node"), "--config", Path("config", node)},
          Path("log", node)));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::string ports = Path("ports", nodes_[i]);
      ASSERT_TRUE(programs_[i]->WaitUntil([&] { return std::filesystem::exists(ports); }, kSoon))
          << programs_[i]->log();
      Claim(nodes_[i]);
    }
  }
  std::string Path(const std::string& what, const Node& node) const {
    return dir_.path() + "/" + node.name + "." + what;
  }
  void WriteConfig(const Node& node) const {
    std::ofstream out(Path("config", node));
    out << fmt::format(
        "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: {}\ninstanceType: {}\n"
        "nodeSocket: {}\nstateDir: {}\nportFile: {}\nnetworkLayers: [nn-1, nn-2, nn-3]\n",
        node.name, node.ultra_server.empty() ? "trn2.48xlarge" : "trn2u.48xlarge",
        Path("socket", node), Path("state", node), Path("ports", node));
    std::string inside;
    std::string outside;
    for (const Node& peer : nodes_) {
      if (peer.name == node.name) continue;
      if (!node.ultra_server.empty() && peer.ultra_server == node.ultra_server) {
        inside += fmt::format("  - {{nodeId: {}, address: \"unix:{}\"}}\n", peer.node_id,
                              Path("link", peer));
      } else {
        outside += fmt::format("  - {{nodeName: {}, address: \"unix:{}\"}}\n", peer.name,
                               Path("efa", peer));
      }
    }
    out << fmt::format("efa:\n  address: unix:{}\n  peerTimeout: 5s\n{}  peers:\n{}",
                       Path("efa", node), node.efa, outside);
    if (node.ultra_server.empty()) return;
    out << fmt::format("linkAddress: unix:{}\nultraServer:\n  id: {}\n  nodeId: {}\n  peers:\n{}",
                       Path("link", node), node.ultra_server, node.node_id, inside);
  }
  // Claims all chips of the node, as dra-plugin does.
  void Claim(const Node& node) {
    tokens_.push_back(testing::ClaimChips(
        Path("socket", node), 16,
        {.name = "claim-" + node.name, .ultra_server_mode = node.ultra_server.empty() ? 0 : 4},
        [&](const std::function<bool()>& is_given) {
          return programs_[tokens_.size()]->WaitUntil(is_given, kSoon);
        }));
    ASSERT_NE(tokens_.back(), "");
  }
  // The program as the pod of rank i on node i, for all.
  std::vector<std::unique_ptr<ChildProgram>> Job(const std::string& job,
                                                 const std::vector<std::string>& words,
                                                 const std::string& program = "nccom-test") {
    std::vector<std::unique_ptr<ChildProgram>> ranks;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<std::string> command = {Bin(program)};
      command.insert(command.end(), words.begin(), words.end());
      const testing::PodPlace place{.socket = Path("socket", nodes_[i]) + ".pods/workload.sock",
                                    .token = tokens_[i],
                                    .job = job,
                                    .rank = static_cast<int>(i),
                                    .world_size = static_cast<int>(nodes_.size())};
      ranks.push_back(std::make_unique<ChildProgram>(testing::PodCommand(place, command),
                                                     Path(job, nodes_[i])));
    }
    return ranks;
  }

  testing::TempDir dir_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<ChildProgram>> programs_;
  std::vector<std::string> tokens_;
};

std::vector<Node> TwoUltraServers() {
  std::vector<Node> nodes;
  for (const char* ultra_server : {"us-a", "us-b"}) {
    for (int place = 0; place < 4; ++place) {
      nodes.push_back({fmt::format("{}-{}", ultra_server, place), ultra_server, place, ""});
    }
  }
  return nodes;
}
std::vector<Node> TwoInstances() { return {{"p0"}, {"p1"}}; }

// Returns the time that nccom-test prints for fp32 over all chips of two such topology domains,
// planned in one process.
std::string PlannedTime(const torus::Shape& torus, std::uint64_t bytes) {
  using namespace tahoma::sim;
  const Fabric fabric(std::vector<TorusLinks>(2, {torus, hw::kTrainium2.links}),
                      hw::kTrainium2.links.efa);
  std::vector<Member> members;
  for (int domain = 0; domain < 2; ++domain) {
    for (int chip = 0; chip < torus.chip_count(); ++chip) {
      members.push_back({.chip = Fabric::ChipOf(domain, chip), .ranks = 4});  // LNC 2
    }
  }
  const auto plan = PlanOnFabric({.bytes = bytes}, members, fabric);
  return fmt::format("{:.2f}", Nanoseconds(plan->times.end - plan->times.start) / 1e3);
}

TEST_F(EfaGangTest, TwoUltraServersOfFourNodesRunOneJobWithDataCheckedInThePlannedTime) {
  Start(TwoUltraServers());
  const auto ranks = Job(
      "job", {"allr", "-b", "64K", "-e", "64K", "-d", "fp32", "-n", "1", "-c", "--show-algorithm"});
  for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->log();
  EXPECT_THAT(ranks[0]->log(), AllOf(HasSubstr("hier"),
                                     HasSubstr(PlannedTime(torus::kUltraServerShape, 64 * 1024))));
}

TEST_F(EfaGangTest, TwoPlainInstancesRunEveryOperation) {
  Start(TwoInstances());
  for (const char* operation :
       {"allr", "allg", "redsct", "alltoall", "alltoallv", "sendrecv", "permute", "broadcast"}) {
    const auto ranks = Job(operation, {operation, "-b", "64K", "-e", "64K", "-d", "fp32", "-n", "1",
                                       "-c", "--show-algorithm"});
    for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << operation << rank->log();
    EXPECT_THAT(ranks[0]->log(), HasSubstr("hier"));
  }
}

TEST_F(EfaGangTest, GroupsOfOneRankOnEachNodeReduceSideBySide) {
  Start(TwoInstances());
  const auto ranks = Job("job", {"allr", "-b", "16K", "-e", "16K", "-d", "bf16", "-c",
                                 "--data-parallel-dimension", "2"});
  for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->log();
}

TEST_F(EfaGangTest, NodesWithDifferentNetworkSettingsRefuseTheJobAndNameBothValues) {
  std::vector<Node> nodes = TwoInstances();
  nodes[0].efa = "  layerLatency: 2us\n";
  nodes[1].efa = "  layerLatency: 3us\n";
  Start(nodes);
  for (const auto& rank : Job("job", {"allr"})) {
    EXPECT_EQ(rank->Wait(), 1);
    EXPECT_THAT(rank->log(), HasSubstr("node p0 has efa.layerLatency 2 us, node p1 has 3 us; all "
                                       "nodes of a job need one"));
  }
}

TEST_F(EfaGangTest, EveryChipReachesTheMemoryOfItsOwnInstance) {
  Start(TwoInstances());
  const auto ranks = Job("job", {"-b", "4K", "--all"}, "trn-mem");
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->Wait(), 0) << rank->log();
    const std::string log = rank->log();
    EXPECT_EQ(std::ranges::count(log, '\n'), 1 + 16 * 15);
  }
  EXPECT_THAT(ranks[1]->log(), HasSubstr("    16    17     1        4096"));
}

TEST_F(EfaGangTest, ANodeThatDiesEndsTheJobOnEveryRankSoon) {
  Start(TwoUltraServers());
  // A thousand sizes: the first line shows that the run has begun.
  const auto ranks =
      Job("job", {"allr", "-b", "64K", "-e", "128K", "-i", "128", "-d", "fp32", "-n", "1", "-c"});
  const auto has_begun = [&] { return ranks[0]->log().find("65536") != std::string::npos; };
  ASSERT_TRUE(ranks[0]->WaitUntil(has_begun, kSoon)) << ranks[0]->log();
  const std::size_t victim = 5;  // of the second UltraServer
  programs_[victim]->Kill(SIGKILL);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    SCOPED_TRACE(rank);
    ASSERT_TRUE(ranks[rank]->WaitEnd(kSoon)) << ranks[rank]->log();
    EXPECT_EQ(ranks[rank]->Wait(), 1);
    if (rank == victim) continue;  // has lost its own node, and cannot know why
    EXPECT_THAT(ranks[rank]->log(),
                AllOf(HasSubstr("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"), HasSubstr("is gone")));
  }
}

}  // namespace
}  // namespace tahoma
