// Accesses against closed forms, a fluid of its own in floating point, and what no link can carry.

#include "sim-node/participants/remote_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/chip/dma.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

constexpr std::uint64_t kMiB = 1 << 20, kX = 128'000'000'000, kZ = 64'000'000'000;
constexpr VirtualDuration kHop = Microseconds(0.5);
constexpr VirtualDuration kDmaStart = hw::kDma.start;
constexpr auto kHbmBytesPerSecond = static_cast<std::uint64_t>(hw::kTrainium2.hbm_bytes_per_second);
constexpr std::uint64_t kDmaEngineRate = DmaEngineRate(hw::kDma);

TorusLinks UltraServer() { return {torus::kUltraServerShape, hw::kTrainium2.links}; }

MemoryAccess Write(int from, int to, std::uint64_t bytes) {
  return {.kind = AccessKind::kWrite,
          .local = {ChipIndex(from), 0},
          .remote = {ChipIndex(to), 0},
          .bytes = bytes};
}
MemoryAccess Read(int asker, int from, std::uint64_t bytes) {
  return {.kind = AccessKind::kRead,
          .local = {ChipIndex(asker), 0},
          .remote = {ChipIndex(from), 0},
          .bytes = bytes};
}

BatchTimes Times(const std::vector<MemoryAccess>& batch, const TorusLinks& links = UltraServer()) {
  auto times = TimeAccesses(batch, links, kAllChips);
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? *std::move(times) : BatchTimes{};
}

TEST(RemoteMemoryTest, AWriteTakesTheStartItsBytesAndItsHops) {
  EXPECT_EQ(Times({Write(0, 1, kMiB)}).end, VirtualTime(kDmaStart + TransferTime(kMiB, kX) + kHop));
  EXPECT_EQ(Times({Write(0, 16, kMiB)}).end,
            VirtualTime(kDmaStart + TransferTime(kMiB, kZ) + kHop));
  // To the farthest chip: two hops along each axis, as fast as the slowest.
  const BatchTimes far = Times({Write(0, 42, kMiB)});
  EXPECT_EQ(far.end, VirtualTime(kDmaStart + TransferTime(kMiB, kZ) + 6 * kHop));
  EXPECT_EQ(far.hops, (std::vector<int>{6}));
}

TEST(RemoteMemoryTest, AReadWaitsForItsRequestFirst) {
  EXPECT_EQ(Times({Read(0, 1, kMiB)}).end,
            VirtualTime(kDmaStart + kHop + TransferTime(kMiB, kX) + kHop));
  EXPECT_EQ(Times({Read(0, 42, kMiB)}).end,
            VirtualTime(kDmaStart + 6 * kHop + TransferTime(kMiB, kZ) + 6 * kHop));
}

