// The rules of an instance, in tables and against a slow model with an owner for each physical
// core.

#include "sim-node/node/instance.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

TokenSource Tokens(std::uint64_t seed = 1) {
  return [rng = Rng(seed)]() mutable -> std::array<std::uint64_t, 2> {
    return {rng.Next(), rng.Next()};
  };
}

Instance Make(std::string_view type = "trn2.48xlarge") {
  return *Instance::Create({.type = hw::FindInstanceType(type), .name = "node-0"}, Tokens());
}

Instance MakeMember(int node_id = 1) {
  return *Instance::Create({.type = hw::FindInstanceType("trn2u.48xlarge"),
                            .name = "node-0",
                            .ultra_server = UltraServerPlace{.id = "us-1", .node_id = node_id}},
                           Tokens());
}

HeldClaim Chips(std::string uid, std::vector<int> chips, int lnc = 2) {
  return {.claim_uid = std::move(uid), .name = "c", .lnc = lnc, .chips = std::move(chips)};
}

HeldClaim Cores(std::string uid, int chip, std::vector<int> cores, int lnc) {
  return {.claim_uid = std::move(uid),
          .name = "c",
          .lnc = lnc,
          .cores = {{.chip = chip, .cores = std::move(cores)}}};
}

HeldClaim ForNodes(std::string uid, std::vector<int> chips, int nodes) {
  HeldClaim claim = Chips(std::move(uid), std::move(chips));
  claim.name_space = "default";
  claim.ultra_server_mode = nodes;
  return claim;
}

ElectionResult Elected(std::vector<UltraServerMode> modes,
                       UltraServerMode mode = UltraServerMode::kUnset) {
  return {.state = ElectionState::kUltraServer, .modes = std::move(modes), .mode = mode};
}

TEST(InstanceTest, AClaimMayAskForWhatWasElectedOnly) {
  using enum UltraServerMode;
  Instance node = MakeMember();
  EXPECT_TRUE(node.ApplyClaim(ForNodes("free", {15}, 4)).ok()) << "nobody runs an election";
  node.ReleaseClaim("free");
  node.SetElection({.state = ElectionState::kInProgress, .reason = "the left neighbour is late"});
  EXPECT_EQ(Message(node.ApplyClaim(ForNodes("a", {0}, 2)).status()),
            "claim default/c asks for an UltraServer of 2, but the election runs: the left "
            "neighbour is late");
  EXPECT_TRUE(node.ApplyClaim(Chips("plain", {1})).ok()) << "it asks for nothing";
  node.ReleaseClaim("plain");
  node.SetElection(Elected({kX2H, kX1}));
  EXPECT_EQ(Message(node.ApplyClaim(ForNodes("a", {0}, 4)).status()),
            "claim default/c asks for an UltraServer of 4; elected are 1_2");
  EXPECT_TRUE(node.ApplyClaim(ForNodes("a", {0}, 2)).ok());
  EXPECT_EQ(node.claims().size(), 1U) << "what was refused holds nothing";
}

TEST(InstanceTest, TheModeStaysWhileCoresAreInUse) {
  using enum UltraServerMode;
  Instance node = MakeMember();
  node.SetElection(Elected({kX4, kX2V, kX1}));
  ASSERT_TRUE(node.ApplyClaim(Chips("plain", {1})).ok());
  EXPECT_EQ(Message(node.ApplyClaim(ForNodes("a", {0}, 4)).status()),
            "claim default/c asks for an UltraServer of 4, but cores are in use; the mode stays "
            "unset until all are released");
  node.SetElection(Elected({kX4, kX2V, kX1}, kX2V));
  EXPECT_FALSE(node.ApplyClaim(ForNodes("a", {0}, 4)).ok());
  EXPECT_TRUE(node.ApplyClaim(ForNodes("b", {0}, 2)).ok()) << "it is that already";
  node.ReleaseClaim("plain");
  node.ReleaseClaim("b");
  EXPECT_TRUE(node.ApplyClaim(ForNodes("a", {0}, 4)).ok()) << "idle: it can be changed";
}

