#include "sim-node/emulator/collective/domains/hand_over.h"

#include "sim-node/emulator/collective/domains/padded_steps.h"

namespace tahoma::sim {

std::vector<OutsidePart> OutsideParts(const std::vector<std::uint64_t>& bounds,
                                      const DomainSet::Group& group) {
  std::vector<OutsidePart> parts;
  for (std::size_t place = 0; place + 1 < bounds.size(); ++place) {
    if (bounds[place] == bounds[place + 1]) continue;
    parts.push_back({.elements = {.begin = bounds[place], .end = bounds[place + 1]},
                     .owner = place,
                     .place = group.proxies[place]});
  }
  return parts;
}

bool HandsOver(const HandOverCase& region) {
  switch (region.operation) {
    case Operation::kAllGather:
      return region.home != region.back;
    case Operation::kReduceScatter:
      return region.home == region.back;
    case Operation::kBroadcast:
      return region.group == 0 ? !region.back : region.back;
    default:
      return true;
  }
}

bool OwnersCombine(Operation operation) { return operation == Operation::kReduceScatter; }

void AppendHandOver(const Request& request, const DomainSet& set, std::size_t group,
                    const Region& region, const std::vector<OutsidePart>& parts, bool back,
                    Action action, Step& step) {
  for (const OutsidePart& part : parts) {
    if (part.owner == part.place) continue;
    const torus::ChipIndex from = set.ChipOf(group, back ? part.place : part.owner);
    const torus::ChipIndex to = set.ChipOf(group, back ? part.owner : part.place);
    for (const Extent& real : region.RealOf(part.elements.begin, part.elements.end)) {
      step.push_back(MakeSend(request, from, to, real, action));
    }
  }
}

}  // namespace tahoma::sim
