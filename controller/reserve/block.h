// A Capacity Block: hardware that an owner has bought for a time, and the block's states.
//
//   block.state;                        // BlockState::kScheduled
//   block.reclaim();                    // when the hardware is taken back
//   NextDue(block);                     // the next change that time alone makes, and when
//
// The life of a block (docs/reference/capacity-blocks.md#states):
//
//   payment-pending ─▶ scheduled ─▶ active ⇄ unavailable ─▶ expired
//          └▶ payment-failed  └▶ failed (its hardware could not be delivered)
//
// Scope: values, and conclusions from one block and the time. book.h holds all blocks.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/model/ids.h"
#include "controller/reserve/capacity.h"
#include "controller/reserve/offering.h"
#include "controller/reserve/search.h"
#include "controller/reserve/usage.h"
#include "lib/base/clock.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

using BlockKey = Key<struct BlockTag>;  // of the CapacityBlock

inline const kube::Resource kCapacityBlocks{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "capacityblocks"};
// Asks for healthy hosts in the place of failed hosts: each new value is a request.
inline constexpr const char* kReplaceAnnotation = "tahoma.dev/replace";
// Keeps the object of a block that holds capacity: such a block cannot be cancelled.
inline constexpr std::string_view kNoCancelFinalizer = "tahoma.dev/no-cancel";

enum class BlockState : std::uint8_t {
  kPaymentPending,
  kPaymentFailed,
  kScheduled,
  kActive,
  kUnavailable,  // active, and none of its hosts is healthy
  kExpired,
  kFailed,
};
// Returns EC2's word: "payment-pending".
std::string_view StateName(BlockState state);
std::optional<BlockState> ParseState(std::string_view name);
// Returns whether the block is owed hardware now or later. A state that holds no capacity is final.
bool HoldsCapacity(BlockState state);
// Returns the message for a caller who wants to cancel a block that holds capacity.
std::string WhyNotCancelled(std::string_view state, std::string_view end);
// Returns whether the block has its hardware: delivered, and not ended.
bool IsDelivered(BlockState state);

// A payment under way. It succeeds or fails at `settles`; at `deadline` it has failed.
struct Payment {
  WallTime settles;
  bool succeeds = true;
  WallTime deadline;

  WallTime due() const { return std::min(settles, deadline); }
  bool pays() const { return succeeds && settles <= deadline; }
  friend bool operator==(const Payment&, const Payment&) = default;
};

enum class ExtensionState : std::uint8_t { kPaymentPending, kPaymentFailed, kPaymentSucceeded };
std::string_view StateName(ExtensionState state);

struct Extension {
  std::string offering_id;
  std::string token;  // of the request that bought the extension
  WallTime purchased;
  WallTime start;  // the end of the block before it
  WallTime end;
  Money fee;
  Payment payment;
  ExtensionState state = ExtensionState::kPaymentPending;

  friend bool operator==(const Extension&, const Extension&) = default;
};

enum class ReplacePolicy : std::uint8_t { kNone, kOnRequest, kAutomatic };
enum class BindingMode : std::uint8_t { kBeforeStart, kAtPurchase };

// The CapacityBlock's words for both enums, the default first.
inline constexpr std::array<std::pair<std::string_view, ReplacePolicy>, 3> kReplacePolicies = {
    {{"OnRequest", ReplacePolicy::kOnRequest},
     {"None", ReplacePolicy::kNone},
     {"Automatic", ReplacePolicy::kAutomatic}}};
inline constexpr std::array<std::pair<std::string_view, BindingMode>, 2> kBindingModes = {
    {{"BeforeStart", BindingMode::kBeforeStart}, {"AtPurchase", BindingMode::kAtPurchase}}};

// The terms that the owner may choose and change.
struct BlockTerms {
  ReplacePolicy replace = ReplacePolicy::kOnRequest;
  BindingMode binding = BindingMode::kBeforeStart;
  bool lend_idle = false;  // preemptible gangs of others may use its idle hosts
  bool magnetic = false;   // gangs of its namespaces are drawn to the block without naming it
  // The namespaces, beside the owner's, whose gangs may run in the block; sorted.
  std::vector<std::string> access = {};

  friend bool operator==(const BlockTerms&, const BlockTerms&) = default;
};

using Tags = std::vector<std::pair<std::string, std::string>>;  // sorted by key

// Orders the records of a block by age. Each leadership has a larger term than every earlier
// leadership, and numbers the changes of all its blocks.
struct BlockVersion {
  std::int64_t term = 0;
  std::int64_t number = 0;

