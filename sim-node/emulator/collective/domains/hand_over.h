// The hand-over inside a domain: chips that their own NICs do not serve pass on what they have for
// other domains to their proxies (nic_proxies.h), which answer for it there, and get what comes
// back.
//
//   Step step;
//   AppendHandOver(request, set, /*group=*/0, region, parts, /*back=*/false, Action::kCopy, step);
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

// A part of a region that one place has inside its domain, and for which one answers outside.
struct OutsidePart {
  Extent elements;        // in the count of the region
  std::size_t owner = 0;  // the place that has it inside
  std::size_t place = 0;  // the place that answers for it
  friend bool operator==(const OutsidePart&, const OutsidePart&) = default;
};

// Place p of the group has [bounds[p], bounds[p + 1]). Returns the whole region in ascending order,
// no part empty.
std::vector<OutsidePart> OutsideParts(const std::vector<std::uint64_t>& bounds,
                                      const DomainSet::Group& group);

// Whether a group hands a region over before it is sent between the domains, from the places that
// have it inside to those that answer for it; or back afterwards. The root of a broadcast is in
// group 0.
struct HandOverCase {
  Operation operation = Operation::kAllReduce;
  bool home = false;  // the region belongs to the group
  std::size_t group = 0;
  bool back = false;
};
bool HandsOver(const HandOverCase& region);

// Whether the owner of a part keeps what its domain has summed up, while the place that answers for
// it gets the sums of the others: it combines the two when it gets these. So of a reduce-scatter's
// own part nothing is handed over before it is sent.
bool OwnersCombine(Operation operation);

// Appends the sends of a group, from the owners of parts of the region to the places that answer
// for them, or back. Who gets a part takes it by the action.
void AppendHandOver(const Request& request, const DomainSet& set, std::size_t group,
                    const Region& region, const std::vector<OutsidePart>& parts, bool back,
                    Action action, Step& step);

}  // namespace tahoma::sim