TEST(InstanceTest, AClaimAppliedAgainKeepsItsModeDuringAnElection) {
  Instance node = MakeMember();
  node.SetElection({.state = ElectionState::kInProgress});
  EXPECT_TRUE(node.ApplyClaim(ForNodes("a", {0}, 4), std::string(32, 'a')).ok());
}

TEST(InstanceTest, APluginHearsOfElectionsButNotOfTheirReasons) {
  Instance node = MakeMember();
  const std::uint64_t before = node.generation();
  node.SetElection({.state = ElectionState::kInProgress, .reason = "one"});
  EXPECT_EQ(node.generation(), before + 1);
  node.SetElection({.state = ElectionState::kInProgress, .reason = "two"});
  EXPECT_EQ(node.generation(), before + 1);
  EXPECT_EQ(node.election()->reason, "two");
  node.SetElection(Elected({UltraServerMode::kX1}));
  EXPECT_EQ(node.generation(), before + 2);
  node.SetElection(Elected({UltraServerMode::kX1}, UltraServerMode::kX1));
  EXPECT_EQ(node.generation(), before + 3);
}

TEST(InstanceTest, ARingOfTwelveHasLinksAlongItself) {
  Instance node = Make("inf2.48xlarge");
  const Port plus{torus::Axis::kX, torus::Direction::kPlus};
  const Port minus{torus::Axis::kX, torus::Direction::kMinus};
  ASSERT_TRUE(node.SetLink(11, plus, 0).ok());
  EXPECT_EQ(node.chip(0).link_permille[PortIndex(minus)], 0) << "the other end";
  EXPECT_EQ(node.chip(1).link_permille[PortIndex(minus)], 1000);
  EXPECT_EQ(Message(node.SetLink(3, {torus::Axis::kY, torus::Direction::kPlus}, 0)),
            "chip 3 has no link y+: the fabric of inf2.48xlarge is ring of 12x1x1");
  EXPECT_FALSE(node.ApplyClaim(Chips("a", {0}, 2)).ok()) << "no LNC 2";
  EXPECT_TRUE(node.ApplyClaim(Chips("a", {0}, 1)).ok());
  EXPECT_TRUE(node.ApplyClaim(Cores("b", 1, {1}, 1)).ok());
  EXPECT_FALSE(node.ApplyClaim(Cores("c", 1, {2}, 1)).ok()) << "it has two cores";
}

TEST(InstanceTest, ChipsBehindASwitchHaveNoLinksToEachOther) {
  Instance node = Make("trn3-gen1");
  EXPECT_EQ(Message(node.SetLink(0, {torus::Axis::kX, torus::Direction::kPlus}, 0)),
            "chip 0 has no link x+: the fabric of trn3-gen1 is switch of 16x1x1");
}