TEST(RemoteMemoryTest, SmallAccessesTakeWhatTheirPacketsTake) {
  for (const std::uint64_t bytes : {64U, 256U, 2048U, 4096U, 20'000U}) {
    const VirtualDuration expected = kDmaStart + DmaEngineTime(bytes, hw::kDma) + kHop;
    const VirtualDuration link = kDmaStart + TransferTime(bytes, kX) + kHop;
    EXPECT_NEAR(Nanoseconds(Times({Write(0, 1, bytes)}).end.time_since_epoch()),
                Nanoseconds(std::max(expected, link)), 0.01)
        << bytes;
  }
}

TEST(RemoteMemoryTest, ACopyInsideAChipNeedsNoLink) {
  const BatchTimes copy = Times({Write(5, 5, 64 * kMiB)});
  EXPECT_EQ(copy.hops, (std::vector<int>{0}));
  EXPECT_NEAR(Nanoseconds(copy.end.time_since_epoch()),
              Nanoseconds(kDmaStart + DmaEngineTime(64 * kMiB, hw::kDma)), 1);
  // Sixteen at once are held back by the memory, of which each byte is read and written.
  const std::vector<MemoryAccess> many(16, Write(5, 5, 64 * kMiB));
  EXPECT_NEAR(Nanoseconds(Times(many).end.time_since_epoch()),
              Nanoseconds(kDmaStart + TransferTime(2 * 16 * 64 * kMiB, kHbmBytesPerSecond)), 1);
}

TEST(RemoteMemoryTest, WritesFromOutsideShareTheMemoryWithCopiesInside) {
  std::vector<MemoryAccess> batch(16, Write(5, 5, 64 * kMiB));
  for (const int neighbour : {1, 4, 6, 9}) batch.push_back(Write(neighbour, 5, 64 * kMiB));
  // Twenty equal shares of what the memory takes in; a neighbour's link alone would give more.
  EXPECT_NEAR(Nanoseconds(Times(batch).ends[0].time_since_epoch()),
              Nanoseconds(kDmaStart + TransferTime(20 * 64 * kMiB, kHbmBytesPerSecond / 2)), 1);
}

TEST(RemoteMemoryTest, TheNinthAccessOfAChipSharesTheEnginesOfTheFirst) {
  // The access is to the chip itself, so that no link limits it; few enough bytes a second for the
  // memory.
  std::vector<MemoryAccess> batch(3, Write(5, 5, 64 * kMiB));
  EXPECT_EQ(Times(batch).ends[0], Times(batch).ends[2]) << "three cores";
  batch.assign(9, Write(5, 5, 64));
  batch[0].bytes = batch[8].bytes = 256 * kMiB;
  EXPECT_NEAR(Nanoseconds(Times(batch).end.time_since_epoch()),
              Nanoseconds(kDmaStart + TransferTime(512 * kMiB, 16 * kDmaEngineRate)), 10);
}

TEST(RemoteMemoryTest, OppositeDirectionsDoNotShareAndTheSameDirectionDoes) {
  const VirtualTime alone = Times({Write(0, 1, kMiB)}).end;
  EXPECT_EQ(Times({Write(0, 1, kMiB), Write(1, 0, kMiB)}).end, alone);
  const VirtualDuration both = kDmaStart + TransferTime(2 * kMiB, kX) + kHop;
  EXPECT_EQ(Times({Write(0, 1, kMiB), Write(0, 1, kMiB)}).end, VirtualTime(both));
  // Chip 1 reads from chip 0 over the same link, a little later.
  const BatchTimes mixed = Times({Write(0, 1, kMiB), Read(1, 0, kMiB)});
  EXPECT_EQ(mixed.end, VirtualTime(both));
  EXPECT_LT(mixed.ends[0], mixed.ends[1]);
}

TEST(RemoteMemoryTest, AllNeighboursAtOnceGetTheirLinksWhole) {
  std::vector<MemoryAccess> batch;
  for (const int neighbour : {1, 3, 4, 12}) batch.push_back(Write(0, neighbour, kMiB));
  for (const int neighbour : {16, 48}) batch.push_back(Write(0, neighbour, kMiB));
  const BatchTimes times = Times(batch);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(times.ends[i], Times({batch[i]}).end);
  for (std::size_t i = 4; i < 6; ++i) EXPECT_EQ(times.ends[i], Times({batch[i]}).end);
}

TEST(RemoteMemoryTest, BrokenLinksAreGoneAroundAndLossyOnesCostTheirRepetitions) {
  TorusLinks links = UltraServer();
  const LinkId link = TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus);
  ASSERT_TRUE(links.SetLoss(link, 200'000).ok());
  EXPECT_EQ(Times({Write(0, 1, kMiB)}, links).end,
            VirtualTime(kDmaStart + TransferTime(kMiB, kX * 8 / 10) + kHop * 3 / 2));
  ASSERT_TRUE(links.SetPermille(link, 0).ok());
  const BatchTimes around = Times({Write(0, 1, kMiB)}, links);
  EXPECT_EQ(around.hops, (std::vector<int>{3}));
  EXPECT_EQ(around.end, VirtualTime(kDmaStart + TransferTime(kMiB, kX) + 3 * kHop));
  // A read of chip 1's memory comes over the other direction, its request goes around.
  EXPECT_EQ(Times({Read(0, 1, kMiB)}, links).end,
            VirtualTime(kDmaStart + 3 * kHop + TransferTime(kMiB, kX) + kHop));
  for (const Port port : kAllPorts) {
    ASSERT_TRUE(
        links.SetCablePermille(TorusLinks::IdOf(ChipIndex(9), port.axis, port.direction), 0).ok());
  }
  const auto cut_off = TimeAccesses(std::vector{Write(0, 9, kMiB)}, links, kAllChips);
  EXPECT_EQ(Message(cut_off.status()), "no NeuronLink route from chip 0 to chip 9: links are down");
}

TEST(RemoteMemoryTest, WhatCannotBeTimedIsRefused) {
  const auto refusal = [](const std::vector<MemoryAccess>& batch) {
    return TimeAccesses(batch, UltraServer(), kAllChips).status();
  };
  EXPECT_EQ(Message(refusal({Write(0, 1, 0)})), "an access moves no bytes");
  EXPECT_EQ(Message(refusal({Write(0, 64, 1)})), "chip 64 is not in a torus of 4x4x4");
  EXPECT_EQ(Message(refusal(std::vector<MemoryAccess>(4097, Write(0, 1, 1)))),
            "4097 accesses at once; expected at most 4096");
  EXPECT_TRUE(Times({}).ends.empty());
}

// An independent fluid: rates in floating point, filled by the smallest share again and again.
class Fluid {
 public:
  Fluid(const std::vector<MemoryAccess>& batch, const TorusLinks& links) {
    std::map<int, int> asked;
    for (const MemoryAccess& access : batch) {
      const ChipIndex from = access.source().chip, to = access.target().chip;
      Flow flow{.left = static_cast<double>(access.bytes)};
      const auto there = links.FindRoute(from, to, kAllChips).value();
      flow.start = 1300;
      if (access.kind == AccessKind::kRead) {
        flow.start += 500.0 * static_cast<double>(links.FindRoute(to, from, kAllChips)->size());
      }
      flow.late = 500.0 * static_cast<double>(there.size());
      const auto use = [&](std::tuple<int, int, int> resource, double rate) {
        rate_[resource] = rate;
        flow.uses.push_back(resource);
      };
      for (const LinkId link : there) {
        use({0, static_cast<int>(link), 0}, static_cast<double>(links.capacity(link)) / 1e9);
      }
      const int asker = access.local.chip.value();
      use({1, from.value(), 0}, 1450);
      use({2, to.value(), 0}, 1450);
      use({3, asker, asked[asker]++ % 8}, 16 * static_cast<double>(kDmaEngineRate) / 1e9);
      flow.cap =
          static_cast<double>(access.bytes) / Nanoseconds(DmaEngineTime(access.bytes, hw::kDma));
      flows_.push_back(flow);
    }
  }

  // In nanoseconds.
  std::vector<double> Ends() {
    double now = 0;
    while (true) {
      double next = std::numeric_limits<double>::max();
      const std::vector<double> rates = Rates(now);
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (flows_[i].left <= 0) continue;
        if (flows_[i].start > now) next = std::min(next, flows_[i].start);
        if (rates[i] > 0) next = std::min(next, now + flows_[i].left / rates[i]);
      }
      if (next == std::numeric_limits<double>::max()) break;
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (flows_[i].left <= 0 || rates[i] <= 0) continue;
        flows_[i].left -= rates[i] * (next - now);
        if (flows_[i].left < 1e-3) {
          flows_[i].left = 0;
          flows_[i].end = next + flows_[i].late;
        }
      }
      now = next;
    }
    std::vector<double> ends;
    for (const Flow& flow : flows_) ends.push_back(flow.end);
    return ends;
  }

 private:
  struct Flow {
    std::vector<std::tuple<int, int, int>> uses{};
    double left = 0, start = 0, late = 0, cap = 0, end = 0;
  };
  std::vector<double> Rates(double now) const {
    std::vector<double> rates(flows_.size(), 0);
    std::vector<bool> open(flows_.size());
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      open[i] = flows_[i].left > 0 && flows_[i].start <= now;
    }
    auto left = rate_;
    while (std::find(open.begin(), open.end(), true) != open.end()) {
      std::map<std::tuple<int, int, int>, int> users;
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (open[i])
          for (const auto& use : flows_[i].uses) ++users[use];
      }
      double share = std::numeric_limits<double>::max();
      std::size_t first = 0;
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (!open[i]) continue;
        double own = flows_[i].cap;
        for (const auto& use : flows_[i].uses) own = std::min(own, left[use] / users[use]);
        if (own < share) {
          share = own;
          first = i;
        }
      }
      open[first] = false;
      rates[first] = share;
      for (const auto& use : flows_[first].uses) left[use] -= share;
    }
    return rates;
  }

  std::map<std::tuple<int, int, int>, double> rate_;
  std::vector<Flow> flows_;
};

