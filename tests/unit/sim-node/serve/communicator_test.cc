// Nodes in one process, joined by real sockets and raced by threads. Data and times must equal
// those of the same collective as a whole; a failure must reach every rank, soon, with its reason.

#include "sim-node/serve/communicator.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "lib/base/status.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using torus::ChipIndex;
using torus::ChipMask;

TorusLinks Links() { return {torus::kUltraServerShape, hw::kTrainium2.links}; }

std::vector<Member> MembersOf(ChipMask mask, int ranks = 1) {
  std::vector<Member> members;
  for (; mask != 0; mask &= mask - 1) {
    members.push_back({.chip = ChipIndex(std::countr_zero(mask)), .ranks = ranks});
  }
  return members;
}
ChipMask NodeMask(int node) { return ChipMask{0xffff} << (16 * node); }

struct Node {
  Node(int id, const std::string& folder, milliseconds join_timeout, milliseconds run_timeout)
      : communicators({.node_id = id,
                       .links = Links(),
                       .join_timeout = join_timeout,
                       .run_timeout = run_timeout}) {
    PeerLink::Options options{.node_id = id,
                              .ultra_server = "us-0",
                              .listen_address = Address(folder, id),
                              .peers = {},
                              .redial = milliseconds(5)};
    for (int peer = 0; peer < 4; ++peer) {
      if (peer != id) options.peers.push_back({peer, Address(folder, peer)});
    }
    auto started = PeerLink::Start(options, communicators,
                                   [this](PeerLink& made) { communicators.Connect(made); });
    EXPECT_TRUE(started.ok()) << started.status();
    link = *std::move(started);
  }
  static std::string Address(const std::string& folder, int id) {
    return "unix:" + folder + "/" + std::to_string(id) + ".sock";
  }

  Communicators communicators;
  std::unique_ptr<PeerLink> link;
};

