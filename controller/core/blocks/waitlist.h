// Repeats the searches of CapacityBlockWaitlistEntries when there is more to be had: buys what they
// find, or says that there is something.
//
//   Waitlist waitlist(blocks);
//   waitlist.Put(fact);
//   for (const RequestKey& key : waitlist.DrainDue())
//     Show(waitlist.Look(fact_of(key), false, now));
//
// Entries are asked in the order of their creation. After a change of a pool those of its product
// are asked again, at most kLooksTogether of them in one step. An entry that asks for less than an
// older one may be served before it.
//
// Scope: which entry is asked when, and what follows.
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

  // `blocks` must outlive it.
  explicit Waitlist(CapacityBlocks& blocks) : blocks_(blocks) {}

  // Adds an entry that waits. It is due.
  void Put(const RequestFact& fact);
  void Forget(const RequestKey& key);
  // Notes which pools have more room than at the last call.
  void NoteChanges();
  // Takes the entries that are due, the oldest first.
  std::vector<RequestKey> DrainDue();
  bool has_due() const;

  // `now` is in block time.
  RequestAnswer Look(const RequestFact& fact, bool settled, WallTime now);
  // Returns the entry that is to be looked at again when the block has changed; nullptr when none
  // is.
  const RequestKey* OfBlock(const BlockKey& key) const;

 private:
  using Place = std::pair<WallTime, RequestKey>;  // by creation
  struct Queue {
    std::set<Place> entries;
    std::optional<Place> next;  // those from here on are due
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