std::vector<MemoryAccess> RandomBatch(Rng& rng, std::size_t count) {
  std::vector<MemoryAccess> batch;
  for (std::size_t i = 0; i < count; ++i) {
    const auto chip = [&] { return static_cast<int>(rng.Below(rng.Chance(1, 2) ? 4 : 64)); };
    const std::uint64_t bytes = 1 + rng.Below(std::uint64_t{1} << (6 + rng.Below(20)));
    batch.push_back(rng.Chance(1, 2) ? Write(chip(), chip(), bytes) : Read(chip(), chip(), bytes));
  }
  return batch;
}

TEST(RemoteMemoryTest, RandomBatchesTakeTheTimesOfAnIndependentFluid) {
  const TorusLinks links = UltraServer();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const std::vector<MemoryAccess> batch = RandomBatch(rng, 1 + rng.Below(40));
    const BatchTimes times = Times(batch, links);
    const std::vector<double> expected = Fluid(batch, links).Ends();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ASSERT_NEAR(Nanoseconds(times.ends[i].time_since_epoch()), expected[i],
                  1e-5 * expected[i] + 0.1)
          << "seed " << seed << " access " << i;
    }
  }
}

TEST(RemoteMemoryTest, NoLinkCarriesMoreThanItsRateTimesTheTime) {
  const TorusLinks links = UltraServer();
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    const std::vector<MemoryAccess> batch = RandomBatch(rng, 200);
    const BatchTimes times = Times(batch, links);
    std::map<LinkId, std::vector<std::pair<VirtualTime, std::uint64_t>>> carried;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto route =
          links.FindRoute(batch[i].source().chip, batch[i].target().chip, kAllChips).value();
      for (const LinkId link : route) carried[link].emplace_back(times.ends[i], batch[i].bytes);
    }
    for (auto& [link, ends] : carried) {
      std::sort(ends.begin(), ends.end());
      std::uint64_t bytes = 0;
      for (const auto& [end, more] : ends) {
        bytes += more;
        const double seconds = Nanoseconds(end.time_since_epoch() - kDmaStart) / 1e9;
        ASSERT_LE(static_cast<double>(bytes),
                  static_cast<double>(links.capacity(link)) * seconds + 1)
            << "seed " << seed << " " << TorusLinks::Name(link);
      }
    }
  }
}

