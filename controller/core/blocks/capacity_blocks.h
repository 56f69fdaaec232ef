// The Capacity Blocks in the core: takes orders and facts to the book, journals what the book
// changes, and publishes it.
//
//   CapacityBlocks blocks(options, buffer, writes);
//   blocks.OnBlock(fact);                             // a watch saw a CapacityBlock
//   blocks.OnOrder({.ticket = 7, .order = order});    // another API buys
//   blocks.Step(cluster, now);
//   for (const OrderAnswer& answer : blocks.DrainAnswers()) Tell(answer);
//
// A CapacityBlock whose spec names an offering is an order; its uid makes that repeatable. A block
// that was ordered by another API gets its object from here, and the order is answered when object
// and status are written: whoever leads next knows the block even without this journal.
//
// Of a block's records the later one wins (BlockVersion): the journal's record is written over an
// older one in the API, and a leader whose journal is older than the API, or lost, takes the
// published records over. Nothing is sold before the leader has done so. A write carries the
// resourceVersion for which the write was made, so a former leader's late write changes nothing. If
// the object has not been written since, the late write is accepted, and its purchase is refused
// when the capacity has been sold meanwhile.
//
// Scope: the passage between objects, book and journal. What is decided: reserve/book.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "controller/core/blocks/block_hosts.h"
#include "controller/core/blocks/magnetic_blocks.h"
#include "controller/core/blocks/usage_meter.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/shown_status.h"
#include "controller/core/journal/journal_buffer.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/pending_keys.h"
#include "controller/core/writes/write_buffer.h"
#include "controller/model/cluster.h"
#include "controller/reserve/block_time.h"
#include "controller/reserve/block_view.h"
#include "controller/reserve/book.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// An order by another API than Kubernetes'.
struct BlockOrder {
  std::uint64_t ticket = 0;  // chosen by who sends it
  std::variant<PurchaseOrder, ExtensionOrder> order;
};

struct OrderAnswer {
  std::uint64_t ticket = 0;
  absl::StatusOr<std::shared_ptr<const Block>> block;  // refused with EC2's codes
};

// A host whose block takes it back.
struct ReclaimedHost {
  std::string host;
  std::string reason;
  WallTime by;  // when what runs there must have ended, in wall time
  // The namespace whose gangs may go on there, as its next block has the host; empty: nobody's.
  std::string goes_on = {};

  friend bool operator==(const ReclaimedHost&, const ReclaimedHost&) = default;
};

// A block that begins on hosts where gangs of its owner's block before go on: as long as each gang
// that names it has its place, too.
struct Heir {
  std::shared_ptr<const Block> block;
  std::vector<GangRef> gangs;  // that wait for it
  std::optional<WallTime> by;  // when what must give way is to have ended, in wall time
};

// What those who run on the hosts of a block must know of it.
struct BlockNotice {
  std::vector<std::string> hosts;
  WallTime reclaim;     // in wall time
  std::string warning;  // empty: it only is so

  friend bool operator==(const BlockNotice&, const BlockNotice&) = default;
};

class CapacityBlocks {
 public:
  // An object that was made is expected on the watch within this time.
  static constexpr std::chrono::seconds kSeenAfter{30};

  using Views = PersistentMap<BlockKey, std::shared_ptr<const BlockView>>;

  // `time` is what the book lives by. What is given to it and taken from it is in wall time. `term`
  // is the number of this leadership, larger than those before it.
  CapacityBlocks(BookOptions options, JournalBuffer& journal, WriteBuffer& writes,
                 BlockTime time = {}, std::int64_t term = 0)
      : time_(time),
        term_(term),
        book_(std::move(options), WallTime{}),
        meter_(time),
        journal_(journal),
        writes_(writes) {}

  // Takes one entry of the journal, before anything else. kDataLoss when it contradicts others.
  absl::Status Restore(Sequence sequence, Block block);

  // Take news.
  void OnBlock(std::shared_ptr<const BlockFact> fact);
  void OnBlockGone(const BlockKey& key, const std::string& uid);
  // Says that all objects that there are have been seen.
  void OnSynced();
  void OnOrder(BlockOrder order) { orders_.push_back(std::move(order)); }
  void OnResult(const ApiResult& result, const Now& now);

