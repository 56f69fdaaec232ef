// Four instances in a process, whose elections pass messages through a queue of the test.

#include "sim-node/serve/node_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/serve/admin.h"
#include "sim-node/serve/election_messages.h"
#include "sim-node/serve/node_server.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int kNodes = hw::kUltraServerNodes;
constexpr Port kZPlus{torus::Axis::kZ, torus::Direction::kPlus};
constexpr Port kZMinus{torus::Axis::kZ, torus::Direction::kMinus};

class NodeElectionTest : public ::testing::Test {
 protected:
  NodeElectionTest() {
    for (int place = 0; place < kNodes; ++place) {
      lives_.push_back(std::make_unique<LiveInstance>(
          *Instance::Create({.type = hw::FindInstanceType("trn2u.48xlarge"),
                             .name = "n" + std::to_string(place),
                             .ultra_server = UltraServerPlace{.id = "us-1", .node_id = place}},
                            [] {
                              return std::array<std::uint64_t, 2>{1, 2};
                            })));
      Begin(place, {0, 1, 2, 3});
    }
    for (auto& node : nodes_) node->Start();
    Deliver();
  }
  ~NodeElectionTest() override {
    for (auto& node : nodes_) node->Stop();
  }

  void Begin(int place, std::set<int> peers) {
    peers.erase(place);
    auto& live = *lives_[static_cast<std::size_t>(place)];
    nodes_.push_back(std::make_unique<NodeElection>(
        NodeElection::Options{.peers = std::move(peers)}, live, clock_));
    nodes_.back()->Connect([this, place](int to, wire::Request message) {
      const std::lock_guard lock(mutex_);  // the nodes' own threads tick, too
      queue_.push_back({place, to, std::move(message)});
      return true;
    });
    live.Listen([node = nodes_.back().get()] { node->OnInstanceChanged(); });
  }
  void Deliver() {
    while (true) {
      Sent sent;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) return;
        sent = std::move(queue_.front());
        queue_.pop_front();
      }
      nodes_[static_cast<std::size_t>(sent.to)]->OnPeerMessage(sent.from, sent.message);
    }
  }
  NodeElection& node(int place) { return *nodes_[static_cast<std::size_t>(place)]; }
  void Change(int place, const std::function<absl::Status(Instance&)>& change) {
    EXPECT_TRUE(lives_[static_cast<std::size_t>(place)]->Change(change).ok());
    Deliver();
  }
  void SetLink(int place, int chip, Port port, std::uint16_t permille) {
    Change(place, [&](Instance& instance) { return instance.SetLink(chip, port, permille); });
  }
  // Makes a claim for an UltraServer of `nodes` nodes, or without an UltraServer.
  void Claim(int place, int nodes = 0) {
    Change(place, [&](Instance& instance) {
      return instance
          .ApplyClaim({.claim_uid = "u", .name = "c", .chips = {0}, .ultra_server_mode = nodes})
          .status();
    });
  }
  void Release(int place) {
    Change(place, [](Instance& instance) {
      instance.ReleaseClaim("u");
      return absl::OkStatus();
    });
  }
  json State(int place) {
    return ParseJson(lives_[static_cast<std::size_t>(place)]->Read(StateJson));
  }
  json ElectionOf(int place) { return State(place)["ultraServer"]["election"]; }
  std::vector<std::string> Modes() {
    std::vector<std::string> all;
    for (int place = 0; place < kNodes; ++place) {
      all.push_back(ElectionOf(place)["classFiles"]["ultraserver_mode"]);
    }
    return all;
  }

  struct Sent {
    int from = 0;
    int to = 0;
    wire::Request message{};
  };
  ManualClock clock_;
  std::mutex mutex_;  // queue_
  std::deque<Sent> queue_;
  std::vector<std::unique_ptr<LiveInstance>> lives_;
  std::vector<std::unique_ptr<NodeElection>> nodes_;
};

using Four = std::vector<std::string>;

