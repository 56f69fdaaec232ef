// Capacity Blocks between objects, book and journal: ordered, published, lost and found again.

#include "controller/core/blocks/capacity_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "controller/core/journal/block_record.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "tests/support/fleet.h"
#include "tests/support/memory_journal.h"
#include "tests/unit/controller/core/block_story.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const BlockKey kBlock{"team-a", "train"};

// The CapacityBlocks of an API server, and the controller before it.
class CapacityBlocksTest : public ::testing::Test {
 protected:
  CapacityBlocksTest() {
    for (int z = 0; z < 4; ++z) {
      cluster_.PutNode(InOneCell(NodeFactsOf({.name = "n" + std::to_string(z),
                                              .type = "trn2u.48xlarge",
                                              .ultra_server = "us-0",
                                              .z = z})));
    }
    Start();
  }

  // Begins a controller, which reads the journal and then the objects.
  void Start() {
    buffer_ = JournalBuffer();
    blocks_ = std::make_unique<CapacityBlocks>(BookOptions{}, buffer_, writes_, time_);
    results_.clear();
    TAHOMA_CHECK_OK(journal_.Load([&](Sequence sequence, std::string_view bytes) {
      const absl::Status known = buffer_.Restore(sequence);
      if (!known.ok()) return known;
      auto block = DecodeBlock(bytes);
      return block.ok() ? blocks_->Restore(sequence, *std::move(block)) : block.status();
    }));
    for (const auto& [key, fact] : objects_) See(key);
    blocks_->OnSynced();
  }

  Now now() const { return {wall_, MonotonicTime(wall_.time_since_epoch())}; }

  // Steps until nothing moves; stops before the write of that number, when there is one.
  void Settle(int writes = 1'000'000) {
    for (int quiet = 0; quiet < 2;) {
      for (const ApiResult& result : std::exchange(results_, {})) blocks_->OnResult(result, now());
      blocks_->Step(cluster_, now());
      const std::vector<ApiWrite> sent = writes_.DrainWrites();
      TAHOMA_CHECK_OK(journal_.Write(buffer_.DrainBatch()));
      for (OrderAnswer& answer : blocks_->DrainAnswers()) answers_.push_back(std::move(answer));
      for (const ApiWrite& write : sent) {
        if (--writes < 0) return;
        Execute(write);
      }
      quiet = sent.empty() && results_.empty() ? quiet + 1 : 0;
    }
  }

  void MoveTo(WallTime time) {
    wall_ = time;
    Settle();
  }

  void Execute(const ApiWrite& write) {
    if (const auto* event = std::get_if<EventNote>(&write.what)) {
      events_.emplace_back(event->reason);
      last_event_ = event->when;
      return;
    }
    ApiResult result = ResultOf(write);
    const BlockKey key{result.ns, result.name};
    const auto object = objects_.find(key);
    const auto* creation = std::get_if<BlockCreation>(&write.what);
    const auto* finalizer = std::get_if<BlockFinalizerWrite>(&write.what);
    const auto* status = std::get_if<BlockStatusWrite>(&write.what);
    if (!reachable) {
      result.outcome = WriteOutcome::kUnavailable;
    } else if (creation != nullptr && key.ns == "nowhere") {
      result.outcome = WriteOutcome::kGone;
      result.message = "namespaces \"nowhere\" not found";
    } else if (creation != nullptr) {
      result.outcome = object == objects_.end() ? WriteOutcome::kDone : WriteOutcome::kConflict;
      if (object == objects_.end()) {
        BlockFact fact{.key = key};
        fact.order.offering_id = creation->block->offering_id;
        fact.order.terms = creation->block->terms;
        fact.order.tags = creation->block->tags;
        fact.protected_by_finalizer = true;
        Put(std::move(fact));
      }
    } else if (object == objects_.end()) {
      result.outcome = WriteOutcome::kGone;
    } else if (object->second.uid != (status != nullptr ? status->uid : finalizer->base->uid)) {
      result.outcome = WriteOutcome::kConflict;
    } else if (finalizer != nullptr &&
               finalizer->base->resource_version != object->second.resource_version) {
      result.outcome = WriteOutcome::kConflict;
    } else if (finalizer != nullptr) {
      object->second.protected_by_finalizer = finalizer->add;
      Changed(key);
    } else {
      const BlockView& view = *status->view;
      ++status_writes_;
      object->second.record = view.block == nullptr ? "" : Hex(EncodeBlock(*view.block));
      object->second.record_version = view.block == nullptr ? BlockVersion{} : view.block->version;
      object->second.refusal = view.refusal;
      refusals_[key] = view.refusal + ": " + view.message;
      Changed(key);
    }
    results_.push_back(std::move(result));
  }

