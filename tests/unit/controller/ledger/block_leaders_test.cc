// Capacity Blocks when leaders follow one another, each with a journal of its own: nothing that was
// published is lost, and nothing is sold twice.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/ledger/block_record.h"
#include "controller/ledger/capacity_blocks.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "tests/support/fleet.h"
#include "tests/support/memory_journal.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const BlockKey kTrain{"team-a", "train"};
const BlockKey kFirst{"team-a", "a"};  // is looked at before kTrain

// The CapacityBlocks of an API server, with its preconditions.
class BlockApi {
 public:
  BlockFact& Make(BlockFact fact) {
    fact.uid = fmt::format("uid-{}", ++uids_);
    fact.order.key = fact.key;
    fact.order.uid = fact.uid;
    if (fact.order.token.empty()) fact.order.token = fact.uid;
    return Changed(objects[fact.key] = std::move(fact));
  }

  ApiResult Execute(const ApiWrite& write) {
    ApiResult result = ResultOf(write);
    const BlockKey key{write.ns, write.name};
    const auto object = objects.find(key);
    if (write.kind == WriteKind::kCreateBlock) {
      if (object != objects.end()) return Refused(result, WriteOutcome::kConflict);
      BlockFact fact{.key = key,
                     .protected_by_finalizer = HoldsCapacity(write.block->block->state)};
      fact.order.offering_id = write.block->block->offering_id;
      fact.order.token = write.block->block->token;
      Make(std::move(fact));
      return result;
    }
    if (object == objects.end()) return Refused(result, WriteOutcome::kGone);
    BlockFact& fact = object->second;
    const bool is_status = write.kind == WriteKind::kBlockStatus;
    const std::string& base = is_status ? write.base_version : write.block_base->resource_version;
    if (fact.uid != write.uid || fact.resource_version != base) {
      return Refused(result, WriteOutcome::kConflict);
    }
    const Block* block = write.block->block.get();
    if (is_status) {
      fact.record = block == nullptr ? "" : Hex(EncodeBlock(*block));
      fact.record_version = block == nullptr ? BlockVersion{} : block->version;
      fact.refused = !write.block->refusal.empty();
      refusals[key] = write.block->refusal;
    } else {
      fact.protected_by_finalizer = block != nullptr && HoldsCapacity(block->state);
    }
    result.resource_version = Changed(fact).resource_version;
    return result;
  }

  Block Published(const BlockKey& key) const {
    auto block = DecodeBlock(*Unhex(objects.at(key).record));
    TAHOMA_CHECK_OK(block.status());
    return *std::move(block);
  }

  BlockFact& Changed(BlockFact& fact) {
    fact.resource_version = std::to_string(++versions_);
    changed.insert(fact.key);
    return fact;
  }

  std::map<BlockKey, BlockFact> objects;
  std::map<BlockKey, std::string> refusals;
  std::set<BlockKey> changed;

 private:
  static ApiResult Refused(ApiResult result, WriteOutcome outcome) {
    result.outcome = outcome;
    return result;
  }

  int uids_ = 0, versions_ = 100;
};

// A controller while it leads.
class Leader {
 public:
  Leader(BlockApi& api, MemoryJournal& journal, std::int64_t term, WallTime wall)
      : api_(api),
        journal_(journal),
        wall_(wall),
        blocks_(BookOptions{}, buffer_, BlockTime(), term) {
    for (int i = 0; i < 8; ++i) PutNode(i);
    TAHOMA_CHECK_OK(journal_.Load([&](Sequence sequence, std::string_view bytes) {
      TAHOMA_CHECK(buffer_.Restore(sequence).ok());
      auto block = DecodeBlock(bytes);
      return block.ok() ? blocks_.Restore(sequence, *std::move(block)) : block.status();
    }));
    for (const auto& [key, fact] : api_.objects) api_.changed.insert(key);
    See();
    blocks_.OnSynced();
    Settle();
  }

