#include "lib/collective/channels.h"

#include <algorithm>
#include <bit>

#include "lib/torus/path.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;

// The dimensions of a box by the rate of their links.
struct Dimensions {
  std::vector<int> fast;  // X and Y
  std::vector<int> slow;  // Z
};

Dimensions DimensionsOf(const torus::Box& box, const torus::Shape& torus) {
  const std::vector<ChipIndex> chips = torus::BoxChips(box, torus);
  Dimensions found;
  for (int d = 0; d < std::countr_zero(chips.size()); ++d) {
    const torus::Coord from = torus.CoordOf(chips[0]);
    const torus::Coord to = torus.CoordOf(chips[std::size_t{1} << d]);
    (from.z == to.z ? found.fast : found.slow).push_back(d);
  }
  return found;
}

Channel Rotated(Channel list, std::size_t by) {
  std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(by), list.end());
  return list;
}

}  // namespace

std::vector<Channel> BalancedChannels(const torus::Box& box, const torus::Shape& torus) {
  const auto [fast, slow] = DimensionsOf(box, torus);
  std::vector<Channel> channels;
  if (fast.empty() || slow.empty()) {
    const Channel& only = fast.empty() ? slow : fast;
    for (std::size_t r = 0; r < only.size(); ++r) channels.push_back(Rotated(only, r));
    if (channels.empty()) channels.emplace_back();
    return channels;
  }
  // Row i of the Latin square has the first slow dimension in step i and each fast one once.
  const std::size_t n = fast.size() + 1;
  for (std::size_t s = 0; s < slow.size(); ++s) {
    const Channel slow_order = Rotated(slow, s);
    for (std::size_t i = 0; i < n; ++i) {
      Channel& order = channels.emplace_back();
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t symbol = (i + n - j) % n;
        order.push_back(symbol == 0 ? slow_order[0] : fast[symbol - 1]);
      }
      order.insert(order.end(), slow_order.begin() + 1, slow_order.end());
    }
  }
  // A Z link has half the rate of an X/Y link. Two Z dimensions together carry what one X/Y
  // dimension does, so the square is balanced; a single one needs as many channels again without
  // it.
  for (std::size_t r = 0; slow.size() == 1 && r < fast.size(); ++r) {
    channels.push_back(Rotated(fast, r));
    channels.back().push_back(slow[0]);
  }
  return channels;
}

}  // namespace tahoma::collective
