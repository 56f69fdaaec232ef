// All Capacity Blocks: sells them, settles them, binds hardware to them and takes it back.
//
//   BlockBook book(options, now);
//   book.PutHost({.name = "us-0", .pool = pool, .healthy = true}, now);
//   const auto block = book.Purchase({.offering_id = id, .key = {"team-a", "pretrain"}}, now);
//   book.Advance(now);                      // whatever is due
//   for (const BlockChange& change : book.TakeChanges()) Journal(*change.block);
//
// A block changes by purchase, by what its owner asks, and by time and hardware in Advance. Every
// change is a whole new value, which the owner of the book writes to its journal before anybody
// hears of it. Restore takes these values again, in any order; everything else (counts, timers, who
// has which host) is derived from them.
//
// The book never promises more than there is: in each slot, what is booked in a pool is at most its
// healthy hosts without spares, unless hardware failed that was sold. Its time does not go back: a
// clock that is set back delays what is due, one that is set forward skips nothing.
//
// Scope: decisions. It does no I/O, has no clock and no randomness.
//
// Thread safety: belongs to one thread. Blocks and copies of the profile are immutable.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "controller/reserve/block.h"
#include "controller/reserve/due_queue.h"
#include "controller/reserve/host_table.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/quota.h"
#include "controller/reserve/time_profile.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// How payments are simulated: nothing is charged.
struct PaymentOptions {
  std::chrono::seconds delay{0};
  // Blocks that have this tag with the value "fail" are not paid.
  std::string failure_tag = "tahoma.dev/simulated-payment";
};

struct BookOptions {
  PriceList prices;
  PaymentOptions payment;
  HostTableOptions hosts;
  Quota quota = {};               // of an owner for whom none is set
  OfferingKey offering_key = {};  // of the ids that are sold
  // Whether the owner of UltraServers may let other namespaces in; EC2 does not allow it
  // (docs/reference/capacity-blocks.md#sharing).
  bool share_ultra_servers = false;
};

struct PurchaseOrder {
  std::string offering_id;
  std::string platform = "Linux/UNIX";
  BlockKey key = {};
  std::string uid = {};  // of the CapacityBlock, when it exists already
  // Repeating an order with the token of one that was carried out changes nothing.
  std::string token = {};
  // The signature of the request that brings it. One that has bought buys nothing under another
  // token.
  std::string signature = {};
  Tags tags = {};
  BlockTerms terms = {};
  bool dry_run = false;
};

struct ExtensionOrder {
  std::string reservation;
  std::string offering_id;
  std::string token = {};
  bool dry_run = false;
};

enum class BlockNews : std::uint8_t {
  kPurchased,
  kPaid,
  kPaymentFailed,
  kBound,
  kDelivered,
  kWarned,
  kReclaimed,  // its hardware is taken back from now on
  kExpired,
  kFailed,
  kUndelivered,  // it waits for hardware
  kDegraded,     // hosts of it failed
  kRecovered,
  kReplaced,  // another host took the place of one that failed
  kExtended,
  kExtensionFailed,
  kChanged,  // of its owner's terms only
};
// Returns the word for events and conditions: "CapacityBlockDelivered".
std::string_view NewsName(BlockNews news);

struct BlockChange {
  std::shared_ptr<const Block> block;  // as it is now
  BlockNews news = BlockNews::kChanged;
  std::string message;
  WallTime when;
};

class BlockBook {
 public:
  using Blocks = PersistentMap<std::string, std::shared_ptr<const Block>>;

  BlockBook(BookOptions options, WallTime now);
  BlockBook(const BlockBook&) = delete;
  BlockBook& operator=(const BlockBook&) = delete;

