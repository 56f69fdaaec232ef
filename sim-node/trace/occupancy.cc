#include "sim-node/trace/occupancy.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "lib/base/status.h"
#include "sim-node/emulator/collective/plan/link_loads.h"
#include "sim-node/emulator/collective/schedule/message_routes.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// More take minutes to follow.
constexpr std::uint64_t kMaxSends = 50'000'000;

// Returns the uses of one scheduled step, by link.
absl::StatusOr<std::map<LinkId, LinkUse>> UsesOf(const Plan& plan, std::size_t index,
                                                 MessageRoutes& routes) {
  const Schedule& schedule = plan.schedule;
  const StepTimes& times = plan.times.steps[index];
  const torus::ChipMask through =
      schedule.scheduled.empty() ? schedule.through : schedule.scheduled[index].through;
  std::map<LinkId, LinkUse> uses;
  absl::Status status;
  std::size_t place = 0;
  ForEachSend(schedule, index, [&](const Send& send) {
    const VirtualTime arrival = times.ArrivalOf(place++);
    const auto route = routes.Of(send, through);
    status.Update(route.status());
    if (!route.ok()) return;
    for (const LinkId link : **route) {
      LinkUse& use = uses[link];
      use.link = link;
      use.step = index;
      use.begin = times.departure;
      use.end = std::max(use.end, arrival);
      use.bytes += send.bytes;
    }
  });
  TAHOMA_RETURN_IF_ERROR(status);
  return uses;
}

std::vector<ChipWork> WorkOfSteps(const Plan& plan, const LinkTiming& timing) {
  const Schedule& schedule = plan.schedule;
  std::vector<ChipWork> all;
  VirtualTime memory_free = plan.times.start;
  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    const StepWork work = schedule.work.empty() ? StepWork{} : schedule.work[step];
    ChipWork one;
    one.step = step;
    one.start_begin =
        step == 0 ? plan.times.start + schedule.before : plan.times.steps[step - 1].end;
    one.start_end = one.start_begin + timing.step + work.start;
    one.memory_begin = std::max(plan.times.steps[step].departure, memory_free);
    one.memory_end = one.memory_begin + work.memory;
    memory_free = one.memory_end;
    all.push_back(one);
  }
  return all;
}

// Returns the number of parts of the buffers that a scheduled step works on in each chip.
VirtualDuration::rep PartsOf(const ScheduledStep& scheduled) {
  return std::ranges::count(scheduled.copies, scheduled.copies.front().chips, &Copy::chips) *
         std::ssize(scheduled.parts);
}

// Scheduled steps start up right before they depart, as in timing.cc; in each domain their work in
// memory is done in the order in which they depart.
std::vector<ChipWork> WorkOfScheduledSteps(const Plan& plan, const LinkTiming& timing) {
  const Schedule& schedule = plan.schedule;
  std::vector<std::size_t> order(schedule.scheduled.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t index) { return plan.times.steps[index].departure; });
  std::vector<ChipWork> all(order.size());
  std::vector<VirtualTime> row_free;
  std::map<int, VirtualTime> memory_free;
  for (const std::size_t number : order) {
    const ScheduledStep& scheduled = schedule.scheduled[number];
    const Step& step = schedule.steps[scheduled.step];
    const StepWork work = schedule.work.empty() ? StepWork{} : schedule.work[scheduled.step];
    ChipWork& one = all[number];
    one.step = number;
    one.start_end = plan.times.steps[number].departure;
    one.start_begin = one.start_end - timing.step - work.start;
    const auto row =
        std::ranges::find_if(row_free, [&](VirtualTime free) { return free <= one.start_begin; });
    one.row = static_cast<std::size_t>(row - row_free.begin());
    if (row == row_free.end()) row_free.emplace_back();
    row_free[one.row] = one.start_end;
    const int first = step.empty() ? 0 : step[0].from.value();
    one.domain = Fabric::DomainOf(ChipIndex(first + scheduled.copies.front().chips));
    VirtualTime& free = memory_free.try_emplace(one.domain, one.start_end).first->second;
    one.memory_begin = std::max(free, one.start_end);
    one.memory_end = one.memory_begin + work.memory * PartsOf(scheduled);
    free = one.memory_end;
  }
  return all;
}

