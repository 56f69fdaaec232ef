// The levels against each other where they must agree, and against ASTRA-sim's numbers.

#include "sim-node/fidelity/fidelity.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "lib/torus/path.h"
#include "sim-node/emulator/flit/flit_config.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr Operation kAllOperations[] = {
    Operation::kAllReduce,   Operation::kAllGather, Operation::kReduceScatter, Operation::kAllToAll,
    Operation::kSendReceive, Operation::kPermute,   Operation::kBroadcast};

TorusLinks UltraServer() { return {torus::kUltraServerShape, hw::kTrainium2.links}; }
TorusLinks Instance() { return {torus::kInstanceShape, hw::kTrainium2.links}; }

VirtualDuration Time(Fidelity level, Operation operation, torus::ChipMask chips,
                     std::uint64_t bytes, const TorusLinks& links) {
  const auto time =
      TimeAt(level, {.operation = operation, .bytes = bytes}, MembersOf(chips), links);
  EXPECT_TRUE(time.ok()) << time.status();
  return time.value_or(VirtualDuration(0));
}

TEST(FidelityTest, TheDefaultIsThePlansOwnTime) {
  const TorusLinks links = Instance();
  const auto plan = PlanCollective({.bytes = kMiB}, MembersOf(0xffff), links);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Time(Fidelity::kFlows, Operation::kAllReduce, 0xffff, kMiB, links),
            plan->times.end - plan->times.start);
}

