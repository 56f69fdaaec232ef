// Elections of four nodes over cables that break, lose, delay and reorder.

#include "sim-node/node/election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/engine/event_queue.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kNodes = 4;
// Cable c joins place c with place c + 1 of the ring; cables 0 and 2 are left, 1 and 3 are right.
constexpr int kCables = 4;
// The longest time of an election: every attempt until its deadline, and the ticks that notice it.
constexpr VirtualDuration kLongest = kElectionTimeout + 2 * kAttemptExtension + seconds(5);

int CableAt(int place, CableSide side) {
  const bool even_left = (place % 2 == 0) == (side == CableSide::kLeft);
  return even_left ? place : (place + kCables - 1) % kCables;
}
int NeighbourAt(int place, CableSide side) {
  const int cable = CableAt(place, side);
  return cable == place ? (place + 1) % kNodes : cable;
}
CableSide SideOf(int cable) { return cable % 2 == 0 ? CableSide::kLeft : CableSide::kRight; }

// Four nodes in the same virtual time. Each notice has a delay of its own, so notices overtake.
class Ring {
 public:
  explicit Ring(std::uint64_t seed, std::vector<std::uint64_t> serials = {10, 20, 30, 40})
      : rng_(seed), serials_(std::move(serials)) {
    nodes_.resize(kNodes);
    for (int place = 0; place < kNodes; ++place) {
      Replace(place);
      Tick(place);
    }
  }

  Election& node(int place) { return *nodes_[static_cast<std::size_t>(place)]; }
  ElectionResult result(int place) { return node(place).result(); }
  std::uint64_t serial(int place) const { return serials_[static_cast<std::size_t>(place)]; }
  VirtualTime now() const { return queue_.now(); }
  Rng& rng() { return rng_; }

  void Start(int place) {
    node(place).Start(now());
    Send(place);
  }
  void StartAll() {
    for (int place = 0; place < kNodes; ++place) Start(place);
  }
  // The program ends and begins again; its messages are still in flight.
  void Restart(int place) {
    Replace(place);
    Start(place);
  }
  void SetCableEnd(int place, CableSide side, bool up) {
    ends_[CableAt(place, side)][place] = up;
    node(place).OnCable(now(), side, up);
    Send(place);
  }
  void SetCable(int cable, bool up) {
    SetCableEnd(cable, SideOf(cable), up);
    SetCableEnd((cable + 1) % kNodes, SideOf(cable), up);
  }
  void SetInUse(int place, bool in_use) {
    in_use_[static_cast<std::size_t>(place)] = in_use;
    node(place).SetCoresInUse(now(), in_use);
    Send(place);
  }
  void Elect(int place) {
    ASSERT_TRUE(node(place).Elect(now()).ok());
    Send(place);
  }
  // Sets how many of a hundred notices are lost.
  void SetLoss(std::uint64_t percent) { loss_percent_ = percent; }
  void Run(VirtualDuration time) { queue_.RunUntil(now() + time); }

  std::size_t sent() const { return sent_; }

 private:
  void Replace(int place) {
    auto& node = nodes_[static_cast<std::size_t>(place)];
    node = std::make_unique<Election>(
        Election::Options{.serial = serials_[static_cast<std::size_t>(place)], .boot = ++boots_});
    for (const CableSide side : kCableSides) {
      node->OnCable(now(), side, EndUp(place, side));
    }
    node->SetCoresInUse(now(), in_use_[static_cast<std::size_t>(place)]);
  }
  bool EndUp(int place, CableSide side) {
    const auto& ends = ends_[CableAt(place, side)];
    const auto end = ends.find(place);
    return end == ends.end() || end->second;
  }
  void Tick(int place) {
    queue_.Schedule(now() + milliseconds(500 + rng_.Below(1000)), EventPriority::kStart,
                    [this, place] {
                      node(place).OnTick(now());
                      Send(place);
                      Tick(place);
                    });
  }
  void Send(int place) {
    for (const Election::Outgoing& out : node(place).DrainNotices()) {
      ++sent_;
      if (rng_.Below(100) < loss_percent_) continue;
      const int to = NeighbourAt(place, out.side);
      queue_.Schedule(now() + milliseconds(1 + rng_.Below(400)), EventPriority::kArrival,
                      [this, to, out] {
                        node(to).OnNotice(now(), out.side, out.notice);
                        Send(to);
                      });
    }
  }

