// Counts what the chips of each Capacity Block are used for.
//
//   UsageMeter meter;
//   meter.Follow(block, cluster, when);            // whenever a block has changed
//   meter.Update(cluster, now);                    // whenever gangs or hardware may have
//   for (const auto& [id, usage] : meter.DrainRecords(now)) Journal(id, usage);
//   meter.live().Find(block.reservation)->UpTo(now).chip_ms.used;
//
// It looks at the domains that have changed and at no others. What is counted is journalled with
// each change of the block, otherwise at most every kRecordEvery while the use changes, and every
// kRefreshEvery. After a restart the time since the last record is counted by the use as it is
// found, each gang from when it was placed: only gangs that ended since then are missing, and their
// chips count as idle for that time.
//
// Scope: following. The sums: reserve/usage.h.
//
// Thread safety: belongs to one thread; a copy of live() may be read by any.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "controller/reserve/block.h"
#include "controller/reserve/block_time.h"
#include "controller/reserve/usage.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// What a block was used for, and is.
struct LiveUsage {
  BlockUsage usage;
  ChipTally chips;  // since usage.as_of
  WallTime end;     // of the block: nothing is counted after it

  BlockUsage UpTo(WallTime now) const {
    BlockUsage sum = usage;
    sum.Add(chips, std::min(now, end));
    return sum;
  }
};

class UsageMeter {
 public:
  static constexpr std::chrono::minutes kRecordEvery{10};
  static constexpr std::chrono::minutes kRefreshEvery{60};

  using Live = PersistentMap<std::string, LiveUsage>;  // by reservation

  // All times are block time, but those of the fleet's holdings.
  explicit UsageMeter(BlockTime time = {}) : time_(time) {}

  // Takes a block of an earlier process, before the fleet is known.
  void Restore(const Block& block);
  // Takes a block as it is from `when` on.
  void Follow(const Block& block, const ClusterState& cluster, WallTime when);
  void Forget(const std::string& reservation);
  // Takes what has changed in the fleet.
  void Update(const ClusterState& cluster, WallTime now);
  // Takes the usage that is to be recorded now.
  std::vector<std::pair<std::string, BlockUsage>> DrainRecords(WallTime now);
  // Returns when DrainRecords has something without any news.
  std::optional<WallTime> wake() const;
  const Live& live() const { return live_; }

 private:
  struct Followed {
    const Product* product = nullptr;
    std::vector<std::string> hosts;
    std::map<std::string, ChipTally> tallies;  // by host
    WallTime recorded;
    std::optional<WallTime> due;  // of its next record
  };

  void CountHosts(const std::string& reservation, Followed& followed, LiveUsage& live,
                  const ClusterState& cluster);
  void SetDue(const std::string& reservation, Followed& followed, std::optional<WallTime> due);
  void Stop(const std::string& reservation);

  const BlockTime time_;
  ClusterState seen_;
  absl::flat_hash_map<std::string, Followed> followed_;          // delivered blocks, by reservation
  absl::flat_hash_map<std::string, std::string> block_of_host_;  // reservation, by host
  std::map<std::string, Block> restored_;                        // until the fleet is known
  std::set<std::string> changed_;                                // blocks to be recorded at once
  std::set<std::pair<WallTime, std::string>> dues_;
  Live live_;
};

// Returns what the chips of a host are used for now.
ChipTally TallyOf(const ClusterState& cluster, const std::string& host, const Product& product);

}  // namespace tahoma::controller
