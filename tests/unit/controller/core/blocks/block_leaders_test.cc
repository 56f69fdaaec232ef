// Capacity Blocks when leaders follow one another, each with a journal of its own: nothing that was
// published is lost, and nothing is sold twice.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/reserve/refusal.h"
#include "tests/support/memory_journal.h"
#include "tests/unit/controller/core/block_leader.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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

TEST_F(BlockLeadersTest, ADryRunIsAnsweredAndLeavesNothing) {
  auto leader = Lead(mine_, 0, morning_);
  PurchaseOrder order{.offering_id = leader->Offering(1, 1), .key = kTrain, .dry_run = true};
  leader->Order(1, order);
  order.offering_id = "cb-0123456789abcdef0";
  leader->Order(2, order);
  ASSERT_THAT(leader->answers, SizeIs(2));
  ASSERT_TRUE(leader->answers[0].block.ok()) << leader->answers[0].block.status();
  EXPECT_EQ((*leader->answers[0].block)->key, kTrain);
  EXPECT_EQ(Ec2CodeOf(leader->answers[1].block.status()), "InvalidCapacityBlockOfferingIdNotFound");
  EXPECT_EQ(leader->blocks().book().blocks().size(), 0U);
  EXPECT_EQ(mine_.size(), 0U);
  EXPECT_TRUE(api_.objects.empty());
}

// Somebody who has seen a signed request sends it again, to a controller with an empty disk.
TEST_F(BlockLeadersTest, TheNextLeaderKnowsTheRequestsThatHaveBought) {
  auto leader = Lead(mine_, 0, morning_);
  PurchaseOrder order{.offering_id = leader->Offering(1, 1),
                      .key = {"team-a", ""},
                      .token = "call-1",
                      .signature = "s"};
  leader->Order(1, order);
  ASSERT_TRUE(leader->answers.at(0).block.ok()) << leader->answers[0].block.status();
  leader = Lead(other_, 1, morning_ + std::chrono::minutes(1));
  leader->Order(2, order);
  order.token = "call-2";
  leader->Order(3, order);
  std::map<std::uint64_t, std::string> answers;
  for (const OrderAnswer& answer : leader->answers) {
    answers[answer.ticket] = answer.block.ok() ? "" : Ec2CodeOf(answer.block.status());
  }
  EXPECT_EQ(answers[2], "");
  EXPECT_EQ(answers[3], "IdempotentParameterMismatch");
  EXPECT_EQ(leader->blocks().book().blocks().size(), 1U);
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

// The defect: of orders that had waited for a controller, the one whose name came first was carried
// out first.
TEST_F(BlockLeadersTest, OrdersThatWaitedForALeaderAreTakenInTheOrderOfTheirCreation) {
  auto leader = Lead(mine_, 0, morning_);
  const std::string offering = leader->Offering(1, 2);
  leader.reset();
  for (const auto& [key, created] :
       {std::pair(kTrain, morning_), std::pair(kFirst, morning_ + hours(1))}) {
    BlockFact fact{.key = key, .created = created};
    fact.order.offering_id = offering;
    api_.Make(std::move(fact));
  }
  leader = Lead(mine_, 1, morning_ + hours(2));
  EXPECT_EQ(StateName(leader->Find(kTrain)->state), "scheduled");
  EXPECT_EQ(api_.refusals.at(kFirst), "InvalidCapacityBlockOfferingIdExpired");
}

// The defect: it took the place of what the next leader had published, and stayed there.
TEST_F(BlockLeadersTest, AStatusThatAFormerLeaderHasSentChangesNothing) {
  auto leader = Lead(mine_, 0, morning_);
  leader->arrives = [](const ApiWrite& write) { return write.kind() != WriteKind::kBlockStatus; };
  leader->Buy(kTrain);
  ASSERT_THAT(leader->sent, SizeIs(1));
  const ApiWrite late = leader->sent[0];
  leader = Lead(other_, 1, morning_ + hours(1));
  const Block sold = api_.Published(kTrain);
  EXPECT_EQ(api_.Execute(late).outcome, WriteOutcome::kConflict);
  EXPECT_EQ(api_.Published(kTrain), sold);
}

// The defect: an extension whose write was delayed until another led, and had sold the capacity,
// was taken over all the same.
TEST_F(BlockLeadersTest, AnExtensionThatArrivesLateDoesNotSellTwice) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain, 1, 2);
  leader->arrives = [](const ApiWrite& write) { return write.kind() != WriteKind::kBlockStatus; };
  leader->Extend(kTrain, "t");
  EXPECT_THAT(leader->answers, IsEmpty());
  ASSERT_THAT(leader->sent, SizeIs(1));
  const ApiWrite late = leader->sent[0];
  leader = Lead(other_, 1, morning_ + hours(1));
  const Block before = *leader->Find(kTrain);
  leader->Buy(kFirst);
  ASSERT_EQ(leader->Find(kFirst)->start(), before.end);
  ASSERT_EQ(api_.Execute(late).outcome, WriteOutcome::kDone);
  leader->Settle();
  EXPECT_EQ(leader->Find(kTrain)->end, before.end);
  EXPECT_THAT(api_.Published(kTrain).extensions, IsEmpty());
  EXPECT_EQ(api_.Published(kTrain), *leader->Find(kTrain));
}

