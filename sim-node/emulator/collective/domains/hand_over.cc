#include "sim-node/emulator/collective/domains/hand_over.h"

#include <algorithm>
#include <cstdint>

#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {

bool HandsOver(const HandOverQuestion& asked) {
  switch (asked.operation) {
    case Operation::kAllGather:
      return asked.home != asked.back;
    case Operation::kReduceScatter:
      return asked.home == asked.back;
    case Operation::kBroadcast:
      return asked.group == 0 ? !asked.back && !asked.flows : asked.back;
    default:
      return true;
  }
}

bool OwnersCombine(Operation operation) { return operation == Operation::kReduceScatter; }

void AppendHandOver(const Request& request, const DomainSet& set, std::size_t group,
                    const Region& region, const std::vector<DealtPart>& parts, bool back,
                    Action action, Step& step) {
  for (const DealtPart& part : parts) {
    if (part.owner == part.place) continue;
    const torus::ChipIndex from = set.ChipOf(group, back ? part.place : part.owner);
    const torus::ChipIndex to = set.ChipOf(group, back ? part.owner : part.place);
    for (const Extent& real : region.RealOf(part.elements.begin, part.elements.end)) {
      step.push_back(MakeSend(request, from, to, real, action));
    }
  }
}

std::vector<NearPlaces> NearPlacesOf(const DomainSet::Group& group, const TorusLinks& links) {
  const ChipSet set = SetOf(group.local, links);
  std::vector<NearPlaces> near(group.local.size());
  for (LinkId link = 0; link < links.id_count(); ++link) {
    const std::uint64_t rate = links.capacity(link);
    if (rate == 0 || !set.HasBothEnds(links.HopOf(link))) continue;
    const torus::Hop hop = links.HopOf(link);
    NearPlaces& from = near[set.PlaceOf(hop.from)];
    const std::size_t to = set.PlaceOf(hop.to);
    const auto known = std::ranges::find(from, to, &NearPlace::place);
    if (known == from.end()) {
      from.push_back({.place = to, .rate = rate});
    } else {
      known->rate += rate;  // along an axis of two chips
    }
  }
  return near;
}

}  // namespace tahoma::sim
