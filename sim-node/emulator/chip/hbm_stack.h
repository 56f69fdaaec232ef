// The bandwidth of an HBM stack, shared by all who move bytes at the same time.
//
//   EventQueue queue;
//   HbmStack stack(queue, 716'000'000'000);
//   const HbmStack::Port port = stack.AddPort();
//   stack.Move(port, 1 << 20, [] {});            // runs when the stack has moved the bytes
//   stack.Share(64 << 20, 128'000'000'000, [] {});   // beside, at no more than 128 GB/s
//
// Rates are max-min fair: all get the same, except where a limit of its own gives a mover less. A
// port serves moves one after the other, in the order of their begin, and may take the whole rate.
// Rates are computed again when a move begins or ends.
//
// Scope: time. hbm.h has the bytes.
//
// Thread safety: none; belongs to the thread of its EventQueue.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "sim-node/emulator/engine/event_queue.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

class HbmStack {
 public:
  enum class Port : std::size_t {};

  // `rate` in bytes per second, positive. `queue` must outlive the object, and the object its
  // events.
  HbmStack(EventQueue& queue, std::uint64_t rate) : queue_(queue), rate_(rate) {}
  HbmStack(const HbmStack&) = delete;
  HbmStack& operator=(const HbmStack&) = delete;

  Port AddPort();
  // Moves bytes from now on, behind earlier moves of the port.
  void Move(Port port, std::uint64_t bytes, std::function<void()> done);
  // Moves bytes from now on, at most at the rate `most`, which must be positive.
  void Share(std::uint64_t bytes, std::uint64_t most, std::function<void()> done);

 private:
  struct Mover {
    Wide left = 0;  // 10^-12 bytes
    std::uint64_t most = 0;
    std::uint64_t rate = 0;
    std::optional<Port> port = std::nullopt;
    std::function<void()> done;
  };
  struct Waiting {
    std::uint64_t bytes = 0;
    std::function<void()> done;
  };
  struct Queue {
    bool busy = false;  // one of its moves is in movers_
    std::deque<Waiting> waiting = {};
  };

  static Wide WorkOf(std::uint64_t bytes) {
    return static_cast<Wide>(bytes) * kPicosecondsPerSecond;
  }
  Queue& Of(Port port) { return ports_[static_cast<std::size_t>(port)]; }
  void AdvanceToNow();
  void Solve();
  void OnEnd();

  EventQueue& queue_;
  const std::uint64_t rate_;
  std::vector<Queue> ports_ = {};
  std::vector<Mover> movers_ = {};
  VirtualTime advanced_{};
  std::uint64_t solved_ = 0;  // counts Solve: an event of an earlier one is stale
};

}  // namespace tahoma::sim
