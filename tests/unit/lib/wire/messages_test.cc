#include "lib/wire/messages.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

Inventory SampleInventory() {
  Inventory inventory = {.generation = 7,
                         .node_name = "node-a",
                         .instance_type = "trn2u.48xlarge",
                         .ultra_server = UltraServer{.id = "us-1", .node_id = 2, .mode = 4},
                         .network_layers = {"nn-1", "nn-2", "nn-3"},
                         .capacity_block_id = "cb-1",
                         .driver_version = "2.26.10.0",
                         .chips = {}};
  for (int i = 0; i < 16; ++i) {
    inventory.chips.push_back({.index = i,
                               .healthy = true,
                               .reason = "",
                               .links_down = {},
                               .lnc = 0,
                               .bdf = "0000:cc:00.0"});
  }
  inventory.chips[3].healthy = false;
  inventory.chips[3].reason = "hbm-uncorrectable";
  inventory.chips[4].links_down = {"x+", "z-"};
  inventory.workload_socket = "unix:/run/tahoma/pods/node.sock";
  return inventory;
}

ClaimGrant SampleGrant() {
  return {.claim_uid = "0f8fad5b-d9cb-469f-a165-70867728950e",
          .name_space = "default",
          .name = "claim",
          .lnc = 2,
          .chips = {0, 1, 5},
          .cores = {{.chip = 2, .cores = {0, 3}}, {.chip = 7, .cores = {1}}},
          .ultra_server_mode = 2};
}

std::string WhyNotGrant(std::string json) {
  return std::string(Message(DecodeClaimGrant(json).status()));
}

TEST(MessagesTest, InventoryComesBackAsItWas) {
  const Inventory inventory = SampleInventory();
  const auto back = DecodeInventory(EncodeInventory(inventory));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, inventory);
}

TEST(MessagesTest, AnElectionComesBackAsItWas) {
  using enum hw::UltraServerMode;
  for (const UltraServerElection& election :
       std::vector<UltraServerElection>{{.running = true},
                                        {.running = false, .modes = {kX1}},
                                        {.running = false,
                                        .modes = {kX4, kX2V, kX1},
                                        .mode = kX2V,
                                        .server_id_2 = "00000000000000af",
                                        .node_id_2 = 1,
                                        .server_id_4 = "00000000000000b0",
                                        .node_id_4 = 3}}) {
    Inventory inventory = SampleInventory();
    inventory.ultra_server->election = election;
    const auto back = DecodeInventory(EncodeInventory(inventory));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, inventory);
  }
}

TEST(MessagesTest, WrongElectionsAreNamed) {
  const auto why = [](const std::string& election) {
    return std::string(Message(
        DecodeInventory(R"({"generation":1,"nodeName":"n","instanceType":"t","ultraServer":)"
                        R"({"id":"us-1","nodeId":0,"election":)" +
                        election + "}}")
            .status()));
  };
  EXPECT_EQ(
      why(R"({"modes":["X3"]})"),
      "inventory.ultraServer.election.modes: UltraServer mode \"X3\" is unknown; expected X4, "
      "X2H, X2V or X1");
  EXPECT_EQ(why(R"({"mode":"unset"})"),
            "inventory.ultraServer.election.mode: UltraServer mode \"unset\" is unknown; expected "
            "X4, X2H, X2V or X1");
  EXPECT_EQ(why(R"({"nodeId4":4})"),
            "inventory.ultraServer.election.nodeId4 is 4; expected -1 to 3");
  EXPECT_EQ(why(R"({"modes":["X1","X1","X1","X1","X1"]})").substr(0, 36),
            "inventory.ultraServer.election.modes");
}

TEST(MessagesTest, InventoryWithoutUltraServerHasNone) {
  Inventory inventory = SampleInventory();
  inventory.ultra_server.reset();
  EXPECT_EQ(DecodeInventory(EncodeInventory(inventory))->ultra_server, std::nullopt);
}

