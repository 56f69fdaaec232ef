#include "sim-node/emulator/engine/event_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {

bool EventQueue::RunsLater(const Event& a, const Event& b) {
  return std::tie(a.time, a.priority, a.sequence) > std::tie(b.time, b.priority, b.sequence);
}

EventQueue::Id EventQueue::Schedule(VirtualTime time, EventPriority priority,
                                    std::function<void()> action) {
  TAHOMA_CHECK(time >= now_);
  const std::uint64_t sequence = next_sequence_++;
  heap_.push_back({time, priority, sequence, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), RunsLater);
  return Id{sequence};
}

bool EventQueue::Cancel(Id id) {
  const auto sequence = static_cast<std::uint64_t>(id);
  const bool waiting = std::any_of(heap_.begin(), heap_.end(), [sequence](const Event& event) {
    return event.sequence == sequence;
  });
  const auto place = std::lower_bound(cancelled_.begin(), cancelled_.end(), sequence);
  if (!waiting || (place != cancelled_.end() && *place == sequence)) return false;
  cancelled_.insert(place, sequence);
  DropCancelled();
  return true;
}

EventQueue::Event EventQueue::PopTop() {
  std::pop_heap(heap_.begin(), heap_.end(), RunsLater);
  Event event = std::move(heap_.back());
  heap_.pop_back();
  return event;
}

// Keeps the invariant that the event in front is not a cancelled one.
void EventQueue::DropCancelled() {
  while (!heap_.empty()) {
    const auto place =
        std::lower_bound(cancelled_.begin(), cancelled_.end(), heap_.front().sequence);
    if (place == cancelled_.end() || *place != heap_.front().sequence) return;
    cancelled_.erase(place);
    PopTop();
  }
}

bool EventQueue::RunNext() {
  if (heap_.empty()) return false;
  Event event = PopTop();
  DropCancelled();
  now_ = event.time;
  event.action();
  return true;
}

void EventQueue::RunUntil(VirtualTime time) {
  TAHOMA_CHECK(time >= now_);
  while (!heap_.empty() && heap_.front().time <= time) RunNext();
  now_ = time;
}

}  // namespace tahoma::sim
