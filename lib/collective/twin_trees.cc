#include "lib/collective/twin_trees.h"

#include <algorithm>
#include <bit>

#include "lib/collective/flow.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

// The part of the slowest NIC's rate at which what left the root over its NIC comes back: with
// more of it the NICs have too little left for what keeps the trees low.
constexpr std::uint64_t kBackPermille = 800;

// The other stripes' steps take so much of the time in which a stripe's next one starts up: links
// do not become free all at once, for pieces are cut in whole elements.
constexpr int kStartPercent = 105;
// The more stripes, the shorter are the steps of the first and the last chunk.
constexpr std::uint64_t kStripesMost = 8;
// The most chunks: more would take long to plan.
constexpr std::uint64_t kChunksMost = 3072;
// The least of a chunk for each domain with more than two stripes: shorter parts are cut unevenly.
constexpr std::uint64_t kPartLeast = 8 << 10U;

std::vector<Branch> BranchesOf(const PackedTree& tree) {
  std::vector<Branch> branches;
  for (const int chip : tree.order()) {
    branches.push_back({.chip = chip,
                        .parent = tree.parent(chip),
                        .depth = static_cast<std::size_t>(tree.depth(chip))});
  }
  return branches;
}

// The depth at which each chip of a tree in the root's domain hands over.
EntryDepths DepthsOf(const std::vector<Branch>& own, int root) {
  EntryDepths depths;
  depths.fill(kNoEntry);
  depths[static_cast<std::size_t>(root)] = 0;
  for (const Branch& branch : own) {
    depths[static_cast<std::size_t>(branch.chip)] = static_cast<int>(branch.depth);
  }
  return depths;
}

std::uint64_t Share(std::uint64_t rate, std::uint64_t part, std::uint64_t whole) {
  return static_cast<std::uint64_t>(static_cast<Wide>(rate) * part / whole);
}

}  // namespace

TwinRates TwinRatesOf(const TwinDomains& domains) {
  if (std::has_single_bit(domains.members)) return {};
  const Graph own(domains.own, domains.members, /*backwards=*/false);
  const std::uint64_t sent = LeastRateFrom(own, domains.members, domains.root);
  const std::uint64_t got = TreePacker(domains.others, domains.members, domains.nics).Bound();
  std::uint64_t back = kUnlimitedEntry;
  for (ChipMask left = domains.members; left != 0; left &= left - 1) {
    const std::uint64_t nic = domains.nics[static_cast<std::size_t>(Lowest(left))];
    back = std::min(back, Share(nic, kBackPermille, 1000));
  }
  const std::uint64_t through = std::min(sent, got);
  if (through == 0) return {};
  // What enters at the root's twins alone goes on over links.
  const Graph others(domains.others, domains.members, /*backwards=*/false);
  const std::uint64_t onward = LeastRateFrom(others, domains.members, domains.root);
  return {.through = through, .back = std::min({back, onward, got - through})};
}

std::vector<TwinTree> PackTwinTrees(const TwinDomains& domains) {
  const TwinRates rates = TwinRatesOf(domains);
  if (rates.through == 0) return {};
  const std::vector<Branching> own = PackBranchings(domains.own, domains.members, domains.root);
  TreePacker packer(domains.others, domains.members, domains.nics);
  packer.Want(rates.sum());
  std::vector<std::vector<Branch>> own_of;  // by packed tree
  const auto pack = [&](std::uint64_t rate, const std::vector<Branch>& branches) {
    if (rate != 0) packer.Pack(rate, DepthsOf(branches, domains.root));
    own_of.resize(packer.trees().size(), branches);
  };
  pack(rates.back, {});
  const std::uint64_t sent = RateOf(own);
  for (const Branching& tree : own) {
    pack(Share(tree.rate, std::min(rates.through, sent), sent), tree.branches);
  }
  packer.Lower();
  std::vector<TwinTree> trees;
  for (std::size_t i = 0; i < own_of.size(); ++i) {
    const PackedTree& packed = packer.trees()[i];
    trees.push_back({.rate = packed.rate(), .own = own_of[i], .twins = BranchesOf(packed)});
  }
  return trees;
}

std::uint64_t RateOf(const std::vector<TwinTree>& trees) {
  std::uint64_t rate = 0;
  for (const TwinTree& tree : trees) rate += tree.rate;
  return rate;
}

std::size_t HeightOf(const std::vector<TwinTree>& trees) {
  std::size_t height = 0;
  for (const TwinTree& tree : trees) {
    for (const std::vector<Branch>* branches : {&tree.own, &tree.twins}) {
      for (const Branch& branch : *branches) height = std::max(height, branch.depth);
    }
  }
  return height;
}

std::size_t HeightAbout(const TwinDomains& domains) {
  const Graph own(domains.own, domains.members, /*backwards=*/false);
  std::size_t layers = 0;
  ChipMask reached = 0;
  for (ChipMask layer = Bit(domains.root); layer != 0; ++layers) {
    reached |= layer;
    ChipMask next = 0;
    for (; layer != 0; layer &= layer - 1) next |= own.OutOf(Lowest(layer));
    layer = next & ~reached;
  }
  return 2 * (layers - 1);
}

TwinCourse TwinCourseOf(std::uint64_t bytes, std::uint64_t rate, std::size_t domains,
                        const LinkCosts& costs) {
  const Picoseconds start = costs.step + costs.hop;
  const Picoseconds whole = TimeAtMost(bytes, 1, rate);
  // So many chunks that a stripe starts up while the others are in flight.
  const auto chunks_with = [&](std::uint64_t stripes) {
    const Picoseconds one =
        start * kStartPercent / 100 / static_cast<Picoseconds::rep>(stripes - 1);
    return static_cast<std::uint64_t>(whole / std::max(one, Picoseconds(1)));
  };
  TwinCourse course{.chunks = 1, .stripes = kStripesMost, .step = {}};
  const std::uint64_t most = std::min(kChunksMost, bytes / (domains * kPartLeast));
  while (course.stripes > 2 && chunks_with(course.stripes) > most) course.stripes /= 2;
  course.chunks = std::clamp<std::uint64_t>(chunks_with(course.stripes), 1, kChunksMost);
  const Picoseconds chunk = whole / static_cast<Picoseconds::rep>(course.chunks);
  course.step = std::max(chunk * static_cast<Picoseconds::rep>(course.stripes), chunk + start);
  return course;
}

}  // namespace tahoma::collective
