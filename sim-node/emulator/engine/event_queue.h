// The events of an emulation, in virtual time.
//
//   EventQueue queue;
//   queue.Schedule(queue.now() + Microseconds(1), EventPriority::kArrival, [&] { … });
//   queue.RunUntilIdle();
//
// Events run in the order (time, priority, order of scheduling). The last part makes the order of
// equal events explicit and stable: the same calls give the same run on every machine.
//
// Thread safety: none; an emulation belongs to one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// The order of events of one instant: a fault hits before the data that arrives with it.
enum class EventPriority : std::uint8_t { kFault, kArrival, kStart };

class EventQueue {
 public:
  // Names one scheduled event; never used twice.
  enum class Id : std::uint64_t {};

  VirtualTime now() const { return now_; }
  std::size_t size() const { return heap_.size() - cancelled_.size(); }

  // `time` must not lie before now().
  Id Schedule(VirtualTime time, EventPriority priority, std::function<void()> action);

  // When the next event runs; nullopt without one.
  std::optional<VirtualTime> next() const {
    return heap_.empty() ? std::nullopt : std::optional(heap_.front().time);
  }

  // False if the event has run, is running, or was cancelled before.
  bool Cancel(Id id);

  // Runs the next event. False when there is none.
  bool RunNext();

  // Runs every event up to and including `time`, then moves now() there.
  void RunUntil(VirtualTime time);

  void RunUntilIdle() {
    while (RunNext()) {
    }
  }

 private:
  struct Event {
    VirtualTime time;
    EventPriority priority;
    std::uint64_t sequence;
    std::function<void()> action;
  };
  static bool RunsLater(const Event& a, const Event& b);
  void DropCancelled();
  Event PopTop();

  VirtualTime now_{};
  std::uint64_t next_sequence_ = 0;
  std::vector<Event> heap_;               // a heap under RunsLater: the next event is in front
  std::vector<std::uint64_t> cancelled_;  // sorted sequences of events still in heap_
};

}  // namespace tahoma::sim