  // Makes an object as kubectl does.
  void Put(BlockFact fact) {
    const BlockKey key = fact.key;
    fact.uid = "uid-" + std::to_string(++uids_);
    fact.order.key = key;
    fact.order.uid = fact.uid;
    if (fact.order.token.empty()) fact.order.token = fact.uid;
    objects_[key] = std::move(fact);
    Changed(key);
  }
  void Delete(const BlockKey& key) {
    objects_.at(key).deleting = true;
    Changed(key);
  }
  void Changed(const BlockKey& key) {
    BlockFact& object = objects_.at(key);
    object.resource_version = std::to_string(++versions_);
    if (object.deleting && !object.protected_by_finalizer) return Lose(key);
    See(key);
  }
  // The object is gone, whatever its finalizers say.
  void Lose(const BlockKey& key) {
    const std::string uid = objects_.at(key).uid;
    objects_.erase(key);
    blocks_->OnBlockGone(key, uid);
  }
  void See(const BlockKey& key) {
    blocks_->OnBlock(std::make_shared<const BlockFact>(objects_.at(key)));
  }

  std::string Offering(int days = 1, const std::string& instance_type = "") {
    const WallTime now = time_.ToBlock(wall_);
    OfferingQuery query{.duration_hours = days * 24,
                        .start_date_range = StartOf(SlotOf(now) + 1),
                        .order = OfferingOrder::kStart};
    if (instance_type.empty()) {
      query.ultraserver_type = "u-trn2x64";
      query.ultraserver_count = 1;
    } else {
      query.instance_type = instance_type;
      query.instance_count = 1;
    }
    const auto search = CheckQuery(query, now);
    const SearchAnswer answer =
        SearchOfferings(blocks_->book().profile(), blocks_->book().prices(), *search, now);
    TAHOMA_CHECK(!answer.offerings.empty());
    return OfferingId(answer.offerings.front());
  }
  void Apply(const std::string& offering) {
    BlockFact fact{.key = kBlock};
    fact.order.offering_id = offering;
    Put(std::move(fact));
  }
  void Order(std::uint64_t ticket, const std::string& offering, const std::string& token) {
    blocks_->OnOrder(
        {ticket, PurchaseOrder{.offering_id = offering, .key = {"team-a", ""}, .token = token}});
  }

  std::shared_ptr<const Block> Find(const BlockKey& key) { return blocks_->book().FindByKey(key); }
  // What the API shows of the block.
  Block Published(const BlockKey& key) {
    auto block = DecodeBlock(*Unhex(objects_.at(key).record));
    TAHOMA_CHECK(block.ok());
    return *std::move(block);
  }

  bool reachable = true;
  WallTime wall_ = *ParseTime("2026-11-23T09:00:00Z");
  BlockTime time_;
  ClusterState cluster_;
  MemoryJournal journal_;
  JournalBuffer buffer_;
  std::unique_ptr<CapacityBlocks> blocks_;
  std::map<BlockKey, BlockFact> objects_;
  std::map<BlockKey, std::string> refusals_;
  std::vector<ApiResult> results_;
  std::vector<OrderAnswer> answers_;
  std::vector<std::string> events_;
  WallTime last_event_;
  WriteBuffer writes_;
  int uids_ = 0, versions_ = 100, status_writes_ = 0;
};

TEST_F(CapacityBlocksTest, AnObjectIsAPurchase) {
  Settle();
  Apply(Offering());
  Settle();
  EXPECT_TRUE(objects_.at(kBlock).protected_by_finalizer);
  EXPECT_EQ(Published(kBlock), *Find(kBlock));
  EXPECT_EQ(StateName(Published(kBlock).state), "scheduled");
  EXPECT_EQ(Published(kBlock).uid, objects_.at(kBlock).uid);
  MoveTo(Find(kBlock)->start());
  EXPECT_EQ(StateName(Published(kBlock).state), "active");
  EXPECT_EQ(Published(kBlock).hosts, (std::vector<std::string>{"us-0"}));
  const auto* view = blocks_->views().Find(kBlock);
  EXPECT_EQ((*view)->available, 4);
  EXPECT_EQ(InterconnectName((*view)->interconnect), "ok");
  MoveTo(Find(kBlock)->end);
  EXPECT_EQ(StateName(Published(kBlock).state), "expired");
  EXPECT_FALSE(objects_.at(kBlock).protected_by_finalizer);
  EXPECT_THAT(events_, ElementsAre("CapacityBlockPurchased", "CapacityBlockScheduled",
                                   "CapacityBlockHardwareBound", "CapacityBlockDelivered",
                                   "CapacityBlockExpirationWarning", "CapacityBlockReclaimed",
                                   "CapacityBlockExpired"));
}

