// An UltraServer of four sim-node programs. One program dies or hangs while collectives run on all
// four: every rank of the job ends soon and names the lost node, and the UltraServer works again
// when the node is back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "tests/integration/ultraserver_nodes.h"
#include "tests/support/child_program.h"
#include "tests/support/patience.h"

namespace tahoma {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using testing::Bin;
using testing::ChildProgram;
using ::testing::HasSubstr;

constexpr int kNodes = testing::UltraServerNodes::kCount;
constexpr int kVictim = 2;
// Far below the 120 s of a join and the 30 s of a message.
constexpr seconds kSoon = testing::Patience(20);

class LostNodeTest : public ::testing::Test {
 protected:
  explicit LostNodeTest(const std::string& peer_timeout = "10s") : nodes_(peer_timeout) {
    for (int node = 0; node < kNodes; ++node) EXPECT_TRUE(IsUp(node)) << nodes_[node].log();
    tokens_.resize(kNodes);
    for (int node = 0; node < kNodes; ++node) Claim(node);
  }

  bool IsUp(int node) {
    return nodes_[node].WaitUntil(
        [&] { return std::filesystem::exists(nodes_.Path("ports", node)); }, kSoon);
  }
  // Also after the node has come back: the node keeps its token.
  void Claim(int node) {
    std::string& token = tokens_[static_cast<std::size_t>(node)];
    token = nodes_.Claim(node, token);
  }
  // Runs a pod's program on the node, as a rank of the job.
  std::unique_ptr<ChildProgram> Rank(int node, const std::string& job,
                                     const std::vector<std::string>& words,
                                     int world_size = kNodes) {
    std::vector<std::string> command = {Bin("nccom-test"), "allr"};
    command.insert(command.end(), words.begin(), words.end());
    return nodes_.RunRank(node, tokens_[static_cast<std::size_t>(node)], job, command, world_size);
  }
  // All four ranks run once and find every element right.
  void ExpectThatAJobRuns(const std::string& job) {
    std::vector<std::unique_ptr<ChildProgram>> ranks;
    for (int node = 0; node < kNodes; ++node) {
      ranks.push_back(Rank(node, job, {"-b", "64K", "-e", "64K", "-d", "fp32", "-n", "1", "-c"}));
    }
    for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->log();
  }

