// Repeats the searches of CapacityBlockWaitlistEntries when there is more to be had: buys the found
// offering, or reports the offering.
//
// Entries are asked in the order of their creation. After a change of a pool the entries of the
// pool's product are asked again, at most kLooksTogether in one step. An entry that asks for less
// than an older entry may be served first.
//
// Scope: when an entry is asked, and the consequences.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/facts/block_request.h"
#include "controller/reserve/time_profile.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Waitlist {
 public:
  // A search takes milliseconds in the largest fleet.
  static constexpr std::size_t kLooksTogether = 8;

  // `blocks` must outlive the waitlist.
  explicit Waitlist(CapacityBlocks& blocks) : blocks_(blocks) {}

  // Adds a waiting entry, which is due.
  void Put(const RequestFact& fact);
  void Forget(const RequestKey& key);
  // Notes which pools have more room than at the last call.
  void NoteChanges();
  // Takes the due entries, the oldest first.
  std::vector<RequestKey> DrainDue();
  bool has_due() const;

  // `now` is in block time.
  RequestAnswer Look(const RequestFact& fact, bool settled, WallTime now);
  // Returns the entry to look at again when the block has changed; nullptr when there is no such
  // entry.
  const RequestKey* OfBlock(const BlockKey& key) const;

 private:
  using Place = std::pair<WallTime, RequestKey>;  // by creation
  struct Queue {
    std::set<Place> entries;
    std::optional<Place> next;  // entries from here on are due
  };

  WallTime EndOf(const RequestFact& fact) const;
  RequestAnswer Search(const RequestFact& fact, WallTime now);
  RequestAnswer AnswerFound(const RequestFact& fact, const Offering& offering, WallTime now);
  RequestAnswer AnswerBought(const RequestFact& fact, const Block& block);

  CapacityBlocks& blocks_;
  std::map<std::string, Queue> queues_;  // by product
  absl::flat_hash_map<RequestKey, std::pair<std::string, Place>> places_;
  absl::flat_hash_map<BlockKey, RequestKey> of_block_;
  TimeProfile seen_{0};
};

}  // namespace tahoma::controller
