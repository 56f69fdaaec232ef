#include "sim-node/collective/timing.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/link/transfer.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kChips = 64;  // of a torus, at most
constexpr std::size_t kPairs = kChips * kChips;
constexpr std::uint32_t kNoFlow = ~std::uint32_t{0};

// One schedule on its way through the queue.
class Progress {
 public:
  Progress(const Schedule& schedule, EventQueue& queue, Transfer& transfer,
           const LinkTiming& timing)
      : schedule_(schedule), queue_(queue), transfer_(transfer), timing_(timing) {}

  void Start(VirtualTime at) {
    times_.start = at;
    times_.steps.resize(schedule_.steps.size());
    ended_.resize(schedule_.steps.size());
    memory_free_ = at + schedule_.before;
    if (schedule_.steps.empty()) times_.end = at + schedule_.before + schedule_.after;
    // The parts start up together.
    ready_ = at + schedule_.before;
    Continue();
  }

  const ScheduleTimes& times() const { return times_; }
  const absl::Status& status() const { return status_; }

 private:
  StepWork WorkOf(std::size_t step) const {
    return schedule_.work.empty() ? StepWork{} : schedule_.work[step];
  }

  // Begins the next step if the links are free of the one before it and what it needs has come.
  void Continue() {
    if (next_ == schedule_.steps.size() || sent_ != next_) return;
    if (next_ >= schedule_.slices) {
      const std::size_t needed = next_ - schedule_.slices;
      if (!ended_[needed]) return;
      ready_ = times_.steps[needed].end;
    }
    const VirtualTime departure = ready_ + timing_.step + WorkOf(next_).start;
    ++next_;
    queue_.Schedule(std::max(departure, queue_.now()), EventPriority::kStart,
                    [this, step = next_ - 1] { Depart(step); });
  }

  void Depart(std::size_t number) {
    const Step& step = schedule_.steps[number];
    times_.steps[number].departure = queue_.now();
    std::vector<Flow> flows;
    flow_between_.assign(kPairs, kNoFlow);
    std::vector<std::uint32_t> flow_of_send;
    flow_of_send.reserve(step.size());
    for (const Send& send : step) {
      std::uint32_t& flow = flow_between_[static_cast<std::size_t>(send.from.value()) * kChips +
                                          static_cast<std::size_t>(send.to.value())];
      if (flow == kNoFlow) {
        flow = static_cast<std::uint32_t>(flows.size());
        flows.push_back({.from = send.from, .to = send.to, .through = schedule_.through});
      }
      flows[flow].bytes += send.bytes;
      flow_of_send.push_back(flow);
    }
    memory_free_ = std::max(memory_free_, queue_.now()) + WorkOf(number).memory;
    transfer_.Start(
        std::move(flows),
        [this, number, flow_of_send = std::move(flow_of_send), memory_free = memory_free_](
            const absl::Status& status, const std::vector<VirtualTime>& arrivals) {
          status_.Update(status);
          if (!status.ok()) return;
          StepTimes& times = times_.steps[number];
          times.arrivals.reserve(flow_of_send.size());
          for (const std::uint32_t flow : flow_of_send) times.arrivals.push_back(arrivals[flow]);
          times.end = std::max(queue_.now(), memory_free);
          queue_.Schedule(times.end, EventPriority::kArrival, [this, number] { End(number); });
        },
        [this] {
          ++sent_;
          Continue();
        });
  }

  void End(std::size_t number) {
    ended_[number] = true;
    times_.end = std::max(times_.end, times_.steps[number].end + schedule_.after);
    Continue();
  }

  const Schedule& schedule_;
  EventQueue& queue_;
  Transfer& transfer_;
  const LinkTiming& timing_;
  ScheduleTimes times_;
  std::vector<std::uint32_t> flow_between_;  // of the step that departs, by sender and receiver
  std::vector<bool> ended_;                  // by step
  std::size_t next_ = 0;                     // step to begin
  std::size_t sent_ = 0;                     // steps whose messages have all left the links
  VirtualTime ready_;                        // when what the next step needs had come
  VirtualTime memory_free_;                  // when the chips have done the steps' work in memory
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<ScheduleTimes>> TimeSchedules(
    const std::vector<const Schedule*>& schedules, TorusLinks links, VirtualTime start,
    const FaultPlan& faults) {
  EventQueue queue;
  Transfer transfer(queue, links);
  absl::Status fault_status;
  for (const Fault& fault : faults.faults()) {
    queue.Schedule(fault.at, EventPriority::kFault, [&, fault] {
      const absl::Status set = transfer.SetPermille(fault.target, fault.permille);
      if (!set.ok()) fault_status = set;
    });
  }
  std::vector<std::unique_ptr<Progress>> running;
  for (const Schedule* schedule : schedules) {
    running.push_back(std::make_unique<Progress>(*schedule, queue, transfer, links.timing()));
    running.back()->Start(start);
  }
  queue.RunUntilIdle();
  TAHOMA_RETURN_IF_ERROR(fault_status);
  std::vector<ScheduleTimes> times;
  for (const auto& progress : running) {
    TAHOMA_RETURN_IF_ERROR(progress->status());
    times.push_back(progress->times());
  }
  return times;
}

}  // namespace tahoma::sim
