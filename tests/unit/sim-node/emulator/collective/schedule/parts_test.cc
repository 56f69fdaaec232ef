// Requests divided among ranks: what each part is, and what lists of counts and pairs mean.

#include "sim-node/emulator/collective/schedule/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;
using torus::ChipIndex;

Request Of(Operation operation, std::uint64_t bytes) {
  return {.operation = operation, .bytes = bytes, .type = ElementType::kUint8};
}

std::string MessageOf(const absl::Status& status) { return std::string(tahoma::Message(status)); }

TEST(BlocksTest, WithoutDisplacementsBlocksFollowOneAnother) {
  const std::vector<VariableCounts> counts = {{.send_counts = {2, 3}}, {.send_counts = {4, 0}}};
  const auto blocks = BlocksOf(counts, std::vector<std::size_t>{0, 1}, 6);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(*blocks,
            (std::vector<RankBlock>{{.from = 0, .to = 0, .count = 2, .begin = 0, .at = 0},
                                    {.from = 1, .to = 0, .count = 4, .begin = 0, .at = 2},
                                    {.from = 0, .to = 1, .count = 3, .begin = 2, .at = 0}}));
}

// Every rank's blocks in an order of its own, with gaps: the result must be what a program that
// knows only the lists and copies element by element gets.
TEST(BlocksTest, WhatEveryRankGetsIsWhatTheListsSay) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    const auto ranks = static_cast<std::size_t>(1 + rng.Below(6));
    constexpr std::uint64_t kElements = 200;
    std::vector<VariableCounts> counts(ranks);
    const auto places = [&](const std::vector<std::uint64_t>& lengths) {
      std::vector<std::size_t> order(ranks);
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = ranks; i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
      std::vector<std::uint64_t> at(ranks);
      std::uint64_t next = 0;
      for (const std::size_t i : order) {
        at[i] = next + rng.Below(3);
        next = at[i] + lengths[i];
      }
      return at;
    };
    for (VariableCounts& own : counts) {
      for (std::size_t to = 0; to < ranks; ++to) own.send_counts.push_back(rng.Below(30));
      own.send_displacements = places(own.send_counts);
    }
    for (std::size_t to = 0; to < ranks; ++to) {
      for (const VariableCounts& other : counts) {
        counts[to].receive_counts.push_back(other.send_counts[to]);
      }
      counts[to].receive_displacements = places(counts[to].receive_counts);
    }
    std::vector<std::size_t> entries(ranks);
    std::iota(entries.begin(), entries.end(), 0);
    const auto blocks = BlocksOf(counts, entries, kElements);
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    std::vector<std::vector<int>> expected(ranks, std::vector<int>(kElements));
    std::vector<std::vector<int>> got = expected;
    for (std::size_t to = 0; to < ranks; ++to) {
      for (std::size_t from = 0; from < ranks; ++from) {
        for (std::uint64_t i = 0; i < counts[from].send_counts[to]; ++i) {
          expected[to][counts[to].receive_displacements[from] + i] =
              static_cast<int>(1000 * (from + 1) + counts[from].send_displacements[to] + i);
        }
      }
    }
    for (const RankBlock& one : *blocks) {
      for (std::uint64_t i = 0; i < one.count; ++i) {
        got[static_cast<std::size_t>(one.to)][one.at + i] =
            static_cast<int>(1000 * (static_cast<std::uint64_t>(one.from) + 1) + one.begin + i);
      }
    }
    EXPECT_EQ(got, expected) << "round " << round;
  }
}

