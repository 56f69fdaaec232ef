// CapacityBlockWaitlistEntries: served when there is more to be had, in the order of their
// creation, with bounded work.

#include "controller/core/blocks/waitlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/controller/core/request_world.h"

namespace tahoma::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kWaits[] = "capacityblockwaitlistentries";

class WaitlistTest : public ::testing::Test {
 protected:
  WaitlistTest() {
    world.Settle();
    // The first nine weeks of the only UltraServer are another's.
    world.Apply(kBlocks, "team-b", "all", {{"capacityBlockOfferingId", world.Offering(63)}});
    world.Settle();
    TAHOMA_CHECK(world.Status(kBlocks, "team-b", "all").value("state", "") == "scheduled");
  }

  Json Spec(int hours = 24) const {
    return {{"ultraserverType", "u-trn2x64"},
            {"ultraserverCount", 1},
            {"capacityDurationHours", hours},
            {"startDateRange", "2026-11-25T00:00:00Z"},
            {"endDateRange", "2026-12-20T11:30:00Z"}};
  }
  void Apply(const std::string& name, const Json& spec) {
    world.Apply(kWaits, "team-a", name, spec);
    world.Settle();
  }
  Json Status(const std::string& name) const { return world.Status(kWaits, "team-a", name); }
  std::string State(const std::string& name) const { return world.State(kWaits, name); }

  JournalBuffer buffer_;
  WriteBuffer writes_;
  RequestWorld world{1};
};

TEST_F(WaitlistTest, AnEntryWaitsUntilThereIsMoreToBeHad) {
  Apply("one", Spec());
  EXPECT_EQ(State("one"), "waiting");
  EXPECT_EQ(Status("one").at("message"), "waits for 1 u-trn2x64 for 24 hours");
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("one"), "fulfilled");
  EXPECT_EQ(world.State(kBlocks, "one"), "scheduled");
  EXPECT_EQ(Status("one").at("capacityBlockName"), "one");
  EXPECT_EQ(Status("one").at("startDate"), "2026-11-25T11:30:00Z");
  EXPECT_EQ(Status("one").at("capacityReservationId"), world.BlockOf("one").reservation);
  EXPECT_THAT(world.events, Contains("CapacityBlockWaitlistEntry one: WaitlistFulfilled"));
}

TEST_F(WaitlistTest, WhatCanBeHadAtOnceIsBoughtAtOnce) {
  world.AddUltraServer(1);
  world.Settle();
  Json spec = Spec();
  spec["capacityBlockName"] = "train";
  Apply("one", spec);
  EXPECT_EQ(State("one"), "fulfilled");
  EXPECT_EQ(world.State(kBlocks, "train"), "scheduled");
}

TEST_F(WaitlistTest, TheOldestIsServedFirst) {
  Apply("z", Spec(14 * 24));
  world.Pass(std::chrono::seconds(2));
  Apply("a", Spec(14 * 24));
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("z"), "fulfilled");
  EXPECT_EQ(State("a"), "waiting");  // 25 days have no room for both
}

TEST_F(WaitlistTest, ARepairIsRoom) {
  world.AddUltraServer(1);
  world.Settle();
  world.RemoveUltraServer(1);
  world.Settle();
  Apply("one", Spec());
  EXPECT_EQ(State("one"), "waiting");
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("one"), "fulfilled");
}

TEST_F(WaitlistTest, NotifyShowsTheOfferingAndBuysNothing) {
  Json spec = Spec();
  spec["action"] = "Notify";
  Apply("one", spec);
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("one"), "found");
  EXPECT_THAT(Status("one").at("message").get<std::string>(), HasSubstr("buy it before others do"));
  EXPECT_EQ(world.core().snapshot()->block_list.size(), 1U);
  world.Apply(kBlocks, "team-a", "bought",
              {{"capacityBlockOfferingId", Status("one").at("capacityBlockOfferingId")}});
  world.Settle();
  EXPECT_EQ(world.State(kBlocks, "bought"), "scheduled");
}

TEST_F(WaitlistTest, WhatIsTooDearIsNotBought) {
  Json spec = Spec();
  spec["maxUpfrontFee"] = "3433.03";
  Apply("one", spec);
  spec["maxUpfrontFee"] = "3433.04";
  Apply("two", spec);
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("one"), "waiting");
  EXPECT_EQ(State("two"), "fulfilled");
}

TEST_F(WaitlistTest, AQuotaKeepsAnEntryWaiting) {
  world.Apply("capacityblockquotas", "", "team-a", {{"instances", 0}});
  Apply("one", Spec());
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("one"), "waiting");
  EXPECT_THAT(Status("one").at("message").get<std::string>(), HasSubstr("InstanceLimitExceeded"));
}

