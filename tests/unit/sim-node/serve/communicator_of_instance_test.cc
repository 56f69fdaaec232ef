#include "sim-node/serve/communicator_of_instance.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"

namespace tahoma::sim {
namespace {

Instance MakeInstance(std::string_view type, std::optional<UltraServerPlace> place) {
  auto instance = Instance::Create({.type = hw::FindInstanceType(type),
                                    .name = "node",
                                    .ultra_server = std::move(place),
                                    .network_layers = {},
                                    .capacity_block_id = ""},
                                   [n = std::uint64_t{0}]() mutable {
                                     return std::array<std::uint64_t, 2>{++n, 7};
                                   });
  EXPECT_TRUE(instance.ok()) << instance.status();
  return *std::move(instance);
}

TEST(CommunicatorOfInstanceTest, ChipsOfTheThirdNodeBeginAt32InItsUltraServer) {
  const Instance node = MakeInstance("trn2u.48xlarge", UltraServerPlace{.id = "us", .node_id = 2});
  EXPECT_EQ(NodeIdOf(node), 2);
  EXPECT_EQ(LinksAround(node).torus(), torus::kUltraServerShape);
  HeldClaim claim;
  claim.chips = {3};
  claim.cores = {{.chip = 1, .cores = {0, 2}}};
  const std::vector<Member> expected = {{.chip = torus::ChipIndex(33), .ranks = 2, .banks = 2},
                                        {.chip = torus::ChipIndex(35), .ranks = 4}};
  EXPECT_EQ(CoresOfClaim(node, claim), expected);
  claim.lnc = 1;
  EXPECT_EQ(CoresOfClaim(node, claim)[1].ranks, 8);
}

TEST(CommunicatorOfInstanceTest, TwoPhysicalCoresShareABank) {
  const Instance node = MakeInstance("trn2.48xlarge", {});
  const auto banks = [&](int lnc, const std::vector<int>& cores) {
    HeldClaim claim;
    claim.lnc = lnc;
    claim.cores = {{.chip = 0, .cores = cores}};
    return CoresOfClaim(node, claim)[0].banks;
  };
  EXPECT_EQ(banks(2, {3}), 1);
  EXPECT_EQ(banks(2, {0, 1, 2}), 3);
  EXPECT_EQ(banks(1, {2, 3}), 1);
  EXPECT_EQ(banks(1, {1, 2}), 2);
  EXPECT_EQ(banks(1, {0, 2, 4, 6}), 4);
}

TEST(CommunicatorOfInstanceTest, AnInstanceAloneHasItsOwnTorus) {
  EXPECT_EQ(LinksAround(MakeInstance("trn2.48xlarge", {})).torus(), torus::kInstanceShape);
  EXPECT_EQ(LinksAround(MakeInstance("trn2.3xlarge", {})).torus().chip_count(), 1);
}

TEST(CommunicatorOfInstanceTest, OtherGenerationsHaveTheirOwnLinks) {
  const TorusLinks ring = LinksAround(MakeInstance("inf2.48xlarge", {}));
  EXPECT_EQ(ring.torus(), (torus::Shape::Of<12, 1, 1>()));
  EXPECT_EQ(ring.capacity(0), 48'000'000'000U);
  EXPECT_EQ(LinksAround(MakeInstance("trn1n.32xlarge", {})).capacity(0), 96'000'000'000U);
  HeldClaim claim;
  claim.lnc = 1;
  claim.chips = {11};
  const std::vector<Member> expected = {{.chip = torus::ChipIndex(11), .ranks = 2, .banks = 2}};
  EXPECT_EQ(CoresOfClaim(MakeInstance("inf2.48xlarge", {}), claim), expected);
}

TEST(CommunicatorOfInstanceTest, ABrokenCableIsTwoDirectedLinksOfThisNode) {
  Instance node = MakeInstance("trn2u.48xlarge", UltraServerPlace{.id = "us", .node_id = 1});
  EXPECT_TRUE(UnhealthyLinks(node).empty());
  ASSERT_TRUE(node.SetLink(0, {torus::Axis::kX, torus::Direction::kPlus}, 0).ok());
  const std::vector<LinkState> expected = {
      {TorusLinks::IdOf(torus::ChipIndex(16), torus::Axis::kX, torus::Direction::kPlus), 0},
      {TorusLinks::IdOf(torus::ChipIndex(17), torus::Axis::kX, torus::Direction::kMinus), 0}};
  EXPECT_EQ(UnhealthyLinks(node), expected);
  ASSERT_TRUE(node.SetLink(0, {torus::Axis::kX, torus::Direction::kPlus}, 1000).ok());
  EXPECT_TRUE(UnhealthyLinks(node).empty());
}

TEST(CommunicatorOfInstanceTest, LossyAndFlappingLinksAndDeadChipsAreToldToo) {
  Instance node = MakeInstance("trn2u.48xlarge", UltraServerPlace{.id = "us", .node_id = 1});
  const Port z_plus{torus::Axis::kZ, torus::Direction::kPlus};
  const Flapping flapping{.period = Microseconds(100), .down = Microseconds(10)};
  ASSERT_TRUE(node.SetLinkLoss(2, z_plus, 7).ok());
  ASSERT_TRUE(node.SetLinkFlapping(3, z_plus, flapping).ok());
  const auto link = [&](int chip) {
    return TorusLinks::IdOf(torus::ChipIndex(chip), z_plus.axis, z_plus.direction);
  };
  EXPECT_EQ(UnhealthyLinks(node),
            (std::vector<LinkState>{{link(18), 1000, 7}, {link(19), 1000, 0, flapping}}));
  EXPECT_TRUE(DeadChips(node).empty());
  EXPECT_TRUE(ChipsWithoutEfa(node).empty());
  ASSERT_TRUE(node.BreakChip(9, ChipFault::kDead).ok());
  EXPECT_EQ(DeadChips(node), (std::vector{torus::ChipIndex(25)}));
  ASSERT_TRUE(node.SetEfa(2, false).ok());
  EXPECT_EQ(ChipsWithoutEfa(node), (std::vector{torus::ChipIndex(18)}));
  EXPECT_EQ(UnhealthyLinks(node).size(), 2U + 6U + 4U) << "its own and its neighbours' here";
}

TEST(CommunicatorOfInstanceTest, TheBearerOfATokenRunsACollectiveOnItsCores) {
  LiveInstance live(MakeInstance("trn2.48xlarge", {}));
  const auto token = live.Change([](Instance& instance) {
    HeldClaim claim;
    claim.claim_uid = "uid";
    claim.chips = {0, 1, 2, 3};
    return instance.ApplyClaim(claim);
  });
  ASSERT_TRUE(token.ok()) << token.status();
  Communicators communicators({.node_id = 0, .links = live.Read(LinksAround)});
  CommunicatorCalls calls(communicators);
  NodeServer server(live, {});
  std::vector<std::string> called;
  AddCommunicatorCalls(server, live, calls,
                       [&](const std::string& bearer) { called.push_back(bearer); });
  const auto call = [&](std::string method, Json params) {
    return server.ServeWorkload({.method = std::move(method), .params = params.dump()});
  };
  Json params = {{"token", *token}, {"commId", "c"}, {"rank", 0}, {"worldSize", 1}};
  const auto joined = call("commJoin", params);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(ParseJson(joined->result)["ranks"], 16);
  params.update({{"op", "allr"}, {"dtype", "bf16"}, {"bytes", 2048}, {"check", true}});
  const auto run = call("commRun", params);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(ParseJson(run->result)["wrongElements"], 0);
  EXPECT_EQ(called, (std::vector<std::string>{*token, *token}));
  params["token"] = std::string(32, '0');
  EXPECT_EQ(call("commRun", params).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(called.size(), 2U) << "no claim's token";
}

// The defect: a tenant that knew the name of another tenant's communicator could join as the
// missing rank, and read its memory.
TEST(CommunicatorOfInstanceTest, WorkloadsMeetInTheirOwnNamespaceOnly) {
  const wire::Request join{.method = "commJoin", .params = R"({"commId":"job","rank":1})"};
  const auto here = InNamespace(join, "here");
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(ParseJson(here->params), ParseJson(R"({"commId":"here/job","rank":1})"));
  EXPECT_NE(ParseJson(InNamespace(join, "there")->params), ParseJson(here->params));
  // No id of another namespace can be made by hand: a namespace has no slash.
  const wire::Request forged{.method = "commJoin", .params = R"({"commId":"here/job"})"};
  EXPECT_EQ(ParseJson(InNamespace(forged, "there")->params)["commId"], "there/here/job");
  for (const std::string& params : {std::string("{}"), std::string(R"({"commId":1})"),
                                    R"({"commId":")" + std::string(257, 'x') + R"("})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        InNamespace({.method = "commJoin", .params = params}, "here").status()))
        << params;
  }
}

}  // namespace
}  // namespace tahoma::sim
