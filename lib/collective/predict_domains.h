// Predicts how long a collective over several topology domains (UltraServers or lone instances)
// will take: NeuronLink inside each, EFA between them.
//
//   // 16 whole UltraServers
//   const std::vector<DomainPart> parts(16, {.chips = ~torus::ChipMask{0}, .faults = {}});
//   PredictOverDomains(parts, {.operation = Operation::kAllReduce, .bytes = 256 << 20});
//
// Inside the domains first, then between chips of the same place, each to all others at once, then
// inside again (docs/reference/collectives.md#over-efa). The buffer is cut into chunks where that
// is faster: while NICs send one, NeuronLinks carry another. A domain does one phase of one chunk
// at a time, and all chunks are reduced before the first is gathered.
//
// The rules are the emulator's (sim-node/emulator/collective/domains). On domains alike in full
// health predictions are within 2 % of the emulated times, elsewhere within some 10 %; a test
// compares them (docs/defects.md).
//
// Scope: equal ranks on all chips; all NICs of the chips up; EFA's network without congestion.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>

#include "lib/collective/operation.h"
#include "lib/collective/predict.h"

namespace tahoma::collective {

// Chunks of a buffer that are worth trying where that hides one network behind the other
// (docs/design/0006-efa.md).
inline constexpr int kChunkCounts[] = {1, 2, 4, 8, 16, 32, 64, 128};
// A chunk has no less: smaller ones take as long as a packet.
inline constexpr std::uint64_t kChunkBytesMin = std::uint64_t{1} << 15U;

// The chips with which one topology domain takes part.
struct DomainPart {
  torus::ChipMask chips = 0;
  Faults faults;
};

// Domains of unlike size wait for the one with the fewest chips, whose NICs carry most. Errors as
// of PredictCollective, with the number of the domain; kInvalidArgument for no domain and for an
// all-to-all of fewer elements than ranks.
absl::StatusOr<Picoseconds> PredictOverDomains(std::span<const DomainPart> domains,
                                               const FormRequest& request,
                                               const hw::ChipModel& chip = hw::kTrainium2);

}  // namespace tahoma::collective