  // Takes a block of an earlier process and returns it. kDataLoss when it contradicts itself, or is
  // there already: nothing has changed then.
  absl::StatusOr<std::shared_ptr<const Block>> Restore(Block block);
  // Takes blocks as other leaders have published them, in the place of older records. They may be
  // of different moments: of two that have one host the later record keeps it. `refused` is called
  // for those that contradict themselves, or are older than what is there.
  using Refused = std::function<void(const Block& block, const absl::Status& why)>;
  void Adopt(std::vector<Block> blocks, const Refused& refused);
  // Says that a leadership of that term begins. A term that is less than one that has been seen is
  // not believed.
  void Lead(std::int64_t term);
  std::int64_t term() const { return version_.term; }
  // Returns whether what the block has more than is known of it can still be sold.
  bool HasRoomFor(const Block& block) const;

  void PutHost(HostState host, WallTime now);
  void RemoveHost(const std::string& name, WallTime now);
  // The fleet has forgotten what blocks have to do with the host: TakeUses says it again.
  void PlanUsesAgain(const std::string& host);
  void SetQuota(const std::string& owner, std::optional<Quota> quota) {
    ChangeQuotas().Set(owner, quota);
  }
  QuotaUse UseOf(std::string_view owner) const { return quotas_.UseOf(owner); }
  // The quotas as they are, for searches by others.
  std::shared_ptr<const QuotaTable> quotas() const;

  // Sells an offering. Refused with one of EC2's codes (refusal.h); nothing has changed then. A dry
  // run returns the block that would be bought, and nothing has changed either.
  absl::StatusOr<std::shared_ptr<const Block>> Purchase(const PurchaseOrder& order, WallTime now);
  // Lets `purchases` buy several; when it fails, nothing of what it bought has happened. Nobody may
  // have been told of these blocks: they have no CapacityBlocks yet.
  absl::Status AllOrNothing(absl::FunctionRef<absl::Status()> purchases);
  absl::StatusOr<ExtensionOffering> OfferExtension(const std::string& reservation,
                                                   std::int64_t hours, WallTime now) const;
  // Likewise.
  absl::StatusOr<std::shared_ptr<const Block>> Extend(const ExtensionOrder& order, WallTime now);
  // Notes the CapacityBlock of a block that was bought without one.
  void SetUid(const std::string& reservation, const std::string& uid);
  // `block` is as the book has it.
  void SetTerms(const Block& block, const BlockTerms& terms, const Tags& tags, WallTime now);
  // Asks once for healthy hosts in the place of those that failed. A request of the same name as
  // the last one changes nothing.
  void AskReplacement(const std::string& reservation, const std::string& request, WallTime now);
  // Notes what the block was used for so far.
  void SetUsage(const std::string& reservation, const BlockUsage& usage);
  // Takes back a purchase of which nobody was told yet.
  void Withdraw(const std::string& reservation);
  // Forgets a block that holds no capacity. Returns whether it was there.
  bool Forget(const std::string& reservation);

  // Does what is due by `now`, and delivers to those that wait what hardware there is.
  void Advance(WallTime now);
  // Returns the latest time that it has seen.
  WallTime now() const { return now_; }
  // Returns when Advance has something to do without any news.
  std::optional<WallTime> wake() const;

  // Takes what blocks have to do with each host of the pools in which something has changed
  // (host_uses.h).
  std::map<std::string, BlockUse> TakeUses();
  // Takes what has changed since the last call, in order.
  std::vector<BlockChange> TakeChanges();
  bool has_changes() const { return !changes_.empty(); }

  std::shared_ptr<const Block> Find(const std::string& reservation) const;
  std::shared_ptr<const Block> FindByKey(const BlockKey& key) const;
  const Blocks& blocks() const { return blocks_; }
  const TimeProfile& profile() const { return profile_; }
  const HostTable& hosts() const { return hosts_; }
  const PriceList& prices() const { return options_.prices; }
  const OfferingKey& offering_key() const { return options_.offering_key; }

