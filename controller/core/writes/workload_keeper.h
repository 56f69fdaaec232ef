// Makes the claim templates of NeuronUltraServerWorkloads, and writes the workloads' status
// (facts/ultraserver_workload.h).
//
//   WorkloadKeeper keeper(facts, writes);
//   keeper.OnWorkload(*workload, now);           // the fact is in `facts` already
//   keeper.Flush([&](const WorkloadKey& key) { return GangFor(key); }, now);
//   keeper.OnResult(result, now);
//
// Both writes follow from facts alone. A template has the name that the workload says, so a
// restart, or a write of a former leader, makes no second template: the second write is refused,
// and the watch tells whose template there is. A template that somebody deletes is made again.
//
// A refused template is sent again after the pause of RetryPolicy. News of a workload that waits
// are written at most every kRepeat, all other changes of a status at once.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/shown_status.h"
#include "controller/core/facts/ultraserver_workload.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class WorkloadKeeper {
 public:
  static constexpr std::chrono::seconds kRepeat{5};

  using FindGang = absl::FunctionRef<WorkloadGang(const WorkloadKey& key)>;

  // The arguments must outlive the keeper.
  WorkloadKeeper(const Facts& facts, WriteBuffer& writes) : facts_(facts), writes_(writes) {}

  void OnWorkload(const WorkloadFact& workload, const Now& now);
  void OnWorkloadGone(const WorkloadKey& key);
  // A template of that name has come, changed or gone.
  void OnTemplate(const ClaimTemplateKey& key);
  // The gang of that name has changed. Nothing happens when no workload has the name.
  void OnGang(const GangKey& key);

  // Returns the workloads that say the template's name.
  const std::set<WorkloadKey>& NamersOf(const ClaimTemplateKey& key) const;
  // Returns the Gang that must be made for the workload of that name; nullptr: none, or none before
  // the workload's template is there.
  std::shared_ptr<const GangWish> WishOf(const GangKey& key) const;

  void OnResult(const ApiResult& result, const Now& now);
  void Flush(FindGang find_gang, const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const;

 private:
  struct Entry {
    std::string uid;
    ClaimTemplateKey template_key;
    std::string refusal;  // of the template by the API server
    std::optional<MonotonicTime> told;
    std::shared_ptr<const WorkloadStatus> sent;
    bool unsure = false;  // somebody else has written the status after us
    ShownStatus shown;
  };

  void OnTemplateResult(const WorkloadKey& key, const ApiResult& result, const Now& now);
  void OnStatusResult(const WorkloadKey& key, const ApiResult& result, const Now& now);
  void SendTemplate(const WorkloadKey& key);
  void SendStatus(const WorkloadKey& key, FindGang find_gang, const Now& now);

  const Facts& facts_;
  WriteBuffer& writes_;
  absl::flat_hash_map<WorkloadKey, Entry> entries_;
  absl::flat_hash_map<ClaimTemplateKey, std::set<WorkloadKey>> namers_;
  Outbox<WorkloadKey> templates_;
  Outbox<WorkloadKey> statuses_;
};

}  // namespace tahoma::controller
