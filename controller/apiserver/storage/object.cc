#include "controller/apiserver/storage/object.h"

#include <memory>
#include <utility>

namespace tahoma::controller::apiserver {

const std::string& MessageCache::Keep(std::string message) const {
  auto made = std::make_unique<const std::string>(std::move(message));
  const std::string* kept = nullptr;
  if (made_.compare_exchange_strong(kept, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *kept;
}

std::shared_ptr<const std::string> Event::Line(std::string_view form,
                                               const std::function<std::string()>& make) const {
  const MutexLock lock(mutex_);
  for (const auto& [name, line] : lines_) {
    if (name == form) return line;
  }
  lines_.emplace_back(form, std::make_shared<const std::string>(make()));
  return lines_.back().second;
}

}  // namespace tahoma::controller::apiserver
