#include "sim-node/collective/schedule/timing.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/link/transfer.h"

namespace tahoma::sim {
namespace {

// The sends of a step, joined by their two chips and their route.
struct StepFlows {
  std::vector<Flow> flows;
  std::vector<std::uint32_t> route_of_flow;
  std::vector<std::uint32_t> flow_of_send;
};

std::uint64_t Pair(torus::ChipIndex from, torus::ChipIndex to) {
  return static_cast<std::uint64_t>(from.value()) << 32U | static_cast<std::uint64_t>(to.value());
}

// The flow between each two chips of a step. Within a topology domain, where steps have the most
// sends, a table is faster than a hash. Sends with a route of their own are one flow with the
// others that have it.
class FlowsBetween {
 public:
  FlowsBetween(const Step& step, std::uint32_t last_route) : of_route_(last_route + 1, kNone) {
    const bool small = std::all_of(step.begin(), step.end(), [](const Send& send) {
      return std::max(send.from.value(), send.to.value()) < Fabric::kChipsPerDomain;
    });
    if (small) table_.assign(std::size_t{Fabric::kChipsPerDomain} * Fabric::kChipsPerDomain, kNone);
  }
  // The flow of the pair, which is `next` if there was none.
  std::uint32_t Of(const Send& send, std::size_t next) {
    const auto fresh = static_cast<std::uint32_t>(next);
    if (send.route != 0) {
      if (of_route_[send.route] == kNone) of_route_[send.route] = fresh;
      return of_route_[send.route];
    }
    if (table_.empty()) return hash_.try_emplace(Pair(send.from, send.to), fresh).first->second;
    std::uint32_t& flow =
        table_[static_cast<std::size_t>(send.from.value()) * Fabric::kChipsPerDomain +
               static_cast<std::size_t>(send.to.value())];
    if (flow == kNone) flow = fresh;
    return flow;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> table_;
  std::unordered_map<std::uint64_t, std::uint32_t> hash_;
  std::vector<std::uint32_t> of_route_;
};

StepFlows JoinSends(const Step& step, const RouteTable& routes) {
  StepFlows joined;
  FlowsBetween between(step, routes.last());
  joined.flow_of_send.reserve(step.size());
  for (const Send& send : step) {
    const std::uint32_t flow = between.Of(send, joined.flows.size());
    if (flow == joined.flows.size()) {
      joined.flows.push_back(
          {.from = send.from, .to = send.to, .explicit_route = routes.Of(send.route)});
      joined.route_of_flow.push_back(send.route);
    }
    joined.flows[flow].bytes += send.bytes;
    joined.flow_of_send.push_back(flow);
  }
  return joined;
}

// A step at one place: how often its bytes go there.
struct Place {
  int chips = 0;
  std::uint64_t times = 0;
};

// A schedule with the dependencies of its scheduled steps, each step joined once.
struct StepGraph {
  const Schedule* schedule = nullptr;
  std::vector<ScheduledStep> scheduled;
  std::vector<StepWork> work;              // by step
  std::vector<std::vector<Place>> places;  // by scheduled step
  std::vector<StepFlows> steps;
  std::vector<std::vector<std::uint32_t>> followers;  // those that wait for each's end
  std::vector<std::vector<std::uint32_t>> behind;     // those that wait for the links
};

std::vector<Place> PlacesOf(const ScheduledStep& scheduled) {
  std::map<int, std::uint64_t> times;
  for (const Copy& copy : scheduled.copies) ++times[copy.chips];
  std::vector<Place> places;
  for (const auto& [chips, count] : times) places.push_back({.chips = chips, .times = count});
  return places;
}

StepGraph GraphOf(const Schedule& schedule) {
  StepGraph graph{.schedule = &schedule,
                  .scheduled = schedule.scheduled,
                  .work = schedule.work,
                  .places = {},
                  .steps = {},
                  .followers = {},
                  .behind = {}};
  graph.work.resize(schedule.steps.size());
  for (const Step& step : schedule.steps) graph.steps.push_back(JoinSends(step, schedule.routes));
  const bool in_order = schedule.scheduled.empty();
  for (std::size_t step = 0; in_order && step < schedule.steps.size(); ++step) {
    ScheduledStep& scheduled = graph.scheduled.emplace_back();
    scheduled.step = static_cast<std::uint32_t>(step);
    scheduled.through = schedule.through;
    if (step > 0) scheduled.behind = static_cast<std::uint32_t>(step - 1);
    if (step >= schedule.stripes) {
      scheduled.after = {static_cast<std::uint32_t>(step - schedule.stripes)};
    }
  }
  graph.followers.resize(graph.scheduled.size());
  graph.behind.resize(graph.scheduled.size());
  for (std::uint32_t index = 0; index < graph.scheduled.size(); ++index) {
    graph.places.push_back(PlacesOf(graph.scheduled[index]));
    for (const std::uint32_t before : graph.scheduled[index].after) {
      TAHOMA_CHECK(before < index);
      graph.followers[before].push_back(index);
    }
    if (const auto before = graph.scheduled[index].behind) {
      TAHOMA_CHECK(*before < index);
      graph.behind[*before].push_back(index);
    }
  }
  return graph;
}

// Finds places that do the same at the same times. The traffic on the links of a topology domain
// follows from their state and the sends that use them, so domains in which these agree are alike.
// NICs are alike only if the NICs at the other ends of their messages are, and so on: therefore
// scheduled steps that use NICs are reduced all or none.
class Symmetry {
 public:
  Symmetry(const std::vector<StepGraph>& graphs, const Fabric& fabric, const FaultPlan& faults)
      : fabric_(fabric) {
    for (const Fault& fault : faults.faults()) {
      const auto place = fabric.Find(fault.target);
      if (place.ok()) faulty_.insert(place->island);
    }
    std::uint64_t number = 0;
    for (const StepGraph& graph : graphs) {
      for (std::size_t index = 0; index < graph.scheduled.size(); ++index) {
        ++number;
        for (const Use& use : UsesOf(graph, index)) {
          for (const Place& place : graph.places[index]) {
            work_[use.At(place)].push_back({number, place.times, use.chip});
          }
        }
      }
    }
    nics_reduce_ = !faulty_.contains(fabric.domain_count()) && !fabric.efa().UplinksLimit();
    for (const StepGraph& graph : graphs) {
      for (std::size_t index = 0; index < graph.scheduled.size(); ++index) {
        const std::set<Use> uses = UsesOf(graph, index);
        const std::vector<Place>& places = graph.places[index];
        if (!UseNics(uses)) continue;
        if (Overlap(uses, places) || !AllAlike(uses, places)) nics_reduce_ = false;
      }
    }
  }