class CommunicatorTest : public ::testing::Test {
 protected:
  CommunicatorTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-comm-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CommunicatorTest() override {
    for (auto& node : nodes_) node.reset();
    std::filesystem::remove_all(folder_);
  }
  void StartNode(int id) {
    nodes_.at(static_cast<std::size_t>(id)) =
        std::make_unique<Node>(id, folder_, join_timeout_, run_timeout_);
  }
  void StartAll() {
    for (int id = 0; id < 4; ++id) StartNode(id);
  }
  Communicators& at(int node) { return nodes_.at(static_cast<std::size_t>(node))->communicators; }
  // Runs a thread for each of `ranks`; rank r is on node r.
  template <typename T>
  std::vector<T> OnRanks(const std::vector<int>& ranks, const std::function<T(int)>& work) {
    std::vector<std::optional<T>> results(ranks.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        threads.emplace_back([&, i] { results[i] = work(ranks[i]); });
      }
    }
    std::vector<T> all;
    for (auto& result : results) all.push_back(*std::move(result));
    return all;
  }
  absl::Status JoinWhole(int rank, const std::string& id = "job") {
    return at(rank)
        .Join({.comm_id = id, .rank = rank, .world_size = 4, .members = MembersOf(NodeMask(rank))})
        .status();
  }
  void JoinAll(const std::string& id = "job") {
    for (const absl::Status& status :
         OnRanks<absl::Status>({0, 1, 2, 3}, [&](int rank) { return JoinWhole(rank, id); })) {
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  std::vector<absl::StatusOr<RunResult>> RunOn(const std::vector<int>& ranks, const RunSpec& spec,
                                               const std::string& id = "job") {
    return OnRanks<absl::StatusOr<RunResult>>(
        ranks, [&](int rank) { return at(rank).Run(id, rank, spec); });
  }

  milliseconds join_timeout_{20'000};
  milliseconds run_timeout_{20'000};
  std::string folder_;
  std::array<std::unique_ptr<Node>, 4> nodes_;
};

RunSpec Checked(std::uint64_t bytes) {
  return {
      .request = {.operation = Operation::kAllReduce, .bytes = bytes, .type = ElementType::kFp32},
      .check = true,
      .seed = 7};
}

VirtualDuration Alone(const RunSpec& spec, ChipMask mask, const TorusLinks& links = Links()) {
  const auto plan = PlanCollective(spec.request, MembersOf(mask), links);
  EXPECT_TRUE(plan.ok());
  return plan->times.end - plan->times.start;
}

TEST_F(CommunicatorTest, FourNodesReduceRealDataInTheTimeOfOneProcess) {
  StartAll();
  JoinAll();
  for (const std::uint64_t bytes : {4u, 4096u, 1u << 20}) {
    const RunSpec spec = Checked(bytes);
    for (const auto& result : RunOn({0, 1, 2, 3}, spec)) {
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->wrong_elements, 0u);
      EXPECT_EQ(result->time, Alone(spec, kAllChips));
      EXPECT_EQ(result->chips, 64);
    }
  }
}

TEST_F(CommunicatorTest, ARankKnowsItsPlaceAmongAllLogicalCores) {
  StartAll();
  const auto joined = OnRanks<absl::StatusOr<Communicators::Joined>>({0, 1}, [&](int rank) {
    return at(rank).Join({.comm_id = "pair",
                          .rank = rank,
                          .world_size = 2,
                          .members = MembersOf(NodeMask(rank) & 0x000f'000f, 4)});
  });
  ASSERT_TRUE(joined[0].ok() && joined[1].ok());
  EXPECT_EQ(joined[0]->first_rank, 0);
  EXPECT_EQ(joined[1]->first_rank, 16);
  EXPECT_EQ(joined[0]->ranks, 32);
  EXPECT_EQ(joined[1]->chips, 8);
}

TEST_F(CommunicatorTest, TenantsOnTwoHalvesHaveTheirSoloTimesSideBySide) {
  StartAll();
  const RunSpec spec = Checked(1 << 18);
  const VirtualDuration lower = Alone(spec, NodeMask(0) | NodeMask(1));
  const auto results =
      OnRanks<absl::StatusOr<RunResult>>({0, 1, 2, 3}, [&](int node) -> absl::StatusOr<RunResult> {
        const std::string id = node < 2 ? "lower" : "upper";
        const auto joined = at(node).Join({.comm_id = id,
                                           .rank = node % 2,
                                           .world_size = 2,
                                           .members = MembersOf(NodeMask(node))});
        if (!joined.ok()) return joined.status();
        return at(node).Run(id, node % 2, spec);
      });
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->time, lower);
    EXPECT_EQ(result->wrong_elements, 0u);
  }
}

TEST_F(CommunicatorTest, TwoPodsOfOneNodeNeedNoSocket) {
  StartNode(0);
  const auto results =
      OnRanks<absl::StatusOr<RunResult>>({0, 1}, [&](int rank) -> absl::StatusOr<RunResult> {
        const auto joined = at(0).Join({.comm_id = "both",
                                        .rank = rank,
                                        .world_size = 2,
                                        .members = MembersOf(ChipMask{0xff} << (8 * rank))});
        if (!joined.ok()) return joined.status();
        return at(0).Run("both", rank, Checked(4000));
      });
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->time, Alone(Checked(4000), 0xffff));
  }
}

TEST_F(CommunicatorTest, ANodeThatStartsLaterIsWaitedFor) {
  for (const int id : {0, 1, 2}) StartNode(id);
  std::jthread late([this] {
    // The other ranks have announced their joins before node 3 listens; they announce again.
    while (at(0).OnPeerConnected(3).empty()) std::this_thread::yield();
    StartNode(3);
    EXPECT_TRUE(JoinWhole(3).ok());
  });
  const auto joined = OnRanks<absl::Status>({0, 1, 2}, [&](int rank) { return JoinWhole(rank); });
  late.join();
  for (const absl::Status& status : joined) EXPECT_TRUE(status.ok()) << status;
  for (const auto& result : RunOn({0, 1, 2, 3}, Checked(400))) EXPECT_TRUE(result.ok());
}

TEST_F(CommunicatorTest, MissingRanksAreNamedWhenTheTimeIsOver) {
  join_timeout_ = milliseconds(200);
  StartAll();
  const auto joined = OnRanks<absl::Status>({0, 2}, [&](int rank) { return JoinWhole(rank); });
  EXPECT_EQ(joined[0].code(), absl::StatusCode::kDeadlineExceeded);
  // Rank 2 may have given up a moment earlier.
  EXPECT_TRUE(Message(joined[0]).find("ranks 1, 3 of 4 did not join within 200 ms") !=
                  std::string::npos ||
              Message(joined[0]).find("ranks 1, 2, 3 of 4") != std::string::npos)
      << joined[0];
}

TEST_F(CommunicatorTest, ADyingNodeEndsTheCollectiveForEveryRankWithTheNrtCode) {
  StartAll();
  JoinAll();
  const auto results =
      OnRanks<absl::StatusOr<RunResult>>({0, 1, 2, 3}, [&](int rank) -> absl::StatusOr<RunResult> {
        if (rank == 2) {
          nodes_[2]->link.reset();  // closes its sockets, as the kernel does for a dead process
          return Aborted("dead");
        }
        return at(rank).Run("job", rank, Checked(1 << 16));
      });
  for (const int rank : {0, 1, 3}) {
    const absl::Status status = results[static_cast<std::size_t>(rank)].status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_EQ(Message(status).find("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"), 0u) << status;
  }
  // The group is over; living ranks may join again.
  EXPECT_EQ(at(0).Run("job", 0, Checked(4)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CommunicatorTest, ARankThatHangsCostsTheTimeLimitAndNoMore) {
  run_timeout_ = milliseconds(200);
  StartAll();
  JoinAll();
  for (const auto& result : RunOn({0, 1, 3}, Checked(400))) {
    // The first rank to run out of time tells the other ranks.
    EXPECT_TRUE(absl::IsDeadlineExceeded(result.status()) || absl::IsAborted(result.status()));
    EXPECT_NE(Message(result.status()).find("(1200)"), std::string::npos);
  }
}

TEST_F(CommunicatorTest, ARankThatLeavesEndsTheGroupForAllRanksAndMayJoinAgain) {
  StartAll();
  JoinAll();
  at(1).Leave("job", 1);
  for (const auto& result : RunOn({0, 2, 3}, Checked(400))) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted) << result.status();
  }
  JoinAll();
  for (const auto& result : RunOn({0, 1, 2, 3}, Checked(400))) {
    EXPECT_TRUE(result.ok()) << result.status();
  }
}

TEST_F(CommunicatorTest, SuccessiveGroupsOfAnIdDoNotMix) {
  StartAll();
  const auto results = OnRanks<absl::Status>({0, 1, 2, 3}, [&](int rank) {
    for (int round = 0; round < 10; ++round) {
      const absl::Status joined = JoinWhole(rank);
      if (!joined.ok()) return joined;
      const auto run = at(rank).Run("job", rank, Checked(64));
      if (!run.ok()) return run.status();
      at(rank).Leave("job", rank);
    }
    return absl::OkStatus();
  });
  for (const absl::Status& status : results) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(CommunicatorTest, ABrokenLinkOfOneNodeSlowsAllRanksAlikeUntilItIsRepaired) {
  StartAll();
  JoinAll();
  const RunSpec spec = Checked(1 << 16);
  const LinkId broken = TorusLinks::IdOf(ChipIndex(40), torus::Axis::kX, torus::Direction::kMinus);
  TorusLinks damaged = Links();
  ASSERT_TRUE(damaged.SetPermille(broken, 500).ok());
  const std::array<VirtualDuration, 2> expected = {Alone(spec, kAllChips, damaged),
                                                   Alone(spec, kAllChips)};
  at(2).SetLinks({{broken, 500}});
  for (const auto& result : RunOn({0, 1, 2, 3}, spec)) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->time, expected[0]);
  }
  at(2).SetLinks({});
  for (const auto& result : RunOn({0, 1, 2, 3}, spec)) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->time, expected[1]);
  }
}

