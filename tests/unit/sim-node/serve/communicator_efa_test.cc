// Communicators over domains joined by EFA, in a process with real sockets: two UltraServers with
// two nodes each, and two plain instances. Data must be right. Times must equal the times of the
// same collective planned as a whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_messages.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::string_view kUltraType = "trn2u.48xlarge";
constexpr std::string_view kPlainType = "trn2.48xlarge";

NodePlace PlaceOf(const std::string& name, const std::string& ultra_server, int node_id) {
  return {.name = name,
          .ultra_server = ultra_server,
          .node_id = node_id,
          .instance_type = std::string(ultra_server.empty() ? kPlainType : kUltraType),
          .network_layers = {"nn-1", "nn-2", "nn-3"}};
}

// In order of the ranks: two nodes of each UltraServer, then the plain instances.
const std::vector<NodePlace>& Places() {
  static const std::vector<NodePlace> places = {PlaceOf("a0", "us-a", 0), PlaceOf("a1", "us-a", 1),
                                                PlaceOf("b0", "us-b", 2), PlaceOf("b1", "us-b", 3),
                                                PlaceOf("p0", "", 0),     PlaceOf("p1", "", 0)};
  return places;
}
const NodePlace& PlaceOfRank(int rank) { return Places()[static_cast<std::size_t>(rank)]; }

// All 16 chips of the node, numbered within the node's domain.
std::vector<Member> ChipsOf(const NodePlace& place) {
  std::vector<Member> members;
  for (int chip = 0; chip < 16; ++chip) {
    members.push_back({.chip = torus::ChipIndex(16 * place.node_id + chip)});
  }
  return members;
}