  // Leaves each scheduled step one place of every kind.
  void Reduce(StepGraph& graph) const {
    for (std::size_t index = 0; index < graph.scheduled.size(); ++index) {
      std::vector<Place>& places = graph.places[index];
      const std::set<Use> uses = UsesOf(graph, index);
      if (places.size() == 1 || Overlap(uses, places)) continue;
      if (UseNics(uses)) {
        if (AllAlike(uses, places)) places.resize(1);
        continue;
      }
      std::vector<Place> kept;
      for (const Place& next : places) {
        const bool known = std::any_of(kept.begin(), kept.end(), [&](const Place& one) {
          return std::all_of(uses.begin(), uses.end(),
                             [&](const Use& use) { return Alike(use, one, next); });
        });
        if (!known) kept.push_back(next);
      }
      places = std::move(kept);
    }
  }

 private:
  struct Use {
    bool nic = false;  // the chip's NIC; otherwise the NeuronLinks of the domain it is the first of
    int chip = 0;
    Use At(const Place& place) const { return {.nic = nic, .chip = chip + place.chips}; }
    friend auto operator<=>(const Use&, const Use&) = default;
  };
  using Work = std::vector<std::tuple<std::uint64_t, std::uint64_t, int>>;  // step, times, chip

  // Returns the uses of the step at the place where it is written.
  static std::set<Use> UsesOf(const StepGraph& graph, std::size_t index) {
    std::set<Use> uses;
    for (const Flow& flow : graph.steps[graph.scheduled[index].step].flows) {
      if (Fabric::DomainOf(flow.from) == Fabric::DomainOf(flow.to)) {
        uses.insert({.nic = false, .chip = Fabric::ChipOf(Fabric::DomainOf(flow.from), 0).value()});
      } else {
        uses.insert({.nic = true, .chip = flow.from.value()});
        uses.insert({.nic = true, .chip = flow.to.value()});
      }
    }
    return uses;
  }

