#include "sim-node/emulator/collective/algorithms/tree_order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

// So many trees at the beginning, and as many at the end, are chosen by their lateness, too.
constexpr std::size_t kEnds = 20;
// What a place among all trees, in the order of their lateness, counts beside a cable that is one
// tree ahead.
constexpr double kOfPlace = 0.3;

// How evenly some trees use the cables.
class Use {
 public:
  explicit Use(const TreePacking& packing) : packing_(packing), trees_(packing.cables().size()) {
    const auto fastest = static_cast<double>(packing.fastest());
    const auto all = static_cast<double>(packing.trees().size());
    for (const TreePacking::Cable& cable : packing.cables()) {
      const double weight = fastest / static_cast<double>(cable.rate);
      weights_.push_back(weight * weight);
      shares_.push_back(static_cast<double>(cable.trees) / all);
    }
  }

  // By how much the squares grow of what cables are ahead of their share, when the tree is next.
  double CostOf(std::size_t tree) const {
    double cost = 0;
    for (const TreePacking::Branch& branch : packing_.trees()[tree]) {
      const double ahead = trees_[branch.cable] - (count_ + 1) * shares_[branch.cable];
      cost += weights_[branch.cable] * (2 * ahead + 1);
    }
    return cost;
  }
  void Take(std::size_t tree) {
    for (const TreePacking::Branch& branch : packing_.trees()[tree]) ++trees_[branch.cable];
    ++count_;
  }

 private:
  const TreePacking& packing_;
  std::vector<double> weights_;  // of the cables
  std::vector<double> shares_;   // of each tree
  std::vector<double> trees_;    // so far
  double count_ = 0;
};

// The trees that are left, and the place of each in the order of their lateness.
class Left {
 public:
  explicit Left(const std::vector<std::size_t>& lateness)
      : trees_(lateness.size()), places_(lateness.size()) {
    std::iota(trees_.begin(), trees_.end(), std::size_t{0});
    std::vector<std::size_t> sorted = trees_;
    std::ranges::stable_sort(sorted, {}, [&](std::size_t tree) { return lateness[tree]; });
    for (std::size_t place = 0; place < sorted.size(); ++place) places_[sorted[place]] = place;
  }

  bool empty() const { return trees_.empty(); }
  // Takes the tree that costs the least, each place counting so much.
  std::size_t TakeBest(Use& use, double of_place) {
    auto best = trees_.begin();
    double least = std::numeric_limits<double>::max();
    for (auto tree = trees_.begin(); tree != trees_.end(); ++tree) {
      const double cost = use.CostOf(*tree) + of_place * static_cast<double>(places_[*tree]);
      if (cost >= least) continue;
      least = cost;
      best = tree;
    }
    const std::size_t taken = *best;
    trees_.erase(best);
    use.Take(taken);
    return taken;
  }

 private:
  std::vector<std::size_t> trees_;
  std::vector<std::size_t> places_;
};

}  // namespace

std::vector<std::size_t> EvenOrder(const TreePacking& packing,
                                   const std::vector<std::size_t>& lateness) {
  TAHOMA_CHECK(lateness.size() == packing.trees().size());
  Left left(lateness);
  Use from_begin(packing);
  Use to_end(packing);
  std::vector<std::size_t> order;
  std::vector<std::size_t> last;
  for (std::size_t i = 0; i < kEnds; ++i) {
    if (!left.empty()) order.push_back(left.TakeBest(from_begin, kOfPlace));
    if (!left.empty()) last.push_back(left.TakeBest(to_end, kOfPlace));
  }
  while (!left.empty()) order.push_back(left.TakeBest(from_begin, 0));
  order.insert(order.end(), last.rbegin(), last.rend());
  return order;
}

}  // namespace tahoma::sim
