#include "sim-node/collective/plan/link_loads.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/collective/schedule/message_routes.h"

namespace tahoma::sim {

namespace {

std::uint64_t SendCount(const Schedule& schedule) {
  std::uint64_t count = 0;
  if (schedule.scheduled.empty()) {
    for (const Step& step : schedule.steps) count += step.size();
  }
  for (const ScheduledStep& scheduled : schedule.scheduled) {
    count += scheduled.copies.size() * schedule.steps[scheduled.step].size();
  }
  return count;
}

struct Interval {
  VirtualTime begin;
  VirtualTime end;
};

// Scheduled steps and buffer stripes overlap in time.
VirtualDuration LengthOf(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  VirtualDuration length{};
  VirtualTime covered{};
  for (const Interval& interval : intervals) {
    const VirtualTime begin = std::max(interval.begin, covered);
    if (interval.end <= begin) continue;
    length += interval.end - begin;
    covered = interval.end;
  }
  return length;
}

// Adds up what plans put on the links of one fabric.
class Loads {
 public:
  explicit Loads(const Fabric& fabric)
      : fabric_(fabric),
        loads_(fabric.id_count()),
        last_(fabric.id_count()),
        busy_(fabric.id_count()) {}

  absl::Status Add(const Plan& plan) {
    const Schedule& schedule = plan.schedule;
    MessageRoutes routes(schedule, fabric_);
    absl::Status status;
    for (std::size_t index = 0; index < schedule.scheduled_count(); ++index) {
      const StepTimes& times = plan.times.steps[index];
      const torus::ChipMask through =
          schedule.scheduled.empty() ? schedule.through : schedule.scheduled[index].through;
      std::vector<LinkId> used;
      std::size_t place = 0;
      ForEachSend(schedule, index, [&](const Send& send) {
        const VirtualTime arrival = times.ArrivalOf(place++);
        if (Fabric::DomainOf(send.from) != Fabric::DomainOf(send.to)) return;  // no NeuronLink
        const auto route = routes.Of(send, through);
        if (!route.ok()) {
          status = route.status();
          return;
        }
        for (const LinkId link : **route) {
          loads_[link].bytes += send.bytes;
          if (last_[link] == VirtualTime{}) used.push_back(link);
          last_[link] = std::max(last_[link], arrival);
        }
      });
      for (const LinkId link : used) {
        busy_[link].push_back({.begin = times.departure, .end = last_[link]});
        last_[link] = VirtualTime{};
      }
    }
    return status;
  }

  std::vector<LinkLoad> Take() {
    for (LinkId link = 0; link < loads_.size(); ++link) {
      loads_[link].link = link;
      loads_[link].busy = LengthOf(std::move(busy_[link]));
    }
    std::erase_if(loads_, [](const LinkLoad& load) { return load.bytes == 0; });
    return std::move(loads_);
  }

 private:
  const Fabric& fabric_;
  std::vector<LinkLoad> loads_;
  std::vector<VirtualTime> last_;  // arrival in the scheduled step; 0 = none
  std::vector<std::vector<Interval>> busy_;
};

}  // namespace

absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const Plan& plan, const Fabric& fabric) {
  return LoadsOf(std::vector<const Plan*>{&plan}, fabric);
}

absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const std::vector<const Plan*>& plans,
                                              const Fabric& fabric) {
  std::uint64_t sends = 0;
  for (const Plan* plan : plans) sends += SendCount(plan->schedule);
  if (sends > kMaxCountedSends) return std::vector<LinkLoad>();
  Loads loads(fabric);
  for (const Plan* plan : plans) TAHOMA_RETURN_IF_ERROR(loads.Add(*plan));
  return loads.Take();
}

}  // namespace tahoma::sim
