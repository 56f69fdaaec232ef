// Measures how long the emulator takes to plan and time a collective, and how close its collectives
// come to the physical bound. No data is moved.

#include <benchmark/benchmark.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/check.h"
#include "lib/hw/catalogue.h"
#include "lib/torus/path.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/link/max_min.h"

namespace tahoma::sim {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// The first chips of an UltraServer.
std::vector<Member> FirstChips(int chips) { return MembersOf(kAllChips >> (64 - chips)); }

// An all-reduce of 1 GiB over the 64 chips of an UltraServer.
void AllReduce64Chips1GibWall(benchmark::State& state) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  const std::vector<Member> members = FirstChips(64);
  for (auto _ : state) {
    auto plan = PlanCollective({.bytes = kGiB}, members, links);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(AllReduce64Chips1GibWall)
    ->Name("allreduce_64_chips_1gib_wall_ms")
    ->Unit(benchmark::kMillisecond);

Fabric UltraCluster(std::size_t units = 32) {
  const TorusLinks domain(torus::kUltraServerShape, hw::kTrainium2.links);
  return {std::vector<TorusLinks>(units, domain), hw::kTrainium2.links.efa};
}

std::vector<Member> AllChipsOf(const Fabric& fabric) {
  std::vector<Member> members;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    for (int chip = 0; chip < fabric.domain(domain).torus().chip_count(); ++chip) {
      members.push_back({.chip = Fabric::ChipOf(domain, chip)});
    }
  }
  return members;
}

// A collective of 1 GiB over the 262,144 chips of 4,096 UltraServers.
void Plan4096Units(benchmark::State& state, Operation operation) {
  const Fabric fabric = UltraCluster(4096);
  const std::vector<Member> members = AllChipsOf(fabric);
  for (auto _ : state) {
    auto plan = PlanOnFabric({.operation = operation, .bytes = kGiB}, members, fabric);
    TAHOMA_CHECK(plan.ok());
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK_CAPTURE(Plan4096Units, broadcast, Operation::kBroadcast)
    ->Name("broadcast_4096_units_wall_ms")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// An all-reduce of 1 GiB over the 2,048 chips of 32 UltraServers.
void AllReduce2048ChipsHierarchicalWall(benchmark::State& state) {
  const Fabric fabric = UltraCluster();
  const std::vector<Member> members = AllChipsOf(fabric);
  for (auto _ : state) {
    auto plan = PlanOnFabric({.bytes = kGiB}, members, fabric);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(AllReduce2048ChipsHierarchicalWall)
    ->Name("allreduce_2048_chips_hierarchical_wall_ms")
    ->Unit(benchmark::kMillisecond);

// Messages that arrive per second of this machine's time: 32 UltraServers, each with an all-reduce
// and, on the same links, an all-to-all that starts with it, so that nothing is alike.
void LinkEvents(benchmark::State& state) {
  const Fabric fabric = UltraCluster();
  const TorusLinks domain(torus::kUltraServerShape, hw::kTrainium2.links);
  const std::vector<Member> members = FirstChips(64);
  std::vector<Plan> plans;
  for (std::uint64_t i = 0; i < 32; ++i) {
    for (const Operation operation : {Operation::kAllReduce, Operation::kAllToAll}) {
      const Request request{.operation = operation, .bytes = kGiB + i * 64 * 1024};
      Plan plan = *PlanCollective(request, members, domain);
      for (Step& step : plan.schedule.steps) {
        for (Send& send : step) {
          send.from = Fabric::ChipOf(static_cast<int>(i), send.from.value());
          send.to = Fabric::ChipOf(static_cast<int>(i), send.to.value());
        }
      }
      plans.push_back(std::move(plan));
    }
  }
  std::vector<const Schedule*> schedules;
  for (const Plan& plan : plans) schedules.push_back(&plan.schedule);
  std::uint64_t flows = 0;
  for (auto _ : state) {
    const auto times = TimeSchedules(schedules, fabric);
    flows += times->front().flows;
  }
  state.counters["link_events_per_s"] =
      benchmark::Counter(static_cast<double>(flows), benchmark::Counter::kIsRate);
}
BENCHMARK(LinkEvents)->Name("link_events_per_s")->Unit(benchmark::kMillisecond);

// An UltraServer in which the cable of chip 5 along an axis has so much of its rate.
TorusLinks WithSlowCable(torus::Axis axis, std::uint16_t permille) {
  TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  const LinkId link = TorusLinks::IdOf(torus::ChipIndex(5), axis, torus::Direction::kPlus);
  TAHOMA_CHECK(links.SetCablePermille(link, permille).ok());
  return links;
}

// Planning and timing 1 GiB on the 64 chips of an UltraServer without a cable.
void PlanWithoutCable(benchmark::State& state, Operation operation, torus::Axis axis) {
  const TorusLinks links = WithSlowCable(axis, 0);
  const std::vector<Member> members = FirstChips(64);
  for (auto _ : state) {
    auto plan = PlanCollective({.operation = operation, .bytes = kGiB}, members, links);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK_CAPTURE(PlanWithoutCable, alltoall, Operation::kAllToAll, torus::Axis::kZ)
    ->Name("alltoall_64_chips_without_cable_wall_ms")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanWithoutCable, allreduce, Operation::kAllReduce, torus::Axis::kX)
    ->Name("plan_damaged_64_chips_ms")
    ->Unit(benchmark::kMillisecond);

// Rates of all 4,032 dimension-order flows between the 64 chips of an UltraServer.
void SolveAllFlows(benchmark::State& state) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  std::vector<std::vector<LinkId>> routes;
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      if (from == to) continue;
      routes.push_back(*links.FindRoute(torus::ChipIndex(from), torus::ChipIndex(to), kAllChips));
    }
  }
  const std::vector<std::span<const LinkId>> paths(routes.begin(), routes.end());
  for (auto _ : state) {
    auto rates = MaxMinRates(paths, links.capacities());
    benchmark::DoNotOptimize(rates);
  }
}
BENCHMARK(SolveAllFlows)->Name("solve_4032_flows_us")->Unit(benchmark::kMicrosecond);

// The first chips of an UltraServer.
struct Place {
  const char* name;
  int chips;
};

VirtualDuration Time(const Place& place, Operation operation, const TorusLinks& links) {
  const auto plan =
      PlanCollective({.operation = operation, .bytes = kGiB}, FirstChips(place.chips), links);
  TAHOMA_CHECK(plan.ok());
  return plan->times.end - plan->times.start;
}

// Emulated time of 1 GiB, start-up included, as a multiple of what the cuts of the links allow.
void OverBound(benchmark::State& state, Operation operation, const Place& place) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  const VirtualDuration bound =
      LowerBound(operation, SetOf(FirstChips(place.chips), links), kGiB, links);
  double ratio = 0;
  for (auto _ : state) ratio = Nanoseconds(Time(place, operation, links)) / Nanoseconds(bound);
  state.counters["over_bound"] = ratio;
}

// Planning 1 GiB on 32 instances, each of which has two NICs down.
void PlanWithoutNics(benchmark::State& state) {
  constexpr int kDomains = 32;
  Fabric fabric(std::vector<TorusLinks>(kDomains, {torus::kInstanceShape, hw::kTrainium2.links}),
                hw::kTrainium2.links.efa);
  for (int domain = 0; domain < kDomains; ++domain) {
    for (const int chip : {domain * 7 % 16, domain * 11 % 15}) {
      TAHOMA_CHECK_OK(fabric.SetNicPermille(Fabric::ChipOf(domain, chip), 0));
    }
  }
  const std::vector<Member> members = AllChipsOf(fabric);
  for (auto _ : state) {
    auto plan = PlanOnFabric({.operation = Operation::kAllReduce, .bytes = kGiB}, members, fabric);
    TAHOMA_CHECK(plan.ok());
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(PlanWithoutNics)->Name("plan_nics_down_32_domains_ms")->Unit(benchmark::kMillisecond);

// 1 GiB over several topology domains, over a bound in nanoseconds.
void OverDomainsBound(benchmark::State& state, Operation operation, const Fabric& fabric,
                      double bound_ns) {
  const std::vector<Member> members = AllChipsOf(fabric);
  double ratio = 0;
  for (auto _ : state) {
    const auto plan = PlanOnFabric({.operation = operation, .bytes = kGiB}, members, fabric);
    TAHOMA_CHECK(plan.ok());
    ratio = Nanoseconds(plan->times.end - plan->times.start) / bound_ns;
  }
  state.counters["over_bound"] = ratio;
}

void RegisterOverDomains() {
  const auto row = [](const char* name, Operation operation, const Fabric& fabric,
                      double bound_ns) {
    benchmark::RegisterBenchmark(
        name,
        [=](benchmark::State& state) { OverDomainsBound(state, operation, fabric, bound_ns); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  };
  // What one chip lacks, or the root has, over its NeuronLinks and its NIC.
  const Fabric eight = UltraCluster(8);
  const auto chips = static_cast<double>(AllChipsOf(eight).size());
  const hw::LinkRates& rates = hw::kTrainium2.links;
  const double of_chip = 4 * static_cast<double>(rates.intra_instance) +
                         2 * static_cast<double>(rates.inter_instance) +
                         static_cast<double>(rates.efa);
  const double whole_ns = static_cast<double>(kGiB) / of_chip * 1e9;
  row("allgather_8_units_over_bound", Operation::kAllGather, eight, (chips - 1) / chips * whole_ns);
}

void RegisterOverBound() {
  const auto rows = [](const char* operation, Operation code, const char* end,
                       std::initializer_list<Place> places) {
    for (const Place& place : places) {
      const std::string name = std::string(operation) + "_" + place.name + end;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { OverBound(state, code, place); })
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
    }
  };
  for (const auto& [name, operation] : {std::pair("allreduce", Operation::kAllReduce),
                                        std::pair("allgather", Operation::kAllGather),
                                        std::pair("reducescatter", Operation::kReduceScatter),
                                        std::pair("alltoall", Operation::kAllToAll)}) {
    rows(name, operation, "_1gib_over_bound", {{"4x4", 16}, {"4x4x2", 32}, {"4x4x4", 64}});
  }
}

}  // namespace
}  // namespace tahoma::sim

int main(int argc, char** argv) {
  tahoma::sim::RegisterOverBound();
  tahoma::sim::RegisterOverDomains();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
