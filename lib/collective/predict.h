// Predicts how long a collective will take, without emulating it.
//
//   PredictCollective(box, {.operation = Operation::kAllReduce, .bytes = 256 << 20});
//   PredictCollective(0xfffe, LinksWith({.dead = 1}, hw::kTrainium1), {.bytes = 1 << 20});
//
// The time is that of the closed form (closed_form.h), at the rates and costs of the chip model. A
// healthy subcube of Trainium1 or Trainium2 is answered from loads that are computed once, any
// other set from its own. Predictions are never less than the physical bound.
//
// Scope: equal ranks on all chips, nothing else on the links.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "lib/collective/closed_form.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/operation.h"
#include "lib/hw/catalogue.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

// The failed chips and links of a topology domain.
struct Faults {
  torus::ChipMask dead = 0;
  std::vector<LinkFault> links;
};

// Returns the links of a 4x4x4 of these chips with the faults. An instance's 16 chips are the first
// plane; of a model without links between instances there is no more.
DomainLinks LinksWith(const Faults& faults, const hw::ChipModel& chip = hw::kTrainium2);

// Predicts for a healthy subcube of an UltraServer or an instance of these chips.
Picoseconds PredictCollective(const torus::Box& box, const FormRequest& request,
                              const hw::ChipModel& chip = hw::kTrainium2);

// Returns the loads of a subcube in full health, computed once for all of its size. They are right
// for all operations but send-receive, and for any root. nullptr when the chips are no subcube,
// links lack the full rate of their model, or the model forms no torus.
const SetLoads* LoadsOfBox(torus::ChipMask chips, const DomainLinks& links);

// Accepts any chips of one topology domain. kInvalidArgument for no chips or chips outside of the
// torus; kFailedPrecondition when what is down cuts chips off.
absl::StatusOr<Picoseconds> PredictCollective(torus::ChipMask chips, const DomainLinks& links,
                                              const FormRequest& request);

// The same for chips of this model; kFailedPrecondition if one of them is dead.
absl::StatusOr<Picoseconds> PredictCollective(torus::ChipMask chips, const Faults& faults,
                                              const FormRequest& request,
                                              const hw::ChipModel& chip = hw::kTrainium2);

}  // namespace tahoma::collective