  Rng rng_;
  EventQueue queue_;
  std::vector<std::uint64_t> serials_;
  std::vector<std::unique_ptr<Election>> nodes_;
  std::map<int, std::map<int, bool>> ends_;  // cable -> place -> whether this end is up
  std::array<bool, kNodes> in_use_{};
  std::uint64_t boots_ = 0;
  std::uint64_t loss_percent_ = 0;
  std::size_t sent_ = 0;
};

std::vector<std::uint64_t> ShuffledSerials(Rng& rng) {
  std::vector<std::uint64_t> serials = {0x10, 0xfeed0020, 0xfeed0030, 0xffff000000000040};
  for (std::size_t i = serials.size(); i > 1; --i) std::swap(serials[i - 1], serials[rng.Below(i)]);
  return serials;
}

// Returns the groups, by places, once all nodes know the broken cables: all four nodes; or pairs
// over the right cables, then over the left cables between nodes without a pair.
std::set<std::set<int>> ExpectedGroups(unsigned broken) {
  if (broken == 0) return {{0, 1, 2, 3}};
  std::set<std::set<int>> groups;
  std::set<int> free = {0, 1, 2, 3};
  for (const int cable : {1, 3, 0, 2}) {
    const int a = cable;
    const int b = (cable + 1) % kNodes;
    if (((broken >> cable) & 1U) != 0 || !free.contains(a) || !free.contains(b)) continue;
    groups.insert({a, b});
    free.erase(a);
    free.erase(b);
  }
  for (const int place : free) groups.insert({place});
  return groups;
}

// Returns the groups that the nodes report. Checks each group: its members report the same group,
// its ids are 0, 1, … each once, and its cables join it.
std::set<std::set<int>> GroupsOf(Ring& ring) {
  std::map<std::uint64_t, std::set<int>> by_server;
  std::set<std::set<int>> groups;
  for (int place = 0; place < kNodes; ++place) {
    const ElectionResult result = ring.result(place);
    if (result.node_count == 0) {
      EXPECT_EQ(result.state, ElectionState::kFailed) << place;
      EXPECT_THAT(result.modes, ::testing::ElementsAre(UltraServerMode::kX1));
      groups.insert({place});
    } else {
      EXPECT_EQ(result.state, ElectionState::kUltraServer) << place;
      by_server[result.server_id].insert(place);
    }
  }
  for (const auto& [server, places] : by_server) {
    const ElectionResult first = ring.result(*places.begin());
    EXPECT_EQ(first.node_count, static_cast<int>(places.size())) << std::hex << server;
    std::set<int> ids;
    std::uint64_t lowest = server;
    for (const int place : places) {
      const ElectionResult result = ring.result(place);
      EXPECT_EQ(result.node_count, first.node_count);
      EXPECT_EQ(result.cables, first.cables);
      EXPECT_EQ(result.modes, first.modes);
      ids.insert(result.node_id);
      lowest = std::min(lowest, ring.serial(place));
      EXPECT_EQ(result.node_id == 0, ring.serial(place) == server);
      for (const CableSide side : kCableSides) {
        if (!result.cables[SideIndex(side)]) continue;
        EXPECT_TRUE(places.contains(NeighbourAt(place, side))) << place << SideName(side);
      }
    }
    EXPECT_EQ(lowest, server) << "node 0 has the lowest serial number";
    EXPECT_EQ(ids.size(), places.size());
    EXPECT_EQ(*ids.rbegin(), first.node_count - 1);
    groups.insert(places);
  }
  return groups;
}