  friend auto operator<=>(const BlockVersion&, const BlockVersion&) = default;
};

struct Block {
  // "cr-…": the Capacity Reservation, the id by which a block is extended and used.
  std::string reservation = {};
  std::vector<std::string> block_ids = {};   // "cb-…": one, or one for each UltraServer
  BlockKey key = {};                         // the namespace is the owner
  std::string uid = {};                      // of the CapacityBlock; empty until it exists
  std::string token = {};                    // of the request that bought the block
  std::vector<std::string> signatures = {};  // of all such requests, the latest last
  std::string offering_id = {};
  std::string platform = {};
  Tags tags = {};
  BlockTerms terms = {};

  Offering bought = {};  // as bought; extensions do not move its end
  std::vector<CellShare> cells = {};
  WallTime created = {};
  WallTime end = {};  // with the extensions that are paid
  BlockState state = BlockState::kPaymentPending;
  Payment payment = {};
  std::vector<Extension> extensions = {};

  std::vector<std::string> hosts = {};  // names, while the block is bound
  std::optional<WallTime> bound = {};
  std::optional<WallTime> delivered = {};
  bool warned = false;       // the owner was told that the hardware will be reclaimed
  bool reclaiming = false;   // the hardware is being taken back: nothing may begin there
  std::string trouble = {};  // why the block is not as promised; empty when it is
  // The owner's name for the last request to replace failed hosts, and whether it waits for hosts.
  std::string replace_request = {};
  bool replacing = false;
  BlockUsage usage = {};  // use of the chips, as of the last record
  BlockVersion version = {};

  const Product& product() const { return *bought.product; }
  WallTime start() const { return bought.start; }
  WallTime reclaim() const { return end - product().reclaim; }
  // Returns the slots whose capacity the block has, with the slots of an extension not yet paid.
  SlotRange slots() const;
  const Extension* pending_extension() const;
  // Returns whether the block waits for hardware that could not be bound or delivered in time.
  bool waits() const { return state == BlockState::kScheduled && !trouble.empty(); }
  // Returns whether any host that becomes free may help the block.
  bool wants_hosts() const {
    return waits() || (HoldsCapacity(state) && !trouble.empty() && replaces());
  }
  // Returns whether healthy hosts take the place of hosts that fail.
  bool replaces() const { return terms.replace == ReplacePolicy::kAutomatic || replacing; }
  // Returns whether gangs of the namespace may run in the block.
  bool admits(const std::string& ns) const {
    return ns == key.ns || std::binary_search(terms.access.begin(), terms.access.end(), ns);
  }
  int chips() const { return bought.instances() * product().chips; }
  Money fee() const;  // with its paid extensions

  friend bool operator==(const Block&, const Block&) = default;
};

// Returns the pool of the block's product and zone in a cell.
inline Pool PoolOf(const Block& block, const std::string& cell) {
  return {.product = &block.product(), .zone = block.bought.zone, .cell = cell};
}

// The warning comes this long before the reclaim time, and up to kWarningSpread earlier still.
inline constexpr std::chrono::minutes kWarningLead{10};
// Thousands of blocks end at one boundary, and programs write checkpoints when they are warned: the
// warnings are spread by reservation.
inline constexpr std::chrono::minutes kWarningSpread{10};

// Returns when the block's owner is warned of its reclaim.
WallTime WarningOf(const Block& block);

// Hardware is bound this long before the start.
inline constexpr std::chrono::minutes kBindingLead{10};
// A block whose hardware cannot be delivered fails this long after its start, or at its reclaim
// time.
inline constexpr std::chrono::minutes kDeliveryGrace{60};

// The changes that time makes to a block. At one moment they happen in this order over all blocks:
// hardware that one block gives back can be delivered to the next
// (docs/reference/capacity-blocks.md#end).
enum class DueKind : std::uint8_t {
  kWarn,
  kExtensionSettles,
  kReclaim,
  kExpire,
  kPaymentSettles,
  kBind,
  kDeliver,
  kGiveUp,  // the hardware could not be delivered in time
};

struct Due {
  WallTime when;
  DueKind kind = DueKind::kExpire;

  friend auto operator<=>(const Due&, const Due&) = default;
};

// Returns the next change; nullopt when time changes the block no more.
std::optional<Due> NextDue(const Block& block);

// Returns the latest time that the block proves: the block reached its state no earlier.
WallTime LatestMoment(const Block& block);
// kDataLoss when no block can have become such a block.
absl::Status CheckConsistency(const Block& block);

}  // namespace tahoma::controller
