#include "controller/apiserver/storage/event_log.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller::apiserver {
namespace {

// Returns the bytes that an event keeps in memory: its object's text and the parsed form, about
// five times as large.
std::size_t BytesOf(const Event& event) { return 6 * event.object->bytes.size() + 512; }

}  // namespace

void EventLog::Append(EventPtr event) {
  bytes_ += BytesOf(*event);
  events_.push_back(std::move(event));
  while (events_.size() > 1 && (events_.size() > count_max_ || bytes_ > bytes_max_)) {
    floor_ = events_.front()->version();
    bytes_ -= BytesOf(*events_.front());
    events_.pop_front();
  }
}

bool EventLog::After(std::int64_t version, std::size_t limit, std::vector<EventPtr>& events) const {
  if (version < floor_) return false;
  auto at = std::upper_bound(
      events_.begin(), events_.end(), version,
      [](std::int64_t wanted, const EventPtr& event) { return wanted < event->version(); });
  for (; at != events_.end() && limit > 0; ++at, --limit) events.push_back(*at);
  return true;
}

}  // namespace tahoma::controller::apiserver
