#include "controller/access/access_control.h"

#include <utility>

namespace tahoma::controller {

std::shared_ptr<const AccessTable> AccessControl::table() const {
  const MutexLock lock(mutex_);
  return table_;
}

void AccessControl::Replace(AccessTable table) {
  auto next = std::make_shared<const AccessTable>(std::move(table));
  {
    const MutexLock lock(mutex_);
    table_.swap(next);
  }
  // After the table: whoever sees the version sees it, too.
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace tahoma::controller