// Expects the rule of init scripts (aws-neuron-sdk k8s-ultraserver-init-script.sh): a server id
// other than zero is shared by exactly the group's nodes, with different node ids.
void ExpectThatClassFilesAgree(Ring& ring) {
  std::map<std::string, std::set<std::string>> pairs;
  std::map<std::string, std::set<std::string>> fours;
  for (int place = 0; place < kNodes; ++place) {
    const ClassFiles files = ClassFilesOf(ring.result(place));
    if (files.node_id_2 != "-1") pairs[files.server_id_2].insert(files.node_id_2);
    if (files.node_id_4 != "-1") fours[files.server_id_4].insert(files.node_id_4);
  }
  for (const auto& [id, nodes] : pairs) EXPECT_EQ(nodes, (std::set<std::string>{"0", "1"})) << id;
  for (const auto& [id, nodes] : fours) EXPECT_EQ(nodes.size(), 4U) << id;
  EXPECT_FALSE(pairs.contains("0000000000000000"));
}

TEST(ElectionTest, FourNodesOnARingBecomeOneServerWithIdsBySerialNumber) {
  Ring ring(1, {20, 40, 30, 10});
  ring.StartAll();
  ring.Run(seconds(10));
  // Place 3 has the lowest serial; its left neighbour is place 2, its right neighbour place 0.
  EXPECT_EQ(ring.result(3).node_id, 0);
  EXPECT_EQ(ring.result(2).node_id, 1);
  EXPECT_EQ(ring.result(1).node_id, 2);
  EXPECT_EQ(ring.result(0).node_id, 3);
  for (int place = 0; place < kNodes; ++place) {
    EXPECT_EQ(ring.result(place).server_id, 10U);
    EXPECT_THAT(ring.result(place).reason, IsEmpty());
  }
}

TEST(ElectionTest, TheClassFilesOfAWholeServerAreThoseOfTheDriver) {
  Ring ring(1, {0xa0, 0xb0, 0xc0, 0xd0});
  EXPECT_EQ(ClassFilesOf(ring.result(0)).node_id_4, "busy") << "before it begins";
  ring.StartAll();
  EXPECT_EQ(ClassFilesOf(ring.result(0)),
            (ClassFiles{.ultraserver_mode = "busy", .node_id_2 = "busy", .node_id_4 = "busy"}));
  ring.Run(seconds(10));
  const std::string whole = "00000000000000a0";
  const std::string other = "000000000000009f";  // nodes 2 and 3: the serial less 1
  const auto files = [&](const char* id2, const char* id4, const std::string& server2) {
    return ClassFiles{.ultraserver_mode = "1,3,4",
                      .node_id_2 = id2,
                      .node_id_4 = id4,
                      .server_id_2 = server2,
                      .server_id_4 = whole};
  };
  EXPECT_EQ(ClassFilesOf(ring.result(0)), files("0", "0", whole));
  EXPECT_EQ(ClassFilesOf(ring.result(1)), files("1", "1", whole));
  EXPECT_EQ(ClassFilesOf(ring.result(2)), files("0", "2", other));
  EXPECT_EQ(ClassFilesOf(ring.result(3)), files("1", "3", other));
}

TEST(ElectionTest, TheClassFilesOfPairsAndSingleNodesAreThoseOfTheDriver) {
  Ring ring(1, {0xa0, 0xb0, 0xc0, 0xd0});
  ring.SetCable(1, false);
  ring.StartAll();
  ring.Run(seconds(10));
  EXPECT_EQ(
      ClassFilesOf(ring.result(3)),
      (ClassFiles{.ultraserver_mode = "2,4", .node_id_2 = "1", .server_id_2 = "00000000000000a0"}));
  EXPECT_EQ(ClassFilesOf(ring.result(1)), (ClassFiles{.ultraserver_mode = "4"}));
  ring.SetCable(3, false);
  ring.Run(seconds(10));
  EXPECT_EQ(
      ClassFilesOf(ring.result(3)),
      (ClassFiles{.ultraserver_mode = "3,4", .node_id_2 = "1", .server_id_2 = "00000000000000c0"}));
  EXPECT_EQ(ClassFilesOf(ElectionResult{.state = ElectionState::kFailed}), ClassFiles{})
      << "no election at all: empty, -1, zeros";
}

