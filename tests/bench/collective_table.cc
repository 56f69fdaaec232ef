// Prints what collectives cost in the emulator, as tab-separated lines:
//
//   operation  chips  ranks  bytes  algorithm  time_us  bound_us  ratio  chosen
//
// for all-reduce, all-gather, reduce-scatter, all-to-all and broadcast on boxes of 2 to 64 chips,
// from 1 KiB to 1 GiB, by every algorithm, with a rank on each chip and
// with four; the first three also over several topology domains. `chosen` says which the planner
// takes. No data is moved; tests/bench/collective_table.py draws the picture.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/hw/catalogue.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

constexpr const char* kBoxes[] = {"2x1x1", "2x2x1", "4x1x1", "4x2x1", "4x4x1", "4x4x2", "4x4x4"};

const torus::Box& BoxOf(const std::string& shape) {
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    if (box.ToString() == shape + "+0,0,0") return box;
  }
  TAHOMA_CHECK(false);
}

void PrintRows(Operation operation, const std::string& shape, int ranks, const TorusLinks& links) {
  const std::vector<Member> members = MembersOf(BoxOf(shape).mask, ranks);
  const ChipSet set = SetOf(members, links);
  for (std::uint64_t bytes = 1024; bytes <= std::uint64_t{1} << 30; bytes *= 4) {
    const Request request{.operation = operation, .bytes = bytes};
    const double bound = Nanoseconds(LowerBound(operation, set, bytes, links)) / 1e3;
    const auto chosen = PlanCollective(request, members, links);
    if (!chosen.ok()) continue;  // an all-to-all of fewer elements than ranks
    for (const Algorithm algorithm : kAllAlgorithms) {
      const auto plan = PlanWith(algorithm, request, members, links);
      if (!plan.ok()) continue;
      const double time = Nanoseconds(plan->times.end - plan->times.start) / 1e3;
      fmt::print("{}\t{}\t{}\t{}\t{}\t{:.3f}\t{:.3f}\t{:.3f}\t{}\n", Name(operation), shape, ranks,
                 bytes, Name(algorithm), time, bound, time / bound,
                 algorithm == chosen->algorithm ? "yes" : "no");
    }
  }
}

// Over `count` whole topology domains, all chips of each. The bound is the larger of the times that
// NeuronLink inside a domain and EFA between them need (docs/reference/collectives.md#over-efa).
void PrintHierarchicalRows(Operation operation, const TorusLinks& domain, int count) {
  const Fabric fabric(std::vector<TorusLinks>(static_cast<std::size_t>(count), domain),
                      hw::kTrainium2.links.efa);
  const int chips = domain.torus().chip_count();
  const std::vector<Member> inside = MembersOf(kAllChips >> (64 - chips));
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) {
    for (const Member& member : inside) {
      members.push_back({.chip = Fabric::ChipOf(i, member.chip.value())});
    }
  }
  const auto domains = static_cast<std::uint64_t>(count);
  for (std::uint64_t bytes = 1024; bytes <= std::uint64_t{1} << 30; bytes *= 4) {
    const std::uint64_t phases = operation == Operation::kAllReduce ? 2 : 1;
    const std::uint64_t by_nic =
        phases * bytes * (domains - 1) / (domains * static_cast<std::uint64_t>(chips));
    const VirtualDuration between = TransferTime(by_nic, hw::kTrainium2.links.efa);
    const VirtualDuration links = LowerBound(operation, SetOf(inside, domain), bytes, domain);
    const double bound = Nanoseconds(std::max(between, links)) / 1e3;
    const auto plan = PlanOnFabric({.operation = operation, .bytes = bytes}, members, fabric);
    TAHOMA_CHECK(plan.ok());
    const double time = Nanoseconds(plan->times.end - plan->times.start) / 1e3;
    fmt::print("{}\t{}x({})\t1\t{}\t{}\t{:.3f}\t{:.3f}\t{:.3f}\tyes\n", Name(operation), count,
               domain.torus().ToString(), bytes, Name(plan->algorithm), time, bound, time / bound);
  }
}

void PrintFabricRows() {
  const TorusLinks instance(torus::kInstanceShape, hw::kTrainium2.links);
  const TorusLinks ultra(torus::kUltraServerShape, hw::kTrainium2.links);
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
    for (const int count : {2, 8, 32}) PrintHierarchicalRows(operation, ultra, count);
    for (const int count : {4, 128}) PrintHierarchicalRows(operation, instance, count);
  }
}

}  // namespace
}  // namespace tahoma::sim

int main() {
  using namespace tahoma;
  using namespace tahoma::sim;
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  fmt::print("operation\tchips\tranks\tbytes\talgorithm\ttime_us\tbound_us\tratio\tchosen\n");
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kBroadcast}) {
    for (const char* shape : kBoxes) {
      for (const int ranks : {1, 4}) PrintRows(operation, shape, ranks, links);
    }
  }
  PrintFabricRows();
  return 0;
}
