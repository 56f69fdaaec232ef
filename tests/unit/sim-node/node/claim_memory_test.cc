#include "sim-node/node/claim_memory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

constexpr std::uint64_t kMiB = 1 << 20;
const std::vector<ClaimMemory::Share> kShares = {{ChipIndex(4), kMiB}, {ChipIndex(5), 2 * kMiB}};

MemoryRange Range(int chip, std::uint64_t address, std::uint64_t bytes) {
  return {.at = {.chip = ChipIndex(chip), .address = address}, .bytes = bytes};
}

TEST(ClaimMemoryTest, EachChipHasAnAddressSpaceOfItsOwn) {
  NodeMemory node(kMiB);
  const auto memory = node.Of("claim", kShares);
  ASSERT_TRUE(memory->Write({ChipIndex(4), 100}, "four").ok());
  ASSERT_TRUE(memory->Write({ChipIndex(5), 100}, "five").ok());
  EXPECT_EQ(memory->Read(Range(4, 100, 4)).value(), "four");
  EXPECT_EQ(memory->Read(Range(5, 100, 4)).value(), "five");
  EXPECT_EQ(memory->capacity(ChipIndex(5)), 2 * kMiB);
  EXPECT_EQ(memory->capacity(ChipIndex(6)), 0U);
}

TEST(ClaimMemoryTest, AClaimKeepsItsMemoryUntilReleasedAndTheNextClaimFindsZeros) {
  NodeMemory node(kMiB);
  ASSERT_TRUE(node.Of("claim", kShares)->Write({ChipIndex(4), 0}, "secret").ok());
  EXPECT_EQ(node.Of("claim", kShares)->Read(Range(4, 0, 6)).value(), "secret");
  EXPECT_EQ(node.Of("other", kShares)->Read(Range(4, 0, 6)).value(), std::string(6, '\0'));
  EXPECT_EQ(node.resident_bytes(), kHbmPageBytes);
  node.Drop("claim");
  node.Drop("claim");  // there is none
  EXPECT_EQ(node.resident_bytes(), 0U);
  EXPECT_EQ(node.Of("claim", kShares)->Read(Range(4, 0, 6)).value(), std::string(6, '\0'));
}

TEST(ClaimMemoryTest, WhoeverStillUsesADroppedMemoryIsAlone) {
  NodeMemory node(kMiB);
  const auto old = node.Of("claim", kShares);
  ASSERT_TRUE(old->Write({ChipIndex(4), 0}, "old").ok());
  node.Drop("claim");
  ASSERT_TRUE(old->Write({ChipIndex(4), 0}, "OLD").ok());
  EXPECT_EQ(node.Of("claim", kShares)->Read(Range(4, 0, 3)).value(), std::string(3, '\0'));
}

TEST(ClaimMemoryTest, AnotherChipOrAnAddressBeyondTheShareIsRefusedPrecisely) {
  NodeMemory node(kMiB);
  const auto memory = node.Of("claim", kShares);
  const absl::Status other = memory->Write({ChipIndex(6), 0}, "x");
  EXPECT_EQ(other.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(other), "the claim holds no memory of chip 6");
  const absl::Status beyond = memory->Check(Range(4, kMiB - 1, 2));
  EXPECT_EQ(beyond.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(beyond), "chip 4: 2 bytes from 1048575 are not in a memory of 1048576");
}

TEST(ClaimMemoryTest, ReservingTakesAllRangesOrNone) {
  NodeMemory node(2 * kHbmPageBytes);
  const auto memory = node.Of("claim", kShares);
  const std::vector<MemoryRange> too_much = {Range(4, 0, 1), Range(5, 0, 2 * kHbmPageBytes)};
  EXPECT_EQ(memory->Reserve(too_much).code(), absl::StatusCode::kResourceExhausted);
  const std::vector<MemoryRange> wrong = {Range(4, 0, 1), Range(9, 0, 1)};
  EXPECT_EQ(memory->Reserve(wrong).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(node.resident_bytes(), 0U);
  // Ranges that share a page need it once.
  const std::vector<MemoryRange> fits = {Range(4, 0, 1), Range(4, 9, 9), Range(5, 7, 1)};
  ASSERT_TRUE(memory->Reserve(fits).ok());
  ASSERT_TRUE(memory->Reserve(fits).ok());
  EXPECT_EQ(node.resident_bytes(), 2 * kHbmPageBytes);
  EXPECT_EQ(memory->Read(Range(4, 0, 10)).value(), std::string(10, '\0'));
}

TEST(ClaimMemoryTest, ManyThreadsMayWriteEachItsOwnPlace) {
  NodeMemory node(64 * kMiB);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&node, i] {
      const auto memory = node.Of("claim", kShares);
      for (std::uint64_t at = 0; at < 100; ++at) {
        const std::string text(1, static_cast<char>('a' + i));
        ASSERT_TRUE(
            memory->Write({ChipIndex(5), at * 4 + static_cast<std::uint64_t>(i)}, text).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "abcd";
  EXPECT_EQ(node.Of("claim", kShares)->Read(Range(5, 0, 400)).value(), expected);
}

}  // namespace
}  // namespace tahoma::sim