TEST(ElectionTest, EverySetOfBrokenCablesGivesTheSameGroupsInEveryOrderOfNotices) {
  for (unsigned broken = 0; broken < 1U << kCables; ++broken) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(fmt::format("broken {:04b} seed {}", broken, seed));
      Rng rng(seed * 16 + broken);
      Ring ring(rng.Next(), ShuffledSerials(rng));
      for (int cable = 0; cable < kCables; ++cable) {
        if (((broken >> cable) & 1U) != 0) ring.SetCable(cable, false);
      }
      // Nodes start at different times, far from the time-out.
      for (int place = 0; place < kNodes; ++place) {
        ring.Start(place);
        ring.Run(milliseconds(rng.Below(3000)));
      }
      ring.Run(seconds(60));
      EXPECT_EQ(GroupsOf(ring), ExpectedGroups(broken));
      ExpectThatClassFilesAgree(ring);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ElectionTest, ACableBrokenAtOneEndIsBrokenForBoth) {
  for (unsigned broken = 1; broken < 1U << (2 * kCables); ++broken) {
    SCOPED_TRACE(fmt::format("broken ends {:08b}", broken));
    Rng rng(broken);
    Ring ring(rng.Next(), ShuffledSerials(rng));
    ring.StartAll();
    const bool running = rng.Chance(1, 2);
    ring.Run(running ? milliseconds(rng.Below(900)) : seconds(10));
    unsigned cables = 0;
    for (int place = 0; place < kNodes; ++place) {
      for (const CableSide side : kCableSides) {
        const std::size_t bit = 2 * static_cast<std::size_t>(place) + SideIndex(side);
        if (((broken >> bit) & 1U) == 0) continue;
        ring.SetCableEnd(place, side, false);
        cables |= 1U << static_cast<unsigned>(CableAt(place, side));
      }
    }
    ring.Run(seconds(60));
    EXPECT_EQ(GroupsOf(ring), ExpectedGroups(cables));
    ExpectThatClassFilesAgree(ring);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ElectionTest, WhenNothingIsEverHeardTheNodeIsAloneAfterAllTimesAreOver) {
  Ring ring(1);
  ring.SetLoss(100);
  ring.StartAll();
  ring.Run(kElectionTimeout + 2 * kAttemptExtension - seconds(1));
  EXPECT_EQ(ring.result(0).state, ElectionState::kInProgress);
  EXPECT_THAT(ring.result(0).reason, HasSubstr("the left neighbour does not take part"));
  ring.Run(seconds(6));
  for (int place = 0; place < kNodes; ++place) {
    EXPECT_EQ(ring.result(place).state, ElectionState::kFailed);
    EXPECT_EQ(ring.result(place).reason,
              "both cables: its time is over: the left neighbour does not take part, the right "
              "neighbour does not take part; right cable alone: its time is over: the right "
              "neighbour does not take part; left cable alone: its time is over: the left "
              "neighbour does not take part");
  }
}

TEST(ElectionTest, NoticesLostForAsLongAsYouLikeEndInAgreementOnceTheyArrive) {
  std::set<std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Ring ring(rng.Next(), ShuffledSerials(rng));
    const std::uint64_t percent = 50 + rng.Below(51);
    // Around the deadlines losing hurts most.
    const VirtualDuration good = rng.Chance(1, 2) ? seconds(0) : milliseconds(rng.Below(1200));
    const VirtualDuration bad = seconds(rng.Below(900));
    ring.StartAll();
    ring.Run(good);
    ring.SetLoss(percent);
    ring.Run(bad);
    ring.SetLoss(0);
    ring.Run(kLongest + 3 * kFinishedNoticePeriod);
    seen.insert(GroupsOf(ring).size());
    ExpectThatClassFilesAgree(ring);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_TRUE(seen.contains(1)) << "whole servers";
  EXPECT_TRUE(seen.contains(4)) << "and nodes alone";
}

TEST(ElectionTest, ANodeThatStartsAfterItsNeighboursGaveUpJoinsThem) {
  Ring ring(3);
  for (const int place : {0, 1, 2}) ring.Start(place);
  ring.Run(kLongest);
  EXPECT_EQ(ring.result(0).state, ElectionState::kFailed);
  EXPECT_EQ(ring.result(1).node_count, 2);
  ring.Restart(3);  // has not heard the notices from before its start
  ring.Run(seconds(20));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0));
}

