#include "sim-node/collective/algorithms/branching_steps.h"

#include <algorithm>
#include <cstdint>

#include "lib/base/check.h"

namespace tahoma::sim {

std::vector<Step> BranchingSteps(const std::vector<collective::Branching>& trees,
                                 std::size_t chunks, const Layout& layout, Stripe stripe) {
  TAHOMA_CHECK(!trees.empty() && chunks > 0);
  const std::uint64_t rate = collective::RateOf(trees);
  TAHOMA_CHECK(rate > 0);
  const Wide parts = static_cast<Wide>(chunks) * stripe.count;
  // Where part `part` of a tree begins, in bytes, when trees of the rate `before` come before it.
  const auto begin_of = [&](std::uint64_t before, std::uint64_t of_tree, std::size_t part) {
    const std::uint64_t elements = layout.bounds.back();
    const auto first = static_cast<std::uint64_t>(static_cast<Wide>(elements) * before / rate);
    const auto last =
        static_cast<std::uint64_t>(static_cast<Wide>(elements) * (before + of_tree) / rate);
    return (first + static_cast<std::uint64_t>(static_cast<Wide>(last - first) * part / parts)) *
           layout.element_bytes;
  };
  std::vector<Step> steps(chunks + collective::HeightOf(trees) - 1);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    std::uint64_t before = 0;
    for (const collective::Branching& tree : trees) {
      const std::size_t part = chunk * stripe.count + stripe.index;
      const std::uint64_t begin = begin_of(before, tree.rate, part);
      const std::uint64_t bytes = begin_of(before, tree.rate, part + 1) - begin;
      before += tree.rate;
      if (bytes == 0) continue;
      for (const collective::Branch& branch : tree.branches) {
        steps[chunk + branch.depth - 1].push_back({.from = torus::ChipIndex(branch.parent),
                                                   .to = torus::ChipIndex(branch.chip),
                                                   .offset = begin,
                                                   .to_offset = begin,
                                                   .bytes = bytes,
                                                   .action = Action::kCopy});
      }
    }
  }
  return steps;
}

}  // namespace tahoma::sim
