// Which loans end, against all choices that there are.

#include "controller/plan/loan_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

std::int64_t Number(Rng& rng, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(most - least + 1)));
}

// Hosts with loans on them, of which a gang needs so many without any.
struct Hosts {
  std::vector<Loan> loans;
  std::vector<std::set<std::size_t>> on;  // loans, by host
  std::size_t needed = 0;

  bool Suffices(const std::vector<std::size_t>& ended) const {
    std::size_t free = 0;
    for (const auto& loans_here : on) {
      free +=
          std::includes(ended.begin(), ended.end(), loans_here.begin(), loans_here.end()) ? 1U : 0U;
    }
    return free >= needed;
  }
  auto Choose() const {
    return ChooseLoans(loans,
                       [this](const std::vector<std::size_t>& ended) { return Suffices(ended); });
  }
  std::int64_t Work(const std::vector<std::size_t>& choice) const {
    std::int64_t work = 0;
    for (const std::size_t loan : choice) work += loans[loan].work;
    return work;
  }
};

Hosts RandomHosts(Rng& rng, int loans, int hosts) {
  Hosts made;
  for (int i = 0; i < loans; ++i) {
    made.loans.push_back({.chips = Number(rng, 1, 8) * 16, .work = Number(rng, 0, 5)});
  }
  made.on.resize(static_cast<std::size_t>(hosts));
  for (std::size_t i = 0; i < made.loans.size(); ++i) {
    for (auto& host : made.on) {
      if (rng.Below(4) == 0) host.insert(i);
    }
  }
  made.needed = static_cast<std::size_t>(Number(rng, 0, hosts + 1));
  return made;
}

TEST(LoanChoiceTest, NobodyIsEndedWithoutNeedOrUse) {
  const Hosts free{.loans = {{64, 1}}, .on = {{}, {0}}, .needed = 1};
  EXPECT_THAT(free.Choose(), Optional(IsEmpty()));
  const Hosts hopeless{.loans = {{64, 1}}, .on = {{0}}, .needed = 2};
  EXPECT_EQ(hopeless.Choose(), std::nullopt);
}

TEST(LoanChoiceTest, OneLargeGangComesBeforeTwoSmallOnes) {
  const Hosts hosts{
      .loans = {{16, 1}, {16, 1}, {128, 100}}, .on = {{0}, {1}, {2}, {2}}, .needed = 2};
  EXPECT_THAT(hosts.Choose(), Optional(ElementsAre(2)));
}

TEST(LoanChoiceTest, AmongEquallyFewLoansThoseThatLoseLeastEnd) {
  const Hosts hosts{.loans = {{64, 9}, {64, 3}, {64, 5}}, .on = {{0}, {1}, {2}}, .needed = 1};
  EXPECT_THAT(hosts.Choose(), Optional(ElementsAre(1)));
}

TEST(LoanChoiceTest, IsTheBestOfAllChoices) {
  Rng rng(7);
  for (int round = 0; round < 400; ++round) {
    const Hosts hosts =
        RandomHosts(rng, static_cast<int>(Number(rng, 0, 7)), static_cast<int>(Number(rng, 1, 5)));
    std::optional<std::pair<std::size_t, std::int64_t>> best;
    for (unsigned mask = 0; mask < 1U << hosts.loans.size(); ++mask) {
      std::vector<std::size_t> choice;
      for (std::size_t i = 0; i < hosts.loans.size(); ++i) {
        if ((mask >> i & 1U) != 0) choice.push_back(i);
      }
      if (!hosts.Suffices(choice)) continue;
      const std::pair cost(choice.size(), hosts.Work(choice));
      if (!best || cost < *best) best = cost;
    }
    const auto chosen = hosts.Choose();
    ASSERT_EQ(chosen.has_value(), best.has_value()) << round;
    if (!chosen) continue;
    EXPECT_TRUE(hosts.Suffices(*chosen));
    EXPECT_EQ(std::pair(chosen->size(), hosts.Work(*chosen)), *best) << round;
  }
}

// With too many choices to try all, none of those that are ended could stay.
TEST(LoanChoiceTest, EndsNoLoanThatCouldStay) {
  Rng rng(8);
  for (int round = 0; round < 50; ++round) {
    const Hosts hosts = RandomHosts(rng, 40, 12);
    const auto chosen = hosts.Choose();
    if (!chosen) continue;
    EXPECT_TRUE(hosts.Suffices(*chosen));
    for (const std::size_t loan : *chosen) {
      std::vector<std::size_t> rest = *chosen;
      std::erase(rest, loan);
      EXPECT_FALSE(hosts.Suffices(rest)) << round;
    }
  }
}

TEST(LoanChoiceTest, ManyHostsOfOneGangEachTakeThoseThatLoseLeast) {
  Hosts hosts{.loans = {}, .on = {}, .needed = 5};
  for (std::size_t i = 0; i < 64; ++i) {
    hosts.loans.push_back({.chips = 64, .work = static_cast<std::int64_t>((i * 37) % 64)});
    hosts.on.push_back({i});
  }
  const auto chosen = hosts.Choose();
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->size(), 5U);
  EXPECT_EQ(hosts.Work(*chosen), 0 + 1 + 2 + 3 + 4);
}

}  // namespace
}  // namespace tahoma::controller