TEST(MessagesTest, GrantsComeBackAsTheyWere) {
  const ClaimGrant grant = SampleGrant();
  const auto back = DecodeClaimGrant(EncodeClaimGrant(grant));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, grant);
  const auto list = DecodeClaimList(EncodeClaimList({grant, grant}));
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(*list, (std::vector<ClaimGrant>{grant, grant}));
}

TEST(MessagesTest, UnknownFieldsOfANewerPeerAreLetPass) {
  EXPECT_TRUE(
      DecodeInventory(R"({"generation":1,"nodeName":"n","instanceType":"t","new":{}})").ok());
}

TEST(MessagesTest, WrongFieldsAreNamed) {
  EXPECT_EQ(WhyNotGrant("[]"), "claim is of type array; expected an object");
  EXPECT_EQ(WhyNotGrant("{"), "claim is not valid JSON");
  EXPECT_EQ(WhyNotGrant("{}"), "claim.claimUid is missing");
  const std::string head = R"({"claimUid":"u","namespace":"n","name":"c","lnc":)";
  EXPECT_EQ(WhyNotGrant(head + "3}"), "claim.lnc is 3; expected 1 to 2");
  EXPECT_EQ(WhyNotGrant(head + "1.5}"), "claim.lnc is 1.5; expected a whole number from 1 to 2");
  EXPECT_EQ(WhyNotGrant(head + "18446744073709551615}"),
            "claim.lnc is 18446744073709551615; expected 1 to 2");
  EXPECT_EQ(WhyNotGrant(head + R"(1,"chips":[1,1]})"),
            "claim.chips must hold ascending whole numbers from 0 to 15");
  EXPECT_EQ(WhyNotGrant(head + R"(2,"cores":[{"chip":1,"cores":[4]}]})"),
            "claim.cores[0].cores must hold ascending whole numbers from 0 to 3");
  EXPECT_EQ(WhyNotGrant(head + R"(2,"chips":[1],"cores":[{"chip":1,"cores":[0]}]})"),
            "claim.cores must name chips in ascending order, none of \"chips\", each with a core");
  EXPECT_EQ(WhyNotGrant(R"({"claimUid":"../etc","namespace":"n","name":"c","lnc":1})"),
            "claim.claimUid is \"../etc\"; expected letters, digits and hyphens");
  EXPECT_EQ(Message(DecodeInventory(R"({"generation":1,"nodeName":"n","instanceType":"t",
                "chips":[{"index":0,"linksDown":["w+"]}]})")
                        .status()),
            "inventory.chips[0].linksDown holds \"w+\"; expected x+, x-, y+, y-, z+ or z-");
}

TEST(MessagesTest, DeepNestingIsRefused) {
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  EXPECT_EQ(WhyNotGrant(deep), "claim is nested deeper than 32 levels");
}

TEST(MessagesTest, TokensAreThirtyTwoHexDigits) {
  const std::string token = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(*DecodeToken(EncodeToken(token)), token);
  EXPECT_FALSE(DecodeToken(EncodeToken("0123")).ok());
  EXPECT_FALSE(DecodeToken(EncodeToken("0123456789ABCDEF0123456789ABCDEF")).ok());
}

TEST(MessagesTest, AClaimMayBeAppliedWithTheTokenItHad) {
  const ApplyParams params = {.grant = SampleGrant(), .token = "0123456789abcdef0123456789abcdef"};
  EXPECT_EQ(*DecodeApplyParams(EncodeApplyParams(params)), params);
  const ApplyParams fresh = {.grant = SampleGrant()};
  EXPECT_EQ(*DecodeApplyParams(EncodeApplyParams(fresh)), fresh);
  EXPECT_EQ(
      Message(
          DecodeApplyParams(EncodeApplyParams({.grant = SampleGrant(), .token = "x"})).status()),
      "claim.token has 1 bytes; expected 32 to 32");
}