TEST_F(NodeElectionTest, TheStateShowsTheElectedServerAndIdsAreThePlaces) {
  for (int place = 0; place < kNodes; ++place) {
    const json state = State(place);
    EXPECT_EQ(state["ultraServer"]["id"], "us-1");
    EXPECT_EQ(state["ultraServer"]["nodeId"], place);
    const json election = ElectionOf(place);
    EXPECT_EQ(election["state"], "ultraserver");
    EXPECT_EQ(election["nodes"], 4);
    EXPECT_EQ(election["mode"], "unset");
    EXPECT_EQ(election["modes"], json({"X4", "X2V", "X1"}));
    EXPECT_EQ(election["classFiles"]["node_id_4"], std::to_string(place));
    EXPECT_EQ(election["classFiles"]["node_id_2"], std::to_string(place % 2));
    EXPECT_EQ(election["classFiles"]["server_id_4"],
              fmt::format("{:016x}", SerialNumber("us-1", 0)));
  }
}

TEST_F(NodeElectionTest, OneLinkOfACableThatCarriesNothingBreaksTheCable) {
  SetLink(0, 7, kZPlus, 250);
  EXPECT_EQ(Modes(), (Four{"1,3,4", "1,3,4", "1,3,4", "1,3,4"})) << "slow is not broken";
  SetLink(0, 7, kZPlus, 0);
  SetLink(1, 7, kZMinus, 0);
  EXPECT_EQ(Modes(), (Four{"2,4", "2,4", "2,4", "2,4"})) << "pairs over the right cables";
  EXPECT_EQ(ElectionOf(0)["classFiles"]["server_id_2"], ElectionOf(3)["classFiles"]["server_id_2"]);
  EXPECT_EQ(ElectionOf(1)["classFiles"]["server_id_2"], ElectionOf(2)["classFiles"]["server_id_2"]);
  SetLink(1, 7, kZMinus, 1000);
  SetLink(0, 7, kZPlus, 1000);
  EXPECT_EQ(Modes(), (Four{"1,3,4", "1,3,4", "1,3,4", "1,3,4"}));
}

TEST_F(NodeElectionTest, LinksInsideTheInstanceAndOtherFaultsOfChipsDoNotMatter) {
  SetLink(2, 3, {torus::Axis::kX, torus::Direction::kPlus}, 0);
  Change(2, [](Instance& i) { return i.BreakChip(5, ChipFault::kHbmUncorrectable); });
  EXPECT_EQ(Modes()[2], "1,3,4");
  Change(2, [](Instance& i) { return i.BreakChip(5, ChipFault::kDma); });
  EXPECT_EQ(ElectionOf(2)["state"], "failed") << "it cannot read its neighbours";
  EXPECT_THAT(ElectionOf(2)["reason"].get<std::string>(), HasSubstr("the left cable is down"));
  EXPECT_EQ(ElectionOf(0)["nodes"], 2) << "with node 3, over their right cable";
}

TEST_F(NodeElectionTest, ABreakWhileCoresAreInUseWaitsForTheirRelease) {
  for (int place = 0; place < kNodes; ++place) Claim(place);
  SetLink(0, 7, kZPlus, 0);
  SetLink(1, 7, kZMinus, 0);
  EXPECT_EQ(Modes(), (Four{"1,3,4", "1,3,4", "1,3,4", "1,3,4"}));
  EXPECT_EQ(ElectionOf(0)["reason"], "a new election waits until all cores are idle");
  for (int place = 0; place < kNodes; ++place) Release(place);
  EXPECT_EQ(Modes(), (Four{"2,4", "2,4", "2,4", "2,4"}));
}

TEST_F(NodeElectionTest, ElectionsOnDemandAndModesAreRefusedWhileCoresAreInUse) {
  ASSERT_TRUE(node(1).SetMode(UltraServerMode::kX2V).ok());
  Claim(1);
  EXPECT_THAT(Message(node(1).Elect()), HasSubstr("cores of this node are in use"));
  EXPECT_THAT(Message(node(1).SetMode(UltraServerMode::kX4)), HasSubstr("stays X2V until all"));
  EXPECT_EQ(ElectionOf(1)["mode"], "X2V");
  Release(1);
  EXPECT_EQ(ElectionOf(1)["mode"], "unset");
  ASSERT_TRUE(node(1).Elect().ok());
  EXPECT_EQ(Modes()[1], "busy");
  Deliver();
  EXPECT_EQ(Modes(), (Four{"1,3,4", "1,3,4", "1,3,4", "1,3,4"}));
}

