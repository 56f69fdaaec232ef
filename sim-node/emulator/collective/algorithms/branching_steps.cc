#include "sim-node/emulator/collective/algorithms/branching_steps.h"

#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"

namespace tahoma::sim {

std::vector<Step> BranchingSteps(const std::vector<collective::Branching>& trees,
                                 const Layout& parts, Stripe stripe) {
  const std::size_t count = parts.bounds.size() - 1;
  TAHOMA_CHECK(!trees.empty() && count > 0);
  const std::uint64_t rate = collective::RateOf(trees);
  TAHOMA_CHECK(rate > 0);
  const std::size_t each = (count + stripe.count - 1) / stripe.count;
  std::vector<Step> steps(each + collective::HeightOf(trees) - 1);
  for (std::size_t part = stripe.index; part < count; part += stripe.count) {
    const std::uint64_t elements = parts.bounds[part + 1] - parts.bounds[part];
    // Where a tree's share of the part begins, in bytes, when trees of this rate come before it.
    const auto begin_after = [&](std::uint64_t before) {
      const Wide share = static_cast<Wide>(elements) * before / rate;
      return (parts.bounds[part] + static_cast<std::uint64_t>(share)) * parts.element_bytes;
    };
    std::uint64_t before = 0;
    for (const collective::Branching& tree : trees) {
      const std::uint64_t begin = begin_after(before);
      before += tree.rate;
      const std::uint64_t bytes = begin_after(before) - begin;
      if (bytes == 0) continue;
      for (const collective::Branch& branch : tree.branches) {
        steps[part / stripe.count + branch.depth - 1].push_back(
            {.from = torus::ChipIndex(branch.parent),
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
