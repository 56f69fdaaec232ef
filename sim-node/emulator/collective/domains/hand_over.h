// The hand-over inside a domain: chips whose NICs are down or slow pass on what they have for other
// domains to chips that answer for it there, and get what comes back.
//
//   Step step;
//   AppendHandOver(request, set, /*group=*/0, region, parts, /*back=*/false, Action::kCopy, step);
//
// Which parts those are decides dealt_parts.h.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstddef>
#include <vector>

#include "sim-node/emulator/collective/domains/dealt_parts.h"
#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// Whether a group hands a region over before it is sent between the domains, from the places that
// have it inside to those that answer for it; or back afterwards. The root of a broadcast, whose
// buffer may flow to all chips of its domain, is in group 0.
struct HandOverQuestion {
  Operation operation = Operation::kAllReduce;
  bool home = false;  // the region belongs to the group
  std::size_t group = 0;
  bool flows = false;
  bool back = false;
};
bool HandsOver(const HandOverQuestion& asked);

// Whether the owner of a part keeps what its domain has summed up, while the place that answers for
// it gets the sums of the others: it combines the two when it gets these. So of a reduce-scatter's
// own part nothing is handed over before it is sent.
bool OwnersCombine(Operation operation);

// Appends the sends of a group, from the owners of parts of the region to the places that answer
// for them, or back. Who gets a part takes it by the action.
void AppendHandOver(const Request& request, const DomainSet& set, std::size_t group,
                    const Region& region, const std::vector<DealtPart>& parts, bool back,
                    Action action, Step& step);

// The places to which links lead from each place of a group.
std::vector<NearPlaces> NearPlacesOf(const DomainSet::Group& group, const TorusLinks& links);

}  // namespace tahoma::sim
