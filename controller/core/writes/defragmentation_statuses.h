// Keeps the status of Defragmentations in the API: the plan, and how far the moves have come.
//
//   DefragmentationStatuses statuses(writes);
//   statuses.OnObject(*fact, now);                   // a watch saw the object
//   statuses.Show(name, status, now);
//   statuses.Flush(now);
//   if (auto shown = statuses.OnResult(result, now)) moves.OnShown(result.name, *shown);
//
// A failed write is sent again (outbox.h), and so is a status that somebody else has changed.
//
// Scope: the times of writes. What is shown: core/queue/moves.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <optional>
#include <string>

#include "controller/core/facts/defragmentation.h"
#include "controller/core/facts/shown_status.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class DefragmentationStatuses {
 public:
  using Status = std::shared_ptr<const DefragmentationStatus>;

  // `writes` must outlive it.
  explicit DefragmentationStatuses(WriteBuffer& writes) : writes_(writes) {}

  void OnObject(const DefragmentationFact& fact, const Now& now);
  void OnObjectGone(const std::string& name, const std::string& uid);
  // Ignores unknown objects.
  void Show(const std::string& name, Status status, const Now& now);

  // Returns the status that the API shows now; nullptr when the write has failed.
  Status OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now.monotonic); }

 private:
  struct Entry {
    std::string uid;
    std::string version;
    std::uint64_t digest = 0;
    ShownStatus shown = {};
    Status wanted = nullptr;
    Status sent = nullptr;
  };

  WriteBuffer& writes_;
  absl::flat_hash_map<std::string, Entry> entries_;
  Outbox<std::string> outbox_;
};

}  // namespace tahoma::controller
