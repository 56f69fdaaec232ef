#include "sim-node/trace/occupancy.h"

#include <algorithm>
#include <map>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// The uses of one step, by link.
absl::StatusOr<std::map<LinkId, LinkUse>> UsesOf(const Plan& plan, std::size_t step,
                                                 const TorusLinks& links) {
  const Step& sends = plan.schedule.steps[step];
  const StepTimes& times = plan.times.steps[step];
  std::map<LinkId, LinkUse> uses;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const Send& send = sends[i];
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkId> route,
                            RouteOf(plan.schedule, send, plan.schedule.through, links));
    for (const LinkId link : route) {
      LinkUse& use = uses[link];
      use.link = link;
      use.step = step;
      use.begin = times.departure;
      use.end = std::max(use.end, times.arrivals[i]);
      use.bytes += send.bytes;
    }
  }
  return uses;
}

std::vector<ChipWork> WorkOf(const Plan& plan, const LinkTiming& timing) {
  const Schedule& schedule = plan.schedule;
  std::vector<ChipWork> all;
  VirtualTime memory_free = plan.times.start;
  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    const StepWork work = schedule.work.empty() ? StepWork{} : schedule.work[step];
    ChipWork one;
    one.step = step;
    one.slice = step % schedule.slices;
    one.start_begin = step < schedule.slices ? plan.times.start + schedule.before
                                             : plan.times.steps[step - schedule.slices].end;
    one.start_end = one.start_begin + timing.step + work.start;
    one.memory_begin = std::max(plan.times.steps[step].departure, memory_free);
    one.memory_end = one.memory_begin + work.memory;
    memory_free = one.memory_end;
    all.push_back(one);
  }
  return all;
}

// A step leaves while the last bytes of the one before are on their way.
void EndWhereTheNextBegins(std::vector<LinkUse>& uses) {
  std::map<LinkId, LinkUse*> last;
  for (LinkUse& use : uses) {
    LinkUse*& before = last[use.link];
    if (before != nullptr) before->end = std::min(before->end, use.begin);
    before = &use;
  }
}

}  // namespace

absl::StatusOr<Occupancy> OccupancyOf(const Plan& plan, const TorusLinks& links) {
  Occupancy occupancy{.start = plan.times.start,
                      .end = plan.times.end,
                      .work = WorkOf(plan, links.timing()),
                      .uses = {},
                      .utilisation = std::vector<double>(links.id_count())};
  std::vector<std::uint64_t> bytes(links.id_count());
  for (std::size_t step = 0; step < plan.schedule.steps.size(); ++step) {
    TAHOMA_ASSIGN_OR_RETURN(const auto uses, UsesOf(plan, step, links));
    for (const auto& [link, use] : uses) {
      occupancy.uses.push_back(use);
      bytes[link] += use.bytes;
    }
  }
  EndWhereTheNextBegins(occupancy.uses);
  const double seconds = Nanoseconds(occupancy.end - occupancy.start) / 1e9;
  for (LinkId link = 0; link < links.id_count() && seconds > 0; ++link) {
    if (links.capacity(link) == 0) continue;
    occupancy.utilisation[link] =
        static_cast<double>(bytes[link]) / (static_cast<double>(links.capacity(link)) * seconds);
  }
  return occupancy;
}

}  // namespace tahoma::sim
