// The decision log: what is kept, and that copies do not change.

#include "controller/core/decision_log.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

WallTime At(int seconds) { return WallTime(std::chrono::seconds(1'800'000'000 + seconds)); }

LoggedDecision Blocked(int number) {
  return {.when = At(number),
          .gang = {.key = {"a", std::to_string(number)}, .single = false},
          .kind = DecisionKind::kBlocked,
          .message = "why"};
}

TEST(DecisionLogTest, IsEmptyAtFirst) {
  const DecisionLog log;
  EXPECT_EQ(log.first(), log.end());
}

TEST(DecisionLogTest, KeepsTheLastOnesInOrderAndACopyStaysAsItWas) {
  DecisionLog log;
  DecisionLog copy;
  const int count = static_cast<int>(DecisionLog::kEntriesMost) + 1000;
  for (int i = 0; i < count; ++i) {
    log.Add(Blocked(i));
    if (i == 500) copy = log;
  }
  EXPECT_EQ(log.end() - log.first(), DecisionLog::kEntriesMost);
  for (std::uint64_t id = log.first(); id < log.end(); ++id) {
    EXPECT_EQ(log.at(id).id, id);
    const auto number = static_cast<int>(id - log.end()) + count;
    ASSERT_EQ(log.at(id).gang.key.name, std::to_string(number));
  }
  ASSERT_EQ(copy.end() - copy.first(), 501U);
  EXPECT_EQ(copy.at(copy.first()).gang.key.name, "0");
  EXPECT_EQ(copy.at(copy.end() - 1).gang.key.name, "500");
}

TEST(DecisionLogTest, IdsOfALaterProcessAreHigher) {
  DecisionLog before, after;
  for (int i = 0; i < 100; ++i) before.Add(Blocked(0));
  after.Add(Blocked(1));
  EXPECT_GT(after.first(), before.end());
}

TEST(DecisionLogTest, LongTextsAreCutBetweenCharacters) {
  DecisionLog log;
  LoggedDecision decision = Blocked(0);
  decision.message.clear();
  for (int i = 0; i < 5000; ++i) decision.message += "ü";
  GangDecision wide;
  wide.key = {"a", "b"};
  for (int i = 0; i < 500; ++i) {
    wide.slices.push_back(
        {.domain = "us-" + std::to_string(i), .shape = "4x4x4", .origin = "0,0,0", .nodes = {}});
  }
  log.Add(decision);
  log.Add(DecisionKind::kPlaced, wide, "", At(0));
  EXPECT_EQ(log.at(log.first()).message.size(), DecisionLog::kTextMost);
  EXPECT_TRUE(IsUtf8(log.at(log.first()).message));
  EXPECT_EQ(log.at(log.first() + 1).where.size(), DecisionLog::kTextMost);
  EXPECT_TRUE(log.at(log.first() + 1).where.starts_with("us-0 4x4x4+0,0,0; us-1 "));
}

}  // namespace
}  // namespace tahoma::controller