// A controller whose blocks live 1440 times as fast since nine o'clock.
class TestClockBlocksTest : public CapacityBlocksTest {
 protected:
  TestClockBlocksTest() {
    time_ = BlockTime(wall_, 1440);
    Start();
  }
};

TEST_F(TestClockBlocksTest, ABlockLivesItsDayInAMinute) {
  Settle();
  Apply(Offering());  // begins at 11:30, 150 minutes from now
  Settle();
  EXPECT_EQ(FormatTime(Find(kBlock)->start()), "2026-11-23T11:30:00Z");
  EXPECT_EQ((*blocks_->views().Find(kBlock))->time_scale, 1440);
  const WallTime start = wall_ + std::chrono::milliseconds(6250);
  MoveTo(start - std::chrono::nanoseconds(1));
  EXPECT_EQ(StateName(Find(kBlock)->state), "scheduled");
  MoveTo(start);
  EXPECT_EQ(StateName(Find(kBlock)->state), "active");
  MoveTo(start + std::chrono::minutes(1) - std::chrono::nanoseconds(1));
  EXPECT_EQ(StateName(Find(kBlock)->state), "active");
  EXPECT_TRUE(Find(kBlock)->reclaiming);
  MoveTo(start + std::chrono::minutes(1));
  EXPECT_EQ(StateName(Find(kBlock)->state), "expired");
}