  // Does whatever is due, and adds the writes that can be issued when the journal is durable.
  void Step(ClusterState& cluster, const Now& now);
  // Counts what hardware of blocks is used for from now on, after the gangs have changed.
  void Meter(const ClusterState& cluster, WallTime now) {
    meter_.Update(cluster, time_.ToBlock(now));
  }
  // Returns the gang as it may be planned now: with the hosts of the block that it names, when that
  // is active, or with the reason why it waits for it; one that names none with those that draw it.
  // The gang is among DrainTouched() when that may have changed.
  Readiness Admit(const GangRef& ref, Readiness ready, WallTime now);
  std::vector<GangRef> DrainTouched();
  // Returns the gang as it may be planned when the block begins; not ready when it does not name
  // the block.
  Readiness AdmitAtStart(const Block& block, const GangRef& ref, Readiness ready) const;
  // Forgets a gang that waits no more.
  void ForgetGang(const GangRef& ref) { magnets_.ForgetAsked(ref); }
  // Extends a block. It is journalled and published by the next Step.
  absl::StatusOr<std::shared_ptr<const Block>> Extend(const ExtensionOrder& order, WallTime now) {
    return book_.Extend(order, now);
  }
  // Buys a block whose object is to be made, likewise.
  absl::StatusOr<std::shared_ptr<const Block>> Purchase(const PurchaseOrder& order, WallTime now) {
    return book_.Purchase(order, now);
  }
  absl::Status AllOrNothing(absl::FunctionRef<absl::Status()> purchases) {
    return book_.AllOrNothing(purchases);
  }
  // Takes a block from a record that somebody else has published; it holds capacity.
  absl::Status Adopt(Block block);
  // Publishes nothing of a block of that name until it is released.
  void Hold(const BlockKey& key) { held_.insert(key); }
  void Release(const BlockKey& key);
  // Returns whether there is an object of that name.
  bool HasObject(const BlockKey& key) const { return facts_.Find(key) != nullptr; }
  void SetQuota(const std::string& owner, std::optional<Quota> quota) {
    book_.SetQuota(owner, quota);
  }
  // Returns whether the book has changes that the next Step journals.
  bool has_changes() const { return book_.has_changes(); }
  // Returns whether the object of the block shows it as it is.
  bool IsPublished(const BlockKey& key) const;
  // Takes the blocks that have changed, or are published as they are, since the last call.
  // In any order, perhaps more than once.
  std::vector<BlockKey> DrainShown() { return shown_.DrainUnsorted(); }
  // Returns whether hosts were kept for blocks that no longer are.
  bool DrainCapacityFreed() { return std::exchange(capacity_freed_, false); }
  // Takes the hosts on which everything is to end now.
  std::vector<ReclaimedHost> DrainReclaimed() { return std::exchange(reclaimed_, {}); }
  // Takes the blocks whose gangs are to be asked for again, whether they will have their places:
  // when their hosts are handed over, and when a gang that names one comes after that.
  std::vector<Heir> DrainHeirs();
  // Takes what gangs in blocks are to be told: of every delivered block at a start, and then of
  // those whose reclaim is another, or near.
  std::vector<BlockNotice> DrainNotices() { return std::exchange(notices_, {}); }
  // Returns the answers to orders whose blocks are published. They may be given at once.
  std::vector<OrderAnswer> DrainAnswers() { return std::exchange(answers_, {}); }
  // The time at which Step has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const;

  const BlockBook& book() const { return book_; }
  const BlockTime& time() const { return time_; }
  // What is shown of each block, and of each CapacityBlock that was refused.
  const Views& views() const { return views_; }
  // What each block that has begun was used for.
  const UsageMeter::Live& usage() const { return meter_.live(); }

 private:
  // What of a block, or a refusal, is in the API.
  struct Publication {
    std::shared_ptr<const BlockView> written;
    std::shared_ptr<const BlockView> sent;
    std::string base;     // the object's resourceVersion when it was sent; empty: there was none
    std::string version;  // … after the last write that was answered
    ShownStatus shown;    // whether somebody else has written there
    std::vector<std::uint64_t> tickets;  // of orders that are answered when it is written
  };