  // Steps until nothing moves. Writes for which `arrives` is false are kept in `sent`.
  void Settle() {
    for (int quiet = 0; quiet < 2;) {
      See();
      for (const ApiResult& result : std::exchange(results_, {})) blocks_.OnResult(result, now());
      std::vector<ApiWrite> writes;
      blocks_.Step(cluster_, now(), attempts_, writes);
      TAHOMA_CHECK_OK(journal_.Write(buffer_.Take()));
      for (OrderAnswer& answer : blocks_.TakeAnswers()) answers.push_back(std::move(answer));
      for (const ApiWrite& write : writes) {
        if (write.kind == WriteKind::kEvent) continue;
        arrives(write) ? results_.push_back(api_.Execute(write)) : sent.push_back(write);
      }
      quiet = writes.empty() && results_.empty() ? quiet + 1 : 0;
    }
  }

  void MoveTo(WallTime wall) {
    wall_ = wall;
    Settle();
  }
  void SetHealthy(int ultra_server, bool healthy) {
    for (int i = 4 * ultra_server; i < 4 * ultra_server + 4; ++i) {
      healthy ? PutNode(i) : cluster_.RemoveNode(fmt::format("n{}", i));
    }
    Settle();
  }
  // Nodes go and come back between two steps.
  void MakeNodesAgain(const std::vector<int>& nodes) {
    for (const int i : nodes) cluster_.RemoveNode(fmt::format("n{}", i));
    for (const int i : nodes) PutNode(i);
    Settle();
  }

  std::string Offering(int days = 1, int count = 1) {
    const auto search = CheckQuery({.ultraserver_type = "u-trn2x64",
                                    .ultraserver_count = count,
                                    .duration_hours = days * 24,
                                    .start_date_range = StartOf(SlotOf(wall_) + 1),
                                    .order = OfferingOrder::kStart},
                                   wall_);
    TAHOMA_CHECK_OK(search.status());
    const SearchAnswer answer =
        SearchOfferings(blocks_.book().profile(), blocks_.book().prices(), *search, wall_);
    TAHOMA_CHECK(!answer.offerings.empty());
    return OfferingId(answer.offerings.front());
  }
  void Buy(const BlockKey& key, int days = 1, int count = 1,
           ReplacePolicy replace = ReplacePolicy::kNone) {
    BlockFact fact{.key = key};
    fact.order.offering_id = Offering(days, count);
    fact.order.terms.replace = replace;
    api_.Make(std::move(fact));
    Settle();
  }
  void Extend(const BlockKey& key, const std::string& token) {
    const auto block = Find(key);
    const auto offering = blocks_.book().OfferExtension(block->reservation, 24, wall_);
    TAHOMA_CHECK_OK(offering.status());
    blocks_.OnOrder({1, ExtensionOrder{.reservation = block->reservation,
                                       .offering_id = ExtensionOfferingId(*offering),
                                       .token = token}});
    Settle();
  }

  CapacityBlocks& blocks() { return blocks_; }
  const ClusterState& fleet() const { return cluster_; }
  std::shared_ptr<const Block> Find(const BlockKey& key) { return blocks_.book().FindByKey(key); }

  std::function<bool(const ApiWrite&)> arrives = [](const ApiWrite&) { return true; };
  std::vector<ApiWrite> sent;
  std::vector<OrderAnswer> answers;

 private:
  void PutNode(int i) {
    cluster_.PutNode(NodeFactsOf({.name = fmt::format("n{}", i),
                                  .type = "trn2u.48xlarge",
                                  .ultra_server = fmt::format("us-{}", i / 4),
                                  .z = i % 4,
                                  .top_layer = "nn-1"}));
  }
  Now now() const { return {wall_, MonotonicTime(wall_.time_since_epoch())}; }
  void See() {
    for (const BlockKey& key : std::exchange(api_.changed, {})) {
      blocks_.OnBlock(std::make_shared<const BlockFact>(api_.objects.at(key)));
    }
  }

  BlockApi& api_;
  MemoryJournal& journal_;
  WallTime wall_;
  ClusterState cluster_;
  JournalBuffer buffer_;
  CapacityBlocks blocks_;
  std::vector<ApiResult> results_;
  std::uint64_t attempts_ = 0;
};

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