class EfaNode {
 public:
  EfaNode(const NodePlace& place, const std::string& folder, milliseconds join_timeout)
      : communicators_({.node_id = place.node_id,
                        .links = {place.torus(), hw::kTrainium2.links},
                        .place = place,
                        .join_timeout = join_timeout,
                        .run_timeout = milliseconds(20'000)}) {
    PeerLink::Options inside{.node_id = place.node_id,
                             .ultra_server = place.ultra_server,
                             .listen_address = "unix:" + folder + "/" + place.name + ".link",
                             .redial = milliseconds(5)};
    PeerLink::Options outside{.node_id = place.node_id,
                              .name = place.name,
                              .listen_address = "unix:" + folder + "/" + place.name + ".efa",
                              .redial = milliseconds(5)};
    for (const NodePlace& peer : Places()) {
      if (peer.name == place.name) continue;
      if (peer.Domain() == place.Domain()) {
        inside.peers.push_back({peer.node_id, "unix:" + folder + "/" + peer.name + ".link"});
      } else {
        outside.peers.push_back({.node_id = kFirstEfaNode + static_cast<int>(outside.peers.size()),
                                 .address = "unix:" + folder + "/" + peer.name + ".efa",
                                 .name = peer.name});
      }
    }
    if (!inside.peers.empty()) {
      link_ = *PeerLink::Start(inside, communicators_,
                               [this](PeerLink& made) { communicators_.Connect(made); });
    }
    efa_ = *PeerLink::Start(outside, communicators_,
                            [this](PeerLink& made) { communicators_.ConnectEfa(made); });
  }
  Communicators& operator*() { return communicators_; }
  // Waits until the node can send to every peer.
  void WaitForPeers() const {
    for (const PeerLink* link : {link_.get(), efa_.get()}) {
      if (link == nullptr) continue;
      for (const int peer : link->peers()) {
        while (!link->Connected(peer)) std::this_thread::yield();
      }
    }
  }

 private:
  Communicators communicators_;
  std::unique_ptr<PeerLink> link_;
  std::unique_ptr<PeerLink> efa_;
};

class CommunicatorEfaTest : public ::testing::Test {
 protected:
  CommunicatorEfaTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-efa-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    for (const NodePlace& place : Places()) {
      nodes_.push_back(std::make_unique<EfaNode>(place, folder_, milliseconds(20'000)));
    }
  }
  ~CommunicatorEfaTest() override {
    nodes_.clear();
    std::filesystem::remove_all(folder_);
  }
  // Starts all nodes anew, some with another EfaTiming, and connects the nodes.
  void Rebuild(const std::map<int, EfaTiming>& ideas) {
    nodes_.clear();
    for (std::size_t node = 0; node < Places().size(); ++node) {
      NodePlace place = Places()[node];
      const auto idea = ideas.find(static_cast<int>(node));
      if (idea != ideas.end()) place.efa = idea->second;
      nodes_.push_back(std::make_unique<EfaNode>(place, folder_, milliseconds(20'000)));
    }
    for (const auto& node : nodes_) node->WaitForPeers();
  }
  Communicators& at(int node) { return **nodes_[static_cast<std::size_t>(node)]; }

  // Rank i of the job is on node `on[i]`, each in a thread.
  template <typename T>
  std::vector<T> OnAll(const std::vector<int>& on, const std::function<T(int rank)>& work) {
    std::vector<std::optional<T>> results(on.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < on.size(); ++i) {
        threads.emplace_back([&, i] { results[i] = work(static_cast<int>(i)); });
      }
    }
    std::vector<T> all;
    for (auto& result : results) all.push_back(*std::move(result));
    return all;
  }
  int NodeOf(const std::vector<int>& on, int rank) { return on[static_cast<std::size_t>(rank)]; }
  std::vector<absl::Status> Join(const std::vector<int>& on) {
    return OnAll<absl::Status>(on, [&](int rank) {
      const int node = NodeOf(on, rank);
      return at(node)
          .Join({.comm_id = "job",
                 .rank = rank,
                 .world_size = static_cast<int>(on.size()),
                 .members = ChipsOf(PlaceOfRank(node))})
          .status();
    });
  }
  std::vector<absl::StatusOr<RunResult>> Run(const std::vector<int>& on, const RunSpec& spec) {
    return OnAll<absl::StatusOr<RunResult>>(
        on, [&](int rank) { return at(NodeOf(on, rank)).Run("job", rank, spec); });
  }

  std::string folder_;
  std::vector<std::unique_ptr<EfaNode>> nodes_;
};

RunSpec Checked(Operation operation, std::uint64_t bytes) {
  return {.request = {.operation = operation, .bytes = bytes, .type = ElementType::kInt32},
          .check = true,
          .seed = 3};
}

// Returns the time of the plan in a single process, for ranks on these nodes.
VirtualDuration Planned(const std::vector<int>& on, const Request& request,
                        const std::vector<LinkState>& unhealthy = {}) {
  std::vector<NodePlace> places;
  for (const int node : on) places.push_back(PlaceOfRank(node));
  const auto gang = GangFabric::Of(places);
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < on.size(); ++rank) {
    for (const Member& member : gang->ChipsOf(static_cast<int>(rank), ChipsOf(places[rank]))) {
      members.push_back(member);
    }
  }
  Fabric fabric = gang->fabric();
  for (const LinkState& state : unhealthy) {
    EXPECT_TRUE(fabric.SetPermille(state.link, state.permille).ok());
  }
  const auto plan = PlanOnFabric(request, members, fabric);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->times.end - plan->times.start;
}

TEST_F(CommunicatorEfaTest, AGangOverTwoUltraServersMovesRealDataInThePlannedTime) {
  const std::vector<int> on = {0, 1, 2, 3};
  for (const absl::Status& status : Join(on)) ASSERT_TRUE(status.ok()) << status;
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kBroadcast, Operation::kAllToAll, Operation::kSendReceive}) {
    const RunSpec spec = Checked(operation, 48 * 1024);
    for (const auto& result : Run(on, spec)) {
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->wrong_elements, 0u) << Name(operation);
      EXPECT_EQ(Name(result->algorithm), "hier");
      EXPECT_EQ(result->time, Planned(on, spec.request)) << Name(operation);
      EXPECT_EQ(result->chips, 64);
    }
  }
}

TEST_F(CommunicatorEfaTest, PlainInstancesAndMixedDomainsWorkToo) {
  for (const std::vector<int>& on : {std::vector<int>{4, 5}, {5, 0, 2}}) {
    for (const absl::Status& status : Join(on)) ASSERT_TRUE(status.ok()) << status;
    const RunSpec spec = Checked(Operation::kAllReduce, 100'000);
    for (const auto& result : Run(on, spec)) {
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->wrong_elements, 0u);
      EXPECT_EQ(result->time, Planned(on, spec.request));
    }
    for (std::size_t rank = 0; rank < on.size(); ++rank) {
      at(on[rank]).Leave("job", static_cast<int>(rank));
    }
  }
}

TEST_F(CommunicatorEfaTest, RanksOfOneDomainFormAGroupWithoutEfa) {
  const std::vector<int> on = {2, 3};
  for (const absl::Status& status : Join(on)) ASSERT_TRUE(status.ok()) << status;
  for (const auto& result : Run(on, Checked(Operation::kAllReduce, 64 * 1024))) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NE(Name(result->algorithm), "hier");
    EXPECT_EQ(result->wrong_elements, 0u);
  }
}

TEST_F(CommunicatorEfaTest, ABrokenLinkAndADeadNicAreKnownInEveryDomain) {
  const std::vector<int> on = {0, 1, 2, 3};
  for (const absl::Status& status : Join(on)) ASSERT_TRUE(status.ok()) << status;
  // Chip 33 is on node b0, the second node of its domain: the chip's inward NIC and one of its
  // links.
  const LinkId link =
      TorusLinks::IdOf(torus::ChipIndex(33), torus::Axis::kY, torus::Direction::kPlus);
  const LinkId nic = 384 + 2 * 33 + 1;
  at(2).SetLinks({{.link = link, .permille = 0}, {.link = nic, .permille = 0}});
  const RunSpec spec = Checked(Operation::kAllReduce, 1 << 20);
  const Fabric two(std::vector<TorusLinks>(2, {torus::kUltraServerShape, hw::kTrainium2.links}),
                   hw::kTrainium2.links.efa);
  const VirtualDuration expected =
      Planned(on, spec.request,
              {{.link = 384 + link, .permille = 0},
               {.link = two.NicOf(Fabric::ChipOf(1, 33), NicDirection::kIn), .permille = 0}});
  EXPECT_NE(expected, Planned(on, spec.request));
  for (const auto& result : Run(on, spec)) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->time, expected);
    EXPECT_EQ(result->wrong_elements, 0u);
  }
}