TEST(InstanceTest, ATokenHas32HexDigitsAndOpensItsClaimOnly) {
  Instance node = Make();
  const std::string a = *node.ApplyClaim(Chips("a", {0, 1}));
  const std::string b = *node.ApplyClaim(Chips("b", {2}));
  EXPECT_EQ(a.size(), 32U);
  EXPECT_EQ(a.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(a, b);
  EXPECT_EQ((*node.FindClaim(a))->TouchedChips(), (std::vector<int>{0, 1}));
  EXPECT_EQ((*node.FindClaim(b))->TouchedChips(), (std::vector<int>{2}));
}

TEST(InstanceTest, AWrongOrReleasedTokenOpensNothing) {
  Instance node = Make();
  const std::string token = *node.ApplyClaim(Chips("a", {0}));
  EXPECT_EQ(node.FindClaim("").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(node.FindClaim(std::string(32, '0')).status().code(),
            absl::StatusCode::kPermissionDenied);
  node.ReleaseClaim("a");
  EXPECT_EQ(node.FindClaim(token).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(InstanceTest, ApplyingTheSameClaimAgainGivesTheSameToken) {
  Instance node = Make();
  const std::string token = *node.ApplyClaim(Chips("a", {0, 1}));
  const std::uint64_t generation = node.generation();
  EXPECT_EQ(*node.ApplyClaim(Chips("a", {0, 1})), token);
  EXPECT_EQ(node.generation(), generation);
  EXPECT_EQ(node.ApplyClaim(Chips("a", {0, 2})).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(InstanceTest, OverlapIsRefusedAndChangesNothing) {
  Instance node = Make();
  ASSERT_TRUE(node.ApplyClaim(Chips("a", {0, 1})).ok());
  const std::uint64_t generation = node.generation();
  const absl::Status refused = node.ApplyClaim(Chips("b", {1, 2})).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(Message(refused).find("chip 1"), std::string_view::npos) << refused;
  EXPECT_EQ(node.generation(), generation);
  EXPECT_EQ(node.claims().size(), 1U);
  EXPECT_TRUE(node.ApplyClaim(Chips("b", {2})).ok());
}

TEST(InstanceTest, ClaimsShareAChipOnlyUnderTheSameLnc) {
  Instance node = Make();
  ASSERT_TRUE(node.ApplyClaim(Cores("a", 3, {0, 1}, 2)).ok());
  EXPECT_TRUE(node.ApplyClaim(Cores("b", 3, {2}, 2)).ok());
  EXPECT_EQ(node.ApplyClaim(Cores("c", 3, {7}, 1)).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(node.lnc(3), 2);
  node.ReleaseClaim("a");
  node.ReleaseClaim("b");
  EXPECT_EQ(node.lnc(3), 0);
  EXPECT_TRUE(node.ApplyClaim(Cores("c", 3, {7}, 1)).ok());
  EXPECT_EQ(node.lnc(3), 1);
}

TEST(InstanceTest, LogicalCoreKOfLnc2IsPhysicalCores2kAnd2kPlus1) {
  Instance node = Make();
  ASSERT_TRUE(node.ApplyClaim(Cores("a", 0, {0, 1, 2, 3, 4, 5}, 1)).ok());
  EXPECT_TRUE(node.ApplyClaim(Cores("b", 0, {6, 7}, 1)).ok());
  EXPECT_FALSE(node.ApplyClaim(Cores("c", 0, {5}, 1)).ok());
}

TEST(InstanceTest, BadClaimsAreRefusedByName) {
  Instance node = Make();
  const std::vector<std::pair<HeldClaim, std::string>> bad = {
      {Chips("", {0}), "claimUid"},
      {Chips("a", {}), "neither"},
      {Chips("a", {16}), "chip 16"},
      {Chips("a", {-1}), "chip -1"},
      {Chips("a", {0}, 3), "lnc is 3"},
      {Cores("a", 0, {4}, 2), "core 4"},
      {Cores("a", 0, {8}, 1), "core 8"},
      {Cores("a", 17, {0}, 1), "chip 17"},
      {{.claim_uid = "a", .chips = {0}, .cores = {{.chip = 0, .cores = {1}}}}, "whole and in part"},
  };
  for (const auto& [claim, expected] : bad) {
    const absl::Status refused = node.ApplyClaim(claim).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_NE(Message(refused).find(expected), std::string_view::npos) << refused;
  }
  EXPECT_EQ(node.generation(), 1U);
}

TEST(InstanceTest, ABrokenChipTakesNoClaimButKeepsTheOneItHas) {
  Instance node = Make();
  const std::string token = *node.ApplyClaim(Chips("a", {5}));
  ASSERT_TRUE(node.BreakChip(5, ChipFault::kHbmUncorrectable).ok());
  EXPECT_EQ(*node.ApplyClaim(Chips("a", {5})), token);
  node.ReleaseClaim("a");
  EXPECT_EQ(node.ApplyClaim(Chips("b", {5})).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(node.RepairChip(5).ok());
  EXPECT_TRUE(node.ApplyClaim(Chips("b", {5})).ok());
}

TEST(InstanceTest, OnlyChangesRaiseTheGeneration) {
  Instance node = Make();
  ASSERT_TRUE(node.BreakChip(5, ChipFault::kDma).ok());
  const std::uint64_t broken = node.generation();
  EXPECT_GT(broken, 1U);
  ASSERT_TRUE(node.BreakChip(5, ChipFault::kDma).ok());
  EXPECT_EQ(node.generation(), broken);
  ASSERT_TRUE(node.BreakChip(5, ChipFault::kNcUncorrectable).ok());
  EXPECT_GT(node.generation(), broken);
  ASSERT_TRUE(node.RepairChip(4).ok());
  EXPECT_EQ(node.generation(), broken + 1);
  node.ReleaseClaim("unknown");
  EXPECT_EQ(node.generation(), broken + 1);
}

TEST(InstanceTest, ALinkBreaksAtBothEnds) {
  Instance node = Make();
  ASSERT_TRUE(node.SetLink(3, *ParsePort("x+"), 0).ok());
  EXPECT_EQ(node.chip(3).link_permille[PortIndex(*ParsePort("x+"))], 0);
  EXPECT_EQ(node.chip(0).link_permille[PortIndex(*ParsePort("x-"))], 0);  // the link wraps around
  ASSERT_TRUE(node.SetLink(0, *ParsePort("x-"), 1000).ok());
  EXPECT_EQ(node.chip(3).link_permille[PortIndex(*ParsePort("x+"))], 1000);
}

TEST(InstanceTest, LossAndFlappingBelongToBothEndsAndEndWithTheRepair) {
  Instance node = Make();
  const Port x_plus = *ParsePort("x+");
  const Flapping flapping{.period = Microseconds(100), .down = Microseconds(10)};
  ASSERT_TRUE(node.SetLinkLoss(3, x_plus, 5000).ok());
  ASSERT_TRUE(node.SetLinkFlapping(3, x_plus, flapping).ok());
  const std::size_t other = PortIndex(*ParsePort("x-"));
  EXPECT_EQ(node.chip(0).link_loss_ppm[other], 5000U);
  EXPECT_EQ(node.chip(0).link_flapping[other], flapping);
  EXPECT_FALSE(node.IsLinkDependable(0, *ParsePort("x-")));
  const std::uint64_t before = node.generation();
  ASSERT_TRUE(node.SetLinkLoss(3, x_plus, 5000).ok());
  EXPECT_EQ(node.generation(), before) << "nothing changed";
  EXPECT_FALSE(node.SetLinkLoss(3, x_plus, kMaxLossPpm + 1).ok());
  EXPECT_FALSE(node.SetLinkFlapping(3, x_plus, {.period = Microseconds(1)}).ok());
  EXPECT_EQ(node.generation(), before);
  ASSERT_TRUE(node.RepairLink(0, *ParsePort("x-")).ok());
  EXPECT_EQ(node.chip(3), Make().chip(3));
  EXPECT_EQ(node.chip(0), Make().chip(0));
}

TEST(InstanceTest, ADeadChipsLinksAreDownAtBothEndsAndComeBackAsTheyWere) {
  Instance node = MakeMember();
  ASSERT_TRUE(node.SetLink(5, *ParsePort("x+"), 300).ok());
  ASSERT_TRUE(node.BreakChip(5, ChipFault::kDead).ok());
  for (const Port port : kAllPorts) EXPECT_EQ(node.LinkPermille(5, port), 0) << PortName(port);
  EXPECT_EQ(node.LinkPermille(6, *ParsePort("x-")), 0);
  EXPECT_EQ(node.LinkPermille(6, *ParsePort("x+")), 1000);
  ASSERT_TRUE(node.RepairChip(5).ok());
  EXPECT_EQ(node.LinkPermille(6, *ParsePort("x-")), 300);
  EXPECT_EQ(node.LinkPermille(5, *ParsePort("z+")), 1000);
  // Other faults leave the links alone.
  ASSERT_TRUE(node.BreakChip(5, ChipFault::kHbmUncorrectable).ok());
  EXPECT_EQ(node.LinkPermille(5, *ParsePort("z+")), 1000);
}

TEST(InstanceTest, ANetworkCardGoesDownOnce) {
  Instance node = Make();
  const std::uint64_t before = node.generation();
  ASSERT_TRUE(node.SetEfa(3, false).ok());
  ASSERT_TRUE(node.SetEfa(3, false).ok());
  EXPECT_EQ(node.generation(), before + 1);
  EXPECT_FALSE(node.chip(3).efa_up);
  EXPECT_FALSE(node.SetEfa(16, false).ok());
}

TEST(InstanceTest, LinksThatAreNotThereCannotBreak) {
  Instance alone = Make("trn2.3xlarge");
  EXPECT_EQ(alone.SetLink(0, *ParsePort("x+"), 0).code(), absl::StatusCode::kInvalidArgument);
  Instance server = Make();
  EXPECT_EQ(server.SetLink(0, *ParsePort("z+"), 0).code(), absl::StatusCode::kInvalidArgument);
  Instance member = MakeMember();
  EXPECT_TRUE(member.SetLink(0, *ParsePort("z+"), 0).ok());
  EXPECT_EQ(member.SetLink(0, *ParsePort("z+"), 1001).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(member.SetLink(16, *ParsePort("z+"), 0).code(), absl::StatusCode::kInvalidArgument);
}

TEST(InstanceTest, NamesReadBack) {
  for (const char* port : {"x+", "x-", "y+", "y-", "z+", "z-"}) {
    EXPECT_EQ(PortName(*ParsePort(port)), port);
  }
  for (const char* bad : {"", "x", "w+", "x+ ", "X+"}) EXPECT_FALSE(ParsePort(bad).ok()) << bad;
  for (const char* fault : {"sram-uncorrectable", "nc-uncorrectable", "hbm-uncorrectable", "dma"}) {
    EXPECT_EQ(FaultName(*ParseFault(fault)), fault);
    EXPECT_EQ(*ParseFault(FaultClass(*ParseFault(fault))), *ParseFault(fault));
    EXPECT_TRUE(FaultStatus(*ParseFault(fault)).starts_with("NRT_EXEC_HW_ERR_")) << fault;
  }
  EXPECT_EQ(FaultStatus(ChipFault::kDead), "NRT_TIMEOUT (5)");
  EXPECT_EQ(*ParseFault("dead"), ChipFault::kDead);
  EXPECT_FALSE(ParseFault("meteor").ok());
  EXPECT_FALSE(ParseFault("").ok());
}

TEST(InstanceTest, OptionsAreChecked) {
  EXPECT_FALSE(Instance::Create({}, Tokens()).ok());
  const auto* server = hw::FindInstanceType("trn2.48xlarge");
  const auto* member = hw::FindInstanceType("trn2u.48xlarge");
  EXPECT_FALSE(
      Instance::Create({.type = server, .ultra_server = UltraServerPlace{"us-1", 0}}, Tokens())
          .ok());
  EXPECT_FALSE(
      Instance::Create({.type = member, .ultra_server = UltraServerPlace{"us-1", 4}}, Tokens())
          .ok());
  EXPECT_FALSE(Instance::Create({.type = member, .network_layers = {"nn-1"}}, Tokens()).ok());
}

// The slow model: an owner for each physical core, and an LNC for each chip.
RC_GTEST_PROP(InstanceProperty, AgreesWithAnOwnerPerCore, ()) {
  Instance node = Make();
  std::map<std::pair<int, int>, std::string> owner;
  std::map<std::string, int> lncs;
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const std::string uid = fmt::format("claim-{}", *rc::gen::inRange(0, 12));
    if (*rc::gen::inRange(0, 3) == 0) {
      node.ReleaseClaim(uid);
      std::erase_if(owner, [&](const auto& entry) { return entry.second == uid; });
      lncs.erase(uid);
      continue;
    }
    if (lncs.contains(uid)) continue;
    const int lnc = *rc::gen::inRange(1, 3);
    const int chip = *rc::gen::inRange(0, 4);
    const int core = *rc::gen::inRange(0, 8 / lnc);
    bool free = true;
    std::set<std::pair<int, int>> wanted;
    for (int i = 0; i < lnc; ++i) wanted.insert({chip, core * lnc + i});
    for (const auto& [place, holder] : owner) {
      if (wanted.contains(place)) free = false;
      if (place.first == chip && lncs[holder] != lnc) free = false;
    }
    RC_ASSERT(node.ApplyClaim(Cores(uid, chip, {core}, lnc)).ok() == free);
    if (!free) continue;
    for (const auto& place : wanted) owner[place] = uid;
    lncs[uid] = lnc;
  }
  RC_ASSERT(node.claims().size() == lncs.size());
}

}  // namespace
}  // namespace tahoma::sim