TEST_F(CommunicatorTest, DisagreeingRanksHearTheDifference) {
  StartNode(0);
  const auto join = [&](int rank, int world_size, ChipMask mask) {
    return at(0).Join(
        {.comm_id = "odd", .rank = rank, .world_size = world_size, .members = MembersOf(mask)});
  };
  const auto sizes = OnRanks<absl::Status>(
      {0, 1}, [&](int rank) { return join(rank, 3 - rank, 1ull << rank).status(); });
  for (const absl::Status& status : sizes) {
    EXPECT_EQ(Message(status), "communicator \"odd\": rank 0 has world size 3, rank 1 has 2");
  }
  const auto chips =
      OnRanks<absl::Status>({0, 1}, [&](int rank) { return join(rank, 2, 0b100).status(); });
  for (const absl::Status& status : chips) {
    EXPECT_EQ(Message(status), "communicator \"odd\": ranks 0 and 1 both hold chip 2");
  }
}

TEST_F(CommunicatorTest, ImpossibleJoinsAreRefused) {
  StartNode(0);
  const auto message = [&](const Communicators::JoinRequest& request) {
    return std::string(Message(at(0).Join(request).status()));
  };
  const std::vector<Member> one = MembersOf(1);
  EXPECT_EQ(message({.comm_id = "", .members = one}),
            "a communicator's id has 0 bytes; expected 1 to 512");
  EXPECT_EQ(message({.comm_id = "x", .world_size = 2049, .members = one}),
            "the world size is 2049; expected 1 to 2048");
  EXPECT_EQ(message({.comm_id = "x", .rank = 2, .world_size = 2, .members = one}),
            "the rank is 2; expected 0 to 1");
  EXPECT_EQ(message({.comm_id = "x", .members = {}}), "a rank needs at least one chip");
  EXPECT_EQ(message({.comm_id = "x", .members = {{ChipIndex(64), 1}}}),
            "chip 64 comes twice or is not in a torus of 4x4x4");
  EXPECT_EQ(Message(at(0).Run("x", 0, Checked(4)).status()),
            "rank 0 has not joined communicator \"x\"");
}

}  // namespace
}  // namespace tahoma::sim