TEST(ElectionTest, ANodeThatRestartsDuringOrAfterAnElectionFindsItsPlaceAgain) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Ring ring(rng.Next(), ShuffledSerials(rng));
    const unsigned broken = static_cast<unsigned>(rng.Chance(1, 2) ? 0 : rng.Below(16));
    for (int cable = 0; cable < kCables; ++cable) {
      if (((broken >> cable) & 1U) != 0) ring.SetCable(cable, false);
    }
    ring.StartAll();
    for (std::uint64_t times = 1 + rng.Below(4); times > 0; --times) {
      ring.Run(milliseconds(rng.Below(rng.Chance(1, 4) ? 20'000 : 900)));
      ring.Restart(static_cast<int>(rng.Below(kNodes)));
    }
    ring.Run(seconds(60));
    EXPECT_EQ(GroupsOf(ring), ExpectedGroups(broken));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ElectionTest, AnElectionWaitsForCoresInUseAndGoesOnWhenTheyAreReleased) {
  Ring ring(4);
  ring.SetInUse(2, true);
  ring.StartAll();
  ring.Run(seconds(500));
  EXPECT_EQ(ring.result(2).state, ElectionState::kInProgress);
  EXPECT_EQ(ring.result(2).reason, "cores of this node are in use");
  EXPECT_EQ(ring.result(1).reason, "the right neighbour has cores in use");
  EXPECT_THAT(ring.result(0).reason, HasSubstr("the left neighbour is not ready"));
  ring.SetInUse(2, false);
  ring.Run(seconds(5));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0));
}

TEST(ElectionTest, CoresInUseForTooLongLeaveTheNodeAloneUntilTheyAreReleased) {
  Ring ring(5);
  ring.SetInUse(2, true);
  ring.StartAll();
  ring.Run(kLongest + seconds(120));
  EXPECT_EQ(GroupsOf(ring), (std::set<std::set<int>>{{0, 3}, {1}, {2}}));
  EXPECT_EQ(ring.result(2).reason,
            "both cables: cores of this node are in use; a new election waits until all cores are "
            "idle");
  ring.SetInUse(2, false);
  ring.Run(seconds(10));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0));
}

TEST(ElectionTest, ABrokenCableChangesNothingForWhomItIsInUse) {
  Ring ring(6);
  ring.StartAll();
  ring.Run(seconds(10));
  for (int place = 0; place < kNodes; ++place) ring.SetInUse(place, true);
  ring.SetCableEnd(0, CableSide::kLeft, false);
  ring.Run(seconds(1));
  EXPECT_EQ(ring.result(0).reason, "a new election waits until all cores are idle");
  EXPECT_EQ(ring.result(1).reason, ring.result(0).reason) << "it is told at once";
  ring.Run(kLongest);
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0));
  for (int place = 0; place < kNodes; ++place) ring.SetInUse(place, false);
  ring.Run(seconds(10));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(1)) << "two pairs on the right cables";
  EXPECT_THAT(ring.result(0).reason, HasSubstr("both cables: the left cable is down"));
  ring.SetCableEnd(0, CableSide::kLeft, true);
  ring.Run(seconds(10));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0)) << "repaired";
}

TEST(ElectionTest, ANodeWithCoresInUseKeepsItsResultDuringAnElectionOfItsNeighbours) {
  Ring ring(7);
  ring.StartAll();
  ring.Run(seconds(10));
  const ElectionResult before = ring.result(2);
  ring.SetInUse(2, true);
  ring.Elect(0);
  ring.Run(seconds(5));
  ElectionResult now = ring.result(2);
  EXPECT_THAT(now.reason, HasSubstr("a new election waits"));
  now.reason.clear();
  EXPECT_EQ(now, before);
  EXPECT_EQ(ring.result(0).state, ElectionState::kInProgress);
  ring.SetInUse(2, false);
  ring.Run(seconds(5));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0));
}

