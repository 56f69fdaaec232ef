#include "sim-node/emulator/collective/plan/bound.h"

#include <algorithm>
#include <utility>

#include "lib/collective/cuts.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {

VirtualDuration LowerBound(Operation operation, const ChipSet& set, std::uint64_t bytes,
                           const TorusLinks& links) {
  return collective::LowerBound(operation, set.mask(), set.chips()[0], bytes, DomainLinksOf(links));
}

VirtualDuration LowerBound(const Request& request, const std::vector<Member>& members,
                           const TorusLinks& links) {
  std::vector<torus::ChipIndex> chips;
  Wide ranks = 0;
  for (const Member& member : members) {
    chips.push_back(member.chip);
    ranks += static_cast<Wide>(member.ranks);
  }
  const auto fewest =
      static_cast<Wide>(std::ranges::min_element(members, {}, &Member::ranks)->ranks);
  // As if each chip had one rank, and as many bytes for it as the chip with the fewest ranks has.
  const Wide share = request.bytes * chips.size() * fewest / ranks;
  Wide bytes = request.bytes;
  switch (request.operation) {
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      bytes = share;
      break;
    case Operation::kAllToAll:
      bytes = share * fewest;
      break;
    case Operation::kPermute:
      bytes = request.bytes * fewest;
      break;
    default:
      break;
  }
  return LowerBound(request.operation, ChipSet(links, std::move(chips)),
                    static_cast<std::uint64_t>(bytes), links);
}

}  // namespace tahoma::sim
