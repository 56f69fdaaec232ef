#include "lib/collective/twin_trees.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

// The part of the slowest NIC's rate at which what left the root over its NIC comes back.
const std::uint64_t kBackPermille = getenv("BP")?static_cast<std::uint64_t>(atoi(getenv("BP"))):800;

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

std::vector<TwinTree> PackTwinTrees(const DomainLinks& links, ChipMask members, int root,
                                    const std::array<std::uint64_t, kChipsMax>& nics) {
  std::vector<Branching> own = PackBranchings(links, members, root);
  std::array<std::uint64_t, kChipsMax> entries{};
  std::uint64_t back = kUnlimitedEntry;
  for (ChipMask left = members; left != 0; left &= left - 1) {
    const auto chip = static_cast<std::size_t>(Lowest(left));
    entries[chip] = nics[chip];
    back = std::min(back, nics[chip] * kBackPermille / 1000);
  }
  TreePacker packer(links, members, entries);
  const std::uint64_t bound = packer.Bound();
  const std::uint64_t sent = RateOf(own);
  if (sent == 0 || bound == 0) return {};
  if (bound <= sent) back = 0;
  const std::uint64_t kept = std::min(sent, bound - back);
  packer.Want(kept + back);
  std::vector<std::pair<std::size_t, std::size_t>> ends;  // of each branching's trees
  EntryDepths at_root;
  at_root.fill(kNoEntry);
  at_root[static_cast<std::size_t>(root)] = 0;
  if (back != 0) packer.Pack(back, at_root);
  std::vector<std::size_t> own_of(packer.trees().size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    packer.Pack(Share(own[i].rate, kept, sent), DepthsOf(own[i].branches, root));
    own_of.resize(packer.trees().size(), i);
  }
  packer.Lower();
  own.emplace_back();  // of what comes back
  std::vector<TwinTree> trees;
  for (std::size_t i = 0; i < own_of.size(); ++i) {
    trees.push_back({.rate = packer.trees()[i].rate(),
                     .own = own[own_of[i]].branches,
                     .twins = BranchesOf(packer.trees()[i])});
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
    for (const Branch& branch : tree.twins) height = std::max(height, branch.depth);
  }
  return height;
}

TwinCourse TwinCourseOf(std::uint64_t bytes, std::uint64_t rate) {
  const double us=getenv("TU")?atof(getenv("TU")):1.9;
  return {.chunks = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(bytes)/(static_cast<double>(rate)*us*1e-6)),1,1024), .stripes = 2};
}

}  // namespace tahoma::collective
