#include "sim-node/emulator/collective/schedule/timing.h"

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
#include "sim-node/emulator/collective/schedule/domain_classes.h"
#include "sim-node/emulator/link/transfer.h"

namespace tahoma::sim {
namespace {

// The sends of a step, joined by their two chips.
struct StepFlows {
  std::vector<Flow> flows;
  std::vector<const DomainMesh*> mesh_of_flow;  // nullptr: between these chips only
  std::vector<std::uint32_t> flow_of_send;
  bool meshed = false;  // some are of meshes
};

std::uint64_t Pair(torus::ChipIndex from, torus::ChipIndex to) {
  return static_cast<std::uint64_t>(from.value()) << 32U | static_cast<std::uint64_t>(to.value());
}

// The flow between each two chips of a step. Within a topology domain, where steps have the most
// sends, a table is faster than a hash. Sends of
// meshes are one flow with others that the same domains make.
class FlowsBetween {
 public:
  FlowsBetween(const Step& step, const Schedule& schedule) : schedule_(schedule) {
    const bool small = std::all_of(step.begin(), step.end(), [](const Send& send) {
      return send.mesh == 0 &&
             std::max(send.from.value(), send.to.value()) < Fabric::kChipsPerDomain;
    });
    if (small) table_.assign(std::size_t{Fabric::kChipsPerDomain} * Fabric::kChipsPerDomain, kNone);
  }
  // The flow of the pair, which is `next` if there was none.
  std::uint32_t Of(const Send& send, std::size_t next) {
    const auto fresh = static_cast<std::uint32_t>(next);
    if (send.mesh != 0) {
      const DomainMesh& mesh = schedule_.MeshOf(send);
      const std::tuple lists(mesh.senders.get(), mesh.receivers.get(),
                             Fabric::LocalOf(send.from).value(), Fabric::LocalOf(send.to).value());
      return of_lists_.try_emplace(lists, fresh).first->second;
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
  const Schedule& schedule_;
  std::vector<std::uint32_t> table_;
  std::unordered_map<std::uint64_t, std::uint32_t> hash_;
  absl::flat_hash_map<std::tuple<const MeshDomains*, const MeshDomains*, int, int>, std::uint32_t>
      of_lists_;
};

StepFlows JoinSends(const Step& step, const Schedule& schedule) {
  StepFlows joined;
  FlowsBetween between(step, schedule);
  joined.flow_of_send.reserve(step.size());
  for (const Send& send : step) {
    const std::uint32_t flow = between.Of(send, joined.flows.size());
    if (flow == joined.flows.size()) {
      joined.flows.push_back({.from = send.from, .to = send.to});
      joined.mesh_of_flow.push_back(send.mesh == 0 ? nullptr : &schedule.MeshOf(send));
      joined.meshed = joined.meshed || send.mesh != 0;
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
  friend auto operator<=>(const Place&, const Place&) = default;
};
using Places = std::vector<Place>;

// A scheduled step, its copies counted by place.
struct GraphStep {
  std::uint32_t step = 0;
  std::size_t waits_for = 0;  // what must have happened before
  torus::ChipMask through = 0;
  const Places* places = nullptr;  // of StepGraph::known_places
  std::uint32_t alike_places = 1;  // for which one place is left, that share uplinks
};

// A schedule with the dependencies of its scheduled steps, each step joined once.
struct StepGraph {
  const Schedule* schedule = nullptr;
  std::vector<GraphStep> scheduled;
  std::vector<StepWork> work;  // by step
  std::vector<StepFlows> steps;
  std::vector<std::vector<std::uint32_t>> followers;  // steps that wait for each's end
  std::vector<std::vector<std::uint32_t>> behind;     // steps that wait for the links
  std::set<Places> known_places;
};

Places PlacesOf(const ScheduledStep& scheduled) {
  std::vector<int> chips;
  chips.reserve(scheduled.copies.size());
  for (const Copy& copy : scheduled.copies) chips.push_back(copy.chips);
  std::ranges::sort(chips);
  Places places;
  for (const int chip : chips) {
    if (places.empty() || places.back().chips != chip) places.push_back({.chips = chip});
    places.back().times += scheduled.parts.size();
  }
  return places;
}

void AddScheduled(const ScheduledStep& scheduled, StepGraph& graph) {
  const auto index = static_cast<std::uint32_t>(graph.scheduled.size());
  graph.scheduled.push_back({.step = scheduled.step,
                             .waits_for = scheduled.after.size() + (scheduled.behind ? 1 : 0),
                             .through = scheduled.through,
                             .places = &*graph.known_places.insert(PlacesOf(scheduled)).first});
  for (const std::uint32_t before : scheduled.after) {
    TAHOMA_CHECK(before < index);
    graph.followers[before].push_back(index);
  }
  if (const auto before = scheduled.behind) {
    TAHOMA_CHECK(*before < index);
    graph.behind[*before].push_back(index);
  }
}

StepGraph GraphOf(const Schedule& schedule) {
  StepGraph graph{.schedule = &schedule,
                  .scheduled = {},
                  .work = schedule.work,
                  .steps = {},
                  .followers = {},
                  .behind = {},
                  .known_places = {}};
  graph.work.resize(schedule.steps.size());
  for (const Step& step : schedule.steps) graph.steps.push_back(JoinSends(step, schedule));
  graph.followers.resize(schedule.scheduled_count());
  graph.behind.resize(schedule.scheduled_count());
  for (const ScheduledStep& scheduled : schedule.scheduled) AddScheduled(scheduled, graph);
  const bool in_order = schedule.scheduled.empty();
  for (std::uint32_t step = 0; in_order && step < schedule.steps.size(); ++step) {
    ScheduledStep scheduled{.step = step, .through = schedule.through};
    if (step > 0) scheduled.after = {step - 1};
    AddScheduled(scheduled, graph);
  }
  return graph;
}

// Graphs point into themselves: a graph may be moved, never copied.
std::vector<StepGraph> GraphsOf(const std::vector<const Schedule*>& schedules) {
  std::vector<StepGraph> graphs;
  for (const Schedule* schedule : schedules) graphs.push_back(GraphOf(*schedule));
  return graphs;
}

// Whether the step sends to another domain outside of meshes, or a copy of a mesh leaves the chips
// of its domains.
bool CrossesAlone(const StepFlows& step, const Places& places) {
  for (std::size_t i = 0; i < step.flows.size(); ++i) {
    const Flow& flow = step.flows[i];
    if (step.mesh_of_flow[i] == nullptr) {
      if (Fabric::DomainOf(flow.from) != Fabric::DomainOf(flow.to)) return true;
      continue;
    }
    for (const Place& place : places) {
      for (const torus::ChipIndex chip : {flow.from, flow.to}) {
        const int local = Fabric::LocalOf(chip).value() + place.chips;
        if (local < 0 || local >= Fabric::kChipsPerDomain) return true;
      }
    }
  }
  return false;
}

// Returns the classes of the domains of all meshes.
std::unique_ptr<DomainClasses> ClassesOf(const std::vector<StepGraph>& graphs, const Fabric& fabric,
                                         bool network_faults) {
  std::vector<const DomainMesh*> meshes;
  bool alone = false;
  for (const StepGraph& graph : graphs) {
    for (const DomainMesh& mesh : graph.schedule->meshes) meshes.push_back(&mesh);
  }
  for (const StepGraph& graph : graphs) {
    for (const GraphStep& scheduled : graph.scheduled) {
      if (meshes.empty() || alone) break;
      alone = CrossesAlone(graph.steps[scheduled.step], *scheduled.places);
    }
  }
  return std::make_unique<DomainClasses>(meshes, fabric, !alone && !network_faults);
}

// Finds places that do the same at the same times. The traffic on the links of a topology domain
// follows from their state and the sends that use them, so domains in which these agree are alike.
// NICs are alike only if the NICs at the other ends of their messages are, and so on: therefore
// scheduled steps that use NICs are reduced all or none. Where uplinks can limit, what is left
// still stands for all places on these, so all such steps must have as many.
class Symmetry {
 public:
  Symmetry(std::vector<StepGraph>& graphs, const Fabric& fabric, const std::set<int>& faulty,
           const DomainClasses& classes)
      : fabric_(fabric), faulty_(faulty) {
    for (StepGraph& graph : graphs) AddGroups(graph, classes);
    for (const auto& [key, group] : groups_) {
      for (const Use& use : key.uses) {
        for (const Place& place : *key.places) {
          work_[use.At(place)].push_back({group.number, place.times, use.chip});
        }
      }
    }
    nics_reduce_ = !faulty_.contains(fabric.domain_count());
    const bool uplinks_limit = nics_reduce_ && fabric.efa().UplinksLimit();
    std::set<Places> places;  // of steps between domains
    for (const auto& [key, group] : groups_) {
      if (!UseNics(key.uses)) continue;
      places.insert(*key.places);
      if (uplinks_limit && (places.size() > 1 || !StaysInDomains(key))) nics_reduce_ = false;
      if (Overlap(key) || !AllAlike(key)) nics_reduce_ = false;
    }
  }

  // Leaves each scheduled step one place of every kind.
  void Reduce() const {
    for (const auto& [key, group] : groups_) {
      if (key.places->size() == 1 || Overlap(key)) continue;
      const Places* kept = &*key.graph->known_places.insert(KeptOf(key)).first;
      const bool one_for_all = UseNics(key.uses) && kept->size() == 1;
      for (const std::uint32_t index : group.scheduled) {
        key.graph->scheduled[index].places = kept;
        if (one_for_all) {
          key.graph->scheduled[index].alike_places = static_cast<std::uint32_t>(key.places->size());
        }
      }
    }
  }

 private:
  struct Use {
    bool nic = false;  // the chip's NIC; otherwise the NeuronLinks of the domain it is the first of
    int chip = 0;
    Use At(const Place& place) const { return {.nic = nic, .chip = chip + place.chips}; }
    friend auto operator<=>(const Use&, const Use&) = default;
  };
  // Scheduled steps that use the same in the same places.
  struct Key {
    StepGraph* graph = nullptr;
    const Places* places = nullptr;
    std::vector<Use> uses;  // where the step is written
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Group {
    std::size_t number = 0;
    std::vector<std::uint32_t> scheduled;
  };
  using Work = std::vector<std::tuple<std::size_t, std::uint64_t, int>>;  // group, times, chip

  void AddGroups(StepGraph& graph, const DomainClasses& classes) {
    for (std::uint32_t index = 0; index < graph.scheduled.size(); ++index) {
      const GraphStep& scheduled = graph.scheduled[index];
      const std::set<Use> uses = UsesOf(graph, scheduled, classes);
      Key key{.graph = &graph, .places = scheduled.places, .uses = {uses.begin(), uses.end()}};
      const auto [group, added] =
          groups_.try_emplace(std::move(key), Group{.number = groups_.size(), .scheduled = {}});
      group->second.scheduled.push_back(index);
    }
  }

  // Returns the uses of the step at the place where it is written.
  static std::set<Use> UsesOf(const StepGraph& graph, const GraphStep& scheduled,
                              const DomainClasses& classes) {
    std::set<Use> uses;
    const auto add_nics = [&](const Flow& flow) {
      uses.insert({.nic = true, .chip = flow.from.value()});
      uses.insert({.nic = true, .chip = flow.to.value()});
    };
    const StepFlows& step = graph.steps[scheduled.step];
    for (std::size_t i = 0; i < step.flows.size(); ++i) {
      const Flow& flow = step.flows[i];
      if (step.mesh_of_flow[i] != nullptr) {
        classes.ForEachFlow(*step.mesh_of_flow[i], flow, add_nics);
      } else if (Fabric::DomainOf(flow.from) == Fabric::DomainOf(flow.to)) {
        uses.insert({.nic = false, .chip = Fabric::ChipOf(Fabric::DomainOf(flow.from), 0).value()});
      } else {
        add_nics(flow);
      }
    }
    return uses;
  }

  static bool UseNics(const std::vector<Use>& uses) {
    return std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.nic; });
  }
  static bool StaysInDomains(const Key& key) {
    return std::ranges::all_of(*key.places, [&](const Place& place) {
      return std::ranges::all_of(key.uses, [&](const Use& use) {
        return Fabric::DomainOf(torus::ChipIndex(use.chip)) ==
               Fabric::DomainOf(torus::ChipIndex(use.At(place).chip));
      });
    });
  }
  static bool Overlap(const Key& key) {
    std::set<Use> all;
    for (const Place& one : *key.places) {
      for (const Use& use : key.uses) {
        if (!all.insert(use.At(one)).second) return true;
      }
    }
    return false;
  }
  Places KeptOf(const Key& key) const {
    Places kept;
    if (UseNics(key.uses)) {
      if (!AllAlike(key)) return *key.places;
      return {key.places->front()};
    }
    for (const Place& next : *key.places) {
      const bool known = std::any_of(kept.begin(), kept.end(), [&](const Place& one) {
        return std::all_of(key.uses.begin(), key.uses.end(),
                           [&](const Use& use) { return Alike(use, one, next); });
      });
      if (!known) kept.push_back(next);
    }
    return kept;
  }
  bool AllAlike(const Key& key) const {
    return std::all_of(key.places->begin(), key.places->end(), [&](const Place& other) {
      return std::all_of(key.uses.begin(), key.uses.end(),
                         [&](const Use& use) { return Alike(use, key.places->front(), other); });
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
  const std::set<int>& faulty_;  // islands
  std::map<Key, Group> groups_;
  std::map<Use, Work> work_;  // of each domain and NIC
  bool nics_reduce_ = false;
};

// Returns the islands on which links change.
std::set<int> FaultyIslands(const Fabric& fabric, const FaultPlan& faults) {
  std::set<int> faulty;
  for (const Fault& fault : faults.faults()) {
    const auto place = fabric.Find(fault.target);
    if (place.ok()) faulty.insert(place->island);
  }
  return faulty;
}

// Leaves scheduled steps one place of every kind.
void ReduceToOneOfAKind(std::vector<StepGraph>& graphs, const Fabric& fabric,
                        const std::set<int>& faulty, const DomainClasses& classes) {
  const bool copies = std::any_of(graphs.begin(), graphs.end(), [](const StepGraph& graph) {
    return std::any_of(graph.scheduled.begin(), graph.scheduled.end(),
                       [](const GraphStep& step) { return step.places->size() > 1; });
  });
  if (copies) Symmetry(graphs, fabric, faulty, classes).Reduce();
}

// The progress of one schedule through the queue.
class Progress {
 public:
  // `memory` and `done` as of RunningSchedule, or empty.
  Progress(const StepGraph& graph, const DomainClasses& classes, EventQueue& queue,
           Transfer& transfer, const LinkTiming& timing, RunningSchedule::Memory memory = {},
           RunningSchedule::Done done = {})
      : graph_(graph),
        classes_(classes),
        queue_(queue),
        transfer_(transfer),
        timing_(timing),
        memory_(std::move(memory)),
        done_(std::move(done)),
        left_(graph.scheduled.size()) {
    times_.steps.resize(graph.scheduled.size());
    ready_.resize(graph.scheduled.size());
    parts_.resize(graph.scheduled.size(), 1);
    for (const GraphStep& scheduled : graph.scheduled) waits_for_.push_back(scheduled.waits_for);
  }

  void Start(VirtualTime at) {
    times_.start = at;
    first_ = at + graph_.schedule->before;
    times_.end = first_ + graph_.schedule->after;
    std::fill(ready_.begin(), ready_.end(), first_);
    for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
      if (waits_for_[index] == 0) Begin(index);
    }
    if (left_ == 0) TellLater();
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
    const GraphStep& scheduled = graph_.scheduled[index];
    const Places& places = *scheduled.places;
    const StepFlows& one = graph_.steps[scheduled.step];
    std::vector<Flow> flows;
    flows.reserve(one.flows.size() * places.size());
    // Copies may have pairs in common, and meshes domains.
    absl::flat_hash_map<std::pair<std::uint64_t, const AlikeFlows*>, std::size_t> flow_between;
    const auto add = [&](const Flow& flow, bool alone) {
      if (!alone) {
        const std::pair key(Pair(flow.from, flow.to), flow.alike);
        const auto [entry, added] = flow_between.try_emplace(key, flows.size());
        if (!added) {
          flows[entry->second].bytes += flow.bytes;
          return;
        }
      }
      flows.push_back(flow);
    };
    for (const Place& place : places) {
      for (std::size_t i = 0; i < one.flows.size(); ++i) {
        Flow flow = one.flows[i];
        flow.from = torus::ChipIndex(flow.from.value() + place.chips);
        flow.to = torus::ChipIndex(flow.to.value() + place.chips);
        flow.bytes *= place.times;
        flow.through = scheduled.through;
        flow.places = scheduled.alike_places;
        const DomainMesh* mesh = one.mesh_of_flow[i];
        const bool alone = places.size() == 1 && (!one.meshed || one.flows.size() == 1);
        const auto add_one = [&](const Flow& made) { add(made, alone); };
        if (mesh == nullptr) {
          add_one(flow);
        } else {
          classes_.ForEachFlow(*mesh, flow, add_one);
        }
      }
    }
    return flows;
  }

  // Returns when the chips have done the step's work in memory, which they do one step after the
  // other.
  VirtualTime MemoryFree(std::uint32_t index) {
    const Place& place = graph_.scheduled[index].places->front();
    const VirtualDuration work =
        WorkOf(index).memory * static_cast<VirtualDuration::rep>(place.times);
    if (work == VirtualDuration(0)) return queue_.now();
    if (memory_) {
      ++parts_[index];
      memory_(index, work, [this, index] { EndPart(index, queue_.now()); });
      return queue_.now();
    }
    const std::vector<Flow>& flows = graph_.steps[graph_.scheduled[index].step].flows;
    const int first = flows.empty() ? 0 : flows[0].from.value();
    const torus::ChipIndex chip(first + place.chips);
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
          if (status.ok()) {
            Arrive(index, arrivals, memory_free);
          } else if (done_) {
            done_(status);
          }
        },
        [this, index] {
          for (const std::uint32_t next : graph_.behind[index]) Release(next);
        });
  }

  void Arrive(std::uint32_t index, const std::vector<VirtualTime>& arrivals,
              VirtualTime memory_free) {
    StepTimes& step = times_.steps[index];
    if (graph_.schedule->scheduled.empty()) {
      const std::vector<std::uint32_t>& flow_of_send = graph_.steps[index].flow_of_send;
      step.arrivals.reserve(flow_of_send.size());
      for (const std::uint32_t flow : flow_of_send) step.arrivals.push_back(arrivals[flow]);
    }
    EndPart(index, std::max(queue_.now(), memory_free));
  }

  // A step ends with the last of its parts: the messages, and the work in shared memory.
  void EndPart(std::uint32_t index, VirtualTime end) {
    StepTimes& step = times_.steps[index];
    step.end = std::max(step.end, end);
    if (--parts_[index] > 0) return;
    times_.end = std::max(times_.end, step.end + graph_.schedule->after);
    for (const std::uint32_t next : graph_.followers[index]) {
      ready_[next] = std::max(ready_[next], step.end);
      Release(next);
    }
    if (--left_ == 0) TellLater();
  }

  void TellLater() {
    if (!done_) return;
    queue_.Schedule(times_.end, EventPriority::kArrival, [this] { done_(absl::OkStatus()); });
  }

  const StepGraph& graph_;
  const DomainClasses& classes_;
  EventQueue& queue_;
  Transfer& transfer_;
  const LinkTiming& timing_;
  const RunningSchedule::Memory memory_;
  const RunningSchedule::Done done_;
  ScheduleTimes times_;
  VirtualTime first_;                       // when the first steps may begin
  std::vector<VirtualTime> ready_;          // when the data of each had arrived
  std::vector<std::size_t> waits_for_;      // what must have happened before each
  std::vector<int> parts_;                  // of each, not ended yet
  std::size_t left_ = 0;                    // steps that have not ended
  std::map<int, VirtualTime> memory_free_;  // by domain
  absl::Status status_;
};

}  // namespace

struct RunningSchedule::State {
  State(const Schedule& schedule, const Fabric& fabric, EventQueue& queue, Transfer& transfer,
        Memory memory, Done done)
      : graphs(GraphsOf({&schedule})),
        classes(ClassesOf(graphs, fabric, /*network_faults=*/true)),
        timing(fabric.timing()),
        progress(graphs[0], *classes, queue, transfer, timing, std::move(memory), std::move(done)) {
  }

  std::vector<StepGraph> graphs;
  std::unique_ptr<DomainClasses> classes;
  LinkTiming timing;
  Progress progress;
};

RunningSchedule::RunningSchedule(const Schedule& schedule, const Fabric& fabric, EventQueue& queue,
                                 Transfer& transfer, Memory memory, Done done)
    : state_(std::make_unique<State>(schedule, fabric, queue, transfer, std::move(memory),
                                     std::move(done))) {
  state_->progress.Start(queue.now());
}

RunningSchedule::~RunningSchedule() = default;

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
  std::vector<StepGraph> graphs = GraphsOf(schedules);
  const std::set<int> faulty = FaultyIslands(fabric, faults);
  const auto classes = ClassesOf(graphs, fabric, faulty.contains(fabric.domain_count()));
  ReduceToOneOfAKind(graphs, fabric, faulty, *classes);
  const LinkTiming timing = fabric.timing();  // outlives changes of the fabric
  std::vector<std::unique_ptr<Progress>> running;
  for (const StepGraph& graph : graphs) {
    running.push_back(std::make_unique<Progress>(graph, *classes, queue, transfer, timing));
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
