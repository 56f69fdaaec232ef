// Predicts how long a collective over several topology domains (UltraServers or lone instances)
// will take: NeuronLink inside each, EFA between them.
//
//   // 16 whole UltraServers
//   const std::vector<DomainPart> parts(16, {.chips = ~torus::ChipMask{0}, .faults = {}});
//   PredictOverDomains(parts, Operation::kAllReduce, 256 << 20);
//
// Inside the domains first, then between chips of the same place, each to all others at once, then
// inside again (docs/reference/collectives.md#over-efa). The parts that use NeuronLink and those
// that use EFA are pipelined in chunks where that is faster.
//
// A broadcast may also flow through the root's domain, over EFA, and be gathered in all others.
//
// Scope: one rank on each chip; EFA's network without congestion.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>

#include "lib/collective/operation.h"
#include "lib/collective/predict.h"

namespace tahoma::collective {

// The costs of EFA.
struct EfaCosts {
  std::uint64_t rate = static_cast<std::uint64_t>(hw::kTrainium2.links.efa);  // of one chip
  Picoseconds message = hw::kMessageCosts.efa;  // a minimal packet, HBM to HBM
};

// Chunks of a buffer that are worth trying where that hides one network behind the other
// (docs/design/0006-efa.md).
inline constexpr int kChunkCounts[] = {1, 2, 4, 8, 16, 32, 64, 128};

// The chips with which one topology domain takes part.
struct DomainPart {
  torus::ChipMask chips = 0;
  Faults faults;
};

// `bytes` as in PredictCollective. One domain needs no EFA. Domains of unlike size wait for the one
// with the fewest chips, whose NICs carry most. Errors as of PredictCollective, with the number of
// the domain; kInvalidArgument for no domain.
absl::StatusOr<Picoseconds> PredictOverDomains(std::span<const DomainPart> domains,
                                               Operation operation, std::uint64_t bytes,
                                               const EfaCosts& costs = {});

}  // namespace tahoma::collective
