// Scheduled steps: when they start, that copies really are made, and that working out one of many
// equal places gives exactly the times that working out all of them does.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;

Fabric Domains(int count, const EfaTiming& efa = {}, const LayerSizes& layers = {}) {
  return {std::vector<TorusLinks>(static_cast<std::size_t>(count), Instance({})),
          hw::kTrainium2.links.efa, efa, RegularPlaces(count, layers)};
}

Send Message(int from, int to, std::uint64_t bytes = kMiB) {
  return {.from = ChipIndex(from), .to = ChipIndex(to), .bytes = bytes};
}

// The same with every copy written out, so that nothing can be worked out once for all.
Schedule WrittenOut(const Schedule& schedule) {
  Schedule full = schedule;
  full.steps.clear();
  full.work.clear();
  full.meshes.clear();
  for (std::size_t index = 0; index < schedule.scheduled_count(); ++index) {
    Step& step = full.steps.emplace_back();
    ForEachSend(schedule, index, [&](const Send& send) { step.push_back(send); });
    if (!schedule.work.empty()) {
      std::map<int, int> times;  // at each place
      for (const Copy& copy : schedule.scheduled[index].copies) ++times[copy.chips];
      full.work.push_back(schedule.work[schedule.scheduled[index].step]);
      full.work.back().memory *=
          times.begin()->second * std::ssize(schedule.scheduled[index].parts);
    }
    full.scheduled[index].step = static_cast<std::uint32_t>(index);
    full.scheduled[index].copies = {{}};
    full.scheduled[index].parts = {0};
  }
  return full;
}

// Times both forms, and expects the same times of every scheduled step. Returns the flows that each
// computed.
std::pair<std::uint64_t, std::uint64_t> ExpectSameTimes(const std::vector<Schedule>& schedules,
                                                        const Fabric& fabric,
                                                        const FaultPlan& faults = {}) {
  std::vector<Schedule> full;
  for (const Schedule& schedule : schedules) full.push_back(WrittenOut(schedule));
  std::vector<const Schedule*> short_ones;
  std::vector<const Schedule*> long_ones;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    short_ones.push_back(&schedules[i]);
    long_ones.push_back(&full[i]);
  }
  const auto once = TimeSchedules(short_ones, fabric, {}, faults);
  const auto all = TimeSchedules(long_ones, fabric, {}, faults);
  EXPECT_TRUE(once.ok() && all.ok());
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    EXPECT_EQ((*once)[i].end, (*all)[i].end);
    for (std::size_t index = 0; index < schedules[i].scheduled.size(); ++index) {
      EXPECT_EQ((*once)[i].steps[index].departure, (*all)[i].steps[index].departure) << index;
      EXPECT_EQ((*once)[i].steps[index].end, (*all)[i].steps[index].end) << index;
    }
  }
  return {once->front().flows, all->front().flows};
}

TEST(ScheduledStepsTest, AStepStartsWhenAllThatItComesAfterHaveEnded) {
  Schedule schedule;
  schedule.steps = {{Message(0, 1)}, {Message(4, 5, 3 * kMiB)}, {Message(8, 9)}};
  schedule.scheduled = {{.step = 0}, {.step = 1}, {.step = 2, .after = {0, 1}}, {.step = 0}};
  const auto times = TimeSchedules({&schedule}, Domains(1));
  ASSERT_TRUE(times.ok());
  const std::vector<StepTimes>& steps = (*times)[0].steps;
  EXPECT_EQ(steps[0].departure, steps[1].departure);
  EXPECT_LT(steps[0].end, steps[1].end);
  EXPECT_EQ(steps[2].departure, steps[1].end + LinkTiming{}.step);
  EXPECT_EQ(steps[3].end, steps[0].end);  // shares its link
  EXPECT_EQ((*times)[0].end, steps[2].end);
}

// The first byte is on its way for 15 us, in which the NIC sends what comes behind.
TEST(ScheduledStepsTest, AStepBehindAnotherLeavesWhenTheLinksAreFreeThoughNothingHasArrived) {
  Schedule schedule;
  schedule.steps = {{Message(0, 64)}};
  schedule.scheduled = {{.step = 0}, {.step = 0, .behind = 0}, {.step = 0, .behind = 1}};
  const auto times = TimeSchedules({&schedule}, Domains(2));
  ASSERT_TRUE(times.ok());
  const std::vector<StepTimes>& steps = (*times)[0].steps;
  const VirtualDuration on_the_nic = TransferTime(kMiB, hw::kTrainium2.links.efa);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LT(steps[i].departure, steps[i - 1].end);
    EXPECT_GE(steps[i].end, steps[i - 1].end + on_the_nic);
    EXPECT_LE(steps[i].end, steps[i - 1].end + on_the_nic + LinkTiming{}.step);
  }
}

