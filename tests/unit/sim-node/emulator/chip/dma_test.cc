// The published points of the engines, and packets dealt one by one.

#include "sim-node/emulator/chip/dma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

// docs/reference/trainium2.md#dma
TEST(DmaTest, EnginesTakeThePublishedTimesAndRates) {
  EXPECT_NEAR(Nanoseconds(DmaEngineTime(32 << 10, 1, hw::kDma)), 1416, 1416 * 0.005);
  EXPECT_NEAR(static_cast<double>(DmaEngineRate(hw::kDma)), 23e9, 0.3e9);
  EXPECT_NEAR(static_cast<double>(DmaRate(64 << 20, hw::kDma)), 368e9, 368e9 * 0.01);  // 16 engines
  EXPECT_EQ(hw::kDma.start, VirtualDuration(1'300'000));
}

TEST(DmaTest, APacketOf256BytesGetsAQuarterOfTheRate) {
  EXPECT_NEAR(256 / Nanoseconds(DmaEngineTime(256, hw::kDma)), 7.2, 0.1);
  EXPECT_NEAR(2048 / Nanoseconds(DmaEngineTime(2048, hw::kDma)), 20.2, 0.1);
}

TEST(DmaTest, TheTimeIsTheBusiestEnginesWithPacketsDealtRoundRobin) {
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bytes = 1 + rng.Below(1 << 20);
    const auto engines = static_cast<int>(1 + rng.Below(16));
    struct Work {
      std::uint64_t packets = 0;
      std::uint64_t bytes = 0;
    };
    std::vector<Work> work(static_cast<std::size_t>(engines));
    std::size_t next = 0;
    for (std::uint64_t left = bytes; left > 0;) {
      const std::uint64_t packet = std::min<std::uint64_t>(left, hw::kDma.packet_bytes);
      work[next].packets += 1;
      work[next].bytes += packet;
      left -= packet;
      next = (next + 1) % work.size();
    }
    VirtualDuration longest{};
    for (const Work& one : work) {
      longest = std::max(longest, hw::kDma.packet * static_cast<VirtualDuration::rep>(one.packets) +
                                      TransferTime(one.bytes, hw::kDma.bytes_per_second));
    }
    ASSERT_EQ(DmaEngineTime(bytes, engines, hw::kDma), longest) << bytes << " on " << engines;
  }
}

TEST(DmaTest, MoreBytesNeverTakeLess) {
  VirtualDuration last{};
  for (std::uint64_t bytes = 1; bytes < 300'000; bytes += 97) {
    EXPECT_GE(DmaEngineTime(bytes, hw::kDma), last);
    last = DmaEngineTime(bytes, hw::kDma);
  }
}

}  // namespace
}  // namespace tahoma::sim
