#include "lib/collective/nic_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::collective {

NicRun::NicRun(std::vector<ChunkOnNics> chunks, const StepSpeeds& speeds, const hw::ChipModel& chip)
    : chunks_(std::move(chunks)),
      speeds_(speeds),
      step_(chip.costs.step),
      latency_(chip.costs.efa - chip.costs.step),
      queues_(chunks_.front().on_nic[1] > 0 ? 2 : 1) {}

std::vector<Picoseconds> NicRun::Run(const std::vector<Picoseconds>& ready) {
  ready_.assign(queues_.size() + 1, std::vector<Picoseconds>(chunks_.size(), kNever));
  ready_[0] = ready;
  Picoseconds now(0);
  while (!Done()) {
    Start(now);
    const Picoseconds next = Next(now);
    Advance(next - now);
    now = next;
    Finish(now);
  }
  return ready_.back();
}

double NicRun::SpeedOf(std::size_t step) const {
  const bool both = std::ranges::all_of(queues_, &Queue::sends);
  return queues_.size() == 2 && both ? speeds_.both.at(step) : 1;
}

// Returns when the next chunk's messages leave if none is ahead of them.
Picoseconds NicRun::DepartureOf(std::size_t step) const {
  const Queue& queue = queues_[step];
  const bool known = queue.next < chunks_.size() && ready_[step][queue.next] != kNever;
  return known ? ready_[step][queue.next] + step_ : kNever;
}

void NicRun::Start(Picoseconds now) {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = queues_[i];
    if (queue.sends || DepartureOf(i) > now) continue;
    queue.sends = true;
    queue.left = chunks_[queue.next].on_nic.at(i);
  }
}

Picoseconds NicRun::Next(Picoseconds now) const {
  Picoseconds next = kNever;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const Queue& queue = queues_[i];
    if (queue.sends) {
      const double takes = std::ceil(std::max(0.0, queue.left) / SpeedOf(i));
      next = std::min(next, now + Picoseconds(static_cast<Picoseconds::rep>(takes)));
    } else {
      next = std::min(next, DepartureOf(i));
    }
  }
  TAHOMA_CHECK(next != kNever);  // something is ready as long as something is left
  return next;
}

void NicRun::Advance(Picoseconds elapsed) {
  const double speeds[] = {SpeedOf(0), queues_.size() == 2 ? SpeedOf(1) : 1};
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].sends) queues_[i].left -= static_cast<double>(elapsed.count()) * speeds[i];
  }
}

void NicRun::Finish(Picoseconds now) {
  constexpr double kNothing = 0.5;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = queues_[i];
    if (!queue.sends || queue.left > kNothing) continue;
    ready_[i + 1][queue.next] = now + latency_;
    ++queue.next;
    queue.sends = false;
  }
}

}  // namespace tahoma::collective
