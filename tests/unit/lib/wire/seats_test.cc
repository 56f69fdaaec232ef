#include "lib/wire/seats.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/base/rng.h"

namespace tahoma::wire {
namespace {

TEST(SeatsTest, OfStrangersTheOldestOfWhoeverHasMostGoes) {
  Seats seats({.strangers = 4, .known = 4});
  EXPECT_EQ(seats.Enter(1, "honest"), std::nullopt);
  for (Seats::Id id = 2; id <= 4; ++id) EXPECT_EQ(seats.Enter(id, "greedy"), std::nullopt);
  EXPECT_EQ(seats.Enter(5, "greedy"), 2u);
  EXPECT_EQ(seats.Enter(6, "another"), 3u);
  EXPECT_TRUE(seats.Has(1));
  EXPECT_FALSE(seats.Has(2));
}

TEST(SeatsTest, StrangersOfAsManyOwnersGoByAge) {
  Seats seats({.strangers = 2, .known = 0});
  EXPECT_EQ(seats.Enter(1, "a"), std::nullopt);
  EXPECT_EQ(seats.Enter(2, "b"), std::nullopt);
  EXPECT_EQ(seats.Enter(3, "c"), 1u);
}

TEST(SeatsTest, AKnownCallerKeepsItsSeatWhateverStrangersDo) {
  Seats seats({.strangers = 2, .known = 2});
  EXPECT_EQ(seats.Enter(1, "user 7"), std::nullopt);
  EXPECT_EQ(seats.Know(1, "claim"), std::nullopt);
  for (Seats::Id id = 2; id < 50; ++id) seats.Enter(id, "user 7");
  EXPECT_TRUE(seats.Has(1));
}

TEST(SeatsTest, OfKnownCallersTheNewestOfWhoeverHasMostGoes) {
  Seats seats({.strangers = 2, .known = 3});
  for (Seats::Id id = 1; id <= 3; ++id) {
    seats.Enter(id, "user 7");
    EXPECT_EQ(seats.Know(id, "greedy"), std::nullopt);
  }
  seats.Enter(4, "user 7");
  EXPECT_EQ(seats.Know(4, "greedy"), 4u) << "its own";
  seats.Enter(5, "user 7");
  EXPECT_EQ(seats.Know(5, "honest"), 3u);
  EXPECT_TRUE(seats.Has(1));
  EXPECT_TRUE(seats.Has(5));
}

TEST(SeatsTest, AFreedSeatIsFree) {
  Seats seats({.strangers = 1, .known = 1});
  EXPECT_EQ(seats.Enter(1, "a"), std::nullopt);
  seats.Leave(1);
  seats.Leave(1);
  EXPECT_EQ(seats.Enter(2, "a"), std::nullopt);
}

// Whoever has no more than an equal share of the seats loses none of them.
TEST(SeatsProperty, AnEqualShareIsNeverTaken) {
  constexpr std::size_t kSeats = 12;
  constexpr std::size_t kOwners = 4;
  Rng rng(11);
  Seats seats({.strangers = kSeats, .known = kSeats});
  std::map<Seats::Id, std::size_t> owners;
  std::map<std::size_t, std::size_t> counts;
  for (Seats::Id id = 1; id <= 2'000; ++id) {
    const std::size_t owner = rng.Below(kOwners);
    owners[id] = owner;
    ++counts[owner];
    if (const auto gone = seats.Enter(id, std::to_string(owner))) {
      ASSERT_GT(counts[owners.at(*gone)], kSeats / kOwners);
      --counts[owners.at(*gone)];
      owners.erase(*gone);
    }
    if (rng.Chance(1, 4)) {
      const auto leaves = owners.begin();
      seats.Leave(leaves->first);
      --counts[leaves->second];
      owners.erase(leaves);
    }
  }
}

}  // namespace
}  // namespace tahoma::wire
