#include "sim-node/fidelity/fidelity.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/closed_form.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/flit/flit_transfer.h"

namespace tahoma::sim {
namespace {

constexpr std::array<std::pair<Fidelity, std::string_view>, 3> kNames = {
    {{Fidelity::kClosedForm, "closed-form"},
     {Fidelity::kFlows, "flows"},
     {Fidelity::kFlits, "flits"}}};

absl::StatusOr<VirtualDuration> ClosedFormTime(const Request& request,
                                               const std::vector<Member>& members,
                                               const TorusLinks& links, const ChipCosts& costs) {
  const Member& first = members.front();
  for (const Member& member : members) {
    if (member.ranks == first.ranks) continue;
    return InvalidArgument("closed-form knows equal ranks; chip {} has {}, chip {} {}",
                           first.chip.value(), first.ranks, member.chip.value(), member.ranks);
  }
  const collective::DomainLinks rates = DomainLinksOf(links, costs);
  const collective::SetLoads loads(SetOf(members, links).mask(), rates, first.chip);
  const VirtualDuration time = collective::FormTime({.operation = request.operation,
                                                     .bytes = request.bytes,
                                                     .ranks = first.ranks,
                                                     .element_bytes = Size(request.type)},
                                                    loads, rates.costs());
  TAHOMA_CHECK(time != VirtualDuration::max());  // as it could be planned
  return time;
}

// A schedule in progress on the flit network.
class FlitRun {
 public:
  FlitRun(const Schedule& schedule, const TorusLinks& links, const FlitConfig& config)
      : schedule_(schedule), links_(links), transfer_(queue_, links, config) {}

  absl::StatusOr<VirtualDuration> Run() {
    BeginStep(VirtualTime() + schedule_.before);
    queue_.RunUntilIdle();
    if (!status_.ok()) return status_;
    return end_ - VirtualTime();
  }

 private:
  void BeginStep(VirtualTime at) {
    if (next_ == schedule_.steps.size()) {
      end_ = at + schedule_.after;
      return;
    }
    const VirtualDuration start = WorkOf(next_).start;
    queue_.Schedule(at + links_.timing().step + start, EventPriority::kStart, [this] { Depart(); });
  }

  void Depart() {
    // Sends between the same two chips are one flow, as in TimeSchedules.
    std::map<std::pair<torus::ChipIndex, torus::ChipIndex>, std::uint64_t> bytes;
    for (const Send& send : schedule_.steps[next_]) bytes[{send.from, send.to}] += send.bytes;
    const VirtualTime memory_end = queue_.now() + WorkOf(next_).memory;
    ++next_;
    std::vector<Flow> flows;
    for (const auto& [ends, sum] : bytes) {
      flows.push_back(
          {.from = ends.first, .to = ends.second, .bytes = sum, .through = schedule_.through});
    }
    transfer_.Start(std::move(flows), [this, memory_end](const absl::Status& status, const auto&) {
      status_ = status;
      if (status.ok()) BeginStep(std::max(queue_.now(), memory_end));
    });
  }

  StepWork WorkOf(std::size_t step) const {
    return schedule_.work.empty() ? StepWork{} : schedule_.work[step];
  }

  const Schedule& schedule_;
  const TorusLinks& links_;
  EventQueue queue_;
  FlitTransfer transfer_;
  std::size_t next_ = 0;
  VirtualTime end_;
  absl::Status status_;
};

}  // namespace

std::string_view Name(Fidelity level) {
  for (const auto& [known, name] : kNames) {
    if (known == level) return name;
  }
  return "";
}

absl::StatusOr<Fidelity> ParseFidelity(std::string_view name) {
  std::string known;
  for (const auto& [level, its_name] : kNames) {
    if (its_name == name) return level;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", its_name);
  }
  return InvalidArgument("unknown level \"{}\"; expected one of {}", name, known);
}

absl::StatusOr<VirtualDuration> FlitTimeOf(const Schedule& schedule, const TorusLinks& links) {
  TAHOMA_ASSIGN_OR_RETURN(const FlitConfig config, FlitConfig::Of(links));
  return FlitRun(schedule, links, config).Run();
}

absl::StatusOr<VirtualDuration> TimeOf(Fidelity level, const Plan& plan, const Request& request,
                                       const std::vector<Member>& members, const TorusLinks& links,
                                       const PlanOptions& options) {
  switch (level) {
    case Fidelity::kClosedForm:
      return ClosedFormTime(request, members, links, options.costs);
    case Fidelity::kFlows:
      break;
    case Fidelity::kFlits:
      if (request.bytes > kFlitBytesMax) {
        return InvalidArgument("flits are for at most {} bytes; this collective has {}",
                               kFlitBytesMax, request.bytes);
      }
      return FlitTimeOf(plan.schedule, links);
  }
  return plan.times.end - plan.times.start;
}

absl::StatusOr<VirtualDuration> TimeAt(Fidelity level, const Request& request,
                                       const std::vector<Member>& members, const TorusLinks& links,
                                       const PlanOptions& options) {
  // A collective that cannot be planned has no time at any level.
  TAHOMA_ASSIGN_OR_RETURN(const Plan plan, PlanCollective(request, members, links, options));
  return TimeOf(level, plan, request, members, links, options);
}

}  // namespace tahoma::sim
