// The order in which places are tried: the whole policy of what is preferred to what.
//
// Each struct compares its fields one after another, and the least is tried first. The last field
// tells equal places apart, so that the same fleet gives the same placement.
//
// Scope: comparing. What the costs are: fleet_index.h (BreakCost), chip_choice.h (Fragmentation).
//
// Thread safety: values.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "controller/model/ids.h"
#include "lib/collective/domain_links.h"

namespace tahoma::controller {

// The members of a gang that has no boxes: the hardest to place comes first.
struct MemberOrder {
  bool shares_claim = false;  // comes after the member that asks for the claim
  bool free_of_nodes = true;  // members tied to nodes come first
  int chips = 0;              // negative: most chips first
  int cores = 0;              // negative: most cores first
  std::size_t member = 0;

  friend auto operator<=>(const MemberOrder&, const MemberOrder&) = default;
};

// The topology domains of the fleet: what a placement breaks least comes first.
struct DomainOrder {
  std::uint8_t break_cost = 0;
  DomainId domain;

  friend auto operator<=>(const DomainOrder&, const DomainOrder&) = default;
};

// The boxes of one size in a domain: what breaks least, then what leaves the largest boxes free.
struct BoxOrder {
  int break_cost = 0;  // of UltraServers, pairs and instances, and of elections to change
  int fragmentation = 0;
  std::size_t place = 0;  // in the order of the box table: the lowest place first

  friend auto operator<=>(const BoxOrder&, const BoxOrder&) = default;
};

// The nodes of a domain: a node in use before a whole one; whole nodes that form a pair come last.
struct NodeOrder {
  int break_cost = 0;
  int z = 0;

  friend auto operator<=>(const NodeOrder&, const NodeOrder&) = default;
};

// Sets of chips on a node: the fastest all-reduce, then what leaves the largest boxes free.
struct ChipSetOrder {
  collective::Picoseconds all_reduce{0};
  int fragmentation = 0;  // of the chips that stay free

  friend auto operator<=>(const ChipSetOrder&, const ChipSetOrder&) = default;
};

// Chips whose logical cores are taken: those that have enough, started before whole ones.
struct CoreChipOrder {
  bool too_few = false;
  bool whole = false;
  int cores = 0;  // the fewest first where they are enough; negative, the most first, where not

  friend auto operator<=>(const CoreChipOrder&, const CoreChipOrder&) = default;
};

}  // namespace tahoma::controller