  std::vector<std::shared_ptr<const BlockFact>> DrainChangedFacts();
  void AdoptPublished(const std::vector<std::shared_ptr<const BlockFact>>& facts);
  bool IsNewer(const BlockFact& fact) const;
  void OverruleLate(const BlockFact& fact);
  void ForgetReplaced();
  void OnFact(const BlockFact& fact, WallTime now);
  void RefuseRecord(const BlockFact& fact, const absl::Status& why);
  void Buy(const BlockFact& fact, WallTime now);
  void OnUnbought(const BlockFact& fact, WallTime now);
  void NoteShown(const BlockFact& fact, const Block* block);
  absl::StatusOr<std::shared_ptr<const Block>> CarryOutOrder(const BlockOrder& order, WallTime now);
  void ServeOrder(const BlockOrder& order, WallTime now);
  void OnObjectGone(const BlockKey& key);
  std::vector<BlockChange> MeterChanges(const ClusterState& cluster, WallTime now);
  void OnChanges(const std::vector<BlockChange>& changes);
  void Resume();
  void NoteTime(const Block& block, BlockNews news);
  void NoteReclaimed(const Block& block);
  Readiness AdmitTo(const BlockKey& key, const GangRef& ref, Readiness ready, WallTime now) const;
  Readiness AdmitWhile(const Block& active, Readiness ready, WallTime now) const;
  // Begins to follow a block that was not sold here: of the journal, or of others. It is published
  // when its object was seen, or is known not to be there.
  void Follow(const std::shared_ptr<const Block>& block);
  void Show(const BlockKey& key, BlockView view);
  void Keep(const BlockKey& key, BlockView view);
  void Store(const Block& block);
  void Forget(const Block& block);
  void Publish(const BlockKey& key);
  // Returns the write of that kind that sends what the publication says is sent.
  static Write WriteOf(WriteKind kind, const Publication& publication,
                       const std::shared_ptr<const BlockFact>& fact);
  std::optional<WriteKind> NextWrite(const BlockKey& key, const Publication& publication) const;
  std::optional<WriteKind> NextWrite(const BlockKey& key, const Publication& publication,
                                     const BlockView* view, const BlockFact* fact) const;
  void Unpublish(const BlockKey& key);
  void Withdraw(const BlockKey& key, Publication& publication, const std::string& why);
  void AnswerTickets(const BlockKey& key, Publication& publication);

  const BlockTime time_;
  const std::int64_t term_;
  bool leads_ = false;  // what was published before has been taken over
  BlockBook book_;      // in block time, as its changes and views are
  BlockHosts hosts_;
  UsageMeter meter_;
  JournalBuffer& journal_;
  WriteBuffer& writes_;
  absl::flat_hash_map<std::string, Sequence> entries_;  // in the journal, by reservation

  FactTable<BlockFact, BlockKey> facts_;
  PendingKeys<BlockKey> changed_facts_;
  std::set<BlockKey> gone_;
  std::vector<BlockOrder> orders_;
  std::vector<OrderAnswer> answers_;
  std::vector<EventNote> refusals_;  // to be told

  absl::flat_hash_map<BlockKey, std::set<GangRef>> gangs_of_block_;  // that have asked for it
  std::vector<GangRef> touched_gangs_;
  std::vector<ReclaimedHost> reclaimed_;
  std::vector<BlockNotice> notices_;
  // Blocks that have not begun and were handed hosts, by key: when what must give way is to have
  // ended, once after the handover; and those that are to be looked at again.
  std::map<BlockKey, std::optional<WallTime>> heirs_;
  std::set<BlockKey> contested_;
  bool resumed_ = false;  // the first step is done
  MagneticBlocks magnets_;
  bool capacity_freed_ = false;

  Views views_;
  absl::flat_hash_map<BlockKey, Publication> publications_;
  // Blocks that were ordered and whose object was never seen: nobody was told of them.
  std::set<BlockKey> unseen_;
  Outbox<BlockKey> outbox_;
  PendingKeys<BlockKey> shown_;
  std::set<BlockKey> held_;
};

}  // namespace tahoma::controller
