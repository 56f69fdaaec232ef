// Keeps the status of Defragmentations in the API: the plan, and how far the moves have come.
//
//   DefragmentationStatuses statuses(writes);
//   statuses.OnObject(*fact, now);                   // a watch saw the object
//   statuses.Show(name, status, now);
//   statuses.Flush(now);
//   if (auto shown = statuses.OnResult(result, now)) moves.OnShown(result.name, *shown);
//
// Scope: each status is written at once (object_statuses.h). The contents: core/queue/moves.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "controller/core/facts/defragmentation.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/object_statuses.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Moves waits for the answer to each status: none is left out as known.
inline bool Says(const DefragmentationStatus&, const DefragmentationStatus&) { return false; }

class DefragmentationStatuses {
 public:
  using Status = std::shared_ptr<const DefragmentationStatus>;

  // `writes` must outlive it.
  explicit DefragmentationStatuses(WriteBuffer& writes) : writes_(writes) {}

  void OnObject(const DefragmentationFact& fact, const Now& now) {
    statuses_.OnObject(fact.name, fact.uid, {fact.resource_version, fact.shown}, now);
  }
  void OnObjectGone(const std::string& name, const std::string& uid) {
    statuses_.OnGone(name, uid);
  }
  // Ignores unknown objects.
  void Show(const std::string& name, const Status& status, const Now& now) {
    if (statuses_.Find(name) != nullptr) {
      statuses_.Want(name, *status, std::chrono::seconds(0), now);
    }
  }

  // Returns the status that the API shows now; nullptr when the write has failed.
  Status OnResult(const ApiResult& result, const Now& now) {
    return statuses_.OnResult(result, now);
  }
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return statuses_.wake(now); }

 private:
  struct Shown {
    std::string resource_version = {};
    std::uint64_t digest = 0;
  };

  WriteBuffer& writes_;
  ObjectStatuses<DefragmentationStatus, Shown> statuses_;
};

}  // namespace tahoma::controller
