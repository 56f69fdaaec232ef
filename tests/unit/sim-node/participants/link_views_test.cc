// Tests the participants' view of the links, by hand and by replaying every change.

#include "sim-node/participants/link_views.h"

#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr VirtualTime kBeginning{};

LinkId XPlus(int chip) { return TorusLinks::IdOf(ChipIndex(chip), Axis::kX, Direction::kPlus); }

LinkOutlook Outlook(const TorusLinks& links, std::vector<NodeLinks> views,
                    VirtualTime now = kBeginning) {
  auto outlook = LinkOutlook::Of(Fabric(links), std::move(views), now);
  EXPECT_TRUE(outlook.ok()) << outlook.status();
  return *std::move(outlook);
}

TEST(LinkOutlookTest, TheNewestWordOfEachNodeCounts) {
  const LinkOutlook outlook =
      Outlook(UltraServer(), {{.node = 0, .epoch = 2, .unhealthy = {{XPlus(5), 250, 1000}}},
                              {.node = 0, .epoch = 1, .unhealthy = {{XPlus(6), 0}}},
                              {.node = 1, .epoch = 7, .unhealthy = {{XPlus(17), 0}}}});
  EXPECT_EQ(outlook.fabric().domain(0).Unhealthy(kAllChips),
            (std::vector<LinkState>{{XPlus(5), 250, 1000}, {XPlus(17), 0}}));
  EXPECT_TRUE(outlook.IsSteady());
}

TEST(LinkOutlookTest, ADeadChipHasNoLinksAndEndsTheCollectivesThatIncludeIt) {
  const LinkOutlook outlook =
      Outlook(UltraServer(), {{.node = 1, .epoch = 1, .dead = {ChipIndex(21)}}});
  EXPECT_EQ(outlook.fabric().domain(0).Unhealthy(kAllChips).size(), 12U)
      << "six links, both directions";
  const absl::Status dead = outlook.CheckAlive(MembersOf(0xffff0000));
  EXPECT_EQ(dead.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Message(dead), "NRT_EXEC_HW_ERR_COLLECTIVES (1200): chip 21 is dead");
  EXPECT_TRUE(outlook.CheckAlive(MembersOf(0xffff)).ok());
  // Routes of other chips avoid chip 21.
  const auto route = outlook.fabric().domain(0).FindRoute(ChipIndex(20), ChipIndex(22), kAllChips);
  ASSERT_TRUE(route.ok()) << route.status();
  for (const LinkId link : *route)
    EXPECT_NE(outlook.fabric().domain(0).HopOf(link).to, ChipIndex(21));
}

