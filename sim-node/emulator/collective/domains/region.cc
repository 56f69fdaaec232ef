#include "sim-node/emulator/collective/domains/region.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

Region::Region(std::vector<Extent> pieces) : pieces_(std::move(pieces)), bounds_({0}) {
  TAHOMA_CHECK(!pieces_.empty());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    TAHOMA_CHECK(pieces_[i].begin <= pieces_[i].end);
    TAHOMA_CHECK(i == 0 || pieces_[i - 1].end <= pieces_[i].begin);
    bounds_.push_back(bounds_.back() + pieces_[i].size());
  }
}

Region Region::Normal() const {
  std::vector<Extent> moved = pieces_;
  for (Extent& piece : moved) {
    piece.begin -= begin();
    piece.end -= begin();
  }
  return Region(std::move(moved));
}

std::vector<Extent> Region::RealOf(std::uint64_t begin, std::uint64_t end) const {
  TAHOMA_CHECK(begin <= end && end <= size());
  std::vector<Extent> real;
  const auto after = std::upper_bound(bounds_.begin(), bounds_.end(), begin);
  for (auto i = static_cast<std::size_t>(after - bounds_.begin() - 1); begin < end; ++i) {
    const std::uint64_t until = std::min(end, bounds_[i + 1]);
    if (until == begin) continue;  // an empty piece
    const std::uint64_t at = pieces_[i].begin + (begin - bounds_[i]);
    real.push_back({.begin = at, .end = at + (until - begin)});
    begin = until;
  }
  return real;
}

std::vector<std::uint64_t> CutBy(const std::vector<int>& weights, std::uint64_t size) {
  const auto total = static_cast<std::uint64_t>(std::accumulate(weights.begin(), weights.end(), 0));
  TAHOMA_CHECK(total > 0);
  std::vector<std::uint64_t> bounds = {0};
  std::uint64_t sum = 0;
  for (const int weight : weights) {
    sum += static_cast<std::uint64_t>(weight);
    bounds.push_back(static_cast<std::uint64_t>(static_cast<Wide>(size) * sum / total));
  }
  return bounds;
}

}  // namespace tahoma::sim