  static bool UseNics(const std::set<Use>& uses) {
    return std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.nic; });
  }
  static bool Overlap(const std::set<Use>& uses, const std::vector<Place>& places) {
    std::set<Use> all;
    for (const Place& one : places) {
      for (const Use& use : uses) {
        if (!all.insert(use.At(one)).second) return true;
      }
    }
    return false;
  }
  bool AllAlike(const std::set<Use>& uses, const std::vector<Place>& places) const {
    return std::all_of(places.begin(), places.end(), [&](const Place& other) {
      return std::all_of(uses.begin(), uses.end(),
                         [&](const Use& use) { return Alike(use, places.front(), other); });
    });
  }
  bool Alike(const Use& use, const Place& one, const Place& other) const {
    const Use a = use.At(one);
    const Use b = use.At(other);
    if (one.times != other.times || work_.at(a) != work_.at(b)) return false;
    if (use.nic)
      return nics_reduce_ && AlikeNics(torus::ChipIndex(a.chip), torus::ChipIndex(b.chip));
    const int domain = Fabric::DomainOf(torus::ChipIndex(a.chip));
    const int domain_of_other = Fabric::DomainOf(torus::ChipIndex(b.chip));
    return !faulty_.contains(domain) && !faulty_.contains(domain_of_other) &&
           other.chips % Fabric::kChipsPerDomain == one.chips % Fabric::kChipsPerDomain &&
           fabric_.Alike(domain, domain_of_other);
  }
  bool AlikeNics(torus::ChipIndex a, torus::ChipIndex b) const {
    for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
      if (fabric_.permille(fabric_.NicOf(a, direction)) !=
          fabric_.permille(fabric_.NicOf(b, direction))) {
        return false;
      }
    }
    return true;
  }

  const Fabric& fabric_;
  std::map<Use, Work> work_;  // of each domain and NIC
  std::set<int> faulty_;      // islands
  bool nics_reduce_ = false;
};

void ReduceToOneOfAKind(std::vector<StepGraph>& graphs, const Fabric& fabric,
                        const FaultPlan& faults) {
  const bool copies = std::any_of(graphs.begin(), graphs.end(), [](const StepGraph& graph) {
    return std::any_of(graph.places.begin(), graph.places.end(),
                       [](auto& places) { return places.size() > 1; });
  });
  if (!copies) return;
  const Symmetry symmetry(graphs, fabric, faults);
  for (StepGraph& graph : graphs) symmetry.Reduce(graph);
}

// The progress of one schedule through the queue.
class Progress {
 public:
  Progress(const StepGraph& graph, EventQueue& queue, Transfer& transfer, const LinkTiming& timing)
      : graph_(graph), queue_(queue), transfer_(transfer), timing_(timing) {
    times_.steps.resize(graph.scheduled.size());
    ready_.resize(graph.scheduled.size());
    for (const ScheduledStep& scheduled : graph.scheduled) {
      waits_for_.push_back(scheduled.after.size() + (scheduled.behind ? 1 : 0));
    }
  }

