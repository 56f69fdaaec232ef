#include "sim-node/emulator/chip/hbm_stack.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {

HbmStack::Port HbmStack::AddPort() {
  ports_.emplace_back();
  return Port{ports_.size() - 1};
}

void HbmStack::Move(Port port, std::uint64_t bytes, std::function<void()> done) {
  if (Of(port).busy) {
    Of(port).waiting.push_back({.bytes = bytes, .done = std::move(done)});
    return;
  }
  Of(port).busy = true;
  AdvanceToNow();
  movers_.push_back({.left = WorkOf(bytes), .most = rate_, .port = port, .done = std::move(done)});
  Solve();
}

void HbmStack::Share(std::uint64_t bytes, std::uint64_t most, std::function<void()> done) {
  TAHOMA_CHECK(most > 0);
  AdvanceToNow();
  movers_.push_back(
      {.left = WorkOf(bytes), .most = std::min(most, rate_), .done = std::move(done)});
  Solve();
}

void HbmStack::AdvanceToNow() {
  const auto elapsed = static_cast<Wide>((queue_.now() - advanced_).count());
  advanced_ = queue_.now();
  for (Mover& mover : movers_) mover.left -= std::min(mover.left, elapsed * mover.rate);
}

// Gives each mover its rate, the slowest first, and waits for the first end.
void HbmStack::Solve() {
  ++solved_;
  if (movers_.empty()) return;
  std::ranges::stable_sort(movers_, {}, &Mover::most);
  std::uint64_t left = rate_;
  std::size_t others = movers_.size();
  VirtualTime first = VirtualTime::max();
  for (Mover& mover : movers_) {
    mover.rate = std::min(mover.most, left / others);
    left -= mover.rate;
    --others;
    // Rates are positive: a stack has far fewer movers than bytes per second.
    const Wide time = (mover.left + mover.rate - 1) / mover.rate;
    first = std::min(first, queue_.now() + VirtualDuration(static_cast<std::int64_t>(time)));
  }
  queue_.Schedule(first, EventPriority::kArrival, [this, solved = solved_] {
    if (solved == solved_) OnEnd();
  });
}

void HbmStack::OnEnd() {
  AdvanceToNow();
  std::vector<std::function<void()>> done;
  for (Mover& mover : movers_) {
    if (mover.left != 0) continue;
    done.push_back(std::move(mover.done));
    if (!mover.port) continue;
    Queue& port = Of(*mover.port);
    if (port.waiting.empty()) {
      port.busy = false;
      continue;
    }
    mover.left = WorkOf(port.waiting.front().bytes);
    mover.done = std::move(port.waiting.front().done);
    port.waiting.pop_front();
  }
  std::erase_if(movers_, [](const Mover& mover) { return mover.left == 0; });
  Solve();
  for (const auto& one : done) one();
}

}  // namespace tahoma::sim