TEST_F(CommunicatorEfaTest, ALostNodeEndsAllRanksWithItsName) {
  const std::vector<int> on = {0, 2, 4, 5};
  for (const absl::Status& status : Join(on)) ASSERT_TRUE(status.ok()) << status;
  const auto results = OnAll<absl::Status>(on, [&](int rank) {
    if (rank == 3) {
      nodes_[5].reset();
      return absl::OkStatus();
    }
    absl::Status last;
    for (int i = 0; i < 1000 && last.ok(); ++i) {
      last =
          at(NodeOf(on, rank)).Run("job", rank, Checked(Operation::kAllReduce, 64 * 1024)).status();
    }
    return last;
  });
  for (int rank = 0; rank < 3; ++rank) {
    const absl::Status& status = results[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"));
  }
  // A rank that hears of the end from the node gives the node's reason; other ranks may hear first
  // of a rank that ended.
  EXPECT_THAT(Message(results[2]), HasSubstr("is gone"));
}

TEST_F(CommunicatorEfaTest, TheNetworkOfTheNodesConfigurationCounts) {
  const EfaTiming slow{.packet = Microseconds(40), .layer = Microseconds(3)};
  Rebuild({{4, slow}, {5, slow}});
  const std::vector<int> on = {4, 5};
  for (const absl::Status& status : Join(on)) ASSERT_TRUE(status.ok()) << status;
  const RunSpec spec = Checked(Operation::kAllReduce, 64 * 1024);
  const Fabric fabric(std::vector<TorusLinks>(2, {torus::kInstanceShape, hw::kTrainium2.links}),
                      hw::kTrainium2.links.efa, slow);
  std::vector<Member> members = ChipsOf(PlaceOfRank(4));
  for (int chip = 0; chip < 16; ++chip) members.push_back({.chip = Fabric::ChipOf(1, chip)});
  const auto plan = PlanOnFabric(spec.request, members, fabric);
  ASSERT_TRUE(plan.ok());
  for (const auto& result : Run(on, spec)) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->time, plan->times.end - plan->times.start);
    EXPECT_EQ(result->wrong_elements, 0U);
    EXPECT_NE(result->time, Planned(on, spec.request));
  }
}