// … where nobody has sold it, it is kept: somebody may have seen it.
TEST_F(BlockLeadersTest, AnExtensionThatArrivesLateIsKeptWhereThereIsRoom) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain, 1, 2);
  leader->arrives = [](const ApiWrite& write) { return write.kind() != WriteKind::kBlockStatus; };
  leader->Extend(kTrain, "t");
  const ApiWrite late = leader->sent[0];
  leader = Lead(other_, 1, morning_ + hours(1));
  ASSERT_EQ(api_.Execute(late).outcome, WriteOutcome::kDone);
  leader->Settle();
  EXPECT_THAT(leader->Find(kTrain)->extensions, SizeIs(1));
  EXPECT_EQ(api_.Published(kTrain), *leader->Find(kTrain));
}

// The defect: the same of a purchase, which the next leader was about to refuse.
TEST_F(BlockLeadersTest, APurchaseThatArrivesLateDoesNotSellTwice) {
  auto leader = Lead(mine_, 0, morning_);
  leader->arrives = [](const ApiWrite& write) { return write.kind() != WriteKind::kBlockStatus; };
  const std::string offering = leader->Offering();
  leader->Buy(kTrain, 1, 2);
  ASSERT_THAT(leader->sent, SizeIs(1));
  const ApiWrite late = leader->sent[0];
  BlockFact first{.key = kFirst};
  first.order.offering_id = offering;
  api_.Make(first);
  bool arrived = false;
  leader = std::make_unique<Leader>(api_, other_, 1, morning_, [&](const ApiWrite& write) {
    if (ResultOf(write).name == "train" && !std::exchange(arrived, true)) {
      EXPECT_EQ(api_.Execute(late).outcome, WriteOutcome::kDone);
    }
    return true;
  });
  ASSERT_TRUE(arrived);
  EXPECT_NE(leader->Find(kFirst), nullptr);
  EXPECT_EQ(leader->Find(kTrain), nullptr);
  EXPECT_EQ(api_.refusals.at(kTrain), "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ(api_.objects.at(kTrain).record, "");
}

// The buyer has asked the next leader meanwhile, with the same token.
TEST_F(BlockLeadersTest, AnObjectThatIsMadeLateBuysNothingMore) {
  auto leader = Lead(mine_, 0, morning_);
  leader->arrives = [](const ApiWrite&) { return false; };
  const PurchaseOrder order{.offering_id = leader->Offering(), .key = {"team-a", ""}, .token = "t"};
  leader->Order(1, order);
  ASSERT_THAT(leader->sent, SizeIs(1));
  const ApiWrite late = leader->sent[0];
  ASSERT_EQ(late.kind(), WriteKind::kCreateBlock);
  leader = Lead(other_, 1, morning_ + hours(1));
  leader->Order(1, order);
  ASSERT_THAT(leader->answers, SizeIs(1));
  const Block sold = **leader->answers[0].block;
  ASSERT_EQ(api_.Execute(late).outcome, WriteOutcome::kDone);
  leader->Settle();
  EXPECT_EQ(leader->blocks().book().blocks().size(), 1U);
  EXPECT_EQ(api_.Published(sold.key), *leader->Find(sold.key));
  EXPECT_EQ(api_.refusals.at({"team-a", ResultOf(late).name}), "IdempotentParameterMismatch");
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
    leader->arrives = [](const ApiWrite& write) { return ResultOf(write).name != "train"; };
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

// Slurm before 25.05 deleted reservations when it could not look up their users and groups. Here
// an owner is a namespace, and it may be away, with all of its objects, at any time: its block is
// kept, delivered, and shown again when there is where to.
TEST_F(BlockLeadersTest, ABlockIsKeptWhileItsOwnerCannotBeFound) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain, 2);
  const auto bought = leader->Find(kTrain);
  api_.has_namespaces = false;
  api_.objects.clear();
  leader->blocks().OnBlockGone(kTrain, bought->uid);
  leader->Settle();
  EXPECT_EQ(StateName(leader->Find(kTrain)->state), "scheduled");
  leader->MoveTo(bought->start() + hours(1));
  EXPECT_EQ(StateName(leader->Find(kTrain)->state), "active");
  EXPECT_THAT(leader->Find(kTrain)->hosts, SizeIs(1));
  // Nor is it forgotten by who finds no object of it at his start.
  leader = Lead(mine_, 1, bought->start() + hours(2));
  EXPECT_EQ(StateName(leader->Find(kTrain)->state), "active");
  EXPECT_THAT(api_.objects, IsEmpty());
  api_.has_namespaces = true;
  leader->MoveTo(bought->start() + hours(3));
  ASSERT_TRUE(api_.objects.contains(kTrain));
  EXPECT_EQ(api_.Published(kTrain), *leader->Find(kTrain));
  EXPECT_EQ(leader->Find(kTrain)->reservation, bought->reservation);
}