TEST_F(TestClockBlocksTest, ItWakesInRealTime) {
  Settle();
  Apply(Offering());
  Settle();
  // Its hardware is bound ten minutes before the start, 140 minutes from now.
  const std::optional<MonotonicTime> wake = blocks_->wake(now());
  ASSERT_TRUE(wake.has_value());
  const std::chrono::nanoseconds until = *wake - now().monotonic;
  EXPECT_EQ(until, std::chrono::nanoseconds(140LL * 60'000'000'000 / 1440 + 1));
}

TEST_F(TestClockBlocksTest, WhatGangsAndPeopleAreToldIsRealTime) {
  Settle();
  Apply(Offering());
  Settle();
  const WallTime start = time_.ToWall(Find(kBlock)->start());
  const DomainId host = *cluster_.FindDomain("us-0");
  EXPECT_EQ(cluster_.domain(host).block.kept_from, start);
  MoveTo(start);
  auto spec = std::make_shared<GangSpec>();
  spec->block = "train";
  spec->max_runtime = std::chrono::seconds(57);  // the block lasts 57.5 s until it is taken back
  const GangRef gang{{"team-a", "g"}, false};
  const auto admit = [&] {
    Readiness ready;
    ready.spec = spec;
    return blocks_->Admit(gang, ready, wall_);
  };
  const Readiness ready = admit();
  ASSERT_NE(ready.spec, nullptr);
  EXPECT_EQ(ready.spec->reclaim, start + std::chrono::milliseconds(57'500));
  spec->max_runtime = std::chrono::seconds(58);
  const Readiness late = admit();
  EXPECT_EQ(late.reason, GangReason::kWaitingForBlock);
  EXPECT_EQ(last_event_, start);
}

TEST_F(CapacityBlocksTest, AClockThatIsSetBackDelaysAndUndoesNothing) {
  Settle();
  Apply(Offering());
  Settle();
  const WallTime start = Find(kBlock)->start();
  MoveTo(start);
  MoveTo(start - std::chrono::hours(5));
  EXPECT_EQ(StateName(Find(kBlock)->state), "active");
  MoveTo(Find(kBlock)->end - std::chrono::hours(1) - std::chrono::nanoseconds(1));
  EXPECT_FALSE(Find(kBlock)->reclaiming);
  MoveTo(Find(kBlock)->end);
  EXPECT_EQ(StateName(Find(kBlock)->state), "expired");
}

TEST_F(CapacityBlocksTest, AClockThatIsSetForwardSkipsNothing) {
  Settle();
  Apply(Offering());
  Settle();
  MoveTo(Find(kBlock)->end + std::chrono::hours(100));
  EXPECT_THAT(events_, ElementsAre("CapacityBlockPurchased", "CapacityBlockScheduled",
                                   "CapacityBlockHardwareBound", "CapacityBlockDelivered",
                                   "CapacityBlockExpirationWarning", "CapacityBlockReclaimed",
                                   "CapacityBlockExpired"));
}

TEST_F(TestClockBlocksTest, AClockThatIsSetBackDelaysAndUndoesNothing) {
  Settle();
  Apply(Offering());
  Settle();
  const WallTime origin = wall_;
  MoveTo(time_.ToWall(Find(kBlock)->start()));
  MoveTo(origin - std::chrono::hours(24));  // before the store was created
  EXPECT_EQ(StateName(Find(kBlock)->state), "active");
  const std::optional<MonotonicTime> wake = blocks_->wake(now());
  ASSERT_TRUE(wake.has_value());
  EXPECT_GT(*wake - now().monotonic, std::chrono::hours(24));
  MoveTo(time_.ToWall(Find(kBlock)->end));
  EXPECT_EQ(StateName(Find(kBlock)->state), "expired");
}

TEST_F(CapacityBlocksTest, NothingIsWrittenWhenNothingChanges) {
  Settle();
  Apply(Offering());
  Settle();
  const int before = status_writes_;
  for (int i = 0; i < 10; ++i) {
    See(kBlock);
    Settle();
  }
  EXPECT_EQ(status_writes_, before);
}

TEST_F(CapacityBlocksTest, ARefusedPurchaseSaysWhyAndIsNotTriedAgain) {
  Settle();
  const std::string offering = Offering(1);
  Order(1, offering, "t");
  Settle();
  Apply(offering);
  Settle();
  EXPECT_THAT(refusals_.at(kBlock),
              HasSubstr("InvalidCapacityBlockOfferingIdExpired: the capacity"));
  EXPECT_FALSE(objects_.at(kBlock).protected_by_finalizer);
  MoveTo(wall_ + std::chrono::hours(1));
  Start();
  Settle();
  EXPECT_EQ(Find(kBlock), nullptr);
  Delete(kBlock);
  EXPECT_FALSE(objects_.contains(kBlock));
}

TEST_F(CapacityBlocksTest, ASpecThatCannotBeReadIsRefused) {
  Settle();
  BlockFact fact{.key = kBlock};
  fact.spec_error = "spec.lendIdle: is a string, must be true or false";
  Put(std::move(fact));
  Settle();
  EXPECT_EQ(refusals_.at(kBlock),
            "InvalidParameterValue: spec.lendIdle: is a string, must be true or false");
}

TEST_F(CapacityBlocksTest, AnOrderOfAnotherApiIsAnsweredWhenItIsPublished) {
  Settle();
  reachable = false;
  Order(7, Offering(), "t");
  Settle();
  EXPECT_EQ(blocks_->book().blocks().size(), 1U);
  EXPECT_THAT(answers_, IsEmpty());
  reachable = true;
  MoveTo(wall_ + RetryPolicy::kFirst);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].ticket, 7U);
  const Block& block = **answers_[0].block;
  EXPECT_EQ(Published(block.key), block);
  EXPECT_EQ(block.uid, objects_.at(block.key).uid);
}

TEST_F(CapacityBlocksTest, AnOrderForANamespaceThatDoesNotExistIsTakenBack) {
  Settle();
  const std::string offering = Offering();
  blocks_->OnOrder(
      {1, PurchaseOrder{.offering_id = offering, .key = {"nowhere", ""}, .token = "t"}});
  Settle();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(Ec2CodeOf(answers_[0].block.status()), "InvalidParameterValue");
  EXPECT_THAT(std::string(answers_[0].block.status().message()),
              HasSubstr("cannot be made: namespaces \"nowhere\" not found"));
  EXPECT_EQ(journal_.size(), 0U);
  Order(2, offering, "t");  // its capacity is for sale again
  Settle();
  EXPECT_TRUE(answers_[1].block.ok());
}

TEST_F(CapacityBlocksTest, ARepeatedOrderHasTheSameAnswer) {
  Settle();
  const std::string offering = Offering();
  Order(1, offering, "t");
  Settle();
  Order(2, offering, "t");
  Order(3, offering, "other");
  Settle();
  ASSERT_EQ(answers_.size(), 3U);
  // A refusal needs no publication, so it comes first.
  EXPECT_EQ(answers_[1].ticket, 3U);
  EXPECT_EQ(Ec2CodeOf(answers_[1].block.status()), "InvalidCapacityBlockOfferingIdExpired");
  EXPECT_EQ((*answers_[0].block)->reservation, (*answers_[2].block)->reservation);
}

TEST_F(CapacityBlocksTest, ABlockThatHoldsCapacityCannotBeDeleted) {
  Settle();
  Apply(Offering());
  Settle();
  Delete(kBlock);
  Settle();
  ASSERT_TRUE(objects_.contains(kBlock));
  MoveTo(Find(kBlock)->end);
  EXPECT_FALSE(objects_.contains(kBlock));
  EXPECT_EQ(Find(kBlock), nullptr);
  EXPECT_EQ(journal_.size(), 0U);
}

TEST_F(CapacityBlocksTest, AnObjectThatIsLostIsMadeAgain) {
  Settle();
  Apply(Offering());
  Settle();
  const std::string reservation = Find(kBlock)->reservation;
  Lose(kBlock);
  Settle();
  EXPECT_EQ(Published(kBlock).reservation, reservation);
  EXPECT_EQ(Find(kBlock)->uid, objects_.at(kBlock).uid);
  // … also when it was lost while no controller ran.
  objects_.clear();
  Start();
  Settle();
  EXPECT_EQ(Published(kBlock).reservation, reservation);
}

TEST_F(CapacityBlocksTest, AStandByWithAnEmptyDiskTakesOverWhatIsPublished) {
  Settle();
  Apply(Offering());
  Settle();
  const Block before = *Find(kBlock);
  journal_ = MemoryJournal();
  Start();
  Settle();
  ASSERT_NE(Find(kBlock), nullptr);
  EXPECT_EQ(*Find(kBlock), before);
  EXPECT_EQ(journal_.size(), 1U);
}

TEST_F(CapacityBlocksTest, TheJournalWinsOverAnOlderApi) {
  Settle();
  Apply(Offering());
  Settle();
  const BlockFact old = objects_.at(kBlock);
  MoveTo(Find(kBlock)->start());
  objects_[kBlock] = old;
  Start();
  Settle();
  EXPECT_EQ(StateName(Published(kBlock).state), "active");
  // The object is older than the purchase.
  objects_[kBlock].record.clear();
  objects_[kBlock].protected_by_finalizer = false;
  Start();
  Settle();
  EXPECT_EQ(StateName(Published(kBlock).state), "active");
  EXPECT_TRUE(objects_.at(kBlock).protected_by_finalizer);
}

TEST_F(CapacityBlocksTest, ARecordThatSomebodyChangedIsNotBelieved) {
  Settle();
  BlockFact fact{.key = kBlock};
  fact.record = "5449";
  Put(std::move(fact));
  Settle();
  EXPECT_THAT(refusals_.at(kBlock), HasSubstr("status.record cannot be used"));
  EXPECT_EQ(Find(kBlock), nullptr);
}

// A crash after any write leaves a block that is bought once, and published in the end.
TEST_F(CapacityBlocksTest, ACrashAtAnyWriteLosesNothing) {
  for (int crash = 0; crash < 8; ++crash) {
    for (const bool order : {false, true}) {
      journal_ = MemoryJournal();
      objects_.clear();
      Start();
      Settle();
      const std::string offering = Offering();
      order ? Order(1, offering, "t") : Apply(offering);
      Settle(crash);
      const std::size_t bought = journal_.size();
      Start();
      Settle();
      MoveTo(wall_ + CapacityBlocks::kSeenAfter);
      EXPECT_EQ(blocks_->book().blocks().size(), 1U) << crash;
      EXPECT_EQ(bought, 1U);
      ASSERT_EQ(objects_.size(), 1U);
      EXPECT_EQ(Published(objects_.begin()->first), *Find(objects_.begin()->first));
    }
  }
}

TEST_F(CapacityBlocksTest, AGangWaitsForItsBlockAndGetsItsHosts) {
  Settle();
  const GangRef ref{{"team-a", "g"}, false};
  const auto admit = [&](std::chrono::hours runtime) {
    auto spec = std::make_shared<GangSpec>();
    spec->block = "train";
    if (runtime.count() > 0) spec->max_runtime = runtime;
    Readiness ready;
    ready.spec = std::move(spec);
    return blocks_->Admit(ref, std::move(ready), wall_);
  };
  EXPECT_EQ(admit({}).message, "Capacity Block team-a/train is not bought");
  Apply(Offering());
  Settle();
  EXPECT_THAT(blocks_->DrainTouched(), ElementsAre(ref));
  EXPECT_EQ(admit({}).message,
            "Capacity Block team-a/train is scheduled and begins 2026-11-23T11:30:00Z");
  EXPECT_EQ(admit({}).reason, GangReason::kWaitingForBlock);
  MoveTo(Find(kBlock)->start());
  EXPECT_THAT(blocks_->DrainTouched(), ElementsAre(ref));
  const Readiness ready = admit(std::chrono::hours(23));
  ASSERT_NE(ready.spec, nullptr);
  EXPECT_EQ(ready.spec->reservation, Find(kBlock)->reservation);
  EXPECT_THAT(ready.spec->block_hosts, ElementsAre("us-0"));
  EXPECT_EQ(ready.spec->reclaim, Find(kBlock)->reclaim());
  EXPECT_EQ(admit(std::chrono::hours(24)).message,
            "Capacity Block team-a/train is taken back from 2026-11-24T10:30:00Z on, before the "
            "gang's maxRuntime is over");
  MoveTo(Find(kBlock)->reclaim());
  EXPECT_EQ(admit({}).message, "Capacity Block team-a/train is being taken back");
  EXPECT_THAT(
      blocks_->DrainReclaimed(),
      ElementsAre(ReclaimedHost{
          "us-0", "Capacity Block team-a/train ends 2026-11-24T11:30:00Z: us-0 is taken back",
          Find(kBlock)->end}));
  MoveTo(Find(kBlock)->end);
  EXPECT_EQ(admit({}).message, "Capacity Block team-a/train is expired");
}

TEST_F(CapacityBlocksTest, WhatIsBeingTakenBackIsEndedAgainAfterARestartAndAfterAFailOver) {
  Settle();
  Apply(Offering());
  Settle();
  MoveTo(Find(kBlock)->start());
  (void)blocks_->DrainNotices();
  Start();
  Settle();
  EXPECT_THAT(blocks_->DrainReclaimed(), IsEmpty());
  EXPECT_THAT(blocks_->DrainNotices(),
              ElementsAre(BlockNotice{
                  .hosts = {"us-0"}, .reclaim = Find(kBlock)->reclaim(), .warning = ""}));
  MoveTo(Find(kBlock)->reclaim());
  EXPECT_EQ(blocks_->DrainReclaimed().size(), 1U);
  for (const bool journal_is_lost : {false, true}) {
    if (journal_is_lost) journal_ = MemoryJournal();
    Start();
    Settle();
    const auto reclaimed = blocks_->DrainReclaimed();
    ASSERT_EQ(reclaimed.size(), 1U);
    EXPECT_EQ(reclaimed[0].host, "us-0");
    EXPECT_EQ(reclaimed[0].by, Find(kBlock)->end);
    Settle();
    EXPECT_THAT(blocks_->DrainReclaimed(), IsEmpty());
  }
}

TEST_F(CapacityBlocksTest, GangsAreToldOfTheStartTheWarningAndAnExtension) {
  Settle();
  Apply(Offering());
  Settle();
  (void)blocks_->DrainNotices();
  MoveTo(Find(kBlock)->start());
  const WallTime reclaim = Find(kBlock)->reclaim();
  EXPECT_THAT(blocks_->DrainNotices(), ElementsAre(BlockNotice{{"us-0"}, reclaim, ""}));
  MoveTo(reclaim - kWarningLead);
  EXPECT_THAT(
      blocks_->DrainNotices(),
      ElementsAre(BlockNotice{{"us-0"},
                              reclaim,
                              "Capacity Block team-a/train takes its hardware back at "
                              "2026-11-24T10:30:00Z; pods end then, unless its owner's next block "
                              "goes on with them and no gang that names that block lacks its "
                              "place"}));
  const auto& book = blocks_->book();
  const auto offering = book.OfferExtension(Find(kBlock)->reservation, 24, wall_);
  ASSERT_TRUE(offering.ok()) << offering.status();
  blocks_->OnOrder({9, ExtensionOrder{.reservation = Find(kBlock)->reservation,
                                      .offering_id = ExtensionOfferingId(*offering)}});
  Settle();
  EXPECT_THAT(blocks_->DrainNotices(),
              ElementsAre(BlockNotice{{"us-0"}, reclaim + std::chrono::hours(24), ""}));
}

TEST_F(CapacityBlocksTest, TheFleetKnowsWhatBlocksHaveAndKeep) {
  const auto use = [&] { return cluster_.domain(*cluster_.FindDomain("us-0")).block; };
  Settle();
  EXPECT_EQ(use(), BlockUse{});
  Apply(Offering());
  Settle();
  EXPECT_EQ(use(), (BlockUse{.reservation = "", .kept_from = Find(kBlock)->start()}));
  MoveTo(Find(kBlock)->start());
  EXPECT_EQ(use(), (BlockUse{.reservation = Find(kBlock)->reservation, .kept_from = {}}));
  MoveTo(Find(kBlock)->end);
  EXPECT_EQ(use(), BlockUse{});
  EXPECT_TRUE(blocks_->DrainCapacityFreed());
}

TEST_F(CapacityBlocksTest, WhatRunsInAnAdjoiningBlockOfTheOwnerGoesOn) {
  Settle();
  Apply(Offering());
  Settle();
  const WallTime end = Find(kBlock)->end;
  Order(1, Offering(), "next");
  Settle();
  ASSERT_EQ((*answers_[0].block)->start(), end);
  MoveTo(end - std::chrono::minutes(30));
  EXPECT_EQ(blocks_->DrainReclaimed().at(0).goes_on, "team-a");
  MoveTo(end);
  EXPECT_EQ(Find((*answers_[0].block)->key)->hosts, (std::vector<std::string>{"us-0"}));
}

TEST_F(CapacityBlocksTest, GangsOfNamespacesWithAccessRunInIt) {
  for (int i = 0; i < 2; ++i) {
    cluster_.PutNode(NodeFactsOf({.name = "lone-" + std::to_string(i), .type = "trn2.48xlarge"}));
  }
  Settle();
  BlockFact fact{.key = kBlock};
  fact.order.offering_id = Offering(1, "trn2.48xlarge");
  fact.order.terms.access = {"team-b"};
  fact.order.terms.magnetic = true;
  Put(fact);
  Settle();
  MoveTo(Find(kBlock)->start());
  const auto admit = [&](const std::string& ns, const std::string& block) {
    auto spec = std::make_shared<GangSpec>();
    spec->block = block;
    Readiness ready;
    ready.spec = std::move(spec);
    return blocks_->Admit({{ns, "g"}, false}, std::move(ready), wall_);
  };
  EXPECT_EQ(admit("team-b", "team-a/train").spec->reservation, Find(kBlock)->reservation);
  EXPECT_EQ(admit("team-a", "team-a/train").spec->reservation, Find(kBlock)->reservation);
  EXPECT_EQ(admit("team-c", "team-a/train").message,
            "Capacity Block team-a/train admits no gang of namespace team-c: its spec.access does "
            "not name it");
  // … and are drawn to it when they name none.
  EXPECT_EQ(admit("team-b", "").spec->drawn.size(), 1U);
  EXPECT_EQ(admit("team-c", "").spec->drawn.size(), 0U);
  BlockFact changed = objects_.at(kBlock);
  changed.order.terms.access.clear();
  objects_[kBlock] = changed;
  Changed(kBlock);
  Settle();
  EXPECT_EQ(admit("team-b", "team-a/train").spec, nullptr);
  EXPECT_EQ(admit("team-b", "").spec->drawn.size(), 0U);
}

TEST_F(CapacityBlocksTest, UltraServersAreNotShared) {
  Settle();
  BlockFact fact{.key = kBlock};
  fact.order.offering_id = Offering();
  fact.order.terms.access = {"team-b"};
  Put(std::move(fact));
  Settle();
  EXPECT_EQ(refusals_.at(kBlock),
            "Unsupported: access: UltraServer blocks cannot be shared with other namespaces; only "
            "gangs of team-a may run in it");
}

TEST_F(CapacityBlocksTest, AGangThatIsNotCheckpointableNeedsAMaxRuntime) {
  Settle();
  Apply(Offering());
  Settle();
  MoveTo(Find(kBlock)->start());
  auto spec = std::make_shared<GangSpec>();
  spec->block = "train";
  spec->checkpointable = false;
  Readiness ready;
  ready.spec = spec;
  const GangRef ref{{"team-a", "g"}, false};
  EXPECT_THAT(blocks_->Admit(ref, ready, wall_).message,
              HasSubstr("a gang that is not checkpointable needs a maxRuntime to run in it"));
  spec->max_runtime = std::chrono::hours(2);
  EXPECT_NE(blocks_->Admit(ref, ready, wall_).spec, nullptr);
}

TEST_F(CapacityBlocksTest, NothingWithoutAMaxRuntimeBeginsAfterTheWarning) {
  Settle();
  Apply(Offering());
  Settle();
  const GangRef ref{{"team-a", "g"}, false};
  auto spec = std::make_shared<GangSpec>();
  spec->block = "train";
  Readiness ready;
  ready.spec = spec;
  MoveTo(Find(kBlock)->start());
  EXPECT_NE(blocks_->Admit(ref, ready, wall_).spec, nullptr);
  MoveTo(Find(kBlock)->reclaim() - kWarningLead);
  EXPECT_THAT(blocks_->Admit(ref, ready, wall_).message,
              HasSubstr("only a gang whose maxRuntime is over before begins now"));
  spec->max_runtime = std::chrono::minutes(5);
  EXPECT_NE(blocks_->Admit(ref, ready, wall_).spec, nullptr);
  spec->max_runtime.reset();
  // An extension makes time for it.
  (void)blocks_->DrainTouched();
  const auto offering = blocks_->book().OfferExtension(Find(kBlock)->reservation, 24, wall_);
  ASSERT_TRUE(offering.ok()) << offering.status();
  blocks_->OnOrder({9, ExtensionOrder{.reservation = Find(kBlock)->reservation,
                                      .offering_id = ExtensionOfferingId(*offering)}});
  Settle();
  EXPECT_THAT(blocks_->DrainTouched(), ElementsAre(ref));
  EXPECT_NE(blocks_->Admit(ref, ready, wall_).spec, nullptr);
}

TEST_F(CapacityBlocksTest, FailedHostsAreReplacedOnRequest) {
  for (int z = 0; z < 4; ++z) {
    cluster_.PutNode(InOneCell(NodeFactsOf({.name = "m" + std::to_string(z),
                                            .type = "trn2u.48xlarge",
                                            .ultra_server = "us-1",
                                            .z = z})));
  }
  Settle();
  Apply(Offering());
  Settle();
  MoveTo(Find(kBlock)->start());
  const std::string first = Find(kBlock)->hosts.front();
  const auto ask = [&](const std::string& request) {
    objects_.at(kBlock).replace = request;
    Changed(kBlock);
    Settle();
  };
  ask("1");
  EXPECT_THAT(Find(kBlock)->hosts, ElementsAre(first)) << "nothing has failed";
  for (int z = 0; z < 4; ++z) {
    cluster_.RemoveNode((first == "us-0" ? "n" : "m") + std::to_string(z));
  }
  Settle();
  EXPECT_THAT(Find(kBlock)->hosts, ElementsAre(first)) << "nobody has asked since";
  ask("1");
  EXPECT_THAT(Find(kBlock)->hosts, ElementsAre(first)) << "that was answered";
  ask("2");
  EXPECT_THAT(Find(kBlock)->hosts, ElementsAre(first == "us-0" ? "us-1" : "us-0"));
  EXPECT_FALSE(Find(kBlock)->replacing);
  EXPECT_EQ(StateName(Find(kBlock)->state), "active");
}

TEST_F(CapacityBlocksTest, ARequestWaitsForHostsThroughARestart) {
  Settle();
  Apply(Offering());
  Settle();
  MoveTo(Find(kBlock)->start());
  for (int z = 0; z < 4; ++z) cluster_.RemoveNode("n" + std::to_string(z));
  objects_.at(kBlock).replace = "now";
  Settle();
  Changed(kBlock);
  Settle();
  EXPECT_TRUE(Find(kBlock)->replacing);
  Start();
  Settle();
  EXPECT_TRUE(Find(kBlock)->replacing);
  for (int z = 0; z < 4; ++z) {
    cluster_.PutNode(InOneCell(NodeFactsOf({.name = "m" + std::to_string(z),
                                            .type = "trn2u.48xlarge",
                                            .ultra_server = "us-1",
                                            .z = z})));
  }
  Settle();
  EXPECT_THAT(Find(kBlock)->hosts, ElementsAre("us-1"));
}

TEST_F(CapacityBlocksTest, ManyChangesInOneStepAreOneEntry) {
  Settle();
  Apply(Offering());
  Settle();
  MoveTo(wall_ + std::chrono::hours(24 * 5));
  EXPECT_EQ(journal_.size(), 1U);
  EXPECT_EQ(StateName(Find(kBlock)->state), "expired");
}

}  // namespace
}  // namespace tahoma::controller
