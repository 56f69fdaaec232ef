#include "sim-node/collective/timing.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/link/transfer.h"

namespace tahoma::sim {
namespace {

// One schedule on its way through the queue.
class Progress {
 public:
  Progress(const Schedule& schedule, EventQueue& queue, Transfer& transfer,
           const LinkTiming& timing)
      : schedule_(schedule), queue_(queue), transfer_(transfer), timing_(timing) {}

  void Start(VirtualTime at) {
    times_.start = at;
    BeginStep(at + schedule_.before);
  }

  const ScheduleTimes& times() const { return times_; }
  const absl::Status& status() const { return status_; }

 private:
  void BeginStep(VirtualTime at) {
    if (times_.steps.size() == schedule_.steps.size()) {
      times_.end = at + schedule_.after;
      return;
    }
    queue_.Schedule(at + timing_.step, EventPriority::kStart, [this] { Depart(); });
  }

  void Depart() {
    const Step& step = schedule_.steps[times_.steps.size()];
    times_.steps.push_back({.departure = queue_.now(), .arrivals = {}, .end = {}});
    std::vector<Flow> flows;
    std::map<std::pair<torus::ChipIndex, torus::ChipIndex>, std::size_t> flow_between;
    flow_of_send_.clear();
    for (const Send& send : step) {
      const auto [entry, added] =
          flow_between.try_emplace(std::pair(send.from, send.to), flows.size());
      if (added) {
        flows.push_back({.from = send.from, .to = send.to, .through = schedule_.through});
      }
      flows[entry->second].bytes += send.bytes;
      flow_of_send_.push_back(entry->second);
    }
    transfer_.Start(std::move(flows),
                    [this](const absl::Status& status, const std::vector<VirtualTime>& arrivals) {
                      status_ = status;
                      if (status.ok()) Arrive(arrivals);
                    });
  }

  void Arrive(const std::vector<VirtualTime>& arrivals) {
    StepTimes& step = times_.steps.back();
    for (const std::size_t flow : flow_of_send_) step.arrivals.push_back(arrivals[flow]);
    step.end = queue_.now();
    BeginStep(queue_.now());
  }

  const Schedule& schedule_;
  EventQueue& queue_;
  Transfer& transfer_;
  const LinkTiming& timing_;
  ScheduleTimes times_;
  std::vector<std::size_t> flow_of_send_;
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
