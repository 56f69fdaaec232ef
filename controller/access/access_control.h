// Holds the current access table, and replaces it while requests run.
//
//   AccessControl access(*std::move(table));
//   access.table()->Authorize(user, attributes, view);
//   access.Replace(*std::move(next));            // an identity file was changed
//
// Requests that stay open (watches) are authorized again when version() has changed.
//
// Thread safety: any thread.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "controller/access/access_table.h"
#include "lib/base/mutex.h"

namespace tahoma::controller {

class AccessControl {
 public:
  explicit AccessControl(AccessTable table)
      : table_(std::make_shared<const AccessTable>(std::move(table))) {}

  std::shared_ptr<const AccessTable> table() const;
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  void Replace(AccessTable table);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const AccessTable> table_ ABSL_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> version_ = 0;
};

}  // namespace tahoma::controller