// A step leaves while the last bytes of the one before are in flight, and scheduled steps may share
// a link.
void EndWhereTheNextBegins(std::vector<LinkUse>& uses) {
  std::vector<LinkUse*> order;
  for (LinkUse& use : uses) order.push_back(&use);
  std::ranges::stable_sort(order, {}, [](const LinkUse* use) { return use->begin; });
  std::map<LinkId, LinkUse*> last;
  for (LinkUse* use : order) {
    LinkUse*& before = last[use->link];
    if (before != nullptr) before->end = std::min(before->end, use->begin);
    before = use;
  }
}

std::uint64_t PairCount(const DomainMesh& mesh) {
  std::map<std::uint64_t, std::uint64_t> among;
  for (const MeshDomain& receiver : *mesh.receivers) ++among[receiver.among];
  std::uint64_t pairs = 0;
  for (const MeshDomain& sender : *mesh.senders) pairs += among[sender.among];
  return pairs;
}

std::uint64_t SendCount(const Schedule& schedule, std::size_t index) {
  if (schedule.scheduled.empty()) return schedule.steps[index].size();
  const ScheduledStep& scheduled = schedule.scheduled[index];
  std::uint64_t count = 0;
  for (const Send& send : schedule.steps[scheduled.step]) {
    count += send.mesh == 0 ? 1 : PairCount(schedule.MeshOf(send));
  }
  return count * scheduled.copies.size() * scheduled.parts.size();
}

absl::StatusOr<std::vector<LinkUse>> Timeline(const Plan& plan, const Fabric& fabric) {
  std::vector<LinkUse> timeline;
  MessageRoutes routes(fabric);
  std::uint64_t sends = 0;
  for (std::size_t index = 0; index < plan.schedule.scheduled_count(); ++index) {
    sends += SendCount(plan.schedule, index);
    if (sends > kMaxSends) {
      return ResourceExhausted(
          "the timeline would be of more than {} messages; take fewer domains or bytes, or only "
          "the table",
          kMaxSends);
    }
    TAHOMA_ASSIGN_OR_RETURN(const auto uses, UsesOf(plan, index, routes));
    if (timeline.size() + uses.size() > kMaxUses) {
      return ResourceExhausted(
          "the timeline would have more than {} events; take fewer domains or bytes, or only the "
          "table",
          kMaxUses);
    }
    for (const auto& [link, use] : uses) timeline.push_back(use);
  }
  EndWhereTheNextBegins(timeline);
  return timeline;
}

}  // namespace

absl::StatusOr<Occupancy> OccupancyOf(const Plan& plan, const Fabric& fabric, bool timeline) {
  const bool scheduled = !plan.schedule.scheduled.empty();
  Occupancy occupancy{.start = plan.times.start,
                      .end = plan.times.end,
                      .work = scheduled ? WorkOfScheduledSteps(plan, fabric.timing())
                                        : WorkOfSteps(plan, fabric.timing()),
                      .uses = {},
                      .utilisation = std::vector<double>(fabric.id_count())};
  if (timeline) {
    TAHOMA_ASSIGN_OR_RETURN(occupancy.uses, Timeline(plan, fabric));
  }
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkLoad> loads, LoadsOf(plan, fabric));
  const double seconds = Nanoseconds(occupancy.end - occupancy.start) / 1e9;
  for (const LinkLoad& load : loads) {
    const auto could = static_cast<double>(fabric.capacity(load.link)) * seconds;
    if (could > 0) occupancy.utilisation[load.link] = static_cast<double>(load.bytes) / could;
  }
  return occupancy;
}

}  // namespace tahoma::sim
