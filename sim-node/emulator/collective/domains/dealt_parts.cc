#include "sim-node/emulator/collective/domains/dealt_parts.h"

#include <algorithm>

#include "lib/base/check.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {
namespace {

// Spreads a part over the places with room, in rounds of equal shares.
void Spread(DealtPart part, std::vector<std::uint64_t>& room, std::vector<DealtPart>& parts) {
  while (part.elements.size() > 0) {
    const auto open = static_cast<std::uint64_t>(
        std::ranges::count_if(room, [](std::uint64_t left) { return left > 0; }));
    TAHOMA_CHECK(open > 0);  // all that is left has as much room as it needs
    const std::uint64_t share = (part.elements.size() + open - 1) / open;
    for (std::size_t place = 0; place < room.size() && part.elements.size() > 0; ++place) {
      const std::uint64_t taken = std::min({room[place], share, part.elements.size()});
      if (taken == 0) continue;
      DealtPart given = part;
      given.elements.end = given.elements.begin + taken;
      given.place = place;
      parts.push_back(given);
      room[place] -= taken;
      part.elements.begin += taken;
    }
  }
}

// Gives a part to the near places that have a NIC; false when there are none.
bool GiveToNear(DealtPart part, const NearPlaces& near, const std::vector<int>& rates,
                std::vector<DealtPart>& parts) {
  NearPlaces takers = near;
  std::erase_if(takers, [&](const NearPlace& one) { return rates[one.place] == 0; });
  if (takers.empty()) return false;
  Wide all = 0;
  for (const NearPlace& one : takers) all += one.rate;
  const Extent whole = part.elements;
  Wide before = 0;
  for (const NearPlace& one : takers) {
    before += one.rate;
    part.elements.end =
        whole.begin + static_cast<std::uint64_t>(static_cast<Wide>(whole.size()) * before / all);
    part.place = one.place;
    if (part.elements.size() > 0) parts.push_back(part);
    part.elements.begin = part.elements.end;
  }
  return true;
}

}  // namespace

std::vector<DealtPart> DealParts(const std::vector<std::uint64_t>& bounds,
                                 const std::vector<int>& rates,
                                 const std::vector<NearPlaces>& near) {
  TAHOMA_CHECK(bounds.size() == rates.size() + 1);
  const bool equal = std::ranges::all_of(rates, [&](int rate) { return rate == rates[0]; });
  const std::vector<std::uint64_t> dealt = equal ? bounds : CutBy(rates, bounds.back());
  std::vector<DealtPart> parts;
  std::vector<DealtPart> left;
  std::vector<std::uint64_t> room;
  for (std::size_t place = 0; place < rates.size(); ++place) {
    const std::uint64_t most = dealt[place + 1] - dealt[place];
    const std::uint64_t cut = std::min(bounds[place] + most, bounds[place + 1]);
    room.push_back(most - (cut - bounds[place]));
    if (cut > bounds[place]) parts.push_back({{bounds[place], cut}, place, place});
    if (cut < bounds[place + 1]) left.push_back({{cut, bounds[place + 1]}, place, place});
  }
  for (const DealtPart& part : left) {
    if (!near.empty() && GiveToNear(part, near[part.owner], rates, parts)) continue;
    Spread(part, room, parts);
  }
  std::ranges::sort(parts, {}, [](const DealtPart& part) { return part.elements.begin; });
  return parts;
}

}  // namespace tahoma::sim
