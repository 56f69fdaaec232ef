// Counts the time for which gangs hold chips, by namespace, queue and instance type.
//
//   GangUsage usage(term);
//   usage.Restore(sequence, record);                      // each record of the journal, in order
//   usage.Touch({{"team-a", "train"}, false});            // whenever the run of a gang has news
//   usage.Begin(runs, cluster, now);                      // once, before any run goes on
//   usage.Update(runs, cluster, now, journal);            // before the journal is written
//   usage.sums().Find(UsageKey{"team-a", "nightly"})->UpTo(now);
//
// A gang, or a pod that is a gang of one, counts from the record that all of its pods are bound
// until each of its claims is given back. The sums are journalled in the batch that begins or ends
// some of that, and every kRecordEvery while chips are held; so a crash at any moment counts no
// time twice and loses none: a restart goes on from the time of the newest record, with what the
// restored runs hold. Where another controller has led in between, it has counted that time in its
// own journal, and this one goes on from now. A gang that is taken over from the API counts from
// then.
//
// Memory and journal are bounded by kQueuesOfNamespace and kQueuesMost: usage of further queues is
// that of kOtherQueues. Queues that are used no more, or gone, keep their sums.
//
// Scope: following runs. What the chips of a Capacity Block were used for: blocks/usage_meter.h.
//
// Thread safety: belongs to one thread; a copy of sums() may be read by any.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/journal/journal_buffer.h"
#include "controller/core/journal/usage_record.h"
#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class GangUsage {
 public:
  static constexpr std::chrono::minutes kRecordEvery{10};
  static constexpr std::size_t kQueuesOfNamespace = 64;
  static constexpr std::size_t kQueuesMost = 4096;
  // The queue, or namespace, of what is beyond these bounds. Kubernetes allows no such name.
  static constexpr const char* kOtherQueues = "~others";

  using Sums = PersistentMap<UsageKey, UsageSum>;

  // `term` is CoreOptions::term.
  explicit GangUsage(std::int64_t term) : term_(term) {}

  // Takes an entry of the journal, before the first Update.
  void Restore(Sequence sequence, UsageRecord record);
  void Touch(const GangRef& ref) { touched_.insert(ref); }
  // Goes on with the sums of the journal: the touched gangs, all of the journal, have held their
  // chips since the newest record.
  void Begin(const GangRuns& runs, const ClusterState& cluster, WallTime now);
  // Takes what the touched gangs hold from now on, and journals sums that are due.
  void Update(const GangRuns& runs, const ClusterState& cluster, WallTime now,
              JournalBuffer& journal);
  // Returns when Update has a record to make without any news.
  std::optional<WallTime> wake() const;
  const Sums& sums() const { return sums_; }

 private:
  using Tally = std::map<std::string, std::int64_t>;  // eighths of chips, by instance type
  struct Held {
    UsageKey key;
    Tally tally;
  };

  static Tally TallyOf(const GangRun& run, const ClusterState& cluster);
  UsageKey PlaceOf(UsageKey key) const;
  void TakeTouched(const GangRuns& runs, const ClusterState& cluster, WallTime now);
  void Take(const GangRef& ref, const GangRuns& runs, const ClusterState& cluster, WallTime now);
  void Change(const UsageKey& key, const Tally& tally, int sign, WallTime since, WallTime now);

  const std::int64_t term_;
  std::int64_t counted_by_ = 0;  // the last term that has counted here
  bool begun_ = false;
  WallTime now_;
  Sums sums_;
  std::map<std::string, std::size_t> queues_of_;  // by namespace
  absl::flat_hash_map<UsageKey, Sequence> entries_;
  absl::flat_hash_map<GangRef, Held> held_;
  std::set<GangRef> touched_;
  std::set<UsageKey> changed_;
  WallTime recorded_;  // when all sums of held chips were last recorded
};

}  // namespace tahoma::controller
