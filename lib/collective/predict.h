// Predicts how long a collective will take, without emulating it.
//
//   PredictCollective(box, Operation::kAllReduce, 256 << 20);             // 1.27 ms, in 0.2 us
//   PredictCollective(0xfffe, {.dead = 1}, Operation::kAllReduce, 1 << 20);
//
// A subcube whose links are healthy is answered from tables of closed forms (forms.h); any other
// set of chips from its worst cut (cuts.h; of an all-reduce its worst parts, partition.h) and from
// how its messages load the links (routes.h), the better algorithm of the two; exchanges take
// chosen routes (route_search.h), whose fullest link is as full as the worst cut makes it, in whole
// parts of messages. Predictions are the emulator's times, and never less than the physical bound.
//
// Scope: one rank on each chip, nothing else on the links. Sizes as in the emulator: of a rank's
// buffer; for all-gather, of everything gathered.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "lib/collective/domain_links.h"
#include "lib/collective/operation.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

// The failed chips and links of a topology domain.
struct Faults {
  torus::ChipMask dead = 0;
  std::vector<LinkFault> links;
};

// The links of an UltraServer of Trainium2 with these faults.
DomainLinks LinksWith(const Faults& faults, const LinkCosts& costs = {});

// Predicts for a healthy subcube of an UltraServer or an instance of Trainium2.
Picoseconds PredictCollective(const torus::Box& box, Operation operation, std::uint64_t bytes,
                              const LinkCosts& costs = {});

// Accepts any chips of one topology domain. kInvalidArgument for no chips or chips outside of the
// torus; kFailedPrecondition when what is down cuts chips off.
absl::StatusOr<Picoseconds> PredictCollective(torus::ChipMask chips, const DomainLinks& links,
                                              Operation operation, std::uint64_t bytes);

// The same for an UltraServer of Trainium2, of which an instance's 16 chips are the first plane.
// kFailedPrecondition if a chip of the set is dead.
absl::StatusOr<Picoseconds> PredictCollective(torus::ChipMask chips, const Faults& faults,
                                              Operation operation, std::uint64_t bytes,
                                              const LinkCosts& costs = {});

}  // namespace tahoma::collective
