// CapacityBlockExtensions: bought once, refused for good, and shown when they cannot be lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/reserve/block.h"
#include "tests/unit/controller/core/request_world.h"

namespace tahoma::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kExtensions[] = "capacityblockextensions";

class ExtensionTest : public ::testing::Test {
 protected:
  ExtensionTest() {
    world.Settle();
    world.Buy("train");
  }

  void Extend(const std::string& name, const Json& spec) {
    world.Apply(kExtensions, "team-a", name, spec);
    world.Settle();
  }
  Json Status(const std::string& name) const { return world.Status(kExtensions, "team-a", name); }
  std::string Refusal(const std::string& name) const {
    const Json status = Status(name);
    if (!status.value("state", "").empty()) return "bought";
    return status.value("reason", "") + ": " + status.value("message", "");
  }
  std::size_t Extensions() const { return world.BlockOf("train").extensions.size(); }

  RequestWorld world;
  const Json day = {{"capacityBlockName", "train"}, {"capacityBlockExtensionDurationHours", 24}};
};

TEST_F(ExtensionTest, ADayMoreByNameIsBoughtAndShown) {
  const WallTime end = world.BlockOf("train").end;
  Extend("more", day);
  EXPECT_EQ(world.BlockOf("train").end, end + std::chrono::hours(24));
  const Json status = Status("more");
  EXPECT_EQ(status.at("state"), "payment-succeeded");
  EXPECT_EQ(status.at("capacityReservationId"), world.BlockOf("train").reservation);
  EXPECT_EQ(status.at("capacityBlockExtensionStartDate"), FormatTime(end));
  EXPECT_EQ(status.at("capacityBlockExtensionEndDate"), FormatTime(world.BlockOf("train").end));
  EXPECT_EQ(status.at("capacityBlockExtensionDurationHours"), 24);
  EXPECT_EQ(status.at("upfrontFee"), world.BlockOf("train").extensions[0].fee.ToString());
  EXPECT_EQ(status.at("conditions").at(0).at("type"), "PaymentSettled");
  EXPECT_EQ(status.at("conditions").at(0).at("status"), "True");
  EXPECT_THAT(world.events, Contains("CapacityBlockExtension more: ExtensionSucceeded"));
  EXPECT_THAT(world.events, Contains("CapacityBlock train: CapacityBlockExtended"));
}

TEST_F(ExtensionTest, TheReservationNamesTheBlockAsWell) {
  Extend("more", {{"capacityReservationId", world.BlockOf("train").reservation},
                  {"capacityBlockExtensionDurationHours", 48}});
  EXPECT_EQ(Status("more").at("capacityBlockName"), "train");
  EXPECT_EQ(Status("more").at("state"), "payment-succeeded");
}

TEST_F(ExtensionTest, AnOfferingIsBoughtAsItIs) {
  const Block& block = world.BlockOf("train");
  const std::string id = ExtensionOfferingId({.reservation = block.reservation,
                                              .start = block.end,
                                              .end = block.end + std::chrono::hours(24),
                                              .rate = block.bought.rate,
                                              .count = block.bought.count});
  Extend("more", {{"capacityBlockName", "train"}, {"capacityBlockExtensionOfferingId", id}});
  EXPECT_EQ(Status("more").at("capacityBlockExtensionOfferingId"), id);
  Extend("again", {{"capacityBlockName", "train"}, {"capacityBlockExtensionOfferingId", id}});
  EXPECT_THAT(Refusal("again"), HasSubstr("InvalidCapacityBlockOfferingIdExpired: "));
}

TEST_F(ExtensionTest, AReplayOrARestartBuysNothingAgain) {
  Extend("more", day);
  const int writes = world.status_writes;
  world.Replay();
  world.Settle();
  world.Start();
  world.Settle();
  EXPECT_EQ(Extensions(), 1U);
  EXPECT_EQ(Status("more").at("state"), "payment-succeeded");
  EXPECT_EQ(world.status_writes, writes);  // what is shown is as it should be
}

TEST_F(ExtensionTest, AStandByWithAnEmptyDiskBuysNothingAgain) {
  Extend("more", day);
  world.FailOver();
  world.Settle();
  EXPECT_EQ(Extensions(), 1U);
  EXPECT_EQ(Status("more").at("state"), "payment-succeeded");
}

