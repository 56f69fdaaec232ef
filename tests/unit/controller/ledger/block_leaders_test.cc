// Capacity Blocks when leaders follow one another, each with a journal of its own: nothing that was
// published is lost, and nothing is sold twice.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controller/reserve/refusal.h"
#include "tests/support/memory_journal.h"
#include "tests/unit/controller/ledger/block_leader.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const BlockKey kTrain{"team-a", "train"};
const BlockKey kFirst{"team-a", "a"};  // is looked at before kTrain

class BlockLeadersTest : public ::testing::Test {
 protected:
  std::unique_ptr<Leader> Lead(MemoryJournal& journal, std::int64_t term, WallTime wall) {
    return std::make_unique<Leader>(api_, journal, term, wall);
  }

  const WallTime morning_ = *ParseTime("2026-11-23T09:00:00Z");
  BlockApi api_;
  MemoryJournal mine_, other_;
};

// The defect: its own journal, older than the API, was written over what the other had sold.
TEST_F(BlockLeadersTest, WhoLeadsAgainTakesOverWhatAnotherHasPublishedMeanwhile) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain);
  leader = Lead(other_, 1, morning_ + hours(1));
  leader->Extend(kTrain, "t");
  ASSERT_THAT(leader->answers, SizeIs(1));
  const Block extended = **leader->answers[0].block;
  leader = Lead(mine_, 2, extended.bought.end + hours(1));
  EXPECT_EQ(leader->Find(kTrain)->end, extended.end);
  EXPECT_EQ(StateName(leader->Find(kTrain)->state), "active");
  EXPECT_EQ(api_.Published(kTrain), *leader->Find(kTrain));
  // And its journal says so, too.
  api_.objects.clear();
  leader = Lead(mine_, 2, extended.bought.end + hours(1));
  EXPECT_EQ(leader->Find(kTrain)->end, extended.end);
}

// A change that was journalled and never published is older than whatever the next leader did.
TEST_F(BlockLeadersTest, AChangeThatWasNeverPublishedIsOlderThanTheNextLeaders) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain);
  leader->arrives = [](const ApiWrite&) { return false; };
  for (const auto& [key, fact] : api_.objects) {
    BlockFact changed = fact;
    for (int i = 0; i < 9; ++i) {  // so many changes that their numbers are larger
      changed.order.tags = {{"k", std::to_string(i)}};
      leader->blocks().OnBlock(std::make_shared<const BlockFact>(changed));
      leader->Settle();
    }
  }
  leader = Lead(other_, 1, morning_ + hours(1));
  leader->Extend(kTrain, "t");
  const Block extended = **leader->answers[0].block;
  leader = Lead(mine_, 2, morning_ + hours(2));
  EXPECT_EQ(*leader->Find(kTrain), extended);
}

// The defect: an order whose name came first was carried out before the block was known that has
// the capacity.
TEST_F(BlockLeadersTest, NothingIsSoldBeforeWhatIsPublishedIsTakenOver) {
  auto leader = Lead(mine_, 0, morning_);
  const std::string offering = leader->Offering(1, 2);
  leader->Buy(kTrain, 1, 2);
  BlockFact fact{.key = kFirst};
  fact.order.offering_id = offering;
  leader.reset();
  api_.Make(std::move(fact));
  leader = Lead(other_, 1, morning_);
  EXPECT_EQ(api_.refusals.at(kFirst), "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ(StateName(leader->Find(kTrain)->state), "scheduled");
  EXPECT_EQ(leader->blocks().book().blocks().size(), 1U);
}

// The defect: it took the place of what the next leader had published, and stayed there.
TEST_F(BlockLeadersTest, AStatusThatAFormerLeaderHasSentChangesNothing) {
  auto leader = Lead(mine_, 0, morning_);
  leader->arrives = [](const ApiWrite& write) { return write.kind != WriteKind::kBlockStatus; };
  leader->Buy(kTrain);
  ASSERT_THAT(leader->sent, SizeIs(1));
  const ApiWrite late = leader->sent[0];
  leader = Lead(other_, 1, morning_ + hours(1));
  const Block sold = api_.Published(kTrain);
  EXPECT_EQ(api_.Execute(late).outcome, WriteOutcome::kConflict);
  EXPECT_EQ(api_.Published(kTrain), sold);
}

TEST_F(BlockLeadersTest, ARecordThatSomebodyHasWrittenOverIsWrittenAgain) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain);
  const BlockFact old = api_.objects.at(kTrain);
  leader->Extend(kTrain, "t");
  BlockFact& object = api_.objects.at(kTrain);
  object.record = old.record;
  object.record_version = old.record_version;
  api_.Changed(object);
  leader->Settle();
  EXPECT_EQ(api_.Published(kTrain), *leader->Find(kTrain));
  EXPECT_THAT(api_.Published(kTrain).extensions, SizeIs(1));
}

