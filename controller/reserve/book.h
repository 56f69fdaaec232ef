// All Capacity Blocks: sells and settles blocks, binds hardware to blocks and takes it back.
//
//   BlockBook book(options, now);
//   book.PutHost({.name = "us-0", .pool = pool, .healthy = true}, now);
//   const auto block = book.Purchase({.offering_id = id, .key = {"team-a", "pretrain"}}, now);
//   book.Advance(now);                      // whatever is due
//   for (const BlockChange& change : book.TakeChanges()) Journal(*change.block);
//
// A block changes by purchase, by its owner's requests, and by time and hardware in Advance. Every
// change is a whole new value. The owner of the book writes the value to the journal before anybody
// hears of it. Restore takes these values again, in any order; counts, timers and the hosts'
// bindings are derived from them.
//
// The book never promises more than there is: in each slot, the hosts booked in a pool are at most
// its healthy hosts without spares, unless sold hardware failed. The book's time does not go back:
// a clock set back delays due changes, and a clock set forward skips none.
//
// Scope: decisions. A book does no I/O, has no clock and no randomness.
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
  Quota quota = {};               // of an owner without a quota of its own
  OfferingKey offering_key = {};  // seals the ids of offerings that are sold
  // Whether the owner of UltraServers may let other namespaces in; EC2 does not allow it
  // (docs/reference/capacity-blocks.md#sharing).
  bool share_ultra_servers = false;
};

struct PurchaseOrder {
  std::string offering_id;
  std::string platform = "Linux/UNIX";
  BlockKey key = {};
  std::string uid = {};  // of the CapacityBlock, if it exists already
  // An order with the token of an earlier order that was carried out changes nothing.
  std::string token = {};
  // The signature of the request that brings the order. A signature that has bought a block buys
  // nothing under another token.
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
  kReclaimed,  // the hardware is taken back from now on
  kExpired,
  kFailed,
  kUndelivered,  // the block waits for hardware
  kDegraded,     // some of its hosts failed
  kRecovered,
  kReplaced,  // another host took the place of a failed host
  kExtended,
  kExtensionFailed,
  kChanged,  // only the owner's terms
};
// Returns the word for events and conditions: "CapacityBlockDelivered".
std::string_view NewsName(BlockNews news);

struct BlockChange {
  std::shared_ptr<const Block> block;  // as changed
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

  // Takes a block of an earlier process and returns it. kDataLoss when the block contradicts itself
  // or is in the book already: then nothing has changed.
  absl::StatusOr<std::shared_ptr<const Block>> Restore(Block block);
  // Takes the published blocks of other leaders, in the place of older records. The blocks may be
  // of different moments: when two blocks have the same host, the later record keeps it. Calls
  // `refused` for a block that contradicts itself or is older than the book's.
  using Refused = std::function<void(const Block& block, const absl::Status& why)>;
  void Adopt(std::vector<Block> blocks, const Refused& refused);
  // Begins a leadership of that term. A term below a term seen earlier is not believed.
  void Lead(std::int64_t term);
  std::int64_t term() const { return version_.term; }
  // Returns whether the capacity that the block has beyond its record in the book can still be
  // sold.
  bool HasRoomFor(const Block& block) const;

  void PutHost(HostState host, WallTime now);
  void RemoveHost(const std::string& name, WallTime now);
  // The fleet has lost the host's use by blocks: TakeUses returns the use again.
  void PlanUsesAgain(const std::string& host);
  void SetQuota(const std::string& owner, std::optional<Quota> quota) {
    ChangeQuotas().Set(owner, quota);
  }
  QuotaUse UseOf(std::string_view owner) const { return quotas_.UseOf(owner); }
  // The present quotas, for searches elsewhere.
  std::shared_ptr<const QuotaTable> quotas() const;

  // Sells an offering. Refused with one of EC2's codes (refusal.h); then nothing has changed. A dry
  // run returns the block that would be bought, and changes nothing either.
  absl::StatusOr<std::shared_ptr<const Block>> Purchase(const PurchaseOrder& order, WallTime now);
  // Lets `purchases` buy several blocks. When `purchases` fails, none of its purchases has
  // happened. Nobody may have been told of these blocks: they have no CapacityBlocks yet.
  absl::Status AllOrNothing(absl::FunctionRef<absl::Status()> purchases);
  absl::StatusOr<ExtensionOffering> OfferExtension(const std::string& reservation,
                                                   std::int64_t hours, WallTime now) const;
  // Lets a block end later. Refusals and dry runs are as those of Purchase.
  absl::StatusOr<std::shared_ptr<const Block>> Extend(const ExtensionOrder& order, WallTime now);
  // Notes the CapacityBlock of a block that was bought before its object existed.
  void SetUid(const std::string& reservation, const std::string& uid);
  // `block` is the book's present value.
  void SetTerms(const Block& block, const BlockTerms& terms, const Tags& tags, WallTime now);
  // Asks once for healthy hosts in the place of failed hosts. A request with the name of the last
  // request changes nothing.
  void AskReplacement(const std::string& reservation, const std::string& request, WallTime now);
  // Notes the use of the block's chips so far.
  void SetUsage(const std::string& reservation, const BlockUsage& usage);
  // Takes back a purchase before anybody is told of it.
  void Withdraw(const std::string& reservation);
  // Forgets a block that holds no capacity. Returns whether there was such a block.
  bool Forget(const std::string& reservation);

  // Does everything due by `now`, and delivers free hardware to the blocks that wait.
  void Advance(WallTime now);
  // Returns the latest time that the book has seen.
  WallTime now() const { return now_; }
  // Returns when Advance has something to do without any news.
  std::optional<WallTime> wake() const;

  // Takes the use by blocks of each host in the pools where something has changed (host_uses.h).
  std::map<std::string, BlockUse> TakeUses();
  // Takes the changes since the last call, in order.
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
  // The blocks that have this block's id, name or token.
  std::vector<std::shared_ptr<const Block>> Rivals(const Block& block) const;
  void Erase(const Block& block);
  // Every change of a block passes here.
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
  // Notes that hosts of the block's pools may have become free.
  void NotePools(const Block& block);

  const BookOptions options_;
  WallTime now_;
  BlockVersion version_;  // of the latest change
  TimeProfile profile_;
  HostTable hosts_;
  QuotaTable quotas_;
  mutable std::shared_ptr<const QuotaTable> shown_quotas_;  // nullptr: changed since

  Blocks blocks_;
  absl::flat_hash_map<BlockKey, std::shared_ptr<const Block>> by_key_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Block>> by_token_;  // of owner and token
  // The blocks that were bought with a signature, by owner and signature.
  absl::flat_hash_map<std::string, std::string> reservation_of_signature_;
  DueQueue dues_;
  // Blocks that are to be bound, by owner and first slot.
  absl::flat_hash_map<std::pair<std::string, Slot>, std::set<std::string>> to_bind_;
  absl::flat_hash_map<PoolId, std::set<std::string>> waiting_;  // blocks that want hosts
  // Blocks that hold capacity; the pointers are those of blocks_.
  absl::flat_hash_map<PoolId, absl::flat_hash_set<const Block*>> in_pool_;
  // The pools in which a change concerns TakeUses.
  absl::flat_hash_set<PoolId> unplanned_;
  std::set<std::string> touched_;   // blocks with news of a host
  std::set<PoolId> changed_pools_;  // pools whose hosts may be free or healthy again
  std::vector<BlockChange> changes_;
};

}  // namespace tahoma::controller
