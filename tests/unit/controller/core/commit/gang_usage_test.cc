// For how long gangs hold chips. The oracle reads the journal after each step, and adds up what its
// records say is held: it knows nothing of sums. A whole core dies at every write.

#include "controller/core/commit/gang_usage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "controller/core/journal/block_record.h"
#include "controller/core/journal/record.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr std::int64_t kChipSecond = 1000 * kEighthsOfChip;

// Returns how many chips the records say are held, of gangs all of whose pods were bound.
std::int64_t ChipsHeld(Journal& journal) {
  struct Run {
    std::shared_ptr<const GangDecision> decision;
    bool bound = false;
    std::set<std::uint32_t> released;
  };
  std::map<RunId, Run> runs;
  TAHOMA_CHECK_OK(journal.Load([&](Sequence at, std::string_view bytes) {
    if (IsBlockEntry(bytes) || IsUsageEntry(bytes)) return absl::OkStatus();
    const Record record = *DecodeRecord(bytes);
    if (const auto* prepared = std::get_if<GangPrepared>(&record)) {
      runs[at].decision = prepared->decision;
    } else if (const auto* bound = std::get_if<GangBound>(&record)) {
      runs[bound->run].bound = true;
    } else if (const auto* released = std::get_if<ClaimReleased>(&record)) {
      runs[released->run].released.insert(released->claim);
    } else if (const auto* replaced = std::get_if<MemberReplaced>(&record)) {
      auto& decision = runs[replaced->run].decision;
      decision = std::make_shared<const GangDecision>(WithMember(*decision, *replaced));
    }
    return absl::OkStatus();
  }));
  std::int64_t chips = 0;
  for (const auto& [id, run] : runs) {
    for (std::uint32_t i = 0; run.bound && i < run.decision->claims.size(); ++i) {
      const DecidedClaim& claim = run.decision->claims[i];
      if (claim.allocated_before || run.released.contains(i)) continue;
      chips += std::ssize(claim.allocation.results);
    }
  }
  return chips;
}

// Adds up, step by step, what the journal says.
class Oracle {
 public:
  explicit Oracle(World& world) : world_(world) {
    world.on_writes = [this](const auto&) {
      Count();
      chips_ = ChipsHeld(world_.journal);
    };
  }
  // Returns chip-milliseconds until now.
  std::int64_t Count() {
    const std::int64_t now = MillisecondsOf(world_.Time().wall);
    sum_ += chips_ * (now - then_);
    then_ = now;
    return sum_;
  }

 private:
  World& world_;
  std::int64_t chips_ = 0;
  std::int64_t then_ = 0;
  std::int64_t sum_ = 0;
};

// Returns the eighths of chip-milliseconds of the snapshot by "namespace/queue type".
std::map<std::string, std::int64_t> SumsOf(World& world) {
  std::map<std::string, std::int64_t> sums;
  world.core().snapshot()->gang_usage.ForEach([&](const UsageKey& key, const UsageSum& sum) {
    for (const UsageSum::OfType& one : sum.UpTo(world.Time().wall).types) {
      sums[fmt::format("{}/{} {}", key.ns, key.queue, one.type)] = one.eighth_ms;
    }
  });
  return sums;
}

std::int64_t TotalOf(World& world) {
  std::int64_t total = 0;
  for (const auto& [key, eighth_ms] : SumsOf(world)) total += eighth_ms;
  return total / kEighthsOfChip;
}

TEST(GangUsageTest, AGangCountsFromItsLastBindUntilItsClaimsAreGivenBack) {
  World world;
  Oracle oracle(world);
  AddGangOfTwo(world.api);
  world.Settle();
  const WallTime bound = world.Time().wall;
  world.MoveTo(bound + hours(1));
  const std::int64_t hour = TotalOf(world);
  EXPECT_EQ(hour, oracle.Count());
  EXPECT_GE(hour, 20 * 3'600'000) << "two pods of ten chips for an hour";
  EXPECT_LT(hour, 20 * 3'660'000);
  for (const char* pod : {"train-0", "train-1"}) world.api.FinishPod(pod, true);
  world.Settle();
  const std::int64_t end = TotalOf(world);
  EXPECT_EQ(end, oracle.Count());
  world.MoveTo(bound + hours(9));
  EXPECT_EQ(TotalOf(world), end) << "nothing is held any more";
  EXPECT_EQ(SumsOf(world).begin()->first, "default/default trn2.48xlarge");
}

