// The decision log: what is kept, and that copies do not change.

#include "controller/core/decision_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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
  log.Add(LoggedOf(DecisionKind::kPlaced, wide, At(0)));
  EXPECT_EQ(log.at(log.first()).message.size(), DecisionLog::kTextMost);
  EXPECT_TRUE(IsUtf8(log.at(log.first()).message));
  EXPECT_EQ(log.at(log.first() + 1).where.size(), DecisionLog::kTextMost);
  EXPECT_TRUE(log.at(log.first() + 1).where.starts_with("us-0 4x4x4+0,0,0; us-1 "));
}

GangDecision OnTwoNodes() {
  GangDecision decision;
  decision.key = {"a", "train"};
  decision.pods = {{.name = "train-0", .uid = "u0", .node = "node-1"},
                   {.name = "train-1", .uid = "u1", .node = "node-2"}};
  return decision;
}

TEST(DecisionLineTest, SaysTheGangThePodsAndTheirNodes) {
  LoggedDecision placed = LoggedOf(DecisionKind::kPlaced, OnTwoNodes(), At(0));
  placed.waited = std::chrono::milliseconds(3214);
  EXPECT_EQ(DecisionLine(placed),
            "gang a/train: placed on node-1; node-2; pods: train-0 on node-1, train-1 on node-2; "
            "3.214 s after its last pod was created");
  LoggedDecision undone = LoggedOf(DecisionKind::kUndone, OnTwoNodes(), At(0));
  undone.reason = GangReason::kMemberLost;
  undone.message = "pod train-1 was deleted";
  EXPECT_EQ(DecisionLine(undone),
            "gang a/train: taken back (MemberLost): pod train-1 was deleted; pods: train-0 on "
            "node-1, train-1 on node-2");
}

TEST(DecisionLineTest, SaysThePodAndTheNodeOnceWithoutAGang) {
  GangDecision decision = OnTwoNodes();
  decision.single = true;
  decision.pods.resize(1);
  EXPECT_EQ(DecisionLine(LoggedOf(DecisionKind::kBound, decision, At(0))),
            "pod a/train: bound on node-1");
}

TEST(DecisionLineTest, SaysWhyAGangWaits) {
  LoggedDecision blocked = Blocked(7);
  blocked.reason = GangReason::kWaitsForCapacity;
  EXPECT_EQ(DecisionLine(blocked), "gang a/7: waits (WaitsForCapacity): why");
}

TEST(DecisionLineTest, IsOneBoundedLineWhateverTheTextsAre) {
  GangDecision many = OnTwoNodes();
  many.pods.clear();
  for (int i = 0; i < 1000; ++i) {
    many.pods.push_back({.name = "p-" + std::to_string(i), .uid = "u", .node = "n"});
  }
  LoggedDecision logged = LoggedOf(DecisionKind::kUndone, many, At(0));
  logged.message = "container main: two\nlines\r and a \x7f\x1b[31m";
  const std::string line = DecisionLine(logged);
  EXPECT_LE(line.size(), 4 * DecisionLog::kTextMost);
  EXPECT_EQ(std::ranges::count_if(line, [](unsigned char c) { return c < ' ' || c == 0x7f; }), 0);
  // Each pod is either named or counted.
  const std::string rest = line.substr(line.find("; pods: "));
  const auto named = std::ranges::count(rest, 'p') - 1;
  EXPECT_TRUE(rest.ends_with(fmt::format(", and {} more", 1000 - named))) << rest;
}

}  // namespace
}  // namespace tahoma::controller