// The defect: the second of two such blocks was refused, though it was sold. They are shown so when
// a leader and its disk end between the writes of two blocks.
TEST_F(BlockLeadersTest, OfTwoBlocksThatShowOneHostTheLaterRecordKeepsIt) {
  for (const bool is_replaced : {false, true}) {
    api_ = BlockApi();
    mine_ = other_ = MemoryJournal();
    auto leader = Lead(mine_, 0, morning_);
    leader->Buy(kTrain, 7, 1, ReplacePolicy::kAutomatic);
    leader->MoveTo(leader->Find(kTrain)->start());
    ASSERT_EQ(leader->Find(kTrain)->hosts, std::vector<std::string>{"us-0"});
    // Its host fails and is replaced, which nobody is shown; then another gets it.
    leader->arrives = [](const ApiWrite& write) { return write.name != "train"; };
    leader->SetHealthy(0, false);
    ASSERT_EQ(leader->Find(kTrain)->hosts, std::vector<std::string>{"us-1"});
    leader->SetHealthy(0, true);
    leader->Buy(kFirst);
    leader->MoveTo(leader->Find(kFirst)->start());
    ASSERT_EQ(leader->Find(kFirst)->hosts, std::vector<std::string>{"us-0"});
    const WallTime now = leader->Find(kFirst)->start() + hours(1);
    ASSERT_EQ(api_.Published(kTrain).hosts, api_.Published(kFirst).hosts);

    if (!is_replaced) mine_ = MemoryJournal();
    leader = Lead(is_replaced ? mine_ : other_, 1, now);
    EXPECT_EQ(leader->Find(kFirst)->hosts, std::vector<std::string>{"us-0"});
    EXPECT_EQ(leader->Find(kTrain)->hosts, std::vector<std::string>{"us-1"});
    EXPECT_EQ(StateName(leader->Find(kTrain)->state), "active");
    EXPECT_EQ(leader->Find(kTrain)->trouble, "");
    EXPECT_EQ(api_.Published(kTrain), *leader->Find(kTrain));
  }
}

// The defect: it was answered though only the journal knew it.
TEST_F(BlockLeadersTest, AnOrderThatIsNotPaidAtOnceIsPublishedBeforeItIsAnswered) {
  auto leader = Lead(mine_, 0, morning_);
  leader->blocks().OnOrder({1, PurchaseOrder{.offering_id = leader->Offering(),
                                             .key = kTrain,
                                             .token = "t",
                                             .tags = {{"tahoma.dev/simulated-payment", "fail"}}}});
  leader->Settle();
  ASSERT_THAT(leader->answers, SizeIs(1));
  const Block failed = **leader->answers[0].block;
  EXPECT_EQ(StateName(failed.state), "payment-failed");
  leader = Lead(other_, 1, morning_);
  EXPECT_EQ(*leader->Find(kTrain), failed);
}

// The defects: the planner forgot whose hosts they were, and the book lost one of two hosts that
// had come back with each other's number.
TEST_F(BlockLeadersTest, HostsWhoseNodesGoAndComeBackAtOnceAreStillTheBlocks) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain);
  leader->Buy(kFirst);
  leader->MoveTo(leader->Find(kTrain)->start());
  const auto reservation_on = [&](const char* host) {
    return leader->fleet().domain(*leader->fleet().FindDomain(host)).block.reservation;
  };
  const std::string on_0 = reservation_on("us-0"), on_1 = reservation_on("us-1");
  ASSERT_NE(on_0, "");
  ASSERT_NE(on_1, "");
  leader->MakeNodesAgain({0, 1, 2, 3});
  EXPECT_EQ(reservation_on("us-0"), on_0);
  leader->MakeNodesAgain({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(reservation_on("us-0"), on_0);
  EXPECT_EQ(reservation_on("us-1"), on_1);
  EXPECT_EQ(leader->Find(kTrain)->trouble, "");
  EXPECT_EQ(leader->Find(kFirst)->trouble, "");
}

// The defect: the order's block was shown in an object that asks for something else.
TEST_F(BlockLeadersTest, AnOrderDoesNotTakeTheNameOfAnotherObject) {
  auto leader = Lead(mine_, 0, morning_);
  const auto order = [&](std::uint64_t ticket) {
    leader->blocks().OnOrder(
        {ticket, PurchaseOrder{.offering_id = leader->Offering(), .key = kTrain, .token = "t"}});
    leader->Settle();
  };
  BlockFact refused{.key = kTrain};
  refused.order.offering_id = "cb-nonsense";
  api_.Make(refused);
  leader->Settle();
  order(1);
  ASSERT_THAT(leader->answers, SizeIs(1));
  EXPECT_EQ(Ec2CodeOf(leader->answers[0].block.status()), "IdempotentParameterMismatch");

  // An object that is made between the order and its own object.
  api_.objects.clear();
  leader->blocks().OnBlockGone(kTrain, "");
  leader->arrives = [](const ApiWrite&) { return false; };
  order(2);
  leader->arrives = [](const ApiWrite&) { return true; };
  BlockFact other{.key = kTrain};
  other.order.offering_id = leader->Offering(7);
  api_.Make(other);
  leader->Settle();
  ASSERT_THAT(leader->answers, SizeIs(2));
  EXPECT_THAT(std::string(leader->answers[1].block.status().message()),
              HasSubstr("there is another of that name"));
  EXPECT_EQ(api_.Published(kTrain).offering_id, other.order.offering_id);
}

}  // namespace
}  // namespace tahoma::controller