TEST(LinkOutlookTest, WhatNoTorusHasIsRefused) {
  EXPECT_FALSE(LinkOutlook::Of(Fabric(Instance()), {{.unhealthy = {{9999, 0}}}}, kBeginning).ok());
  EXPECT_FALSE(LinkOutlook::Of(Fabric(Instance()), {{.unhealthy = {{1, 1001}}}}, kBeginning).ok());
  EXPECT_FALSE(
      LinkOutlook::Of(Fabric(Instance()), {{.unhealthy = {{1, 1000, 600'000}}}}, kBeginning).ok());
  EXPECT_FALSE(LinkOutlook::Of(Fabric(Instance()), {{.dead = {ChipIndex(16)}}}, kBeginning).ok());
  const Flapping too_fast{.period = Microseconds(1), .down = Microseconds(0.5)};
  EXPECT_FALSE(
      LinkOutlook::Of(Fabric(Instance()), {{.unhealthy = {{1, 1000, 0, too_fast}}}}, kBeginning)
          .ok());
}

// By definition, the state now and the changes give the state at any time.
TEST(LinkOutlookTest, ChangesFromAnyMomentGiveTheStatesOfTheDefinition) {
  Rng rng(11);
  for (int i = 0; i < 200; ++i) {
    const Flapping flapping{.period = Microseconds(static_cast<double>(10 + rng.Below(90))),
                            .down = Microseconds(static_cast<double>(1 + rng.Below(9)))};
    const VirtualTime now{Microseconds(static_cast<double>(rng.Below(1000)))};
    const LinkOutlook outlook =
        Outlook(Instance(), {{.unhealthy = {{XPlus(5), 700, 0, flapping}}}}, now);
    EXPECT_FALSE(outlook.IsSteady());
    std::uint64_t permille = outlook.fabric().domain(0).permille(XPlus(5));
    const VirtualDuration until = Microseconds(500);
    const FaultPlan plan = outlook.ChangesWithin(until);
    auto change = plan.faults().begin();
    for (VirtualDuration at{}; at < until; at += Microseconds(0.5)) {
      for (; change != plan.faults().end() && change->at.time_since_epoch() <= at; ++change) {
        EXPECT_EQ(change->target, XPlus(5));
        permille = change->permille;
      }
      const VirtualDuration phase = (now.time_since_epoch() + at) % flapping.period;
      ASSERT_EQ(permille, phase < flapping.down ? 0U : 700U)
          << i << " at " << Nanoseconds(at) << " ns";
    }
  }
}

TEST(LinkOutlookTest, AFlappingLinkCostsMoreThanAHealthyLinkAndNoMoreThanABrokenLink) {
  const TorusLinks healthy = Instance();
  TorusLinks broken = healthy;
  ASSERT_TRUE(broken.SetPermille(XPlus(5), 0).ok());
  const auto plan = PlanWith(Algorithm::kRdh, {.bytes = 64 * kMiB}, MembersOf(0xffff), healthy);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto end = [&](const LinkOutlook& outlook) {
    const auto times = outlook.TimesOf(plan->schedule);
    EXPECT_TRUE(times.ok()) << times.status();
    return times.ok() ? times->end : VirtualTime{};
  };
  const VirtualTime best = end(Outlook(healthy, {}));
  EXPECT_EQ(best, plan->times.end);
  const VirtualTime worst = end(Outlook(broken, {}));
  VirtualTime last = best;
  for (const double down : {10.0, 50.0, 90.0}) {
    const Flapping flapping{.period = Microseconds(100), .down = Microseconds(down)};
    const VirtualTime now = end(Outlook(healthy, {{.unhealthy = {{XPlus(5), 1000, 0, flapping}}}}));
    EXPECT_GT(now, best) << down;
    EXPECT_LE(now, worst) << down;
    EXPECT_GE(now, last) << down;
    last = now;
  }
}

// Down only in the first 10 us of every 100: an operation from 10 to 100 loses no time.
TEST(LinkOutlookTest, AnOperationWhileTheLinkIsUpKeepsItsTime) {
  const TorusLinks healthy = Instance();
  const auto plan = PlanWith(Algorithm::kRdh, {.bytes = kMiB}, MembersOf(0xffff), healthy);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Flapping flapping{.period = Microseconds(100), .down = Microseconds(10)};
  const std::vector<NodeLinks> views = {{.unhealthy = {{XPlus(5), 1000, 0, flapping}}}};
  const auto during = Outlook(healthy, views).TimesOf(plan->schedule);
  const auto between =
      Outlook(healthy, views, VirtualTime(Microseconds(210))).TimesOf(plan->schedule);
  ASSERT_TRUE(during.ok() && between.ok());
  EXPECT_EQ(between->end, plan->times.end);
  EXPECT_GT(during->end, plan->times.end);
}

// The defect: the changes of a link were computed for the whole period of the other link, an hour.
TEST(LinkOutlookTest, OneLinkMayFlapOftenAndAnotherSeldom) {
  const TorusLinks healthy = Instance();
  const auto plan = PlanWith(Algorithm::kRdh, {.bytes = kMiB}, MembersOf(0xffff), healthy);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Flapping often{.period = kMinFlapPeriod, .down = kMinFlapPeriod / 2};
  const Flapping seldom{.period = kMaxFlapPeriod, .down = Microseconds(1)};
  const LinkState fast{XPlus(5), 1000, 0, often};
  const LinkState slow{XPlus(6), 1000, 0, seldom};
  const VirtualTime now(Microseconds(3));
  const auto both = Outlook(healthy, {{.unhealthy = {fast, slow}}}, now).TimesOf(plan->schedule);
  const auto one = Outlook(healthy, {{.unhealthy = {fast}}}, now).TimesOf(plan->schedule);
  ASSERT_TRUE(both.ok() && one.ok()) << both.status() << one.status();
  EXPECT_EQ(both->end, one->end);
}

// All links from chip 5, so no route avoids these links.
std::vector<LinkState> AllFromChip5(std::uint16_t permille, const Flapping& flapping) {
  std::vector<LinkState> states;
  for (const Axis axis : {Axis::kX, Axis::kY}) {
    for (const Direction direction : {Direction::kPlus, Direction::kMinus}) {
      states.push_back({TorusLinks::IdOf(ChipIndex(5), axis, direction), permille, 0, flapping});
    }
  }
  return states;
}

// An operation whose data leaves the chips late.
Schedule Later(VirtualDuration before) {
  auto plan = PlanWith(Algorithm::kRdh, {.bytes = kMiB}, MembersOf(0xffff), Instance());
  EXPECT_TRUE(plan.ok()) << plan.status();
  plan->schedule.before = before;
  return plan->schedule;
}

// The defect: a link that was down at the end of the first guess counted as down for ever, and
// later uses of the link were refused.
TEST(LinkOutlookTest, AnOperationLongerThanAGuessSeesTheLinksComeBack) {
  const Flapping flapping{.period = Microseconds(100), .down = Microseconds(50)};
  // Begins when the links come up: they are down from 950 to 1000, at a guess, and from 1050 to
  // 1100.
  const LinkOutlook outlook = Outlook(Instance(), {{.unhealthy = AllFromChip5(1000, flapping)}},
                                      VirtualTime(Microseconds(50)));
  const auto times = outlook.TimesOf(Later(Microseconds(1010)));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->end.time_since_epoch() - Microseconds(1010),
            Outlook(Instance(), {}).TimesOf(Later({}))->end.time_since_epoch());
  // A chip that is really cut off is refused.
  const absl::Status cut_off = outlook.TimesOf(Later(Microseconds(1055))).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(cut_off)) << cut_off;
}

TEST(LinkOutlookTest, GuessesGiveTheTimesOfAllChangesTogether) {
  Rng rng(29);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    const auto flapping = [&rng] {
      const std::uint64_t period = 20 + rng.Below(200);
      const std::uint64_t down = 1 + rng.Below(period / 2);
      return Flapping{.period = Microseconds(static_cast<double>(period)),
                      .down = Microseconds(static_cast<double>(down))};
    };
    std::vector<LinkState> states = AllFromChip5(1000, flapping());
    states.push_back({XPlus(6), 300, 0, flapping()});
    const Schedule schedule = Later(Microseconds(static_cast<double>(rng.Below(1000))));
    const LinkOutlook outlook =
        Outlook(Instance(), {{.unhealthy = states}},
                VirtualTime(Microseconds(static_cast<double>(rng.Below(1000)))));
    const auto all = TimeSchedules({&schedule}, outlook.fabric(), {},
                                   outlook.ChangesWithin(Microseconds(10'000)));
    const auto times = outlook.TimesOf(schedule);
    ASSERT_EQ(times.status(), all.status()) << i;
    if (all.ok()) {
      EXPECT_EQ(times->end, all->front().end) << i;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, 190);
}

// 500,000 periods of the often flapping link, 5 s, can be computed. Halves of the other link's hour
// are 3.5 s, while that link is still down, and 7 s.
TEST(LinkOutlookTest, OperationsUpToTheLimitOfChangesAreTimed) {
  const Flapping often{.period = kMinFlapPeriod, .down = Microseconds(1)};
  const Flapping long_down{.period = kMaxFlapPeriod, .down = Microseconds(4.5e6)};
  std::vector<LinkState> states = AllFromChip5(1000, long_down);
  states.push_back({XPlus(1), 1000, 0, often});
  const auto times =
      Outlook(Instance(), {{.unhealthy = states}}).TimesOf(Later(Microseconds(4.6e6)));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_GT(times->end.time_since_epoch(), Microseconds(4.6e6));
}

TEST(LinkOutlookTest, LinksThatNeverCarryAnythingCutOff) {
  const Flapping flapping{.period = Microseconds(100), .down = Microseconds(50)};
  const absl::Status refused =
      Outlook(Instance(), {{.unhealthy = AllFromChip5(0, flapping)}}).TimesOf(Later({})).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

// The defect: whoever asked for such an operation took all of the node's memory.
TEST(LinkOutlookTest, AnOperationThroughTooManyChangesIsRefused) {
  const Flapping often{.period = kMinFlapPeriod, .down = kMinFlapPeriod / 2};
  const LinkState lame{XPlus(5), 1, 0, often};
  const auto times =
      Outlook(Instance(), {{.unhealthy = {lame}}}).TimesOf(Later(Microseconds(5.1e6)));
  EXPECT_TRUE(absl::IsResourceExhausted(times.status())) << times.status();
}

TEST(LinkOutlookTest, ANetworkCardThatIsDownIsUsedByNobody) {
  const Fabric healthy({UltraServer({}), UltraServer({})}, hw::kTrainium2.links.efa);
  std::vector<Member> members = MembersOf(kAllChips);
  for (const Member& member : MembersOf(kAllChips)) {
    members.push_back({.chip = torus::ChipIndex(64 + member.chip.value()), .ranks = 1});
  }
  const auto time = [&](const std::vector<NodeLinks>& views) {
    const auto outlook = LinkOutlook::Of(healthy, views, kBeginning);
    EXPECT_TRUE(outlook.ok()) << outlook.status();
    const auto plan = PlanOnFabric({.bytes = 16 * kMiB}, members, outlook->fabric());
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->times.end : VirtualTime{};
  };
  EXPECT_GT(time({{.node = 0, .epoch = 1, .efa_down = {ChipIndex(5), ChipIndex(70)}}}), time({}));
  const auto dead = LinkOutlook::Of(healthy, {{.dead = {ChipIndex(70)}}}, kBeginning);
  ASSERT_TRUE(dead.ok()) << dead.status();
  EXPECT_EQ(dead->fabric().permille(dead->fabric().NicOf(ChipIndex(70), NicDirection::kOut)), 0);
  EXPECT_EQ(Message(dead->CheckAlive(members)),
            "NRT_EXEC_HW_ERR_COLLECTIVES (1200): domain 1 chip 6 is dead");
  EXPECT_FALSE(LinkOutlook::Of(healthy, {{.efa_down = {ChipIndex(128)}}}, kBeginning).ok());
}

TEST(NewestTest, TheHighestEpochWinsInAnyOrder) {
  const NodeLinks old{.node = 1, .epoch = 1, .unhealthy = {{7, 0}}};
  const NodeLinks fresh{.node = 1, .epoch = 2, .unhealthy = {}};
  const NodeLinks other{.node = 0, .epoch = 5, .unhealthy = {{3, 500}}};
  const std::vector<NodeLinks> expected = {other, fresh};
  EXPECT_EQ(Newest({old, fresh, other}), expected);
  EXPECT_EQ(Newest({other, fresh, old}), expected);
}

}  // namespace
}  // namespace tahoma::sim