 private:
  static std::string TokenKey(std::string_view owner, std::string_view token);
  // The slots whose capacity is booked.
  static SlotRange BookedSlots(const Block& block);
  static HostBinding BindingOf(const Block& block);
  // The reservations of blocks that are the same as this one, by id, name or token.
  std::vector<std::shared_ptr<const Block>> Rivals(const Block& block) const;
  void Erase(const Block& block);
  // The only way in which a block changes.
  void Put(const std::shared_ptr<const Block>& block);
  void Keep(const std::shared_ptr<const Block>& block);
  void KeepSignatures(const Block& block);
  bool KeepNew(const std::shared_ptr<const Block>& block);
  void Count(const Block& block, int sign);
  void CountDue(const Block& block, int sign);
  QuotaTable& ChangeQuotas() {
    shown_quotas_ = nullptr;
    return quotas_;
  }
  void Change(Block block, BlockNews news, std::string message, WallTime when);

  absl::StatusOr<Offering> CheckOffering(const PurchaseOrder& order, WallTime now) const;
  absl::StatusOr<std::shared_ptr<const Block>> FindRepeated(const PurchaseOrder& order) const;
  std::shared_ptr<const Block> NoteSignature(const std::shared_ptr<const Block>& block,
                                             const PurchaseOrder& order);
  Block MakeBlock(const PurchaseOrder& order, const Offering& offering,
                  std::vector<CellShare> cells, WallTime now) const;
  absl::Status CheckExtension(const Block& block, WallTime end, WallTime now) const;
  bool MayKeepHosts(const Block& block, WallTime end) const;
  BlockTerms Allowed(BlockTerms terms, const Product& product) const;

  void Do(const Due& due, const Block& block);
  void SettlePayment(Block block, WallTime when);
  void SettleExtension(Block block, WallTime when);
  void Warn(Block block, WallTime when);
  void Reclaim(Block block, WallTime when);
  void HandOver(const Block& block, WallTime when);
  void Expire(Block block, WallTime when);
  void GiveUp(Block block, WallTime when);
  void Fill(Block block, WallTime when);
  void Recheck(Block block, WallTime when);
  bool Fits(const Block& block, const HostState* host, WallTime when) const;
  struct Sorted {
    std::vector<std::string> fit;
    std::vector<std::string> unfit;
  };
  Sorted SortHosts(const Block& block, WallTime when) const;
  absl::Status MakeRoomFor(const Block& block);
  void TakeHost(const std::string& host, const Block& block);
  void ResolveHosts(Block& block);
  std::vector<std::string> AddHosts(const Block& block, std::vector<std::string> kept,
                                    WallTime from, WallTime now) const;
  std::vector<std::string> ReplaceFailed(Block& block, Sorted& sorted, WallTime when) const;
  bool IsDueBy(WallTime now) const;
  void DoTimers(WallTime now);
  void RecheckTouched(WallTime now);
  void RetryWaiting(WallTime now);
  void MoveTimeTo(WallTime now);
  // Hosts of these pools may have come back.
  void NotePools(const Block& block);

  const BookOptions options_;
  WallTime now_;
  BlockVersion version_;  // of the latest change
  TimeProfile profile_;
  HostTable hosts_;
  QuotaTable quotas_;
  mutable std::shared_ptr<const QuotaTable> shown_quotas_;  // nullptr: they have changed since

  Blocks blocks_;
  absl::flat_hash_map<BlockKey, std::shared_ptr<const Block>> by_key_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Block>> by_token_;  // of owner and token
  // The blocks that were bought with a signature, by owner and signature.
  absl::flat_hash_map<std::string, std::string> reservation_of_signature_;
  DueQueue dues_;
  // Blocks that are to be bound in time, by owner and the slot with which they begin.
  absl::flat_hash_map<std::pair<std::string, Slot>, std::set<std::string>> to_bind_;
  absl::flat_hash_map<PoolId, std::set<std::string>> waiting_;  // those that want hosts
  // Those that hold capacity, as blocks_ has them.
  absl::flat_hash_map<PoolId, absl::flat_hash_set<const Block*>> in_pool_;
  // Something has changed in which TakeUses takes part.
  absl::flat_hash_set<PoolId> unplanned_;
  std::set<std::string> touched_;   // something happened to one of their hosts
  std::set<PoolId> changed_pools_;  // hosts of them may be free or healthy again
  std::vector<BlockChange> changes_;
};

}  // namespace tahoma::controller