TEST_F(WaitlistTest, TheWindowEnds) {
  Apply("one", Spec());
  world.MoveTo(*ParseTime("2026-12-20T11:30:00Z"));
  EXPECT_EQ(State("one"), "expired");
  EXPECT_THAT(world.events, Contains("CapacityBlockWaitlistEntry one: WaitlistExpired"));
  world.AddUltraServer(1);
  world.Settle();
  EXPECT_EQ(State("one"), "expired");
  EXPECT_EQ(world.View("one"), nullptr);
}

// A day of blocks passes in a minute.
TEST_F(WaitlistTest, OnATestClockTheWindowIsThatOfBlocks) {
  RequestWorld fast{1};
  fast.options.block_time = BlockTime(fast.wall, 1440);
  fast.Start();
  fast.Settle();
  fast.Pass(std::chrono::minutes(10));  // ten days
  fast.Apply(kBlocks, "team-b", "all", {{"capacityBlockOfferingId", fast.Offering(63)}});
  fast.Settle();
  ASSERT_EQ(fast.Status(kBlocks, "team-b", "all").value("state", ""), "scheduled");
  Json spec = Spec();
  spec["startDateRange"] = "2026-12-04T00:00:00Z";
  fast.Apply(kWaits, "team-a", "one", spec);  // until 2026-12-20
  fast.Settle();
  EXPECT_EQ(fast.State(kWaits, "one"), "waiting");
  fast.Pass(std::chrono::minutes(16));
  EXPECT_EQ(fast.State(kWaits, "one"), "waiting");
  fast.Pass(std::chrono::minutes(2));
  EXPECT_EQ(fast.State(kWaits, "one"), "expired");
}

TEST_F(WaitlistTest, AWindowBeyondTheHorizonIsSoldWhenItMayBe) {
  Json spec = Spec();
  spec["startDateRange"] = "2027-02-01T11:30:00Z";
  spec["endDateRange"] = "2027-03-01T11:30:00Z";
  Apply("one", spec);
  EXPECT_EQ(State("one"), "waiting");
  world.MoveTo(*ParseTime("2027-02-01T11:30:00Z") - kHorizon);
  EXPECT_EQ(State("one"), "fulfilled");
  EXPECT_EQ(Status("one").at("startDate"), "2027-02-01T11:30:00Z");
}

TEST_F(WaitlistTest, AnEntryIsServedOnceWhereverAControllerDies) {
  for (const bool journal_lost : {false, true}) {
    for (int writes = 0; writes < 6; ++writes) {
      SCOPED_TRACE(fmt::format("{} writes, journal {}", writes, journal_lost ? "lost" : "kept"));
      RequestWorld one;
      one.Settle();
      one.Apply(kWaits, "team-a", "one", Spec());
      one.Settle(writes);
      const bool was_shown = one.State(kWaits, "one") == "fulfilled";
      if (journal_lost) {
        one.FailOver();
      } else {
        one.Start();
      }
      if (was_shown) {
        one.Settle(0);
        EXPECT_EQ(one.core().snapshot()->block_list.size(), 1U);
      }
      one.Settle();
      EXPECT_EQ(one.State(kWaits, "one"), "fulfilled");
      EXPECT_EQ(one.core().snapshot()->block_list.size(), 1U);
    }
  }
}

TEST_F(WaitlistTest, AStepLooksAtABoundedNumberOfEntries) {
  CapacityBlocks blocks(BookOptions{}, buffer_, writes_);
  Waitlist waitlist(blocks);
  constexpr int kEntries = 100;
  for (int i = 0; i < kEntries; ++i) {
    RequestFact fact{.key = {RequestKind::kWaitlistEntry, "team-a", std::to_string(1000 + i)},
                     .created = world.wall + std::chrono::seconds(i)};
    WaitlistRequest request;
    request.query.ultraserver_type = "u-trn2x64";
    fact.spec = request;
    waitlist.Put(fact);
  }
  int looked = 0;
  std::string last;
  while (waitlist.has_due()) {
    const std::vector<RequestKey> due = waitlist.DrainDue();
    ASSERT_LE(due.size(), Waitlist::kLooksTogether);
    for (const RequestKey& key : due) {
      EXPECT_LT(last, key.name);
      last = key.name;
      ++looked;
    }
  }
  EXPECT_EQ(looked, kEntries);
  waitlist.NoteChanges();
  EXPECT_FALSE(waitlist.has_due());  // nothing has changed
}

}  // namespace
}  // namespace tahoma::controller