// Whatever was written when the first controller died, one extension is bought in the end, and one
// that was shown is not lost.
TEST_F(ExtensionTest, OneExtensionIsBoughtWhereverAControllerDies) {
  for (const bool journal_lost : {false, true}) {
    for (int writes = 0; writes < 8; ++writes) {
      SCOPED_TRACE(fmt::format("{} writes, journal {}", writes, journal_lost ? "lost" : "kept"));
      RequestWorld one;
      one.Settle();
      one.Buy("train");
      one.Apply(kExtensions, "team-a", "more", day);
      one.Settle(writes);
      const bool was_shown = !one.State(kExtensions, "more").empty();
      if (journal_lost) {
        one.FailOver();
      } else {
        one.Start();
      }
      if (was_shown) {
        one.Settle(0);
        EXPECT_EQ(one.View("train")->block->extensions.size(), 1U);
      }
      one.Settle();
      EXPECT_EQ(one.BlockOf("train").extensions.size(), 1U);
      EXPECT_EQ(one.State(kExtensions, "more"), "payment-succeeded");
    }
  }
}

TEST_F(ExtensionTest, ItIsShownOnlyWhenTheBlockShowsIt) {
  world.fails = [](const ApiWrite& write) { return write.kind() == WriteKind::kBlockStatus; };
  Extend("more", day);
  EXPECT_EQ(Extensions(), 1U);
  EXPECT_EQ(Status("more"), Json::object());
  world.fails = [](const ApiWrite&) { return false; };
  world.Pass(RetryPolicy::kFirst);
  EXPECT_EQ(Status("more").at("state"), "payment-succeeded");
}

TEST_F(ExtensionTest, ARefusalSaysWhatWouldBeLegalAndIsForGood) {
  Extend("odd", {{"capacityBlockName", "train"}, {"capacityBlockExtensionDurationHours", 25}});
  EXPECT_EQ(Refusal("odd"),
            "InvalidParameterValue: CapacityBlockExtensionDurationHours 25: must be 24 to 336 in "
            "steps of 24, or 504 to 4368 in steps of 168");
  EXPECT_THAT(world.events, Contains("CapacityBlockExtension odd: Refused"));
  Extend("long", {{"capacityBlockName", "train"}, {"capacityBlockExtensionDurationHours", 4368}});
  EXPECT_THAT(Refusal("long"), HasSubstr("InvalidParameterValue: "));
  EXPECT_THAT(Refusal("long"), HasSubstr("it may end 2027-05-24T11:30:00Z at the latest"));
  // Both UltraServers are another's on the day after.
  world.Apply("capacityblocks", "team-b", "both",
              {{"capacityBlockOfferingId", world.Offering(1, 2, 2)}});
  world.Settle();
  ASSERT_EQ(world.Status("capacityblocks", "team-b", "both").value("state", ""), "scheduled");
  Extend("full", day);
  EXPECT_THAT(Refusal("full"), HasSubstr("InsufficientInstanceCapacity: no capacity for cr-"));
  world.Replay();
  world.Start();
  world.Settle();
  EXPECT_THAT(Refusal("full"), HasSubstr("InsufficientInstanceCapacity: "));
  EXPECT_EQ(Extensions(), 0U);
}

TEST_F(ExtensionTest, ARefusalThatIsNotWrittenYetIsNotTriedAgain) {
  world.fails = [](const ApiWrite& write) { return write.kind() == WriteKind::kRequestStatus; };
  Extend("odd", {{"capacityBlockName", "train"}, {"capacityBlockExtensionDurationHours", 25}});
  Extend("more", day);  // the block has changed: all of its extensions are looked at
  world.fails = [](const ApiWrite&) { return false; };
  world.Pass(RetryPolicy::kFirst);
  EXPECT_THAT(Refusal("odd"), HasSubstr("InvalidParameterValue"));
  EXPECT_EQ(
      std::count(world.events.begin(), world.events.end(), "CapacityBlockExtension odd: Refused"),
      1);
}

TEST_F(ExtensionTest, ABlockThatIsNotThereIsWaitedForAWhile) {
  Extend("more", {{"capacityBlockName", "later"}, {"capacityBlockExtensionDurationHours", 24}});
  EXPECT_EQ(Refusal("more"), ": ");
  Extend("never", {{"capacityBlockName", "never"}, {"capacityBlockExtensionDurationHours", 24}});
  world.Pass(std::chrono::seconds(10));
  world.RemoveUltraServer(1);
  world.Settle();
  world.AddUltraServer(1);
  world.Settle();
  world.Apply("capacityblocks", "team-a", "later",
              {{"capacityBlockOfferingId", world.Offering(2)}});
  world.Settle();
  ASSERT_EQ(world.State("capacityblocks", "later"), "scheduled");
  EXPECT_EQ(Status("more").value("state", Refusal("more")), "payment-succeeded");
  world.Pass(BlockExtensions::kBlockSeenWithin);
  EXPECT_EQ(Refusal("never"),
            "InvalidCapacityReservationId.NotFound: there is no CapacityBlock never that was "
            "bought in namespace team-a");
}

