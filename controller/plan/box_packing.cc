#include "controller/plan/box_packing.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

namespace tahoma::controller {
namespace {

constexpr int kStepsMost = 4000;

class Packing {
 public:
  Packing(int box_chips, int enough) : box_chips_(box_chips), enough_(enough) {}

  // Continues the search with the `boxes` that lie in `free`, when `count` boxes are placed
  // already.
  void Search(const std::vector<torus::ChipMask>& boxes, torus::ChipMask free, int count) {
    best_ = std::max(best_, count);
    torus::ChipMask covered = 0;
    for (const torus::ChipMask box : boxes) covered |= box;
    free &= covered;
    if (count + std::popcount(free) / box_chips_ <= best_ || ++steps_ > kStepsMost) return;
    // The lowest free chip is in a placed box or in none. It has the fewest neighbours left: this
    // branches least.
    const torus::ChipMask chip = free & (~free + 1);
    for (const torus::ChipMask box : boxes) {
      if ((box & chip) == 0) continue;
      Search(Within(boxes, free & ~box), free & ~box, count + 1);
      if (best_ >= enough_) return;
    }
    Search(Within(boxes, free & ~chip), free & ~chip, count);
  }

  int best() const { return std::min(best_, enough_); }
  bool exact() const { return steps_ <= kStepsMost || best_ >= enough_; }

 private:
  static std::vector<torus::ChipMask> Within(const std::vector<torus::ChipMask>& boxes,
                                             torus::ChipMask free) {
    std::vector<torus::ChipMask> within;
    std::copy_if(boxes.begin(), boxes.end(), std::back_inserter(within),
                 [free](torus::ChipMask box) { return (box & ~free) == 0; });
    return within;
  }

  const int box_chips_;
  const int enough_;
  int best_ = 0;
  int steps_ = 0;
};

}  // namespace

int MostBoxes(std::span<const torus::ChipMask> boxes, torus::ChipMask free, int enough,
              bool* exact) {
  std::vector<torus::ChipMask> within;
  int box_chips = 64;
  for (const torus::ChipMask box : boxes) {
    if ((box & ~free) != 0) continue;
    within.push_back(box);
    box_chips = std::min(box_chips, std::popcount(box));
  }
  if (within.empty() || enough <= 0) return 0;
  Packing packing(box_chips, enough);
  packing.Search(within, free, 0);
  if (exact != nullptr) *exact = *exact && packing.exact();
  return packing.best();
}

}  // namespace tahoma::controller
