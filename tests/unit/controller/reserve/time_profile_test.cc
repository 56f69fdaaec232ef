// Free hosts are those that are healthy, without spares, booked and occupied ones.

#include "controller/reserve/time_profile.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

constexpr Slot kThisDay = 20'000;

Pool PoolNamed(const char* cell) {
  return {.product = FindProduct("u-trn2x64"), .zone = "tahoma-1a", .cell = cell};
}

TEST(TimeProfileTest, BookedHostsAreFreeBeforeAndAfter) {
  TimeProfile profile(kThisDay);
  const PoolId pool = profile.IdOf(PoolNamed("nn-1"));
  profile.SetSupply(pool, {.healthy = 32, .spare = 1});
  profile.Book(pool, {kThisDay + 1, kThisDay + 8}, 16);
  EXPECT_EQ(profile.Free(pool, kThisDay), 31);
  EXPECT_EQ(profile.Free(pool, kThisDay + 1), 15);
  EXPECT_EQ(profile.Free(pool, kThisDay + 8), 31);
  EXPECT_EQ(profile.LeastFree(pool, {kThisDay, kThisDay + 2}), 15);
  EXPECT_EQ(profile.FreeIn(pool, {kThisDay + 7, kThisDay + 9}), (std::vector<int>{15, 31}));
  profile.SetSupply(pool, {.healthy = 10, .spare = 1});
  EXPECT_EQ(profile.Free(pool, kThisDay + 1), -7);
}

TEST(TimeProfileTest, ACopyKeepsWhatItWas) {
  TimeProfile profile(kThisDay);
  const PoolId pool = profile.IdOf(PoolNamed("nn-1"));
  profile.SetSupply(pool, {.healthy = 4});
  const TimeProfile before = profile;
  profile.Book(pool, {kThisDay, kThisDay + 1}, 3);
  profile.IdOf(PoolNamed("nn-2"));
  EXPECT_EQ(before.Free(pool, kThisDay), 4);
  EXPECT_EQ(before.pool_count(), 1U);
  EXPECT_FALSE(before.Find(PoolNamed("nn-2")).has_value());
  EXPECT_EQ(profile.Free(pool, kThisDay), 1);
}

TEST(TimeProfileTest, ChangesOfEitherSideOfACopyAreItsOwn) {
  TimeProfile profile(kThisDay);
  const PoolId pool = profile.IdOf(PoolNamed("nn-1"));
  profile.SetSupply(pool, {.healthy = 10});
  profile.Book(pool, {kThisDay, kThisDay + 1}, 1);
  TimeProfile other = profile;
  other.Book(pool, {kThisDay, kThisDay + 1}, 2);
  const TimeProfile third = other;
  other.Book(pool, {kThisDay, kThisDay + 1}, 2);
  profile.Book(pool, {kThisDay, kThisDay + 1}, 5);
  profile.Book(pool, {kThisDay, kThisDay + 1}, 1);
  EXPECT_EQ(profile.Free(pool, kThisDay), 3);
  EXPECT_EQ(other.Free(pool, kThisDay), 5);
  EXPECT_EQ(third.Free(pool, kThisDay), 7);
}

TEST(TimeProfileTest, AnOccupationWithoutEndNeverEnds) {
  TimeProfile profile(kThisDay);
  const PoolId pool = profile.IdOf(PoolNamed("nn-1"));
  profile.SetSupply(pool, {.healthy = 4});
  EXPECT_EQ(profile.Occupy(pool, TimeProfile::kForEver, 1), TimeProfile::kForEver);
  const Slot far = profile.Occupy(pool, kThisDay + 400, 1);
  EXPECT_EQ(far, TimeProfile::kForEver);
  EXPECT_EQ(profile.Free(pool, kThisDay + kSlotsAhead - 1), 2);
  profile.AdvanceTo(kThisDay + 200);
  profile.Vacate(pool, far, 1);
  EXPECT_EQ(profile.Free(pool, kThisDay + 200), 3);
}

// Any sequence of changes leaves what a table of days says that has no ring and forgets nothing.
TEST(TimeProfileTest, AgreesWithATableOfAllDays) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    TimeProfile profile(kThisDay);
    const PoolId pool = profile.IdOf(PoolNamed("nn-1"));
    profile.SetSupply(pool, {.healthy = 1'000});
    std::map<Slot, int> used;
    std::vector<std::pair<SlotRange, int>> booked;
    std::vector<std::pair<Slot, Slot>> occupied;  // until, as given and as answered
    Slot today = kThisDay;
    for (int step = 0; step < 60; ++step) {
      const Slot first = today + static_cast<Slot>(rng.Below(56));
      const Slot last = first + 1 + static_cast<Slot>(rng.Below(180));
      const int count = 1 + static_cast<int>(rng.Below(4));
      switch (rng.Below(5)) {
        case 0:
          today += static_cast<Slot>(rng.Chance(1, 20) ? 500 : rng.Below(9));
          profile.AdvanceTo(today);
          break;
        case 1:
          profile.Book(pool, {first, last}, count);
          for (Slot slot = first; slot < last; ++slot) used[slot] += count;
          booked.push_back({{first, last}, count});
          break;
        case 2:
          if (booked.empty()) break;
          profile.Book(pool, booked.back().first, -booked.back().second);
          for (Slot slot = booked.back().first.first; slot < booked.back().first.last; ++slot) {
            used[slot] -= booked.back().second;
          }
          booked.pop_back();
          break;
        case 3:
          for (Slot slot = today; slot < last; ++slot) ++used[slot];
          occupied.emplace_back(last, profile.Occupy(pool, last, 1));
          break;
        case 4:
          if (occupied.empty()) break;
          profile.Vacate(pool, occupied.back().second, 1);
          for (Slot slot = today; slot < occupied.back().first; ++slot) --used[slot];
          occupied.pop_back();
          break;
      }
      for (Slot slot = today; slot < today + kSlotsAhead; ++slot) {
        ASSERT_EQ(profile.Free(pool, slot), 1'000 - used[slot])
            << "seed " << seed << ", step " << step << ", slot " << slot - today;
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::controller