// The clock is three months ahead for a minute: what ran in the block was told and is ended, and
// the same controller, another on its disk and one without a disk leave the block as it is then.
TEST_F(BlockLeadersTest, AClockThatLeapsByMonthsAndComesBackEndsABlockOnce) {
  auto leader = Lead(mine_, 0, morning_);
  leader->Buy(kTrain);
  const WallTime running = leader->Find(kTrain)->start() + hours(1);
  leader->MoveTo(running);
  ASSERT_EQ(StateName(leader->Find(kTrain)->state), "active");
  const std::string host = leader->Find(kTrain)->hosts.at(0);
  (void)leader->blocks().DrainNotices();
  leader->MoveTo(running + hours(24 * 90));
  const auto warned = leader->blocks().DrainNotices();
  ASSERT_THAT(warned, SizeIs(1));
  EXPECT_THAT(warned[0].warning, HasSubstr("takes its hardware back"));
  const auto ended = leader->blocks().DrainReclaimed();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].host, host);

  const Block expired = *leader->Find(kTrain);
  EXPECT_EQ(StateName(expired.state), "expired");
  for (const bool has_disk : {true, true, false}) {
    leader->MoveTo(running + std::chrono::minutes(1));
    EXPECT_EQ(*leader->Find(kTrain), expired);
    EXPECT_EQ(api_.Published(kTrain), expired);
    EXPECT_THAT(leader->blocks().DrainNotices(), IsEmpty());
    EXPECT_THAT(leader->blocks().DrainReclaimed(), IsEmpty());
    EXPECT_EQ(leader->wake(), std::nullopt) << "there is nothing to do for three months";
    leader = Lead(has_disk ? mine_ : other_, has_disk ? 1 : 2, running + std::chrono::minutes(2));
  }
}

}  // namespace
}  // namespace tahoma::controller
