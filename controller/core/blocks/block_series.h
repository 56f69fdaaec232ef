// Buys CapacityBlockSeries: a number of blocks some weeks apart, or the blocks of some offerings,
// all in one batch of the journal, or none.
//
// The blocks are named after the series, NAME-1 and so on. No block is published before the series'
// status has the records of all blocks: a controller with a lost journal finds all records in the
// status, or no block was promised. When each block's own object has its record, the status drops
// the records.
//
// Scope: one object at a time.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/facts/block_request.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class BlockSeries {
 public:
  static constexpr int kOccurrencesMost = 8;

  // `blocks` must outlive it.
  explicit BlockSeries(CapacityBlocks& blocks) : blocks_(blocks) {}

  // Takes an object from a watch. Holds back the blocks of an unsettled series.
  void OnFact(const RequestFact& fact, bool settled);
  RequestAnswer Look(const RequestFact& fact, bool settled, WallTime now);
  void Forget(const RequestKey& key);
  // Returns the series to look at again when the block has changed; nullptr when there is no such
  // series.
  const RequestKey* OfBlock(const BlockKey& key) const;

 private:
  using Blocks = std::vector<std::shared_ptr<const Block>>;

  absl::Status BuyAll(const RequestFact& fact, WallTime now, Blocks& bought);
  // Returns the offering of an occurrence that begins at `start`.
  absl::StatusOr<std::string> FindOffering(const SeriesRequest& request, int number, WallTime start,
                                           WallTime now) const;
  // Returns the block of that number when it has been bought already.
  absl::StatusOr<std::shared_ptr<const Block>> FindBought(const RequestFact& fact,
                                                          int number) const;
  absl::Status BuyOne(const RequestFact& fact, int number, const std::string& offering_id,
                      WallTime now, Blocks& bought);
  Blocks FindAll(const RequestFact& fact) const;
  RequestAnswer AnswerCommitted(const RequestFact& fact, const Blocks& bought);
  void Adopt(const RequestFact& fact, WallTime now);
  static RequestAnswer WithoutRecords(const RequestFact& fact);

  CapacityBlocks& blocks_;
  absl::flat_hash_map<BlockKey, RequestKey> of_block_;
};

}  // namespace tahoma::controller
