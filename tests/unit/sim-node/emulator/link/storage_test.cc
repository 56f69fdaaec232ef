#include "sim-node/emulator/link/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/link/max_min.h"

namespace tahoma::sim {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kGB = 1'000'000'000;

// No latency, and clients that only their interfaces limit.
StorageSystem Plain(std::uint64_t rate) {
  return {.read_rate = rate, .write_rate = rate, .client_rate = ~std::uint64_t{0}};
}

std::vector<VirtualDuration> Write(const StorageSystem& system,
                                   const std::vector<StorageClient>& clients) {
  std::vector<VirtualDuration> times;
  for (const VirtualTime end : StorageTimes(system, StorageAccess::kWrite, clients)) {
    times.push_back(end - VirtualTime{});
  }
  return times;
}

TEST(StorageTest, OneNodeIsAsFastAsTheSlowestOnItsPath) {
  StorageSystem system = Plain(40 * kGB);
  EXPECT_EQ(Write(system, {{.bytes = kGiB, .nic_rate = 10 * kGB}})[0],
            TransferTime(kGiB, 10 * kGB));
  EXPECT_EQ(Write(system, {{.bytes = kGiB, .nic_rate = 90 * kGB}})[0],
            TransferTime(kGiB, 40 * kGB));
  system.client_rate = 7 * kGB;
  EXPECT_EQ(Write(system, {{.bytes = kGiB, .nic_rate = 90 * kGB}})[0], TransferTime(kGiB, 7 * kGB));
}

TEST(StorageTest, EqualNodesShareEvenlyAndEndTogether) {
  for (const std::uint64_t nodes : {2U, 16U, 128U, 2048U}) {
    const auto times = Write(Plain(128 * kGB), std::vector<StorageClient>(
                                                   nodes, {.bytes = kGiB, .nic_rate = 400 * kGB}));
    for (const VirtualDuration time : times) {
      EXPECT_EQ(time, TransferTime(kGiB, 128 * kGB / nodes)) << nodes << " nodes";
    }
  }
}

TEST(StorageTest, AsLongAsTheInterfacesAreSlowerNobodyWaitsForAnother) {
  const auto times = Write(Plain(100 * kGB), {{.bytes = kGiB, .nic_rate = 10 * kGB},
                                              {.bytes = 3 * kGiB, .nic_rate = 20 * kGB},
                                              {.bytes = 2 * kGiB, .nic_rate = 70 * kGB}});
  EXPECT_EQ(times[0], TransferTime(kGiB, 10 * kGB));
  EXPECT_EQ(times[1], TransferTime(3 * kGiB, 20 * kGB));
  EXPECT_EQ(times[2], TransferTime(2 * kGiB, 70 * kGB));
}

TEST(StorageTest, NodesShareTheBandwidthThatASlowNodeLeaves) {
  // 4 + 8 + 8 = 20 GB/s: the slow one takes what it can, not its third.
  const auto times = Write(Plain(20 * kGB), {{.bytes = 40 * kGB, .nic_rate = 4 * kGB},
                                             {.bytes = 80 * kGB, .nic_rate = 50 * kGB},
                                             {.bytes = 80 * kGB, .nic_rate = 50 * kGB}});
  for (const VirtualDuration time : times) EXPECT_EQ(time, std::chrono::seconds(10));
}

TEST(StorageTest, AnEndedTransferLeavesItsShareToTheRest) {
  // Both at 5 GB/s for 2 s; then the second alone at 10 GB/s for 3 s.
  const auto times = Write(Plain(10 * kGB), {{.bytes = 10 * kGB, .nic_rate = 50 * kGB},
                                             {.bytes = 40 * kGB, .nic_rate = 50 * kGB}});
  EXPECT_EQ(times[0], std::chrono::seconds(2));
  EXPECT_EQ(times[1], std::chrono::seconds(5));
}

TEST(StorageTest, ALaterTransferTakesItsShareFromItsStart) {
  // Alone for 1 s (10 GB), then 5 GB/s each: the first has 10 GB left, so both end at 3 s.
  const auto times = Write(
      Plain(10 * kGB),
      {{.bytes = 20 * kGB, .nic_rate = 50 * kGB},
       {.bytes = 10 * kGB, .nic_rate = 50 * kGB, .start = VirtualTime(std::chrono::seconds(1))}});
  EXPECT_EQ(times[0], std::chrono::seconds(3));
  EXPECT_EQ(times[1], std::chrono::seconds(3));
}

TEST(StorageTest, LatencyIsPaidOnceAndAlsoForNothing) {
  StorageSystem system = Plain(10 * kGB);
  system.latency = Microseconds(500);
  const auto times =
      Write(system, {{.bytes = 10 * kGB, .nic_rate = 50 * kGB}, {.bytes = 0, .nic_rate = kGB}});
  EXPECT_EQ(times[0], std::chrono::seconds(1) + Microseconds(500));
  EXPECT_EQ(times[1], Microseconds(500));
  EXPECT_TRUE(Write(system, {}).empty());
}

TEST(StorageTest, ReadingHasARateOfItsOwn) {
  StorageSystem system = Plain(10 * kGB);
  system.read_rate = 26 * kGB;
  const std::vector<StorageClient> one = {{.bytes = 26 * kGB, .nic_rate = 50 * kGB}};
  EXPECT_EQ(StorageTimes(system, StorageAccess::kRead, one)[0] - VirtualTime{},
            std::chrono::seconds(1));
  EXPECT_EQ(Write(system, one)[0], std::chrono::milliseconds(2600));
}

TEST(StorageTest, ATebibyteOfFsxForLustreHasAGigabytePerSecond) {
  const StorageSystem system = StorageOf(100);
  EXPECT_EQ(system.write_rate, 100 * kGB);
  EXPECT_EQ(system.client_rate, 87'500'000'000U);
  // 128 trn2.48xlarge nodes of 400 GB/s write 96 GiB of each of 16 chips: the storage is the limit.
  const std::uint64_t bytes = 16 * 96 * kGiB;
  const auto times =
      Write(system, std::vector<StorageClient>(128, {.bytes = bytes, .nic_rate = 400 * kGB}));
  EXPECT_EQ(times[5], TransferTime(bytes, 100 * kGB / 128) + Microseconds(500));
}

std::vector<StorageClient> Random(Rng& rng, std::size_t count, bool late) {
  std::vector<StorageClient> clients(count);
  for (StorageClient& client : clients) {
    client.bytes = rng.Below(20) == 0 ? 0 : 1 + rng.Below(10 * kGiB);
    client.nic_rate = 1 + rng.Below(100 * kGB);
    if (late) client.start += Microseconds(static_cast<double>(rng.Below(2'000'000)));
  }
  return clients;
}

// The general solver of max_min.h, in small steps of completions, for all that start at once.
TEST(StorageTest, AgreesWithMaxMinFairLinks) {
  Rng rng(3);
  for (int round = 0; round < 60; ++round) {
    const auto clients = Random(rng, 1 + rng.Below(12), /*late=*/false);
    const std::uint64_t total = 1 + rng.Below(200 * kGB) + 100;
    std::vector<std::uint64_t> capacities = {total};
    std::vector<std::vector<LinkId>> paths;
    std::vector<Wide> left;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      capacities.push_back(clients[i].nic_rate);
      paths.push_back({0, static_cast<LinkId>(i + 1)});
      left.push_back(static_cast<Wide>(clients[i].bytes) * kPicosecondsPerSecond);
    }
    std::vector<VirtualDuration> expected(clients.size());
    VirtualDuration now{};
    while (true) {
      std::vector<std::span<const LinkId>> going;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < clients.size(); ++i) {
        if (left[i] == 0) continue;
        going.emplace_back(paths[i]);
        who.push_back(i);
      }
      if (going.empty()) break;
      const auto rates = MaxMinRates(going, capacities);
      auto step = VirtualDuration::max();
      for (std::size_t k = 0; k < who.size(); ++k) {
        step = std::min(
            step,
            VirtualDuration(static_cast<std::int64_t>((left[who[k]] + rates[k] - 1) / rates[k])));
      }
      now += step;
      for (std::size_t k = 0; k < who.size(); ++k) {
        left[who[k]] -= std::min(left[who[k]], static_cast<Wide>(step.count()) * rates[k]);
        if (left[who[k]] == 0) expected[who[k]] = now;
      }
    }
    const auto times = Write(Plain(total), clients);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      // Both round a share down, which is at most a byte per second for each sender.
      const double off = Nanoseconds(times[i] - expected[i]) / (Nanoseconds(expected[i]) + 1);
      EXPECT_NEAR(off, 0, 1e-6) << "client " << i << " of round " << round;
    }
  }
}