TEST(ScheduledStepsTest, ACopyIsMadeAtItsChipsAndItsBytes) {
  Schedule schedule;
  schedule.steps = {
      {{.from = ChipIndex(0), .to = ChipIndex(1), .offset = 0, .to_offset = 0, .bytes = 1}}};
  schedule.scheduled = {
      {.step = 0, .copies = {{.chips = 64, .bytes = 2}, {.chips = 2, .bytes = 1}}}};
  std::map<int, std::vector<std::byte>> memory;
  std::vector<ChipBuffer> buffers;
  for (const int chip : {0, 1, 2, 3, 64, 65}) {
    memory[chip].assign(4, static_cast<std::byte>(chip));
    buffers.push_back({.chip = ChipIndex(chip), .bytes = memory[chip]});
  }
  Execute(schedule, ElementType::kUint8, ReduceOp::kSum, buffers);
  const auto bytes = [](std::vector<int> values) {
    std::vector<std::byte> made;
    for (const int value : values) made.push_back(static_cast<std::byte>(value));
    return made;
  };
  EXPECT_EQ(memory[1], bytes({1, 1, 1, 1}));
  EXPECT_EQ(memory[3], bytes({3, 2, 3, 3}));
  EXPECT_EQ(memory[65], bytes({65, 65, 64, 65}));
}

TEST(ScheduledStepsTest, DomainsThatAreAlikeAreWorkedOutOnce) {
  Schedule schedule;
  schedule.steps = {{Message(0, 1), Message(5, 10)}};
  schedule.scheduled = {{.step = 0, .copies = {{}, {.chips = 64}, {.chips = 128}, {.chips = 64}}}};
  // Domain 1 makes it twice: not like the others.
  EXPECT_EQ(ExpectSameTimes({schedule}, Domains(3)), std::pair(4ul, 6ul));
  schedule.scheduled[0].copies.pop_back();
  EXPECT_EQ(ExpectSameTimes({schedule}, Domains(3)), std::pair(2ul, 6ul));
}

TEST(ScheduledStepsTest, ADamagedDomainOrAnotherTenantIsWorkedOutForItself) {
  Schedule schedule;
  schedule.steps = {{Message(0, 1)}};
  schedule.scheduled = {{.step = 0, .copies = {{}, {.chips = 64}, {.chips = 128}}}};
  Fabric damaged = Domains(3);
  const LinkId link =
      damaged.LinkOf(Fabric::ChipOf(1, 0), torus::Axis::kX, torus::Direction::kPlus);
  ASSERT_TRUE(damaged.SetPermille(link, 500).ok());
  EXPECT_EQ(ExpectSameTimes({schedule}, damaged), std::pair(2ul, 3ul));
  Schedule tenant;
  tenant.steps = {{Message(64, 65)}};
  tenant.scheduled = {{.step = 0}};
  EXPECT_EQ(ExpectSameTimes({schedule, tenant}, Domains(3)), std::pair(3ul, 4ul));
  const FaultPlan faults({{.at = VirtualTime(Microseconds(3)), .target = link, .permille = 100}});
  EXPECT_EQ(ExpectSameTimes({schedule}, Domains(3), faults), std::pair(2ul, 3ul));
}

TEST(ScheduledStepsTest, NicsThatAreAlikeAreWorkedOutOnceUnlessAnythingTellsThemApart) {
  Schedule schedule;  // a ring over three domains at chips 0, 1 and 2
  schedule.steps = {{Message(0, 64), Message(64, 128), Message(128, 0)}};
  schedule.scheduled = {{.step = 0, .copies = {{}, {.chips = 1}, {.chips = 2}}},
                        {.step = 0, .after = {0}, .copies = {{}, {.chips = 1}, {.chips = 2}}}};
  const Fabric fabric = Domains(3);
  EXPECT_EQ(ExpectSameTimes({schedule}, fabric), std::pair(6ul, 18ul));
  Fabric degraded = fabric;
  ASSERT_TRUE(
      degraded.SetPermille(fabric.NicOf(Fabric::ChipOf(2, 1), NicDirection::kIn), 700).ok());
  EXPECT_EQ(ExpectSameTimes({schedule}, degraded), std::pair(18ul, 18ul));
  Schedule tenant;
  tenant.steps = {{Message(65, 10)}};
  tenant.scheduled = {{.step = 0}};
  EXPECT_EQ(ExpectSameTimes({schedule, tenant}, fabric), std::pair(19ul, 19ul));
  // What one place puts on an uplink the others do, too.
  EXPECT_EQ(ExpectSameTimes({schedule}, Domains(3, {.oversubscription_permille = {1, 1, 2000}})),
            std::pair(6ul, 18ul));
  Schedule overlapping = schedule;  // the copies meet at NICs
  overlapping.scheduled[0].copies = {{}, {.chips = 64}};
  ExpectSameTimes({overlapping}, Domains(4));
}

