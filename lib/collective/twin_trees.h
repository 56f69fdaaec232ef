// Packs the trees of a broadcast to several topology domains with the same chips. Chips at the same
// place of two domains are twins, joined over EFA by their NICs. The root sends along trees in its
// own domain; there chips hand what they have to their twins, which go on in their domains.
//
// One tree leaves the root over its NIC, and all others of its domain get it back from their twins:
// so the root's NIC carries a part that its links need not. All domains but the root's do the same
// at the same time, so they are packed as one. A NIC of each of them gets what the twin in the
// root's domain sends, in equal parts from there and from the other domains.
//
// Scope: combinatorics and closed forms. The emulator makes schedules of the trees.
//
// Thread safety: pure functions; the same on every machine.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/collective/branchings.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/tree_packer.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

// The most domains: for more of them pieces would be cut too unevenly, a part for each.
inline constexpr std::size_t kTwinDomainsMost = 512;

// The fewest chunks: with fewer, links are idle for longer than a buffer takes that is scattered.
inline constexpr std::uint64_t kTwinChunksLeast = 6;

struct TwinDomains {
  DomainLinks own;     // of the root's domain
  DomainLinks others;  // of all others: each link as it is where it is slowest
  torus::ChipMask members = 0;
  int root = 0;
  std::array<std::uint64_t, kChipsMax> nics{};  // by chip, the slowest at its place
};

// The rates at which a broadcast can leave the root.
struct TwinRates {
  std::uint64_t through = 0;  // over its NeuronLinks, through its domain
  std::uint64_t back = 0;     // over its NIC, and back to its domain over all others'
  std::uint64_t sum() const { return through + back; }
};
// 0 when links that are up do not lead from the root to all members of its domain, or nothing can
// enter the others, or there is only one member.
TwinRates TwinRatesOf(const TwinDomains& domains);

struct TwinTree {
  std::uint64_t rate = 0;
  // In the root's domain; empty if its chips get everything from their twins.
  std::vector<Branch> own;
  // In each other domain, parents first. A chip whose parent is kOutside has the depth that its
  // twin has in the root's domain; below it depths go on.
  std::vector<Branch> twins;
};

// The rates of all trees together are near TwinRatesOf, and empty when these are 0.
std::vector<TwinTree> PackTwinTrees(const TwinDomains& domains);

std::uint64_t RateOf(const std::vector<TwinTree>& trees);
// The depth of the chip that is farthest from the root; NICs do not count.
std::size_t HeightOf(const std::vector<TwinTree>& trees);

// Returns about the height that packed trees have, without packing them: what is as far from the
// root as possible in its domain is as far from where a tree enters the others.
std::size_t HeightAbout(const TwinDomains& domains);

// How a buffer flows through trees of this rate to so many domains: in chunks, of which each stripe
// has every `stripes`-th. One stripe starts up while the others are in flight.
struct TwinCourse {
  std::uint64_t chunks = 1;
  std::uint64_t stripes = 2;
  Picoseconds step{};  // from step to step of a stripe
};
TwinCourse TwinCourseOf(std::uint64_t bytes, std::uint64_t rate, std::size_t domains,
                        const LinkCosts& costs);

}  // namespace tahoma::collective