TEST_F(NodeElectionTest, AClaimChoosesTheModeUntilItIsReleased) {
  Claim(0, 2);
  EXPECT_EQ(ElectionOf(0)["mode"], "X2V");
  EXPECT_EQ(ElectionOf(1)["mode"], "unset") << "each node's own";
  Claim(1, 4);
  EXPECT_EQ(ElectionOf(1)["mode"], "X4");
  Claim(2);
  EXPECT_EQ(ElectionOf(2)["mode"], "unset");
  Release(0);
  EXPECT_EQ(ElectionOf(0)["mode"], "unset");
  Claim(0, 1);
  EXPECT_EQ(ElectionOf(0)["mode"], "X1");
}

TEST_F(NodeElectionTest, WhatIsElectedIsPublished) {
  NodeServer server(*lives_[3], {});
  const auto published = [&] { return *server.MakeInventory().ultra_server; };
  const wire::UltraServer whole = published();
  EXPECT_EQ(whole.mode, 4);
  EXPECT_FALSE(whole.election->running);
  EXPECT_EQ(hw::SizesLabel(whole.election->modes), "1_2_4");
  EXPECT_EQ(whole.election->server_id_4, fmt::format("{:016x}", SerialNumber("us-1", 0)));
  EXPECT_EQ(whole.election->node_id_4, 3);
  EXPECT_EQ(whole.election->node_id_2, 1);
  EXPECT_NE(whole.election->server_id_2, whole.election->server_id_4);

  const std::uint64_t before = server.MakeInventory().generation;
  SetLink(0, 7, kZPlus, 0);
  SetLink(1, 7, kZMinus, 0);
  const wire::UltraServer pair = published();
  EXPECT_GT(server.MakeInventory().generation, before) << "the plugin hears of it";
  EXPECT_EQ(pair.mode, 2);
  EXPECT_EQ(hw::SizesLabel(pair.election->modes), "1_2");
  EXPECT_EQ(pair.election->server_id_4, "");
  EXPECT_EQ(pair.election->node_id_4, -1);
  EXPECT_EQ(pair.election->server_id_2, fmt::format("{:016x}", SerialNumber("us-1", 0)));

  ASSERT_TRUE(node(3).Elect().ok());
  EXPECT_TRUE(published().election->running);
  EXPECT_TRUE(published().election->modes.empty());
  EXPECT_EQ(published().mode, 1);
}

TEST_F(NodeElectionTest, AFollowerHearsOfEveryResult) {
  std::vector<std::string> heard;
  node(2).Follow([&](const ElectionResult& result) {
    const std::string now = ClassFilesOf(result).ultraserver_mode;
    if (heard.empty() || heard.back() != now) heard.push_back(now);
  });
  EXPECT_EQ(heard, (std::vector<std::string>{"1,3,4"})) << "at once";
  SetLink(2, 7, kZPlus, 0);
  SetLink(3, 7, kZMinus, 0);
  ASSERT_GE(heard.size(), 3U);
  EXPECT_EQ(heard[1], "busy");
  EXPECT_EQ(heard.back(), "2,4");
  const std::size_t before = heard.size();
  node(2).Follow(nullptr);
  SetLink(2, 7, kZPlus, 1000);
  EXPECT_EQ(heard.size(), before);
}

// The reference is the wiring, which hw::PartnersOf knows by itself.
TEST_F(NodeElectionTest, PairsAreThoseOfTheCables) {
  for (int place = 0; place < kNodes; ++place) {
    EXPECT_EQ(hw::PartnersOf(UltraServerMode::kX2V, place),
              1U << place | 1U << PlaceBehind(place, CableSide::kLeft));
    EXPECT_EQ(hw::PartnersOf(UltraServerMode::kX2H, place),
              1U << place | 1U << PlaceBehind(place, CableSide::kRight));
  }
}

TEST_F(NodeElectionTest, WithoutItsNeighboursANodeIsAloneAfterTheDeadline) {
  Claim(1);
  Claim(3);
  ASSERT_TRUE(node(0).Elect().ok());
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(Modes()[0], "busy");
    clock_.Advance(attempt == 0 ? seconds(600) : seconds(120));
    node(0).Tick();
    Deliver();
  }
  EXPECT_EQ(Modes()[0], "4");
  EXPECT_THAT(ElectionOf(0)["reason"].get<std::string>(),
              HasSubstr("the right neighbour has cores in use"));
}