TEST(MessagesTest, WatchWaitsAtMostAMinute) {
  const auto params = DecodeWatchParams(
      EncodeWatchParams({.generation = 9, .timeout = std::chrono::milliseconds(60'000)}));
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->generation, 9u);
  EXPECT_EQ(params->timeout, std::chrono::minutes(1));
  EXPECT_FALSE(DecodeWatchParams(R"({"timeoutMs":60001})").ok());
}

TEST(HeldCoresTest, LogicalCoresOfLnc2ArePairs) {
  const CoreMasks masks = HeldCores(SampleGrant());
  EXPECT_EQ(masks[0], 0xff);
  EXPECT_EQ(masks[2], 0b11000011);
  EXPECT_EQ(masks[7], 0b00001100);
  EXPECT_EQ(masks[15], 0);
}

// The naive oracle: sets of (chip, physical core) and a map of chip to LNC.
bool NaivelyDisjoint(const ClaimGrant& a, const ClaimGrant& b) {
  const auto cores = [](const ClaimGrant& grant) {
    std::set<std::pair<int, int>> out;
    for (const int chip : grant.chips) {
      for (int core = 0; core < 8; ++core) out.emplace(chip, core);
    }
    for (const ChipCores& part : grant.cores) {
      for (const int core : part.cores) {
        for (int i = 0; i < grant.lnc; ++i) out.emplace(part.chip, core * grant.lnc + i);
      }
    }
    return out;
  };
  for (const auto& [chip, core] : cores(a)) {
    for (const auto& [other_chip, other_core] : cores(b)) {
      if (chip == other_chip && (core == other_core || a.lnc != b.lnc)) return false;
    }
  }
  return true;
}

ClaimGrant RandomGrant(Rng& rng) {
  ClaimGrant grant = {.claim_uid = "u",
                      .name_space = "n",
                      .name = "c",
                      .lnc = static_cast<int>(1 + rng.Below(2)),
                      .chips = {},
                      .cores = {}};
  for (int chip = 0; chip < 4; ++chip) {
    const std::uint64_t kind = rng.Below(5);
    if (kind == 0) grant.chips.push_back(chip);
    if (kind != 1) continue;
    ChipCores part = {.chip = chip, .cores = {}};
    for (int core = 0; core < 8 / grant.lnc; ++core) {
      if (rng.Chance(1, 3)) part.cores.push_back(core);
    }
    if (!part.cores.empty()) grant.cores.push_back(part);
  }
  return grant;
}

TEST(CheckDisjointTest, AgreesWithTheNaiveOracle) {
  Rng rng(4711);
  int disjoint = 0;
  for (int round = 0; round < 20'000; ++round) {
    const ClaimGrant a = RandomGrant(rng);
    const ClaimGrant b = RandomGrant(rng);
    const bool expected = NaivelyDisjoint(a, b);
    disjoint += expected ? 1 : 0;
    ASSERT_EQ(CheckDisjoint(a, b).ok(), expected) << EncodeClaimGrant(a) << EncodeClaimGrant(b);
    ASSERT_EQ(*DecodeClaimGrant(EncodeClaimGrant(a)), a);
  }
  EXPECT_GT(disjoint, 1000);
  EXPECT_LT(disjoint, 19'000);
}

TEST(MessagesTest, RandomlyDamagedTextNeverCrashes) {
  Rng rng(99);
  const std::string inventory = EncodeInventory(SampleInventory());
  const std::string grant = EncodeClaimGrant(SampleGrant());
  constexpr std::string_view kBytes = "{}[]\",:0123456789-.eE\\ntrufals\xff";
  for (int round = 0; round < 5'000; ++round) {
    std::string text = rng.Chance(1, 2) ? inventory : grant;
    const std::uint64_t changes = 1 + rng.Below(5);
    for (std::uint64_t i = 0; i < changes; ++i) {
      text[rng.Below(text.size())] = kBytes[rng.Below(kBytes.size())];
    }
    if (const auto decoded = DecodeInventory(text); decoded.ok()) EncodeInventory(*decoded);
    if (const auto decoded = DecodeClaimGrant(text); decoded.ok()) HeldCores(*decoded);
    (void)DecodeClaimList(text).status();
    (void)DecodeToken(text).status();
  }
}

}  // namespace
}  // namespace tahoma::wire
