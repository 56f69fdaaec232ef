// The times of steps that have the links for themselves are those of the queue of events, to the
// picosecond. A fault long after the end makes TimeSchedules take the queue.

#include "sim-node/emulator/collective/schedule/timing_alone.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

constexpr VirtualTime kStart{Microseconds(3)};

ScheduleTimes TimesByEvents(const Schedule& schedule, const TorusLinks& links) {
  const LinkId any = TorusLinks::IdOf(ChipIndex(0), torus::Axis::kX, torus::Direction::kPlus);
  const FaultPlan late(
      {{.at = kStart + Microseconds(1e9), .target = any, .permille = links.permille(any)}});
  const auto times = TimeSchedules({&schedule}, links, kStart, late);
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? times->front() : ScheduleTimes{};
}

void ExpectEqual(const ScheduleTimes& a, const ScheduleTimes& b) {
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.flows, b.flows);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].departure, b.steps[i].departure) << "step " << i;
    EXPECT_EQ(a.steps[i].arrivals, b.steps[i].arrivals) << "step " << i;
    EXPECT_EQ(a.steps[i].end, b.steps[i].end) << "step " << i;
  }
}

void DamageSome(TorusLinks& links, Rng& rng) {
  for (std::uint64_t left = rng.Below(12); left > 0; --left) {
    const auto link = static_cast<LinkId>(rng.Below(links.id_count()));
    if (!links.Exists(link)) continue;
    ASSERT_TRUE(links.SetPermille(link, static_cast<std::uint16_t>(rng.Below(1001))).ok());
    ASSERT_TRUE(links.SetLoss(link, static_cast<std::uint32_t>(rng.Below(10'000))).ok());
  }
}

// Steps of up to five sends, some to the chip itself, some over several links, some of no bytes.
Schedule RandomSchedule(const TorusLinks& links, Rng& rng) {
  const auto chips = static_cast<std::uint64_t>(links.torus().chip_count());
  Schedule schedule;
  schedule.stripes = 1 + rng.Below(4);
  schedule.before = Microseconds(static_cast<double>(rng.Below(3)));
  schedule.after = Microseconds(static_cast<double>(rng.Below(3)));
  for (std::uint64_t steps = rng.Below(12); steps > 0; --steps) {
    Step step;
    for (std::uint64_t sends = rng.Below(6); sends > 0; --sends) {
      step.push_back({.from = ChipIndex(static_cast<int>(rng.Below(chips))),
                      .to = ChipIndex(static_cast<int>(rng.Below(chips))),
                      .bytes = rng.Below(4) == 0 ? 0 : rng.Below(1 << 20)});
      if (rng.Below(3) == 0) step.push_back(step.back());  // joins the message
    }
    StepWork work;
    work.start = VirtualDuration(static_cast<std::int64_t>(rng.Below(1'000'000)));
    if (rng.Below(2) == 0) {
      work.memory = VirtualDuration(static_cast<std::int64_t>(rng.Below(9'000'000)));
    }
    schedule.Add(std::move(step), work);
  }
  return schedule;
}

TEST(TimingAloneTest, RandomSchedulesTakeTheTimesOfTheQueueOfEvents) {
  Rng rng(5);
  int alone = 0;
  int sharing = 0;
  for (int round = 0; round < 3000; ++round) {
    TorusLinks links = testing::UltraServer({.step = Microseconds(1.3), .hop = Microseconds(0.5)});
    DamageSome(links, rng);
    const Schedule schedule = RandomSchedule(links, rng);
    const auto times = TimeAlone(schedule, links, kStart);
    ++(times ? alone : sharing);
    if (times) ExpectEqual(*times, TimesByEvents(schedule, links));
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(alone, 1000);
  EXPECT_GT(sharing, 100);
}

TEST(TimingAloneTest, PlansOfDamagedSetsTakeTheTimesOfTheQueueOfEvents) {
  Rng rng(6);
  int alone = 0;
  for (int round = 0; round < 60; ++round) {
    TorusLinks links = testing::Instance({.step = Microseconds(1.3), .hop = Microseconds(0.5)});
    DamageSome(links, rng);
    const torus::ChipMask dead = rng.Below(3) == 0 ? std::uint64_t{1} << rng.Below(16) : 0;
    const std::vector<Member> members = MembersOf(0xffff & ~dead);
    const Operation operation = round % 2 == 0 ? Operation::kAllReduce : Operation::kAllGather;
    const auto plan = PlanCollective(
        {.operation = operation, .bytes = std::uint64_t{16} << rng.Below(18)}, members, links);
    if (!plan.ok()) continue;  // damage cuts some sets into parts
    const auto times = TimeAlone(plan->schedule, links, kStart);
    if (!times) continue;
    ++alone;
    ExpectEqual(*times, TimesByEvents(plan->schedule, links));
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(alone, 10);
}

TEST(TimingAloneTest, WhereMessagesShareALinkItSaysNothing) {
  const TorusLinks links = testing::Instance();
  Schedule schedule;
  schedule.Add({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 8},
                {.from = ChipIndex(0), .to = ChipIndex(2), .bytes = 8}},
               {});
  EXPECT_FALSE(TimeAlone(schedule, links, kStart).has_value());
}

TEST(TimingAloneTest, WhereAMessageHasNoRouteTheQueueSaysWhy) {
  TorusLinks links = testing::Instance();
  testing::SlowCablesOf(links, 5, 0);
  Schedule schedule;
  schedule.Add({{.from = ChipIndex(0), .to = ChipIndex(5), .bytes = 8}}, {});
  EXPECT_FALSE(TimeAlone(schedule, links, kStart).has_value());
  EXPECT_EQ(TimeSchedules({&schedule}, links).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tahoma::sim
