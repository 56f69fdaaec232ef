// A part of a buffer that may lie in pieces, and how chips share it.
//
// Elements of a region are counted through its pieces from 0.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <vector>

namespace tahoma::sim {

// Elements [begin, end).
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const Extent&, const Extent&) = default;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

class Region {
 public:
  // Pieces in ascending order that do not overlap; some may be empty.
  explicit Region(std::vector<Extent> pieces);

  const std::vector<Extent>& pieces() const { return pieces_; }
  // The begin of each piece in the count of the region; one more at the end.
  const std::vector<std::uint64_t>& bounds() const { return bounds_; }
  std::uint64_t size() const { return bounds_.back(); }
  // The begin of the first piece.
  std::uint64_t begin() const { return pieces_.front().begin; }
  // The same region moved to begin at 0.
  Region Normal() const;
  // Returns the places of elements [begin, end) of the region.
  std::vector<Extent> RealOf(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::vector<Extent> pieces_;
  std::vector<std::uint64_t> bounds_;
};

// The region in parts in proportion to the weights (not all 0): bounds as Region::bounds().
std::vector<std::uint64_t> CutBy(const std::vector<int>& weights, std::uint64_t size);

}  // namespace tahoma::sim