TEST(ElectionTest, ANodeThatElectedAloneJoinsWhenTheFarEndsAreRepaired) {
  Ring ring(10);
  ring.StartAll();
  ring.Run(seconds(10));
  ring.SetCableEnd(0, CableSide::kLeft, false);
  ring.SetCableEnd(2, CableSide::kRight, false);
  for (int times = 0; times < 5; ++times) {
    ring.Run(seconds(5));
    ring.Elect(1);  // counts up its elections while nobody hears them
  }
  ring.Run(seconds(5));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0b0011));
  ring.SetCableEnd(0, CableSide::kLeft, true);
  ring.SetCableEnd(2, CableSide::kRight, true);
  ring.Run(seconds(10));
  EXPECT_EQ(GroupsOf(ring), ExpectedGroups(0));
}

TEST(ElectionTest, OfTwoNoticesTheNewerCountsAndANewerStartBeforeAll) {
  Election node({.serial = 7});
  node.Start({});
  const auto round_after = [&](std::uint64_t boot, std::uint64_t sequence, std::uint64_t round) {
    node.OnNotice({}, CableSide::kLeft,
                  {.boot = boot, .sequence = sequence, .round = round, .serial = 9});
    node.Repeat(CableSide::kLeft);
    return node.DrainNotices().front().notice.round;
  };
  EXPECT_EQ(round_after(5, 10, 1), 1U);
  EXPECT_EQ(round_after(5, 10, 4), 1U) << "told twice";
  EXPECT_EQ(round_after(5, 9, 4), 1U) << "overtaken";
  EXPECT_EQ(round_after(4, 99, 4), 1U) << "of a program that has ended";
  EXPECT_EQ(round_after(6, 1, 4), 4U) << "of the one that came after it";
  node.Forget(CableSide::kLeft);
  EXPECT_EQ(round_after(2, 1, 6), 6U) << "whoever it is now";
}

TEST(ElectionTest, ModesAreThoseOfTheResultAndStayWhileCoresAreInUse) {
  Ring ring(8);
  EXPECT_FALSE(ring.node(0).SetMode(UltraServerMode::kX1).ok()) << "not started";
  ring.StartAll();
  EXPECT_THAT(Message(ring.node(0).SetMode(UltraServerMode::kX1)),
              HasSubstr("the UltraServer election is not over: the left neighbour"));
  ring.Run(seconds(10));
  EXPECT_THAT(Message(ring.node(0).SetMode(UltraServerMode::kX2H)),
              HasSubstr("mode X2H is not possible here; ultraserver_mode is 1,3,4"));
  EXPECT_FALSE(ring.node(0).SetMode(UltraServerMode::kUnset).ok());
  ASSERT_TRUE(ring.node(0).SetMode(UltraServerMode::kX2V).ok());
  ring.SetInUse(0, true);
  EXPECT_TRUE(ring.node(0).SetMode(UltraServerMode::kX2V).ok()) << "it is that already";
  EXPECT_THAT(Message(ring.node(0).SetMode(UltraServerMode::kX4)),
              HasSubstr("cores of this node are in use; its UltraServer mode stays X2V until all"));
  EXPECT_THAT(Message(ring.node(0).Elect(ring.now())), HasSubstr("needs all of them idle"));
  EXPECT_EQ(ring.result(0).mode, UltraServerMode::kX2V);
  ring.SetInUse(0, false);
  EXPECT_EQ(ring.result(0).mode, UltraServerMode::kUnset) << "released";
  ASSERT_TRUE(ring.node(0).SetMode(UltraServerMode::kX1).ok());
  EXPECT_EQ(ring.result(0).state, ElectionState::kSingleNode);
}

// Passes notices at once until no node says anything new; `to` tells which cable a notice takes.
void ExchangeAll(
    std::vector<Election>& nodes,
    const std::function<std::pair<std::size_t, CableSide>(std::size_t, CableSide)>& to) {
  for (int round = 0; round < 40; ++round) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const Election::Outgoing& out : nodes[i].DrainNotices()) {
        const auto [other, side] = to(i, out.side);
        nodes[other].OnNotice({}, side, out.notice);
      }
    }
  }
}

std::vector<Election> StartedNodes(std::uint64_t count) {
  std::vector<Election> nodes;
  for (std::uint64_t serial = 1; serial <= count; ++serial) {
    nodes.emplace_back(Election::Options{.serial = serial});
  }
  for (Election& node : nodes) node.Start({});
  return nodes;
}