TEST(GangUsageTest, NothingIsLostOrCountedTwiceWhereverTheProgramDies) {
  int crashes = 0;
  for (int crash = 1; !HasFailure(); ++crash) {
    SCOPED_TRACE(fmt::format("dies at step {}", crash));
    World world;
    Oracle oracle(world);
    world.crash_after = crash;
    bool died = false;
    // The program starts again after a minute, and does not die any more.
    const auto settle = [&] {
      if (world.Settle()) return;
      died = true;
      world.crash_after = 0;
      world.Start();
      world.MoveTo(world.Time().wall + minutes(1));
    };
    AddGangOfTwo(world.api);
    world.api.AddPodWithClaim("alone", "", 4);
    settle();
    settle();
    ASSERT_EQ(BoundPods(world.api), 3);
    world.MoveTo(world.Time().wall + minutes(25));
    world.api.FinishPod("train-0", true);
    settle();
    world.MoveTo(world.Time().wall + minutes(3));
    for (const char* pod : {"train-1", "alone"}) world.api.FinishPod(pod, true);
    settle();
    settle();
    EXPECT_EQ(world.journal.size(), 0U);
    EXPECT_EQ(TotalOf(world), oracle.Count());
    EXPECT_GT(TotalOf(world), 24 * 25 * 60'000);
    if (!died) break;
    ++crashes;
  }
  EXPECT_GT(crashes, 20);
}

TEST(GangUsageTest, AControllerThatWasAwayCountsTheTimeOfGangsThatWentOn) {
  World world;
  Oracle oracle(world);
  AddGangOfTwo(world.api);
  world.Settle();
  for (int i = 0; i < 3; ++i) {
    world.Start();
    world.MoveTo(world.Time().wall + hours(5));
    EXPECT_EQ(TotalOf(world), oracle.Count());
  }
  EXPECT_GE(TotalOf(world), 20 * 15 * 3'600'000LL);
}

TEST(GangUsageTest, AMemberThatWasReplacedIsNotCountedTwice) {
  World world;
  Oracle oracle(world);
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) {
    gang.failure_policy = FailurePolicy::kReplace;
    gang.start_within = hours(1);
  });
  world.Settle();
  world.api.FinishPod("train-1", false);
  world.Settle();
  world.api.AddPodWithClaim("train-2", "train", 10);
  world.MoveTo(world.Time().wall + minutes(30));
  ASSERT_EQ(world.api.pods().at("train-2").node, "node-b");
  EXPECT_EQ(TotalOf(world), oracle.Count());
}

TEST(GangUsageTest, QueuesAreThoseOfGangsAndOfLabelsOfPods) {
  World world;
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) { gang.queue = "nightly"; });
  for (const char* name : {"kueue", "volcano", "plain"}) {
    world.api.AddPodWithClaim(name, "", 1);
    world.api.ChangePod(name, [&](PodFact& pod) {
      if (pod.key.name == "kueue") pod.labels = {{"kueue.x-k8s.io/queue-name", "batch"}};
      if (pod.key.name == "volcano") pod.labels = {{"volcano.sh/queue-name", "spot"}};
    });
  }
  world.Settle();
  std::set<std::string> keys;
  for (const auto& [key, sum] : SumsOf(world)) keys.insert(key);
  EXPECT_THAT(keys, ElementsAre("default/batch trn2.48xlarge", "default/default trn2.48xlarge",
                                "default/nightly trn2.48xlarge", "default/spot trn2.48xlarge"));
}

TEST(GangUsageTest, WhereAnotherControllerHasLedInBetweenItsTimeIsItsOwn) {
  for (const std::int64_t term : {0, 8, 9}) {
    SCOPED_TRACE(term);
    World first(CoreOptions{.term = 7});
    AddGangOfTwo(first.api);
    first.Settle();
    const std::int64_t before = TotalOf(first);
    // The same journal, later, under another term; term 8 is that of the same controller's restart.
    GangUsage usage(term);
    JournalBuffer buffer;
    TAHOMA_CHECK_OK(first.journal.Load([&](Sequence at, std::string_view bytes) {
      TAHOMA_CHECK_OK(buffer.Restore(at));
      if (IsUsageEntry(bytes)) usage.Restore(at, *DecodeUsage(bytes));
      return absl::OkStatus();
    }));
    Facts facts;
    ClusterState cluster = *first.core().snapshot()->cluster;
    WriteBuffer writes;
    JournalBuffer unused;
    GangRuns runs(facts, cluster, unused, writes, {});
    TAHOMA_CHECK_OK(first.journal.Load([&](Sequence at, std::string_view bytes) {
      return IsUsageEntry(bytes) ? absl::OkStatus() : runs.Restore(at, *DecodeRecord(bytes));
    }));
    usage.Touch({{"default", "train"}, false});
    const WallTime later = first.Time().wall + hours(1);
    usage.Begin(runs, cluster, later);
    usage.Update(runs, cluster, later, buffer);
    std::int64_t sum = 0;
    usage.sums().ForEach([&](const UsageKey&, const UsageSum& one) {
      sum += one.UpTo(later).types[0].eighth_ms / kEighthsOfChip;
    });
    if (term == 9) {
      EXPECT_LE(sum, before) << "another has led, under term 8";
    } else {
      EXPECT_EQ(sum, before + 20 * 3'600'000);
    }
  }
}

TEST(GangUsageTest, QueuesBeyondTheBoundAreCountedTogether) {
  World world;
  world.api.AddNode("node-a", 16);
  for (std::size_t i = 0; i < GangUsage::kQueuesOfNamespace + 3; ++i) {
    const std::string name = fmt::format("p-{}", i);
    world.api.AddPodWithClaim(name, "", 1);
    world.api.ChangePod(name, [&](PodFact& pod) {
      pod.labels = {{"kueue.x-k8s.io/queue-name", name}};
    });
    world.Settle();
    ASSERT_EQ(world.api.pods().at(name).node, "node-a");
    world.api.FinishPod(name, true);
    world.Settle();
  }
  EXPECT_EQ(SumsOf(world).size(), GangUsage::kQueuesOfNamespace + 1);
  EXPECT_GT(SumsOf(world).at("default/~others trn2.48xlarge"), kChipSecond / 100);
}

TEST(GangUsageTest, SumsAreRecordedWhileNothingHappens) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  const WallTime bound = world.Time().wall;
  for (int i = 1; i <= 6; ++i) world.MoveTo(bound + i * GangUsage::kRecordEvery);
  WallTime recorded;
  TAHOMA_CHECK_OK(world.journal.Load([&](Sequence, std::string_view bytes) {
    if (IsUsageEntry(bytes)) recorded = DecodeUsage(bytes)->sum.as_of;
    return absl::OkStatus();
  }));
  EXPECT_GT(recorded, bound + minutes(50));
}

}  // namespace
}  // namespace tahoma::controller