TEST_F(CommunicatorEfaTest, NodesWithDifferentEfaTimingsAreRefusedWithBothNames) {
  // A node beyond EFA, and a node in the UltraServer of the first node.
  for (const auto& [node, on] : {std::pair(5, std::vector<int>{0, 5}), {1, {0, 1, 2}}}) {
    Rebuild({{node, {.oversubscription_permille = {1000, 1000, 4500}}}});
    for (const absl::Status& status : Join(on)) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(Message(status),
                fmt::format("communicator \"job\": node a0 has efa.layer3Oversubscription 1, node "
                            "{} has 4.5; all nodes of a job need one",
                            PlaceOfRank(node).name));
    }
  }
  // Within an UltraServer no byte goes over EFA.
  Rebuild({{1, {.oversubscription_permille = {1000, 1000, 4500}}}});
  for (const absl::Status& status : Join({0, 1})) EXPECT_TRUE(status.ok()) << status;
}

// Ranks 0 and 2 are in an UltraServer, ranks 1 and 3 in the other.
TEST_F(CommunicatorEfaTest, ChipsReachTheMemoryOfTheirUltraServerAndNoOther) {
  const std::vector<int> on = {0, 2, 1, 3};
  const auto joined = OnAll<absl::StatusOr<Communicators::Joined>>(on, [&](int rank) {
    return at(NodeOf(on, rank))
        .Join({.comm_id = "job",
               .rank = rank,
               .world_size = 4,
               .members = ChipsOf(PlaceOfRank(NodeOf(on, rank)))});
  });
  std::vector<int> pool(32);  // of rank 0: the chips of ranks 0 and 2
  std::iota(pool.begin(), pool.begin() + 16, 0);
  std::iota(pool.begin() + 16, pool.end(), 32);
  ASSERT_TRUE(joined[0].ok()) << joined[0].status();
  EXPECT_EQ(joined[0]->pool, pool);
  EXPECT_EQ(joined[2]->pool, pool);
  EXPECT_EQ(joined[1]->pool[0], 16);
  EXPECT_EQ(joined[3]->chips, 64);
  NodeMemory host(1 << 20);
  std::vector<std::shared_ptr<ClaimMemory>> memories;
  for (const int node : on) {
    std::vector<ClaimMemory::Share> shares;
    for (const Member& member : ChipsOf(PlaceOfRank(node))) shares.push_back({member.chip, 4096});
    memories.push_back(host.Of(PlaceOfRank(node).name, shares));
  }
  const auto access = [&](int from, int to) {
    return OnAll<absl::Status>(on, [&](int rank) {
      Communicators& node = at(NodeOf(on, rank));
      const auto chips = node.Chips("job", rank);
      if (!chips.ok()) return chips.status();
      AccessSpec spec;
      const auto chip = [&](int number) { return (*chips)[static_cast<std::size_t>(number)]; };
      if (from / 16 == rank) {
        spec.accesses = {{.kind = AccessKind::kWrite,
                          .local = {chip(from), 0},
                          .remote = {chip(to), 100},
                          .bytes = 4}};
      }
      return node.Access("job", rank, spec, *memories[static_cast<std::size_t>(rank)]).status();
    });
  };
  // Chip 17 of the job is chip 33 of us-b; chip 50 is chip 50 of us-b, on b1.
  ASSERT_TRUE(memories[1]->Write({torus::ChipIndex(33), 0}, "data").ok());
  for (const absl::Status& status : access(17, 50)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(*memories[3]->Read({{torus::ChipIndex(50), 100}, 4}), "data");
  for (const absl::Status& status : access(17, 3)) {
    EXPECT_EQ(Message(status),
              "chip 33 of domain 1 shares no memory with chip 3 of domain 0: it ends at the "
              "UltraServer");
  }
  for (const absl::Status& status : access(0, 40)) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(CommunicatorEfaTest, AMissingRankIsNamedAfterTheTimeLimit) {
  nodes_[4] = nullptr;
  nodes_[4] = std::make_unique<EfaNode>(PlaceOfRank(4), folder_, milliseconds(100));
  const auto joined = at(4).Join(
      {.comm_id = "job", .rank = 1, .world_size = 2, .members = ChipsOf(PlaceOfRank(4))});
  EXPECT_EQ(Message(joined.status()),
            "communicator \"job\": rank 0 of 2 did not join within 100 ms");
}

// A node sees a conflict before the other node is reachable; the ranks there must hear of the
// refusal.
TEST_F(CommunicatorEfaTest, ARefusalReachesNodesThatConnectLater) {
  nodes_.clear();
  EfaNode node(PlaceOfRank(4), folder_, milliseconds(20'000));
  const int other = kFirstEfaNode;  // not running
  const Joiner three{
      .number = 1, .world_size = 3, .members = ChipsOf(PlaceOfRank(0)), .place = PlaceOfRank(0)};
  ASSERT_TRUE((*node).OnPeerMessage(other, EncodeJoin("job", 0, three)).ok());
  const auto joined = (*node).Join(
      {.comm_id = "job", .rank = 1, .world_size = 2, .members = ChipsOf(PlaceOfRank(4))});
  EXPECT_EQ(Message(joined.status()),
            "communicator \"job\": rank 0 has world size 3, rank 1 has 2");
  const std::vector<wire::Request> told = (*node).OnPeerConnected(other);
  // The join goes first: only a node with a join may refuse.
  ASSERT_EQ(told.size(), 2U);
  const auto join = DecodeJoin(told[0]);
  ASSERT_TRUE(join.ok()) << join.status();
  const auto leave = DecodeLeave(told[1]);
  ASSERT_TRUE(leave.ok()) << leave.status();
  EXPECT_EQ(join->rank, 1);
  EXPECT_EQ(join->joiner.number, leave->number);
  EXPECT_EQ(leave->rank, 1);
  EXPECT_TRUE(leave->refused);
  EXPECT_EQ(leave->reason, Message(joined.status()));
  EXPECT_TRUE((*node).OnPeerConnected(other).empty()) << "once";
}

// The refusing node has seen every conflicting communicator. Here the first may end before the last
// comes, so the refusal must count for this node, too.
TEST_F(CommunicatorEfaTest, AWaitingRankIsRefusedWhenAnotherNodeRefuses) {
  nodes_.clear();
  EfaNode node(PlaceOfRank(4), folder_, milliseconds(20'000));
  std::optional<absl::StatusOr<Communicators::Joined>> joined;
  std::jthread waiter([&] {
    joined = (*node).Join(
        {.comm_id = "job", .rank = 1, .world_size = 3, .members = ChipsOf(PlaceOfRank(4))});
  });
  // Until the rank waits the refusal has nobody to reach.
  const auto waits = [&] { return !(*node).OnPeerConnected(kFirstEfaNode).empty(); };
  while (!waits()) std::this_thread::yield();
  const Joiner first{
      .number = 1, .world_size = 3, .members = ChipsOf(PlaceOfRank(0)), .place = PlaceOfRank(0)};
  ASSERT_TRUE((*node).OnPeerMessage(kFirstEfaNode, EncodeJoin("job", 0, first)).ok());
  const wire::Request refusal = EncodeLeave(
      {.comm_id = "job", .rank = 0, .number = 1, .reason = "two networks", .refused = true});
  ASSERT_TRUE((*node).OnPeerMessage(kFirstEfaNode, refusal).ok());
  waiter.join();
  EXPECT_EQ(joined->status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(joined->status()), "two networks");
}

// The link proves a peer's name. The rest of the peer's place is believed unless another peer has
// the same place.
TEST_F(CommunicatorEfaTest, APeerJoinsFromItsOwnPlaceAndNoOther) {
  nodes_.clear();
  EfaNode node(PlaceOfRank(4), folder_, milliseconds(20'000));
  const auto join = [&](int peer, const NodePlace& place, int chips_of, std::uint64_t number) {
    const Joiner joiner{.number = number,
                        .world_size = 3,
                        .members = ChipsOf(PlaceOfRank(chips_of)),
                        .place = place};
    return std::string(
        Message((*node).OnPeerMessage(kFirstEfaNode + peer, EncodeJoin("job", peer, joiner))));
  };
  EXPECT_EQ(join(0, PlaceOfRank(1), 1, 1),
            "rank 0 of communicator \"job\": a0 joins in the name of node \"a1\"");
  EXPECT_EQ(join(0, PlaceOfRank(0), 1, 2),
            "rank 0 of communicator \"job\": node a0 joins with chip 16, which is not its own");
  EXPECT_EQ(join(0, PlaceOfRank(0), 0, 3), "");
  EXPECT_EQ(join(1, PlaceOf("a1", "us-a", 0), 0, 1),
            "rank 1 of communicator \"job\": node a1 joins from place 0 of ultraServer us-a, where "
            "another peer is");
  EXPECT_EQ(join(0, PlaceOf("a0", "us-b", 0), 0, 4),
            "rank 0 of communicator \"job\": node a0 joins from place 0 of ultraServer us-b, and "
            "was elsewhere before");
  (*node).OnPeerLost(kFirstEfaNode, LostConnection::kFromPeer, absl::AbortedError("it ended"));
  EXPECT_EQ(join(0, PlaceOf("a0", "us-b", 0), 0, 5), "") << "it was built anew";
}

TEST(GangFabricTest, DomainsAreNumberedInTheOrderOfRanks) {
  const auto gang = GangFabric::Of({PlaceOf("p", "", 0), PlaceOf("b0", "us-b", 0),
                                    PlaceOf("a3", "us-a", 3), PlaceOf("b1", "us-b", 1)});
  ASSERT_TRUE(gang.ok()) << gang.status();
  EXPECT_EQ(gang->fabric().domain_count(), 3);
  EXPECT_EQ(gang->fabric().domain(0).torus(), torus::kInstanceShape);
  EXPECT_EQ(gang->fabric().domain(1).torus(), torus::kUltraServerShape);
  EXPECT_EQ(gang->ChipsOf(3, {{.chip = torus::ChipIndex(16)}})[0].chip, Fabric::ChipOf(1, 16));
  EXPECT_EQ(gang->ChipsOf(2, {{.chip = torus::ChipIndex(48)}})[0].chip, Fabric::ChipOf(2, 48));
}

TEST(GangFabricTest, AViewGetsTheNumbersOfTheFabric) {
  const auto gang = GangFabric::Of({PlaceOf("p", "", 0), PlaceOf("b2", "us-b", 2)});
  const LinkId nic = 384 + 2 * 40;
  const NodeLinks view = gang->ViewFrom(
      1, {.node = 2, .epoch = 7, .unhealthy = {{.link = 5, .permille = 1}, {nic, 2}}});
  EXPECT_EQ(view.node, 6);
  EXPECT_EQ(view.epoch, 7u);
  ASSERT_EQ(view.unhealthy.size(), 2u);
  EXPECT_EQ(gang->fabric().Name(view.unhealthy[0].link), "domain 1 chip 0 z+");
  EXPECT_EQ(gang->fabric().Name(view.unhealthy[1].link), "domain 1 chip 40 EFA out");
  const GangFabric alone =
      GangFabric::OneDomain({torus::kUltraServerShape, hw::kTrainium2.links}, 2);
  EXPECT_EQ(alone.ViewFrom(1, {.node = 2, .unhealthy = {{.link = 5}, {.link = nic}}}).unhealthy,
            (std::vector<LinkState>{{.link = 5}}));
}

TEST(GangFabricTest, ANetworkNodeInTwoPlacesIsRefusedWithItsName) {
  NodePlace one = PlaceOf("p", "", 0);
  NodePlace two = PlaceOf("q", "", 0);
  two.network_layers = {"nn-1", "nn-other", "nn-3"};
  EXPECT_EQ(Message(GangFabric::Of({one, two}).status()),
            "network node \"nn-3\" is under \"nn-2\" and under \"nn-other\"");
}

TEST(GangFabricTest, EveryDifferenceOfTheNetworkIsNamedWithBothValues) {
  const auto refusal = [](const EfaTiming& efa) {
    NodePlace other = PlaceOf("q", "", 0);
    other.efa = efa;
    return std::string(Message(GangFabric::Of({PlaceOf("p", "", 0), other}).status()));
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.packet = Microseconds(20)}),
            "node p has efa.packetLatency 15 us, node q has 20 us; all nodes of a job need one");
  EXPECT_EQ(refusal({.layer = Microseconds(0.5)}),
            "node p has efa.layerLatency 0 us, node q has 0.5 us; all nodes of a job need one");
  EXPECT_EQ(refusal({.oversubscription_permille = {1000, 2500, 1000}}),
            "node p has efa.layer2Oversubscription 1, node q has 2.5; all nodes of a job need one");
}

TEST(JoinMessageTest, AJoinWithoutLayersHasTheDefaultsAndBadLayersAreRefused) {
  NodePlace place = PlaceOf("b1", "us-b", 3);
  place.efa = {.packet = Microseconds(9),
               .layer = Microseconds(1),
               .oversubscription_permille = {1000, 2000, 3500}};
  const std::vector<Member> chips = {{.chip = torus::ChipIndex(3)}};
  const wire::Request message =
      EncodeJoin("job", 1, {.number = 1, .world_size = 2, .members = chips, .place = place});
  EXPECT_EQ(DecodeJoin(message)->joiner.place.efa, place.efa);
  const auto with = [&](const std::string& efa) {
    wire::Request changed = message;
    const auto begin = changed.params.find("\"efa\":{");
    const auto end = changed.params.find('}', begin);
    changed.params.replace(begin, end + 1 - begin, efa);
    return DecodeJoin(changed);
  };
  const auto older = with("\"other\":0");
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(older->joiner.place.efa, EfaTiming{});
  EXPECT_FALSE(
      with(R"("efa":{"packetPs":-1,"layerPs":0,"oversubscriptionPermille":[1,1,1]})").ok());
  for (const char* layers : {"[]", "[1,1]", "[1,1,0]", "[1,1,1000001]", "[1,1,1.5]"}) {
    EXPECT_EQ(Message(with(fmt::format(R"("efa":{{"packetPs":1,"layerPs":0,)"
                                       R"("oversubscriptionPermille":{}}})",
                                       layers))
                          .status()),
              "peerJoin.place.efa.oversubscriptionPermille must hold 3 whole numbers from 1 to "
              "1000000")
        << layers;
  }
}

TEST(JoinMessageTest, APlaceComesBackAndABadOneIsRefused) {
  const Joiner joiner{.number = 1,
                      .world_size = 2,
                      .members = {{.chip = torus::ChipIndex(3)}},
                      .place = PlaceOf("b1", "us-b", 3)};
  wire::Request message = EncodeJoin("job", 1, joiner);
  const auto back = DecodeJoin(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->joiner.place, joiner.place);
  const auto at = message.params.find("\"nodeId\":3");
  ASSERT_NE(at, std::string::npos);
  message.params.replace(at, 10, "\"nodeId\":4");
  EXPECT_EQ(Message(DecodeJoin(message).status()), "peerJoin.place.nodeId is 4; expected 0 to 3");
}

}  // namespace
}  // namespace tahoma::sim
