// From a request to a timed schedule: which algorithm, and what it costs.
//
//   auto plan = PlanCollective({.operation = Operation::kAllReduce, .bytes = 1 << 20,
//                               .type = ElementType::kFp32}, members, links);
//   Name(plan->algorithm);                    // "mesh"
//   plan->times.end - plan->times.start;      // virtual time
//
// Ranks on one chip combine on the chip first and get their copies there last, through HBM; between
// chips only chips take part.
//
// Scope: pure functions of the request, the members and the state of the links: every process that
// takes part plans for itself and gets the same.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "sim-node/collective/algorithms.h"
#include "sim-node/collective/chip_set.h"
#include "sim-node/collective/request.h"
#include "sim-node/collective/schedule.h"
#include "sim-node/collective/timing.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

// Sizes up to `max_bytes` use `algorithm`, on boxes.
struct AlgorithmRule {
  std::uint64_t max_bytes;
  Algorithm algorithm;
};
inline constexpr std::uint64_t kAnySize = ~std::uint64_t{0};

// Neuron uses Mesh below 1 MB and RDH from there (reference: torus-and-links 2.2 f). Beyond 56 MB
// Neuron turns to KangaRing because its RDH over-subscribes links; the balanced one here does not.
inline constexpr AlgorithmRule kDefaultRules[] = {{1'000'000, Algorithm::kMesh},
                                                  {kAnySize, Algorithm::kRdh}};

// Of one chip (trainium2-hardware 1.1: 2.9 TB/s), for the ranks that share it.
inline constexpr std::uint64_t kHbmBytesPerSecond = 2'900'000'000'000;

// Of the members' chips, in their order. They must be different and in the torus of `links`.
ChipSet SetOf(const std::vector<Member>& members, const TorusLinks& links);

struct Plan {
  Algorithm algorithm = Algorithm::kMesh;
  Schedule schedule;
  ScheduleTimes times;  // from virtual time 0
  // Send-receive and permute: whose buffer each rank gets.
  std::vector<int> sources = {};
};

// kInvalidArgument for no members, a chip twice or outside the torus, ranks outside 1 .. 8, a size
// that is no multiple of the element's, or what moves.h says. kFailedPrecondition when links that
// are down cut members off. The rules are those of the operations that reduce or gather; an
// exchange is always "mesh". For a broadcast, and when a link that the members may use is not
// healthy, the fastest algorithm wins.
absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links,
                                    std::span<const AlgorithmRule> rules = kDefaultRules);

// The same with the algorithm given.
absl::StatusOr<Plan> PlanWith(Algorithm algorithm, const Request& request,
                              const std::vector<Member>& members, const TorusLinks& links);

}  // namespace tahoma::sim
