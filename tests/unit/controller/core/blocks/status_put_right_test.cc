// What somebody writes by hand into a status that the controller shows, and how a purchase that was
// refused is shown.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/core/facts/read_facts.h"
#include "controller/core/facts/shown_status.h"
#include "lib/base/json.h"
#include "tests/unit/controller/core/request_world.h"

namespace tahoma::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const Json kForged = {{"state", "active"}, {"endDate", "2030-01-01T11:30:00Z"}};

Json ConditionOf(const Json& status, const std::string& type) {
  for (const Json& condition : status.value("conditions", Json::array())) {
    if (condition["type"] == type) return condition;
  }
  return nullptr;
}

class StatusPutRightTest : public ::testing::Test {
 protected:
  StatusPutRightTest() { world_.Settle(); }
  Json Status(const std::string& name, const std::string& plural = kBlocks) {
    return world_.Status(plural, "team-a", name);
  }
  void Forge(const std::string& name, const Json& status, const std::string& plural = kBlocks) {
    world_.Edit(plural, "team-a", name, status);
  }
  void ApplyRefused() {
    world_.Apply(kBlocks, "team-a", "bad", {{"capacityBlockOfferingId", "cb-00"}});
    world_.Settle();
  }
  // Counts the statuses of blocks that are written from now on.
  void CountWrites() {
    world_.fails = [this](const ApiWrite& write) {
      writes_ += write.kind() == WriteKind::kBlockStatus ? 1 : 0;
      return false;
    };
  }

  RequestWorld world_;
  int writes_ = 0;
};

TEST_F(StatusPutRightTest, ABlockIsShownAsTheJournalHasIt) {
  world_.Buy("train");
  const Json before = Status("train");
  EXPECT_EQ(before["state"], "scheduled");
  EXPECT_EQ(ConditionOf(before, "Purchased")["status"], "True");
  Forge("train", kForged);
  world_.Settle();
  EXPECT_EQ(Status("train"), before);
  Forge("train", {{"conditions", nullptr}, {"reason", "Unsupported"}});
  world_.Settle();
  EXPECT_EQ(Status("train"), before);
  Forge("train", {{"record", nullptr}, {"recordVersion", nullptr}});
  world_.Settle();
  EXPECT_EQ(Status("train"), before);
}

TEST_F(StatusPutRightTest, ABlockIsPutRightThatWasChangedWhileNobodyLed) {
  world_.Buy("train");
  const Json before = Status("train");
  Forge("train", kForged);
  world_.Start();
  world_.Settle();
  EXPECT_EQ(Status("train"), before);
}

TEST_F(StatusPutRightTest, WhatIsRightIsNotWrittenAgain) {
  world_.Buy("train");
  ApplyRefused();
  CountWrites();
  world_.Replay();
  world_.Settle();
  world_.Start();
  world_.Settle();
  EXPECT_EQ(writes_, 0);
  Forge("train", kForged);
  world_.Settle();
  EXPECT_EQ(writes_, 1);
}

TEST_F(StatusPutRightTest, ARefusedPurchaseIsSeenToldAndWaitedFor) {
  ApplyRefused();
  const Json status = Status("bad");
  EXPECT_THAT(status["reason"].get<std::string>(), HasSubstr("InvalidCapacityBlockOfferingId"));
  const Json purchased = ConditionOf(status, "Purchased");
  EXPECT_EQ(purchased["status"], "False");
  EXPECT_EQ(purchased["reason"], "Refused");
  EXPECT_THAT(purchased["message"].get<std::string>(),
              HasSubstr(status["reason"].get<std::string>() + ": "));
  EXPECT_EQ(purchased["lastTransitionTime"], "2026-11-23T09:00:00Z");
  EXPECT_THAT(world_.events, Contains("CapacityBlock bad: CapacityBlockRefused").Times(1));
  world_.Replay();
  world_.Settle();
  world_.Start();
  world_.Settle();
  EXPECT_EQ(Status("bad"), status);
  EXPECT_THAT(world_.events, Contains("CapacityBlock bad: CapacityBlockRefused").Times(1));
}

