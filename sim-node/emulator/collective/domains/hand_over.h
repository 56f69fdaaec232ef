// The hand-over inside a domain: a chip that is not served by its own NIC passes its data for other
// domains on to its proxy (nic_proxies.h), the proxy answers for the data outside, and hands the
// results back.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

// A part of a region: one place owns the part inside the domain, one place answers outside.
struct OutsidePart {
  Extent elements;        // in the count of the region
  std::size_t owner = 0;  // the place that has the part inside
  std::size_t place = 0;  // the place that answers for the part
  friend bool operator==(const OutsidePart&, const OutsidePart&) = default;
};

// Place p of the group has [bounds[p], bounds[p + 1]). Returns the whole region in ascending order,
// no part empty.
std::vector<OutsidePart> OutsideParts(const std::vector<std::uint64_t>& bounds,
                                      const DomainSet::Group& group);

// Whether a group hands a region over before the region is sent between the domains, from the
// owners inside to the places that answer for the region; or back afterwards. The root of a
// broadcast is in group 0.
struct HandOverCase {
  Operation operation = Operation::kAllReduce;
  bool home = false;  // the region belongs to the group
  std::size_t group = 0;
  bool back = false;
};
bool HandsOver(const HandOverCase& region);

// Whether the owner of a part keeps the sum of its domain, while the place that answers for the
// part gets the sums of the other domains: the owner combines the two at the end. Then nothing of a
// reduce-scatter's own part is handed over before the part is sent.
bool OwnersCombine(Operation operation);

// Appends the sends of a group, from the owners of parts of the region to the places that answer
// for the parts, or back. The receiver of a part takes the part by the action.
void AppendHandOver(const Request& request, const DomainSet& set, std::size_t group,
                    const Region& region, const std::vector<OutsidePart>& parts, bool back,
                    Action action, Step& step);

}  // namespace tahoma::sim
