// The recent changes of one resource, so that watches can resume and pages stay consistent.
//
// Scope: a bounded ring. Versions before `floor()` have been forgotten.
//
// Thread safety: none; ObjectStore guards it with the resource's lock.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "controller/apiserver/storage/object.h"

namespace tahoma::controller::apiserver {

class EventLog {
 public:
  // Keeps at most `count_max` events and about `bytes_max` bytes of objects, at least one event.
  EventLog(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  // Nothing at or before this version is known any more.
  void SetFloor(std::int64_t version) { floor_ = version; }
  std::int64_t floor() const { return floor_; }

  // Versions ascend.
  void Append(EventPtr event);

  // Adds the events after `version` to `events`, oldest first, at most `limit`. False when some
  // of them have been forgotten.
  bool After(std::int64_t version, std::size_t limit, std::vector<EventPtr>& events) const;
  bool AnyAfter(std::int64_t version) const {
    return !events_.empty() && events_.back()->version() > version;
  }

 private:
  const std::size_t count_max_;
  const std::size_t bytes_max_;
  std::deque<EventPtr> events_;
  std::size_t bytes_ = 0;
  std::int64_t floor_ = 0;
};

}  // namespace tahoma::controller::apiserver