TEST(FidelityTest, AMessageAloneTakesExactlyAsLongByTheFormulaAsInTheFlows) {
  const TorusLinks links = UltraServer();
  for (const int to : {1, 2, 5, 10, 16, 32, 21, 42, 63}) {
    const torus::ChipMask pair = torus::MaskOf(ChipIndex(0)) | torus::MaskOf(ChipIndex(to));
    for (const std::uint64_t bytes : {4ULL, 1000ULL, 65'536ULL, 100'000'004ULL}) {
      EXPECT_EQ(Time(Fidelity::kFlows, Operation::kSendReceive, pair, bytes, links),
                Time(Fidelity::kClosedForm, Operation::kSendReceive, pair, bytes, links))
          << to << " " << bytes;
    }
  }
}

// Returns the most that flits add where no link is shared: in each step the latency of the empty
// routers, and the padding to a whole flit of 64 bytes on the slowest link.
VirtualDuration MostThatFlitsAdd(std::size_t steps, const TorusLinks& links, int hops) {
  const FlitConfig config = *FlitConfig::Of(links);
  const VirtualDuration cycle = TransferTime(64, 128'000'000'000);
  const std::int64_t fill = config.FillCycles({hops, hops, hops});
  return cycle * ((fill + config.CatchUpCycles() + 8) * static_cast<std::int64_t>(steps));
}

TEST(FidelityTest, FlitsAddOnlyTheFillOfTheRoutersWhereMessagesShareNoLink) {
  const TorusLinks links = Instance();
  for (const torus::Box& box : torus::BoxTable::Of(torus::kInstanceShape).all()) {
    if (box.size.chip_count() < 2 || box.origin != torus::Coord{}) continue;
    const auto plan = PlanWith(Algorithm::kRdh, {.bytes = 512 * kKiB}, MembersOf(box.mask), links);
    ASSERT_TRUE(plan.ok());
    const auto flits = FlitTimeOf(plan->schedule, links);
    ASSERT_TRUE(flits.ok()) << flits.status();
    const VirtualDuration flows = plan->times.end - plan->times.start;
    EXPECT_GE(*flits, flows) << box.ToString();
    EXPECT_LE(*flits, flows + MostThatFlitsAdd(plan->schedule.steps.size(), links, 1))
        << box.ToString();
  }
}

TEST(FidelityTest, CrowdedPacketsWaitForEachOtherWhichFlowsDoNotKnow) {
  const TorusLinks links = Instance();
  for (const Operation operation : {Operation::kAllToAll, Operation::kAllGather}) {
    const auto plan = PlanWith(Algorithm::kMesh, {.operation = operation, .bytes = kMiB},
                               MembersOf(0xffff), links);
    ASSERT_TRUE(plan.ok());
    const auto flits = FlitTimeOf(plan->schedule, links);
    ASSERT_TRUE(flits.ok()) << flits.status();
    const double flows = Nanoseconds(plan->times.end - plan->times.start);
    EXPECT_GT(Nanoseconds(*flits), flows) << Name(operation);
    EXPECT_LT(Nanoseconds(*flits), flows * 1.5) << Name(operation);
  }
}

TEST(FidelityTest, EveryLevelKnowsEveryOperation) {
  const TorusLinks links = Instance();
  for (const Operation operation : kAllOperations) {
    const double flows = Nanoseconds(Time(Fidelity::kFlows, operation, 0x0033, 64 * kKiB, links));
    EXPECT_NEAR(Nanoseconds(Time(Fidelity::kFlits, operation, 0x0033, 64 * kKiB, links)), flows,
                flows * 0.1)
        << Name(operation);
    EXPECT_GT(Time(Fidelity::kClosedForm, operation, 0x0033, 64 * kKiB, links), VirtualDuration(0))
        << Name(operation);
  }
}

// 1 MiB at 50 "GB/s" of 2^30 bytes, 500 ns a link, whole chunks from hop to hop, as in
// ASTRA-sim's own test (docs/reference/collectives.md#network-models-to-compare-with): 3 hops of a
// ring, 1 hop, 2 hops through a switch. It cuts times to whole nanoseconds.
TEST(FidelityTest, StoreAndForwardOverOneTwoAndThreeLinksTakesTheTimesOfAstraSim) {
  constexpr std::int64_t kRate = std::int64_t{50} << 30;
  const TorusLinks links(
      torus::kInstanceShape, {.intra_instance = kRate, .inter_instance = kRate, .efa = 0},
      {.step = VirtualDuration(0), .hop = Microseconds(0.5), .efficiency_permille = 1000});
  const auto chain = [&](int hops) {
    Schedule schedule;
    for (int i = 0; i < hops; ++i) {
      schedule.steps.push_back({{.from = ChipIndex(i), .to = ChipIndex(i + 1), .bytes = kMiB}});
    }
    return schedule;
  };
  for (const auto& [hops, nanoseconds] :
       {std::pair(3, 60'093), std::pair(1, 20'031), std::pair(2, 40'062)}) {
    const Schedule schedule = chain(hops);
    const auto times = TimeSchedules({&schedule}, links);
    ASSERT_TRUE(times.ok());
    const VirtualDuration flows = (*times)[0].end - (*times)[0].start;
    EXPECT_EQ(flows.count() / 1000, nanoseconds) << hops;
    // By formula: a message from neighbour to neighbour, once for each hop.
    const auto one =
        TimeAt(Fidelity::kClosedForm, {.operation = Operation::kPermute, .bytes = kMiB},
               MembersOf(0b11), links, {.costs = kNoChipCosts});
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ((*one * hops).count() / 1000, nanoseconds) << hops;
    const auto flits = FlitTimeOf(schedule, links);
    ASSERT_TRUE(flits.ok()) << flits.status();
    EXPECT_NEAR(Nanoseconds(*flits), nanoseconds, 0.002 * nanoseconds) << hops;
  }
}

TEST(FidelityTest, WhatALevelCannotDoItSays) {
  const auto message = [](Fidelity level, const Request& request,
                          const std::vector<Member>& members, const TorusLinks& links) {
    return std::string(Message(TimeAt(level, request, members, links).status()));
  };
  TorusLinks links = Instance();
  EXPECT_EQ(message(Fidelity::kFlits, {.bytes = 2 * kMiB}, MembersOf(3), links),
            "flits are for at most 1048576 bytes; this collective has 2097152");
  std::vector<Member> unequal = MembersOf(3, 4);
  unequal[1].ranks = 2;
  EXPECT_EQ(message(Fidelity::kClosedForm, {.bytes = kMiB}, unequal, links),
            "closed-form knows equal ranks; chip 0 has 4, chip 1 2");
  for (const Fidelity level : {Fidelity::kClosedForm, Fidelity::kFlows, Fidelity::kFlits}) {
    EXPECT_EQ(message(level, {.bytes = 3}, MembersOf(3), links),
              "3 bytes are not a whole number of fp32 elements");
  }
  ASSERT_TRUE(
      links.SetPermille(TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 500).ok());
  EXPECT_EQ(TimeAt(Fidelity::kFlits, {.bytes = kKiB}, MembersOf(3), links).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(TimeAt(Fidelity::kClosedForm, {.bytes = kKiB}, MembersOf(3), links).ok());
}

TEST(FidelityTest, LevelsHaveNames) {
  for (const Fidelity level : {Fidelity::kClosedForm, Fidelity::kFlows, Fidelity::kFlits}) {
    EXPECT_EQ(*ParseFidelity(Name(level)), level);
  }
  EXPECT_EQ(Message(ParseFidelity("exact").status()),
            "unknown level \"exact\"; expected one of closed-form, flows, flits");
}

}  // namespace
}  // namespace tahoma::sim