TEST(RemoteMemoryTest, OneAccessMoreNeverLetsTheBatchEndSooner) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    std::vector<MemoryAccess> batch = RandomBatch(rng, 20);
    const VirtualTime more = Times(batch).end;
    batch.pop_back();
    EXPECT_GE(more, Times(batch).end) << seed;
  }
}

TEST(AccessesTextTest, AListReadsBackAsItWas) {
  Rng rng(5);
  std::vector<MemoryAccess> batch = RandomBatch(rng, 50);
  batch[3].remote.address = ~std::uint64_t{0};
  const auto back = ParseAccesses(AccessesText(batch));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, batch);
  EXPECT_TRUE(ParseAccesses("")->empty());
}

TEST(AccessesTextTest, ALineThatIsNoAccessIsNamed) {
  const std::string good = "read 1 0 2 0 5\n";
  for (const std::string_view bad :
       {"read 1 0 2 0", "read 1 0 2 0 5 6", "copy 1 0 2 0 5", "read -1 0 2 0 5", "read 1 0 2 0 x",
        "read 70000 0 2 0 5", "read 1 0 2 0 18446744073709551616", ""}) {
    const auto parsed = ParseAccesses(good + std::string(bad) + "\n");
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Message(parsed.status()), fmt::format("line 2 is no access: \"{}\"", bad));
  }
}

}  // namespace
}  // namespace tahoma::sim