TEST(BlocksTest, ListsThatDoNotFitAreRefusedWithTheRank) {
  const auto message = [](const std::vector<VariableCounts>& counts) {
    const std::vector<std::size_t> entries = {0, counts.size() - 1};
    return MessageOf(BlocksOf(counts, entries, 8).status());
  };
  EXPECT_EQ(message({{.send_counts = {1, 2, 3}}}),
            "send_counts of rank 0 has 3 numbers; expected 2, one for each rank");
  EXPECT_EQ(message({{.send_counts = {1, 2}}, {.send_counts = {1, 2}, .send_displacements = {0}}}),
            "send_displs of rank 1 has 1 numbers; expected 2, one for each rank");
  EXPECT_EQ(message({{.send_counts = {2, 7}}}),
            "rank 0 sends 7 elements from 2 on to rank 1; its buffer has 8 elements");
  EXPECT_EQ(message({{.send_counts = {5, 1}}}),
            "rank 0 puts 5 elements of rank 1 at 5; its result has 8 elements");
  EXPECT_EQ(message({{.send_counts = {2, 2}, .receive_counts = {2, 2}},
                     {.send_counts = {3, 2}, .receive_counts = {2, 2}}}),
            "rank 1 sends 3 elements to rank 0, which expects 2");
  EXPECT_EQ(message({{.send_counts = {2, 2}, .receive_displacements = {0, 1}}}),
            "what rank 0 gets of ranks 0 and 1 overlaps at element 1");
  EXPECT_EQ(message({{.send_counts = {~0ULL, 2}, .send_displacements = {5, 0}}}),
            "rank 0 sends 18446744073709551615 elements from 5 on to rank 0; its buffer has 8 "
            "elements");
  const std::vector<std::size_t> many(kMaxCountedRanks + 1);
  EXPECT_EQ(MessageOf(BlocksOf({VariableCounts{}}, many, 8).status()),
            "counts for 513 ranks; expected at most 512 ranks in a group");
}

TEST(BlocksTest, APairMovesTheWholeBufferAndEachRankOnce) {
  const std::vector<std::pair<int, int>> pairs = {{0, 2}, {2, 0}, {1, 1}};
  const auto blocks = BlocksOf(pairs, 4, 10);
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ(*blocks,
            (std::vector<RankBlock>{{.from = 2, .to = 0, .count = 10, .begin = 0, .at = 0},
                                    {.from = 1, .to = 1, .count = 10, .begin = 0, .at = 0},
                                    {.from = 0, .to = 2, .count = 10, .begin = 0, .at = 0}}));
  const auto message = [](std::vector<std::pair<int, int>> wrong) {
    return MessageOf(BlocksOf(wrong, 4, 10).status());
  };
  EXPECT_EQ(message({{0, 4}}), "the pair [0, 4] names rank 4; expected 0 to 3");
  EXPECT_EQ(message({{-1, 0}}), "the pair [-1, 0] names rank -1; expected 0 to 3");
  EXPECT_EQ(message({{0, 1}, {0, 2}}), "rank 0 is the source of two pairs");
  EXPECT_EQ(message({{0, 1}, {2, 1}}), "rank 1 is the target of two pairs");
}

TEST(PartsTest, WithoutADivisionThereIsOnePartOfAll) {
  const std::vector<Member> members = MembersOf(0b1011, 4);
  const auto parts = PartsOf(Of(Operation::kAllReduce, 64), {}, members);
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 1U);
  EXPECT_EQ((*parts)[0].members, members);
  EXPECT_EQ((*parts)[0].request.blocks, nullptr);
  EXPECT_EQ(Division{}.ToString(), "");
}

TEST(PartsTest, AGroupHasTheChipsOfItsRanksInItsOrder) {
  // Ranks 0 to 3 are chip 0's, 4 to 7 chip 1's, 8 to 11 chip 3's.
  const std::vector<Member> members = MembersOf(0b1011, 4);
  const auto parts =
      PartsOf(Of(Operation::kAllGather, 64), {.groups = {{8, 9, 0, 1}, {2, 3, 11, 10}}}, members);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].members,
            (std::vector<Member>{{.chip = ChipIndex(3), .ranks = 2, .banks = 2},
                                 {.chip = ChipIndex(0), .ranks = 2, .banks = 2}}));
  EXPECT_EQ((*parts)[1].members,
            (std::vector<Member>{{.chip = ChipIndex(0), .ranks = 2, .banks = 2},
                                 {.chip = ChipIndex(3), .ranks = 2, .banks = 2}}));
}

// Two ranks of LNC 1 share a bank, the first and the second, the third and the fourth.
TEST(PartsTest, AGroupHasTheBanksOfItsRanks) {
  const auto banks_of = [](int ranks, int banks, std::vector<int> group) {
    const std::vector<Member> members = {{.chip = ChipIndex(0), .ranks = ranks, .banks = banks}};
    const auto parts =
        PartsOf(Of(Operation::kAllGather, 64), {.groups = {std::move(group)}}, members);
    EXPECT_TRUE(parts.ok()) << parts.status();
    return (*parts)[0].members[0].banks;
  };
  EXPECT_EQ(banks_of(4, 4, {2}), 1);
  EXPECT_EQ(banks_of(4, 4, {1, 3}), 2);
  EXPECT_EQ(banks_of(8, 4, {4, 5}), 1);
  EXPECT_EQ(banks_of(8, 4, {0, 1, 2}), 2);
  EXPECT_EQ(banks_of(8, 4, {0, 1, 2, 3, 4, 5, 6, 7}), 4);
  EXPECT_EQ(banks_of(2, 1, {0}), 1);
  EXPECT_EQ(banks_of(1, 4, {0}), 4) << "a rank with the whole chip";
}

