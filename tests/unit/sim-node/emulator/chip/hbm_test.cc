// Pages against a plain array of bytes.

#include "sim-node/emulator/chip/hbm.h"

#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
constexpr std::uint64_t kAll = 96 * kGiB;

TEST(HbmTest, WhatWasNeverWrittenIsZeroAndCostsNothing) {
  PageBudget budget(kGiB);
  Hbm hbm(kAll, budget);
  EXPECT_EQ(hbm.Read(50 * kGiB, 1000).value(), std::string(1000, '\0'));
  EXPECT_EQ(hbm.resident_bytes(), 0U);
}

TEST(HbmTest, ReadsGiveWhatAPlainArrayWouldGive) {
  constexpr std::uint64_t kSmall = 5 * kHbmPageBytes + 100;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng(seed);
    PageBudget budget(kGiB);
    Hbm hbm(kSmall, budget);
    std::string plain(kSmall, '\0');
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t address = rng.Below(kSmall);
      const std::uint64_t bytes = rng.Below(kSmall - address + 1);
      if (rng.Chance(1, 2)) {
        std::string text(bytes, '\0');
        for (char& c : text) c = static_cast<char>(rng.Below(256));
        ASSERT_TRUE(hbm.Write(address, text).ok());
        plain.replace(address, bytes, text);
      } else {
        ASSERT_EQ(hbm.Read(address, bytes).value(), plain.substr(address, bytes)) << seed;
      }
    }
  }
}

TEST(HbmTest, TheLastByteIsInTheMemoryAndTheNextByteIsNot) {
  PageBudget budget(kGiB);
  Hbm hbm(kAll, budget);
  EXPECT_TRUE(hbm.Write(kAll - 1, "x").ok());
  EXPECT_EQ(hbm.Read(kAll - 2, 2).value(), std::string("\0x", 2));
  const absl::Status beyond = hbm.Write(kAll - 1, "xy");
  EXPECT_EQ(beyond.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(beyond), "2 bytes from 103079215103 are not in a memory of 103079215104");
  EXPECT_EQ(hbm.Read(~std::uint64_t{0}, 2).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(hbm.Read(0, ~std::uint64_t{0}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(HbmTest, AWriteBeyondTheBudgetIsRefusedAndChangesNothing) {
  PageBudget budget(3 * kHbmPageBytes + 1);
  Hbm one(kAll, budget), other(kAll, budget);
  ASSERT_TRUE(one.Write(kHbmPageBytes - 1, "ab").ok());  // two pages
  EXPECT_EQ(budget.used_bytes(), 2 * kHbmPageBytes);
  const absl::Status refused = other.Write(kHbmPageBytes - 1, "cd");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refused),
            "the chips' memories of this node may keep 196608 bytes on the host; 131072 are kept "
            "and 131072 more are asked for");
  EXPECT_EQ(other.Read(kHbmPageBytes - 1, 2).value(), std::string(2, '\0'));
  EXPECT_TRUE(one.Write(kHbmPageBytes - 1, "ef").ok()) << "its pages are there";
  EXPECT_EQ(one.Read(kHbmPageBytes - 1, 2).value(), "ef");
}

TEST(HbmTest, ADestroyedMemoryReturnsItsPages) {
  PageBudget budget(kHbmPageBytes);
  { ASSERT_TRUE(Hbm(kAll, budget).Write(0, "a").ok()); }
  EXPECT_EQ(budget.used_bytes(), 0U);
  EXPECT_TRUE(Hbm(kAll, budget).Write(0, "a").ok());
}

}  // namespace
}  // namespace tahoma::sim