TEST_F(ExtensionTest, OnATestClockABlockThatIsNotThereIsWaitedForAsLong) {
  RequestWorld fast;
  fast.options.block_time = BlockTime(fast.wall, 1440);
  fast.Start();
  fast.Settle();
  fast.Pass(std::chrono::minutes(1));
  fast.Apply(kExtensions, "team-a", "more", day);
  fast.Settle();
  fast.Pass(std::chrono::seconds(20));
  EXPECT_EQ(fast.Status(kExtensions, "team-a", "more"), Json::object());
  fast.Buy("train");
  EXPECT_EQ(fast.State(kExtensions, "more"), "payment-succeeded");
}

TEST_F(ExtensionTest, ABlockOfAnotherNamespaceIsNone) {
  world.Apply(kExtensions, "team-b", "steal",
              {{"capacityReservationId", world.BlockOf("train").reservation},
               {"capacityBlockExtensionDurationHours", 24}});
  world.Settle();
  const Json status = world.Status(kExtensions, "team-b", "steal");
  EXPECT_EQ(status.at("reason"), "InvalidCapacityReservationId.NotFound");
  EXPECT_EQ(Extensions(), 0U);
}

TEST_F(ExtensionTest, TheSameTokenIsOnePurchaseAndNoOther) {
  Json spec = day;
  spec["clientToken"] = "t";
  Extend("one", spec);
  Extend("two", spec);
  EXPECT_EQ(Extensions(), 1U);
  EXPECT_EQ(Status("two").at("state"), "payment-succeeded");
  spec["capacityBlockExtensionDurationHours"] = 48;
  Extend("three", spec);
  EXPECT_THAT(Refusal("three"), HasSubstr("IdempotentParameterMismatch: "));
}

TEST_F(ExtensionTest, APaymentThatFailsLeavesTheEnd) {
  RequestWorld slow;
  slow.options.blocks.payment.delay = std::chrono::hours(1);
  slow.Start();
  slow.Settle();
  slow.Apply("capacityblocks", "team-a", "train", {{"capacityBlockOfferingId", slow.Offering(2)}});
  slow.Settle();
  slow.Pass(std::chrono::hours(2));
  const WallTime end = slow.BlockOf("train").end;
  // Not paid after an hour when the deadline is nearer: 35 minutes before the end.
  slow.MoveTo(end - std::chrono::minutes(80));
  slow.Apply(kExtensions, "team-a", "more", day);
  slow.Settle();
  EXPECT_EQ(slow.State(kExtensions, "more"), "payment-pending");
  EXPECT_THAT(slow.Status(kExtensions, "team-a", "more").at("message").get<std::string>(),
              HasSubstr("must be paid by " + FormatTime(end - std::chrono::minutes(35))));
  slow.MoveTo(end - std::chrono::minutes(34));
  EXPECT_EQ(slow.State(kExtensions, "more"), "payment-failed");
  EXPECT_EQ(slow.BlockOf("train").end, end);
  EXPECT_THAT(slow.events, Contains("CapacityBlockExtension more: ExtensionPaymentFailed"));
}

TEST_F(ExtensionTest, WhatSomebodyWritesIntoTheStatusIsPutRight) {
  Extend("more", day);
  const Json before = Status("more");
  world.Edit(kExtensions, "team-a", "more",
             {{"state", "payment-failed"}, {"upfrontFee", "0.00"}, {"reason", "Oops"}});
  world.Settle();
  EXPECT_EQ(Status("more"), before);
}

TEST_F(ExtensionTest, AnExtensionOutlivesItsObjectAndAnObjectItsBlock) {
  Extend("more", day);
  world.Delete(kExtensions, "team-a", "more");
  world.Settle();
  EXPECT_EQ(Extensions(), 1U);
  Extend("other", {{"capacityBlockName", "train"}, {"capacityBlockExtensionDurationHours", 48}});
  const Json status = Status("other");
  world.MoveTo(world.BlockOf("train").end);
  world.Delete("capacityblocks", "team-a", "train");
  world.Settle();
  EXPECT_EQ(world.View("train"), nullptr);
  world.Start();
  world.Pass(std::chrono::hours(1));
  EXPECT_EQ(Status("other"), status);
}

}  // namespace
}  // namespace tahoma::controller
