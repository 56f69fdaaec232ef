// Prints what collectives cost in the emulator, as tab-separated lines:
//
//   operation  chips  bytes  algorithm  time_us  bound_us  ratio
//
// for all-reduce, all-gather, reduce-scatter, all-to-all and broadcast on boxes of 2 to 64 chips,
// from 1 KiB to 1 GiB, by every algorithm. No data is moved; tests/bench/collective_table.py draws
// the picture.

#include <fmt/format.h>

#include <string>

#include "lib/base/check.h"
#include "lib/hw/catalogue.h"
#include "sim-node/collective/bound.h"
#include "sim-node/collective/plan.h"

namespace tahoma::sim {
namespace {

constexpr const char* kBoxes[] = {"2x1x1", "2x2x1", "4x1x1", "4x2x1", "4x4x1", "4x4x2", "4x4x4"};

const torus::Box& BoxOf(const std::string& shape) {
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    if (box.ToString() == shape + "+0,0,0") return box;
  }
  TAHOMA_CHECK(false);
}

void PrintRows(Operation operation, const std::string& shape, const TorusLinks& links) {
  const std::vector<Member> members = MembersOf(BoxOf(shape).mask);
  const ChipSet set = SetOf(members, links);
  for (std::uint64_t bytes = 1024; bytes <= std::uint64_t{1} << 30; bytes *= 4) {
    const double bound = Nanoseconds(LowerBound(operation, set, bytes, links)) / 1e3;
    for (const Algorithm algorithm :
         {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing, Algorithm::kTree}) {
      if (operation == Operation::kAllToAll && algorithm != Algorithm::kMesh) continue;
      const auto plan =
          PlanWith(algorithm, {.operation = operation, .bytes = bytes}, members, links);
      TAHOMA_CHECK(plan.ok());
      const double time = Nanoseconds(plan->times.end - plan->times.start) / 1e3;
      fmt::print("{}\t{}\t{}\t{}\t{:.3f}\t{:.3f}\t{:.3f}\n", Name(operation), shape, bytes,
                 Name(algorithm), time, bound, time / bound);
    }
  }
}

}  // namespace
}  // namespace tahoma::sim

int main() {
  using namespace tahoma;
  using namespace tahoma::sim;
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  fmt::print("operation\tchips\tbytes\talgorithm\ttime_us\tbound_us\tratio\n");
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kBroadcast}) {
    for (const char* shape : kBoxes) PrintRows(operation, shape, links);
  }
  return 0;
}