TEST(PartsTest, RanksThatAreOnlyPairedKeepTheirBanks) {
  const std::vector<Member> members = {{.chip = ChipIndex(0), .ranks = 3, .banks = 2},
                                       {.chip = ChipIndex(1), .ranks = 1, .banks = 1}};
  const auto parts = PartsOf(Of(Operation::kPermute, 64), {.pairs = {{0, 3}}}, members);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ((*parts)[0].members, members);
}

TEST(PartsTest, CountsAreThoseOfTheRanksOfTheGroup) {
  const std::vector<Member> members = MembersOf(0b11, 2);  // ranks 0 to 3
  std::vector<VariableCounts> counts;
  for (std::uint64_t rank = 0; rank < 4; ++rank) counts.push_back({.send_counts = {rank, rank}});
  const auto parts = PartsOf(Of(Operation::kAllToAll, 64),
                             {.groups = {{0, 2}, {1, 3}}, .counts = counts}, members);
  ASSERT_TRUE(parts.ok()) << parts.status();
  std::vector<std::uint64_t> sent;
  for (const RankBlock& one : *(*parts)[1].request.blocks) sent.push_back(one.count);
  EXPECT_EQ(sent, (std::vector<std::uint64_t>{1, 3, 1, 3})) << "of ranks 1 and 3";
}

TEST(PartsTest, DivisionsThatDoNotFitAreRefusedWithTheRank) {
  const std::vector<Member> members = MembersOf(0b11, 2);
  const auto message = [&](Operation operation, const Division& division) {
    return MessageOf(PartsOf(Of(operation, 64), division, members).status());
  };
  const auto groups = [&](std::vector<std::vector<int>> given) {
    return message(Operation::kAllReduce, {.groups = std::move(given)});
  };
  EXPECT_EQ(groups({{}}), "replica group 0 is empty");
  EXPECT_EQ(groups({{0, 1}, {2}}), "replica group 1 has 1 ranks, replica group 0 has 2");
  EXPECT_EQ(groups({{0, 4}}), "replica group 0 names rank 4; expected 0 to 3");
  EXPECT_EQ(groups({{0, 1}, {2, 0}}), "rank 0 is twice in the replica groups");
  EXPECT_THAT(groups({{0, 2, 1, 3}}),
              HasSubstr("rank 1 is apart from the other ranks of its chip"));
  const std::vector<VariableCounts> counts = {{.send_counts = {1, 1, 1, 1}}};
  EXPECT_EQ(message(Operation::kAllReduce, {.counts = counts}),
            "all_reduce has no counts; expected alltoallv");
  EXPECT_EQ(message(Operation::kAllToAll, {.counts = {counts[0], counts[0]}}),
            "counts for 2 ranks; expected one entry for all, or 4, one for each");
  EXPECT_EQ(message(Operation::kSendReceive, {.pairs = {{0, 1}}}),
            "sendrecv has no pairs of ranks; expected permute");
  EXPECT_EQ(message(Operation::kPermute, {.groups = {{0, 1}}, .pairs = {{0, 1}}}),
            "pairs of ranks and replica groups exclude each other");
}

TEST(PartsTest, EveryDifferenceShowsInTheText) {
  const std::vector<Division> divisions = {
      {},
      {.groups = {{0, 1}, {2, 3}}},
      {.groups = {{0, 1, 2, 3}}},
      {.groups = {{0, 12}}},
      {.groups = {{0, 1}, {2}}},
      {.counts = {{.send_counts = {1, 2}}}},
      {.counts = {{.send_counts = {1, 2}, .receive_counts = {1, 2}}}},
      {.counts = {{.send_counts = {1, 2}}, {.send_counts = {1, 2}}}},
      {.pairs = {{0, 1}}},
      {.pairs = {{1, 0}}},
  };
  std::vector<std::string> texts;
  for (const Division& one : divisions) texts.push_back(one.ToString());
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
}

}  // namespace
}  // namespace tahoma::sim
