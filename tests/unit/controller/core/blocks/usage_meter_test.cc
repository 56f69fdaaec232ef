// What chips of blocks were used for, against sums over every moment.

#include "controller/core/blocks/usage_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/core/block_story.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr std::int64_t kHour = 3'600'000;  // milliseconds
const WallTime kStart = StartOf(20'000);

std::shared_ptr<const Holding> HoldingOn(const std::string& name, const std::string& node,
                                         int chips, bool borrows, WallTime since, int first = 0) {
  auto holding = std::make_shared<Holding>();
  holding->claim = {"default", name};
  holding->claim_uid = name;
  for (int i = 0; i < chips; ++i) {
    holding->devices.push_back(
        {.node = node, .device = fmt::format("neuron-device-{}", first + i)});
  }
  holding->preemptible = borrows;
  holding->reservation = borrows ? "" : "cr-1";
  holding->since = since;
  return holding;
}

Block ActiveBlock(std::vector<std::string> hosts) {
  Block block{.reservation = "cr-1", .key = {"team-a", "train"}};
  block.bought = {.product = FindProduct("u-trn2x64"),
                  .count = static_cast<int>(hosts.size()),
                  .zone = "z",
                  .start = kStart,
                  .end = kStart + hours(24),
                  .rate = {5}};
  block.end = block.bought.end;
  block.state = BlockState::kActive;
  block.hosts = std::move(hosts);
  block.usage.as_of = kStart;
  return block;
}

ChipTally Sums(const UsageMeter& meter, WallTime now) {
  return meter.live().Find(std::string("cr-1"))->UpTo(now).chip_ms;
}

class UsageMeterTest : public ::testing::Test {
 protected:
  UsageMeterTest() {
    AddUltraServer(cluster_, "us-0");
    AddUltraServer(cluster_, "us-1");
  }
  void At(std::chrono::nanoseconds time) { meter_.Update(cluster_, kStart + time); }

  ClusterState cluster_;
  UsageMeter meter_;
};

TEST_F(UsageMeterTest, EachChipIsCountedForWhatItIs) {
  meter_.Follow(ActiveBlock({"us-0"}), cluster_, kStart);
  cluster_.Hold(HoldingOn("own", "us-0-n0", 16, false, kStart + hours(1)));
  At(hours(1));
  cluster_.Hold(HoldingOn("guest", "us-0-n1", 4, true, kStart + hours(2)));
  At(hours(2));
  cluster_.RemoveNode("us-0-n3");
  At(hours(3));
  cluster_.Release("own");
  At(hours(4));
  const ChipTally sums = Sums(meter_, kStart + hours(5));
  EXPECT_EQ(sums.used, 16 * 3 * kHour);
  EXPECT_EQ(sums.lent, 4 * 3 * kHour);
  EXPECT_EQ(sums.lost, 16 * 2 * kHour);
  EXPECT_EQ(sums.total(), 64 * 5 * kHour);
}

TEST_F(UsageMeterTest, TimeBeforeALateDeliveryIsLostAndNothingIsCountedAfterTheEnd) {
  Block block = ActiveBlock({"us-0"});
  meter_.Follow(block, cluster_, kStart + minutes(30));
  EXPECT_EQ(Sums(meter_, kStart + hours(1)).lost, 64 * kHour / 2);
  At(hours(30));
  block.state = BlockState::kExpired;
  meter_.Follow(block, cluster_, block.end);
  EXPECT_EQ(Sums(meter_, kStart + hours(40)).total(), 64 * 24 * kHour);
}

TEST_F(UsageMeterTest, RecordsAreFewHoweverMuchHappens) {
  meter_.Follow(ActiveBlock({"us-0"}), cluster_, kStart);
  EXPECT_EQ(meter_.DrainRecords(kStart).size(), 1U);
  std::size_t records = 0;
  for (int second = 0; second < 3600; ++second) {
    const WallTime now = kStart + std::chrono::seconds(second);
    if (second % 2 == 0) cluster_.Hold(HoldingOn("own", "us-0-n0", 16, false, now));
    if (second % 2 == 1) cluster_.Release("own");
    meter_.Update(cluster_, now);
    records += meter_.DrainRecords(now).size();
  }
  EXPECT_EQ(records, 5U);
  EXPECT_EQ(*meter_.wake(), kStart + hours(1));
}

TEST_F(UsageMeterTest, ARestartMissesNothingOfGangsThatStillRun) {
  const Block block = ActiveBlock({"us-0"});
  meter_.Follow(block, cluster_, kStart);
  Block recorded = block;
  recorded.usage = meter_.DrainRecords(kStart + hours(1)).front().second;
  cluster_.Hold(HoldingOn("own", "us-0-n0", 16, false, kStart + hours(2)));
  cluster_.Hold(HoldingOn("guest", "us-0-n1", 3, true, kStart + hours(3)));
  UsageMeter after;
  after.Restore(recorded);
  after.Update(cluster_, kStart + hours(5));
  const ChipTally sums = Sums(after, kStart + hours(6));
  EXPECT_EQ(sums.used, 16 * 4 * kHour);
  EXPECT_EQ(sums.lent, 3 * 3 * kHour);
  EXPECT_EQ(sums.total(), 64 * 6 * kHour);
}

// Hosts, gangs and failures come and go: the sums are those of every interval between two changes.
TEST_F(UsageMeterTest, SumsAreThoseOfEveryMoment) {
  Rng rng(3);
  for (int round = 0; round < 30; ++round) {
    ClusterState cluster;
    AddUltraServer(cluster, "us-0");
    AddUltraServer(cluster, "us-1");
    UsageMeter meter;
    const Block block = ActiveBlock({"us-0", "us-1"});
    meter.Follow(block, cluster, kStart);
    ChipTally oracle;
    WallTime now = kStart;
    Block recorded = block;
    for (int step = 0; step < 60; ++step) {
      const WallTime next = now + std::chrono::milliseconds(rng.Below(900'000));
      ChipTally chips;
      for (const std::string& host : block.hosts) {
        chips += TallyOf(cluster, host, block.product());
      }
      const std::int64_t time = MillisecondsOf(next) - MillisecondsOf(now);
      oracle += {chips.used * time, chips.lent * time, chips.idle * time, chips.lost * time};
      now = next;
      const std::string node = fmt::format("us-{}-n{}", rng.Below(2), rng.Below(4));
      const std::string gang = "g" + node;
      switch (rng.Below(4)) {
        case 0:
          cluster.Release(gang);
          break;
        case 1:
          cluster.RemoveNode(node);
          break;
        case 2:
          AddUltraServer(cluster, node.substr(0, 4));
          break;
        default:
          cluster.Hold(HoldingOn(gang, node, static_cast<int>(rng.Below(8)) + 1, rng.Below(2) == 0,
                                 now, static_cast<int>(rng.Below(8))));
      }
      meter.Update(cluster, now);
      for (const auto& [reservation, usage] : meter.DrainRecords(now)) recorded.usage = usage;
    }
    EXPECT_EQ(Sums(meter, now), oracle) << round;
    EXPECT_EQ(oracle.total(), 128 * (MillisecondsOf(now) - MillisecondsOf(kStart)));
  }
}

// Through a core: a crash loses of gangs that ended at most what was since the last record.
TEST(BlockUsageStoryTest, UsageIsPublishedAndOutlivesTheController) {
  CoreOptions options;
  options.blocks.hosts.one_spare_in = 0;
  LendingStory story(2, options);
  story.Buy("train", {.lend_idle = true}, 2);
  const WallTime start = story.block("train").start();
  story.world().MoveTo(start);
  story.AddGang("own", 1, [](GangFact& gang) { gang.block = "train"; });
  const WallTime own_began = story.now();
  story.AddGang("guest", 1, [](GangFact& gang) { gang.preemptible = true; });
  const WallTime guest_began = story.now();
  story.world().MoveTo(guest_began + hours(5));
  for (const bool disk : {true, false}) {
    disk ? story.Restart() : story.LoseTheDisk();
    story.world().MoveTo(story.now() + hours(2));
    const auto snapshot = story.world().core().snapshot();
    const ChipTally sums =
        snapshot->usage.Find(story.block("train").reservation)->UpTo(story.now()).chip_ms;
    // The API's times of binding are a few seconds after the decision.
    const auto chip_ms_since = [&](WallTime began) {
      return static_cast<double>(MillisecondsOf(story.now()) - MillisecondsOf(began)) * 64;
    };
    EXPECT_NEAR(static_cast<double>(sums.used), chip_ms_since(own_began), 64 * 60'000) << disk;
    EXPECT_NEAR(static_cast<double>(sums.lent), chip_ms_since(guest_began), 64 * 60'000) << disk;
    EXPECT_EQ(sums.total(), 128 * (MillisecondsOf(story.now()) - MillisecondsOf(start)));
  }
  for (int i = 0; i < 4; ++i) story.api().FinishPod(fmt::format("own-{}", i), true);
  story.world().MoveTo(story.now() + std::chrono::seconds(1));
  const std::int64_t used = story.world()
                                .core()
                                .snapshot()
                                ->usage.Find(story.block("train").reservation)
                                ->UpTo(story.now())
                                .chip_ms.used;
  story.Restart();
  const std::int64_t after = story.world()
                                 .core()
                                 .snapshot()
                                 ->usage.Find(story.block("train").reservation)
                                 ->UpTo(story.now())
                                 .chip_ms.used;
  EXPECT_LE(used - after, 64 * MillisecondsOf(WallTime(UsageMeter::kRecordEvery)));
  story.world().MoveTo(story.block("train").end);
  EXPECT_EQ(story.block("train").usage.total(), 128 * 24 * kHour);
  EXPECT_EQ(story.api().BlockStatus("train")->block->usage, story.block("train").usage);
}

}  // namespace
}  // namespace tahoma::controller
