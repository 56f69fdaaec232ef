// Carries out CapacityBlockExtensions: buys each extension once, and reports the result.
//
// An extension is in the journal as a part of its block: the token (the object's uid, or
// spec.clientToken) makes the purchase repeatable. The status is shown only when the block's own
// object shows the extension, too: a controller with a lost journal finds the extension in the
// object and does not buy again.
//
// Scope: one object and one block at a time; reserve/extension.h has EC2's rules.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <set>

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/facts/block_request.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class BlockExtensions {
 public:
  // The block may be made together with its extension, and be seen after the extension.
  static constexpr std::chrono::seconds kBlockSeenWithin{30};

  // `blocks` must outlive it.
  explicit BlockExtensions(CapacityBlocks& blocks) : blocks_(blocks) {}

  // Buys nothing for a settled request: the request was carried out or refused before.
  RequestAnswer Look(const RequestFact& fact, bool settled, WallTime now);
  void Forget(const RequestKey& key);
  // Returns the extensions of the block.
  const std::set<RequestKey>& OfBlock(const BlockKey& key) const;

 private:
  RequestAnswer LookAtMissing(const RequestFact& fact, WallTime now) const;
  RequestAnswer Buy(const RequestFact& fact, const Block& block, WallTime now);
  void Note(const RequestKey& key, const BlockKey& block);

  CapacityBlocks& blocks_;
  absl::flat_hash_map<BlockKey, std::set<RequestKey>> of_block_;
  absl::flat_hash_map<RequestKey, BlockKey> block_of_;
};

}  // namespace tahoma::controller