  testing::UltraServerNodes nodes_;
  std::vector<std::string> tokens_;
};

// A thousand sizes: rank 0 prints a line for each, and the first line shows that the run has begun.
const std::vector<std::string> kLongRun = {"-b", "64K",  "-e", "128K", "-i", "128",
                                           "-d", "fp32", "-n", "1",    "-c"};

bool HasBegun(const ChildProgram& rank) { return rank.log().find("65536") != std::string::npos; }

TEST_F(LostNodeTest, InMidCollectiveEveryRankEndsSoonAndTheUltraServerRecovers) {
  std::vector<std::unique_ptr<ChildProgram>> ranks;
  for (int node = 0; node < kNodes; ++node) ranks.push_back(Rank(node, "job", kLongRun));
  ASSERT_TRUE(ranks[0]->WaitUntil([&] { return HasBegun(*ranks[0]); }, kSoon)) << ranks[0]->log();
  nodes_[kVictim].Kill(SIGKILL);
  EXPECT_EQ(nodes_[kVictim].Wait(), std::nullopt);
  for (int rank = 0; rank < kNodes; ++rank) {
    SCOPED_TRACE(rank);
    ChildProgram& program = *ranks[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(program.WaitEnd(kSoon)) << program.log();
    EXPECT_EQ(program.Wait(), 1);
    EXPECT_THAT(program.log(), HasSubstr(fmt::format("nccom-test: rank {}: ", rank)));
    if (rank == kVictim) continue;  // has lost its own node, and cannot know why
    EXPECT_THAT(program.log(),
                AllOf(HasSubstr("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"), HasSubstr("is gone")));
  }
  nodes_.Start(kVictim);
  ASSERT_TRUE(IsUp(kVictim)) << nodes_[kVictim].log();
  Claim(kVictim);
  ExpectThatAJobRuns("again");
}

TEST_F(LostNodeTest, ARankThatWaitedOnALostNodeDoesNotCountAndMayJoinAgain) {
  const std::vector<std::string> once = {"-b", "64K", "-e", "64K", "-n", "1", "-c"};
  std::vector<std::unique_ptr<ChildProgram>> ranks;
  for (int node = 0; node < kNodes - 1; ++node) ranks.push_back(Rank(node, "job", once));
  nodes_[kVictim].Kill(SIGKILL);
  ASSERT_TRUE(ranks[kVictim]->WaitEnd(kSoon)) << "its node is gone";
  EXPECT_EQ(ranks[kVictim]->Wait(), 1) << ranks[kVictim]->log();
  nodes_.Start(kVictim);
  ASSERT_TRUE(IsUp(kVictim)) << nodes_[kVictim].log();
  Claim(kVictim);
  for (const int node : {kVictim, kNodes - 1}) {
    std::filesystem::remove(nodes_.Path("job", node));
    ranks.push_back(Rank(node, "job", once));
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_EQ(ranks[i]->Wait(), i == kVictim ? 1 : 0) << ranks[i]->log();
  }
}

// A hung node keeps its sockets open: only its silence shows the failure.
class HungNodeTest : public LostNodeTest {
 protected:
  HungNodeTest() : LostNodeTest("3s") {}
  // Before the destructor waits for the programs: a stopped program takes no other signal.
  ~HungNodeTest() override { nodes_[kVictim].Kill(SIGCONT); }
};

TEST_F(HungNodeTest, PeersNameTheHungNodeServeOnAndAreNotDisturbedWhenItContinues) {
  std::vector<std::unique_ptr<ChildProgram>> ranks;
  for (int node = 0; node < kNodes; ++node) ranks.push_back(Rank(node, "job", kLongRun));
  ASSERT_TRUE(ranks[0]->WaitUntil([&] { return HasBegun(*ranks[0]); }, kSoon)) << ranks[0]->log();
  nodes_[kVictim].Kill(SIGSTOP);
  for (int rank = 0; rank < kNodes; ++rank) {
    if (rank == kVictim) continue;
    SCOPED_TRACE(rank);
    ChildProgram& program = *ranks[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(program.WaitEnd(kSoon)) << program.log();
    EXPECT_EQ(program.Wait(), 1);
    EXPECT_THAT(program.log(),
                AllOf(HasSubstr("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"),
                      HasSubstr("rank 2 on node 2 is gone: nothing was heard of it for 3000 ms")));
  }
  EXPECT_FALSE(ranks[kVictim]->WaitEnd(std::chrono::milliseconds(0))) << "it hangs with its node";

  // The remaining nodes serve the next job before, while and after the hung node continues.
  std::vector<std::string> some_sizes = kLongRun;
  some_sizes[3] = "68K";
  std::vector<std::unique_ptr<ChildProgram>> two;
  for (int node = 0; node < 2; ++node) two.push_back(Rank(node, "two", some_sizes, 2));
  ASSERT_TRUE(two[0]->WaitUntil([&] { return HasBegun(*two[0]); }, kSoon)) << two[0]->log();
  nodes_[kVictim].Kill(SIGCONT);
  ASSERT_TRUE(ranks[kVictim]->WaitEnd(kSoon)) << ranks[kVictim]->log();
  EXPECT_EQ(ranks[kVictim]->Wait(), 1);
  EXPECT_THAT(ranks[kVictim]->log(), HasSubstr("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"));
  for (const auto& rank : two) EXPECT_EQ(rank->Wait(), 0) << rank->log();
  ExpectThatAJobRuns("again");
}

}  // namespace
}  // namespace tahoma