TEST_F(NodeElectionTest, AMessageThatCannotBeReadOrComesFromTheDiagonalIsDropped) {
  const json before = State(0);
  node(0).OnPeerMessage(1, {.method = std::string(kElectionMethod), .params = "{"});
  Notice newer{.boot = 99, .sequence = 1, .round = 99, .serial = 5};
  node(0).OnPeerMessage(2, EncodeNotice(newer));
  EXPECT_EQ(State(0), before);
  node(0).OnPeerMessage(1, EncodeNotice(newer));
  EXPECT_NE(State(0), before) << "from a neighbour it is heard";
}

TEST(NodeElectionCablesTest, ACableToANodeThatIsNoPeerIsDown) {
  ManualClock clock;
  LiveInstance live(
      *Instance::Create({.type = hw::FindInstanceType("trn2u.48xlarge"),
                         .name = "n",
                         .ultra_server = UltraServerPlace{.id = "us-1", .node_id = 2}},
                        [] {
                          return std::array<std::uint64_t, 2>{1, 2};
                        }));
  NodeElection election({.peers = {0}}, live, clock);
  election.Start();
  live.Read([](const Instance& node) {
    EXPECT_EQ(node.election()->state, ElectionState::kFailed);
    EXPECT_THAT(node.election()->reason, HasSubstr("both cables: the left cable is down"));
    return true;
  });
}

TEST(NodeElectionCablesTest, EveryCableJoinsTheSameSideOfTwoNodes) {
  for (int place = 0; place < kNodes; ++place) {
    for (const CableSide side : kCableSides) {
      const int other = PlaceBehind(place, side);
      EXPECT_NE(other, place);
      EXPECT_EQ(PlaceBehind(other, side), place);
      EXPECT_EQ(PortOfCable(place, side).direction,
                torus::Opposite(PortOfCable(other, side).direction));
    }
    EXPECT_NE(PlaceBehind(place, CableSide::kLeft), PlaceBehind(place, CableSide::kRight));
  }
  EXPECT_EQ(PlaceBehind(0, CableSide::kLeft), 1) << "as in the labels of pairs";
  EXPECT_EQ(PlaceBehind(2, CableSide::kLeft), 3);
}

TEST(NodeElectionCablesTest, SerialNumbersDifferAndAscendWithThePlace) {
  std::set<std::uint64_t> all;
  for (const char* id : {"us-1", "us-2", ""}) {
    for (int place = 0; place < kNodes; ++place) {
      EXPECT_GT(SerialNumber(id, place), SerialNumber(id, 0) - 1 + static_cast<unsigned>(place));
      all.insert(SerialNumber(id, place));
      all.insert(SerialNumber(id, place) - 1);  // the server id of nodes 2 and 3
    }
  }
  EXPECT_EQ(all.size(), 3U * kNodes * 2U);
}

TEST(ElectionMessagesTest, ANoticeIsReadAsItWasWritten) {
  const Notice notice{.boot = 1'700'000'000'000'000'000,
                      .sequence = 17,
                      .round = 3,
                      .serial = 0xfedcba9876543210U,
                      .attempt = ElectionAttempt::kLeft,
                      .stage = ElectionStage::kReady,
                      .heard = {0xffffffffffffffffU, 0},
                      .in_use = true,
                      .cable_up = false};
  const auto read = DecodeNotice(EncodeNotice(notice));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, notice);
}

TEST(ElectionMessagesTest, ABadFieldIsRefusedByName) {
  const json good =
      ParseJson(EncodeNotice({.boot = 1, .sequence = 1, .round = 1, .serial = 1}).params);
  const std::vector<std::pair<const char*, json>> bad = {{"boot", -1},
                                                         {"sequence", 0},
                                                         {"round", 0},
                                                         {"serial", "12"},
                                                         {"attempt", "none"},
                                                         {"serial", "000000000000000g"},
                                                         {"stage", 1},
                                                         {"heardLeft", 7},
                                                         {"heardRight", nullptr},
                                                         {"serial", "0000000000000000"},
                                                         {"inUse", "no"}};
  for (const auto& [key, value] : bad) {
    json params = good;
    params[key] = value;
    const auto read =
        DecodeNotice({.method = std::string(kElectionMethod), .params = params.dump()});
    ASSERT_FALSE(read.ok()) << key << value;
    EXPECT_THAT(Message(read.status()), HasSubstr(fmt::format("peerElection.{}", key)));
  }
}

}  // namespace
}  // namespace tahoma::sim