  void Start(VirtualTime at) {
    times_.start = at;
    first_ = at + graph_.schedule->before;
    times_.end = first_ + graph_.schedule->after;
    std::fill(ready_.begin(), ready_.end(), first_);
    for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
      if (waits_for_[index] == 0) Begin(index);
    }
  }

  ScheduleTimes& times() { return times_; }
  const absl::Status& status() const { return status_; }

 private:
  const StepWork& WorkOf(std::uint32_t index) const {
    return graph_.work[graph_.scheduled[index].step];
  }

  // Begins a scheduled step whose data has arrived, or will have arrived by ready_.
  void Begin(std::uint32_t index) {
    const VirtualTime departure = ready_[index] + timing_.step + WorkOf(index).start;
    queue_.Schedule(std::max(departure, queue_.now()), EventPriority::kStart,
                    [this, index] { Depart(index); });
  }
  void Release(std::uint32_t index) {
    if (--waits_for_[index] == 0) Begin(index);
  }

  std::vector<Flow> FlowsOf(std::uint32_t index) const {
    const ScheduledStep& scheduled = graph_.scheduled[index];
    const std::vector<Place>& places = graph_.places[index];
    const StepFlows& one = graph_.steps[scheduled.step];
    std::vector<Flow> flows;
    flows.reserve(one.flows.size() * places.size());
    // Copies may have pairs in common.
    absl::flat_hash_map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> flow_between;
    for (const Place& place : places) {
      for (std::size_t i = 0; i < one.flows.size(); ++i) {
        Flow flow = one.flows[i];
        flow.from = torus::ChipIndex(flow.from.value() + place.chips);
        flow.to = torus::ChipIndex(flow.to.value() + place.chips);
        flow.bytes *= place.times;
        flow.through = scheduled.through;
        const auto [entry, added] =
            places.size() == 1
                ? std::pair(flow_between.end(), true)
                : flow_between.try_emplace({Pair(flow.from, flow.to), one.route_of_flow[i]},
                                           flows.size());
        if (added) {
          flows.push_back(flow);
        } else {
          flows[entry->second].bytes += flow.bytes;
        }
      }
    }
    return flows;
  }

  // Returns when the chips have done the step's work in memory, which they do one step after the
  // other.
  VirtualTime MemoryFree(std::uint32_t index) {
    const VirtualDuration work = WorkOf(index).memory * static_cast<VirtualDuration::rep>(
                                                            graph_.places[index].front().times);
    if (work == VirtualDuration(0)) return queue_.now();
    const std::vector<Flow>& flows = graph_.steps[graph_.scheduled[index].step].flows;
    const int first = flows.empty() ? 0 : flows[0].from.value();
    const torus::ChipIndex chip(first + graph_.places[index].front().chips);
    VirtualTime& free = memory_free_.try_emplace(Fabric::DomainOf(chip), first_).first->second;
    free = std::max(free, queue_.now()) + work;
    return free;
  }

  void Depart(std::uint32_t index) {
    times_.steps[index].departure = queue_.now();
    const VirtualTime memory_free = MemoryFree(index);
    transfer_.Start(
        FlowsOf(index),
        [this, index, memory_free](const absl::Status& status,
                                   const std::vector<VirtualTime>& arrivals) {
          status_.Update(status);
          if (status.ok()) Arrive(index, arrivals, memory_free);
        },
        [this, index] {
          for (const std::uint32_t next : graph_.behind[index]) Release(next);
        });
  }

  void Arrive(std::uint32_t index, const std::vector<VirtualTime>& arrivals,
              VirtualTime memory_free) {
    StepTimes& step = times_.steps[index];
    step.end = std::max(queue_.now(), memory_free);
    if (graph_.schedule->scheduled.empty()) {
      const std::vector<std::uint32_t>& flow_of_send = graph_.steps[index].flow_of_send;
      step.arrivals.reserve(flow_of_send.size());
      for (const std::uint32_t flow : flow_of_send) step.arrivals.push_back(arrivals[flow]);
    }
    times_.end = std::max(times_.end, step.end + graph_.schedule->after);
    for (const std::uint32_t next : graph_.followers[index]) {
      ready_[next] = std::max(ready_[next], step.end);
      Release(next);
    }
  }

  const StepGraph& graph_;
  EventQueue& queue_;
  Transfer& transfer_;
  const LinkTiming& timing_;
  ScheduleTimes times_;
  VirtualTime first_;                       // when the first steps may begin
  std::vector<VirtualTime> ready_;          // when the data of each had arrived
  std::vector<std::size_t> waits_for_;      // what must have happened before each
  std::map<int, VirtualTime> memory_free_;  // by domain
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<ScheduleTimes>> TimeSchedules(
    const std::vector<const Schedule*>& schedules, Fabric fabric, VirtualTime start,
    const FaultPlan& faults) {
  EventQueue queue;
  Transfer transfer(queue, fabric);
  absl::Status fault_status;
  for (const Fault& fault : faults.faults()) {
    queue.Schedule(fault.at, EventPriority::kFault, [&, fault] {
      const absl::Status set = transfer.SetPermille(fault.target, fault.permille);
      if (!set.ok()) fault_status = set;
    });
  }
  std::vector<StepGraph> graphs;
  for (const Schedule* schedule : schedules) graphs.push_back(GraphOf(*schedule));
  ReduceToOneOfAKind(graphs, fabric, faults);
  const LinkTiming timing = fabric.timing();  // outlives changes of the fabric
  std::vector<std::unique_ptr<Progress>> running;
  for (const StepGraph& graph : graphs) {
    running.push_back(std::make_unique<Progress>(graph, queue, transfer, timing));
    running.back()->Start(start);
  }
  queue.RunUntilIdle();
  TAHOMA_RETURN_IF_ERROR(fault_status);
  std::vector<ScheduleTimes> times;
  for (const auto& progress : running) {
    TAHOMA_RETURN_IF_ERROR(progress->status());
    times.push_back(std::move(progress->times()));
    times.back().flows = transfer.arrived();
  }
  return times;
}

absl::StatusOr<std::vector<ScheduleTimes>> TimeSchedules(
    const std::vector<const Schedule*>& schedules, TorusLinks links, VirtualTime start,
    const FaultPlan& faults) {
  return TimeSchedules(schedules, Fabric(std::move(links)), start, faults);
}

}  // namespace tahoma::sim