TEST(ElectionTest, TwoNodesWithBothCablesBetweenThemAreAPairWithBothModes) {
  std::vector<Election> nodes = StartedNodes(2);
  ExchangeAll(nodes, [](std::size_t i, CableSide side) { return std::pair(1 - i, side); });
  EXPECT_EQ(ClassFilesOf(nodes[0].result()),
            (ClassFiles{
                .ultraserver_mode = "2,3,4", .node_id_2 = "0", .server_id_2 = "0000000000000001"}));
  EXPECT_EQ(ClassFilesOf(nodes[1].result()).node_id_2, "1");
}

TEST(ElectionTest, CablesThatJoinLeftWithRightMakeNoServer) {
  std::vector<Election> nodes = StartedNodes(4);
  ExchangeAll(nodes, [](std::size_t i, CableSide side) {
    return std::pair((i + (side == CableSide::kLeft ? 1 : 3)) % 4, OppositeSide(side));
  });
  for (const Election& node : nodes) {
    EXPECT_EQ(node.result().state, ElectionState::kFailed);
    EXPECT_THAT(node.result().reason, HasSubstr("both cables: the "));
  }
  EXPECT_THAT(nodes[0].result().reason, HasSubstr("cable leads to the other side of node"));
}

TEST(ElectionTest, ARingOfSixIsNoServerButThreePairs) {
  std::vector<Election> nodes = StartedNodes(6);
  ExchangeAll(nodes, [](std::size_t i, CableSide side) {
    const bool up = (i % 2 == 0) == (side == CableSide::kLeft);
    return std::pair((i + (up ? 1 : 5)) % 6, side);
  });
  for (const Election& node : nodes) EXPECT_EQ(node.result().node_count, 2);
  EXPECT_THAT(nodes[0].result().reason + nodes[1].result().reason + nodes[2].result().reason,
              HasSubstr("both cables: the cables close no ring of four"));
}

TEST(ElectionTest, ANeighbourWithOurOwnSerialNumberIsNone) {
  std::vector<Election> nodes = StartedNodes(1);
  nodes.push_back(StartedNodes(1).front());
  ExchangeAll(nodes, [](std::size_t i, CableSide side) { return std::pair(1 - i, side); });
  EXPECT_EQ(nodes[0].result().state, ElectionState::kFailed);
  EXPECT_THAT(nodes[0].result().reason, HasSubstr("the left neighbour has our own serial number"));
}

TEST(ElectionTest, FinishedNodesAreQuiet) {
  Ring ring(9);
  ring.StartAll();
  ring.Run(seconds(10));
  const std::size_t before = ring.sent();
  ring.Run(seconds(600));
  EXPECT_LE(ring.sent() - before, 4U * 2U * 12U);
}

// Once a random story is over and all cores are idle, the nodes agree.
TEST(ElectionTest, AfterAnyStoryTheNodesAgree) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Ring ring(rng.Next(), ShuffledSerials(rng));
    ring.StartAll();
    for (std::uint64_t events = 3 + rng.Below(20); events > 0; --events) {
      ring.Run(rng.Chance(1, 8) ? VirtualDuration(seconds(rng.Below(700)))
                                : VirtualDuration(milliseconds(rng.Below(2500))));
      const int place = static_cast<int>(rng.Below(kNodes));
      switch (rng.Below(6)) {
        case 0:
          ring.SetCable(place, rng.Chance(1, 2));
          break;
        case 1:
          ring.SetCableEnd(place, kCableSides[rng.Below(2)], rng.Chance(1, 2));
          break;
        case 2:
          ring.Restart(place);
          break;
        case 3:
          ring.SetInUse(place, rng.Chance(1, 2));
          break;
        case 4:
          ring.SetLoss(rng.Below(3) * 50);
          break;
        default:
          (void)ring.node(place).Elect(ring.now());
      }
    }
    ring.SetLoss(0);
    for (int place = 0; place < kNodes; ++place) ring.SetInUse(place, false);
    ring.Run(kLongest + 3 * kFinishedNoticePeriod);
    GroupsOf(ring);
    ExpectThatClassFilesAgree(ring);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tahoma::sim