TEST_F(StatusPutRightTest, ARefusedBlockDoesNotBecomeActiveByHand) {
  ApplyRefused();
  const Json before = Status("bad");
  Forge("bad", kForged);
  world_.Settle();
  EXPECT_EQ(Status("bad"), before);
  Forge("bad", kForged);
  world_.Start();
  world_.Settle();
  EXPECT_EQ(Status("bad"), before);
}

// As releases before this one have left it.
TEST_F(StatusPutRightTest, AnOlderRefusalGetsItsCondition) {
  ApplyRefused();
  Forge("bad", {{"conditions", nullptr}});
  world_.Start();
  world_.Settle();
  EXPECT_EQ(ConditionOf(Status("bad"), "Purchased")["status"], "False");
}

TEST_F(StatusPutRightTest, SoAreExtensionsAndSeries) {
  world_.Apply("capacityblockextensions", "team-a", "more",
               {{"capacityReservationId", "cr-none"}, {"capacityBlockExtensionDurationHours", 24}});
  world_.Apply("capacityblockseries", "team-a", "weekly",
               {{"ultraserverType", "u-trn2x64"},
                {"ultraserverCount", 1},
                {"capacityDurationHours", 24},
                {"occurrences", 2}});
  world_.Settle();
  for (const std::string plural : {"capacityblockextensions", "capacityblockseries"}) {
    const std::string name = plural == "capacityblockseries" ? "weekly" : "more";
    const Json before = Status(name, plural);
    ASSERT_FALSE(before.empty()) << plural;
    Forge(name, {{"state", "payment-succeeded"}}, plural);
    world_.Settle();
    EXPECT_EQ(Status(name, plural), before);
    // … where our status says nothing, too.
    Forge(name,
          name == "more" ? Json{{"capacityBlockExtensionEndDate", "2030-01-01T11:30:00Z"}}
                         : Json{{"capacityBlocks", Json::array()}},
          plural);
    world_.Settle();
    EXPECT_EQ(Status(name, plural), before);
    Json conditions = before["conditions"];
    conditions[0]["status"] = "Unknown";
    Forge(name, {{"conditions", conditions}}, plural);
    world_.Settle();
    EXPECT_EQ(Status(name, plural), before);
  }
}

TEST(ShownStatusTest, WhatIsToldLateOrIsOursIsNoNews) {
  ShownStatus shown;
  EXPECT_FALSE(shown.OnSeen("5", 50)) << "nothing was written yet";
  EXPECT_FALSE(shown.OnWritten("8", 80));
  EXPECT_FALSE(shown.OnSeen("7", 70)) << "it was before";
  EXPECT_FALSE(shown.OnSeen("8", 80));
  EXPECT_FALSE(shown.OnSeen("9", 80)) << "another part of the object";
  EXPECT_TRUE(shown.OnSeen("10", 100));
  EXPECT_TRUE(shown.OnWritten("9", 90)) << "the answer came after the news of what followed";
  EXPECT_FALSE(shown.OnWritten("11", 110));
}

TEST(StatusDigestTest, NullMembersAreAbsent) {
  const auto digest = [](const char* text) { return StatusDigest(ParseJson(text)); };
  EXPECT_EQ(digest(R"({"status": {"a": 1, "b": null, "c": {"d": null}}})"),
            digest(R"({"status": {"a": 1, "c": {}}})"));
  EXPECT_EQ(digest(R"({"status": {}})"), digest("{}"));
  EXPECT_NE(digest(R"({"status": {"a": 1}})"), digest(R"({"status": {"a": 2}})"));
  EXPECT_NE(digest(R"({"status": {"a": "1"}})"), digest(R"({"status": {"a": 1}})"));
  EXPECT_NE(digest(R"({"status": {"a": ["x", "y"]}})"), digest(R"({"status": {"a": ["y", "x"]}})"));
  EXPECT_NE(digest(R"({"status": {"a": true}})"), digest(R"({"status": {"a": false}})"));
}

}  // namespace
}  // namespace tahoma::controller