TEST(ScheduledStepsTest, RandomSchedulesTakeTheSameTimesWrittenOutToThePicosecond) {
  Rng rng(3);
  const auto pick = [&](std::uint64_t below) { return static_cast<int>(rng.Below(below)); };
  for (int round = 0; round < 60; ++round) {
    std::vector<Schedule> schedules(1 + rng.Below(2));
    for (Schedule& schedule : schedules) {
      for (int i = 0; i < 4; ++i) {
        Step& step = schedule.steps.emplace_back();
        const bool between = rng.Chance(1, 2);
        for (int j = 0; j < 5; ++j) {
          const int from = pick(4) + (between ? 64 * pick(3) : 0);
          const int to = pick(4) + (between ? 64 * pick(3) : 0);
          step.push_back(Message(from, to, 1 + rng.Below(kMiB)));
        }
      }
      for (std::uint32_t i = 0; i < 8; ++i) {
        ScheduledStep scheduled{.step = static_cast<std::uint32_t>(rng.Below(4)), .copies = {}};
        if (i > 0 && rng.Chance(2, 3)) scheduled.after = {static_cast<std::uint32_t>(rng.Below(i))};
        if (i > 0 && rng.Chance(1, 3)) scheduled.behind = static_cast<std::uint32_t>(rng.Below(i));
        const int stride = rng.Chance(1, 2) ? 64 : 4;
        for (int copy = 0; copy < 3; ++copy) scheduled.copies.push_back({.chips = stride * copy});
        schedule.scheduled.push_back(scheduled);
      }
    }
    ExpectSameTimes(schedules, Domains(6));
    ExpectSameTimes(schedules, Domains(6, {.oversubscription_permille = {1000, 20'000, 30'000}},
                                       {.domains_under_layer3 = 2}));
  }
}

// Some of the domains, in any order.
std::shared_ptr<const MeshDomains> SomeOf(int domains, Rng& rng) {
  std::vector<int> all(static_cast<std::size_t>(domains));
  std::iota(all.begin(), all.end(), 0);
  MeshDomains some;
  const std::size_t count = 1 + rng.Below(all.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(all[i], all[i + rng.Below(all.size() - i)]);
    some.push_back({.domain = all[i], .number = i});
  }
  return std::make_shared<const MeshDomains>(std::move(some));
}

// Steps of one to three sends in meshes of a few lists of domains, at three places of each.
Schedule RandomMeshes(int domains, Rng& rng) {
  std::vector<std::shared_ptr<const MeshDomains>> lists;
  for (int i = 0; i < 3; ++i) lists.push_back(SomeOf(domains, rng));
  Schedule schedule;
  for (std::uint32_t i = 0; i < 6; ++i) {
    Step& step = schedule.steps.emplace_back();
    for (std::uint64_t sends = 1 + rng.Below(3); sends > 0; --sends) {
      const auto& senders = lists[rng.Below(3)];
      const auto& receivers = lists[rng.Below(3)];
      step.push_back(Message(64 * senders->front().domain + 3,
                             64 * receivers->front().domain + static_cast<int>(rng.Below(4)),
                             1 + rng.Below(kMiB)));
      schedule.meshes.push_back(
          {.senders = senders, .receivers = receivers, .by_sender = {}, .by_receiver = {}});
      step.back().mesh = static_cast<std::uint32_t>(schedule.meshes.size());
    }
    ScheduledStep mesh{.step = i, .copies = {{}, {.chips = 1}, {.chips = 2}}};
    if (i > 0 && rng.Chance(1, 2)) mesh.after = {static_cast<std::uint32_t>(rng.Below(i))};
    if (i > 0 && rng.Chance(1, 3)) mesh.behind = static_cast<std::uint32_t>(rng.Below(i));
    schedule.scheduled.push_back(std::move(mesh));
  }
  return schedule;
}

