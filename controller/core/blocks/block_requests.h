// The objects by which people ask for something about Capacity Blocks: looks at each when it, or
// what it is about, has changed, and keeps its status in the API.
//
//   BlockRequests requests(blocks, writes);
//   requests.OnRequest(fact);                                  // a watch saw one
//   if (requests.Step(now)) Journal();                         // it has changed the book
//
// A status is written when it differs from what the object shows: what somebody else wrote there is
// put right, also where none of our statuses says anything.
//
// Scope: which object is looked at when. What is decided: block_extensions.h, block_series.h,
// waitlist.h, and the quotas of the book.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/blocks/block_extensions.h"
#include "controller/core/blocks/block_series.h"
#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/blocks/waitlist.h"
#include "controller/core/facts/block_request.h"
#include "controller/core/facts/shown_status.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"

namespace tahoma::controller {

class BlockRequests {
 public:
  // Both must outlive it.
  BlockRequests(CapacityBlocks& blocks, WriteBuffer& writes)
      : blocks_(blocks), writes_(writes), extensions_(blocks), series_(blocks), waitlist_(blocks) {}

  void OnRequest(std::shared_ptr<const RequestFact> fact);
  void OnRequestGone(const RequestKey& key, const std::string& uid);
  void OnResult(const ApiResult& result, const Now& now);

  // Looks at what has changed, and adds the writes that can be issued when the journal is durable.
  // Returns whether it has changed the book.
  bool Step(const Now& now);
  // The time at which Step has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const;

 private:
  struct Entry {
    std::shared_ptr<const RequestFact> fact;
    std::optional<RequestStatus> wanted;
    std::optional<RequestStatus> shown;
    ShownStatus seen;
    bool unsure = false;  // whether the object shows no more than `shown`
    std::shared_ptr<const RequestStatus> sent;
    std::optional<WallTime> look_again;
  };

  static bool IsSettledEntry(const Entry& entry);
  void TouchAfter(const BlockKey& block);
  void TouchOnNewDay();
  void Look(const RequestKey& key, Entry& entry, const Now& now);
  RequestAnswer Decide(const Entry& entry, WallTime now);
  RequestAnswer DecideQuota(const RequestFact& fact) const;
  void Want(Entry& entry, RequestStatus status, const Now& now);
  void Send(const RequestKey& key, Entry& entry);
  void Wait(const RequestKey& key, Entry& entry, std::optional<WallTime> until);

  CapacityBlocks& blocks_;
  WriteBuffer& writes_;
  BlockExtensions extensions_;
  BlockSeries series_;
  Waitlist waitlist_;
  absl::flat_hash_map<RequestKey, Entry> entries_;
  std::set<RequestKey> quotas_;
  std::set<RequestKey> touched_;                       // to be looked at
  std::set<std::pair<WallTime, RequestKey>> waiting_;  // in block time
  Outbox<RequestKey> outbox_;                          // of statuses
  std::optional<Slot> day_;                            // that the quotas' use was counted on
};

}  // namespace tahoma::controller