TEST(StorageTest, NobodyBeatsItsInterfaceAndTogetherNobodyBeatsTheSystem) {
  Rng rng(5);
  for (int round = 0; round < 100; ++round) {
    const auto clients = Random(rng, 1 + rng.Below(40), /*late=*/true);
    const std::uint64_t total = kGB + rng.Below(200 * kGB);
    const auto done = StorageTimes(Plain(total), StorageAccess::kWrite, clients);
    std::uint64_t bytes = 0;
    VirtualTime first = VirtualTime::max();
    VirtualTime last{};
    for (std::size_t i = 0; i < clients.size(); ++i) {
      EXPECT_GE(done[i] - clients[i].start,
                TransferTime(clients[i].bytes, std::min(total, clients[i].nic_rate)));
      bytes += clients[i].bytes;
      first = std::min(first, clients[i].start);
      last = std::max(last, done[i]);
    }
    EXPECT_GE(last - first, TransferTime(bytes, total)) << "conservation";
  }
}

TEST(StorageTest, AFasterSystemMakesNobodySlowerAndOneNodeMoreNobodyFaster) {
  Rng rng(9);
  for (int round = 0; round < 60; ++round) {
    auto clients = Random(rng, 2 + rng.Below(20), /*late=*/true);
    const std::uint64_t total = kGB + rng.Below(100 * kGB);
    const auto slow = StorageTimes(Plain(total), StorageAccess::kWrite, clients);
    const auto fast = StorageTimes(Plain(2 * total), StorageAccess::kWrite, clients);
    clients.pop_back();
    const auto fewer = StorageTimes(Plain(total), StorageAccess::kWrite, clients);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const auto slack = Microseconds(1);  // shares are rounded down
      EXPECT_LE(fast[i], slow[i] + slack);
      EXPECT_LE(fewer[i], slow[i] + slack);
    }
  }
}

TEST(StorageTest, TheOrderOfTheClientsDoesNotMatter) {
  Rng rng(11);
  auto clients = Random(rng, 50, /*late=*/true);
  const auto done = StorageTimes(Plain(60 * kGB), StorageAccess::kRead, clients);
  std::vector<std::size_t> order(clients.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::reverse(order.begin(), order.end());
  std::reverse(clients.begin(), clients.end());
  const auto back = StorageTimes(Plain(60 * kGB), StorageAccess::kRead, clients);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(back[i], done[order[i]]);
}

}  // namespace
}  // namespace tahoma::sim