TEST(ScheduledStepsTest, MeshesOfManyDomainsTakeTheSameTimesWrittenOutToThePicosecond) {
  Rng rng(5);
  for (int round = 0; round < 40; ++round) {
    const Schedule schedule = RandomMeshes(10, rng);
    const auto [once, all] = ExpectSameTimes({schedule}, Domains(10));
    EXPECT_LE(once, all);
    Fabric degraded = Domains(10);
    ASSERT_TRUE(
        degraded.SetPermille(degraded.NicOf(Fabric::ChipOf(6, 4), NicDirection::kIn), 300).ok());
    ExpectSameTimes({schedule}, degraded);
    ExpectSameTimes({schedule},
                    Domains(10, {.layer = Microseconds(2)}, {.domains_under_layer3 = 3}));
    // Where there is another message nothing stands for anything.
    Schedule tenant;
    tenant.steps = {{Message(64 * 7 + 4, 64 + 4)}};
    tenant.scheduled = {{.step = 0}};
    ExpectSameTimes({schedule, tenant}, Domains(10));
  }
}

// Shares of a link are rounded to a byte per second, those of its flows that are left later twice.
TEST(ScheduledStepsTest, MeshesOverUplinksThatLimitThemTakeTheSameTimesWrittenOut) {
  Rng rng(6);
  for (int round = 0; round < 60; ++round) {
    const int domains = 6 + static_cast<int>(rng.Below(7));
    const auto over = [&] { return 1000 * (1 + static_cast<std::uint32_t>(rng.Below(9))); };
    Fabric fabric = Domains(
        domains, {.layer = Microseconds(1), .oversubscription_permille = {over(), over(), over()}},
        {.domains_under_layer3 = 2, .layer3_under_layer2 = 2});
    const Schedule schedule = RandomMeshes(domains, rng);
    const auto [once, all] = ExpectSameTimes({schedule}, fabric);
    EXPECT_LE(once, all);
    const int chip = Fabric::ChipOf(static_cast<int>(rng.Below(4)), 4).value();
    ASSERT_TRUE(fabric.SetNicPermille(ChipIndex(chip), 500).ok());
    ExpectSameTimes({schedule}, fabric);
  }
}

TEST(ScheduledStepsTest, AMeshOfManyDomainsIsAFewFlows) {
  Schedule schedule;
  schedule.steps = {{Message(0, 0)}};
  schedule.steps[0][0].mesh = 1;
  MeshDomains nine;
  for (int domain = 0; domain < 9; ++domain) nine.push_back({.domain = domain, .number = 0});
  const auto list = std::make_shared<const MeshDomains>(nine);
  schedule.meshes = {{.senders = list, .receivers = list, .by_sender = {}, .by_receiver = {}}};
  schedule.scheduled = {{.step = 0, .copies = {{}, {.chips = 1}, {.chips = 2}}}};
  EXPECT_EQ(ExpectSameTimes({schedule}, Domains(9)), std::pair(1ul, 3ul * 9 * 8));
  // Three below each node: to those there, and to those elsewhere.
  const Fabric narrow =
      Domains(9, {.oversubscription_permille = {1000, 1000, 4000}}, {.domains_under_layer3 = 3});
  EXPECT_EQ(ExpectSameTimes({schedule}, narrow), std::pair(2ul, 3ul * 9 * 8));
}

TEST(ScheduledStepsTest, PlansOverDomainsTakeTheSameTimesWrittenOut) {
  const Fabric narrow =
      Domains(6, {.oversubscription_permille = {1000, 1000, 4000}}, {.domains_under_layer3 = 2});
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kBroadcast, Operation::kAllToAll}) {
    for (const Fabric& fabric : {Domains(4), Domains(5), narrow}) {
      std::vector<Member> members;
      for (int chip = 0; chip < fabric.domain_count() * 16; ++chip) {
        members.push_back({.chip = Fabric::ChipOf(chip / 16, chip % 16)});
      }
      const auto plan = PlanOnFabric({.operation = operation, .bytes = 16 * kMiB + 36}, members,
                                     fabric, {.chunks = 4});
      ASSERT_TRUE(plan.ok()) << plan.status();
      const auto [once, all] = ExpectSameTimes({plan->schedule}, fabric);
      EXPECT_LE(once, all) << Name(operation);
      // A broadcast has steps of its own in the root's domain.
      if (fabric.domain_count() == 4 && operation != Operation::kBroadcast) {
        EXPECT_LE(2 * once, all) << Name(operation);
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
