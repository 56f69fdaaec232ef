// Pairs of NICs of few topology domains, over which pieces of a buffer are summed up and spread
// along trees of domains (domain_trees.h), such that no NIC has more to carry than it must.
//
//   const auto pairs = PairNics({{1000, 0, 1000}, {1000, 1000, 1000}});
//   pairs.size();               // 2: two NICs of the second domain have those of the first one
//   pairs[1].one.place;         // 2
//
// A NIC that belongs to one pair alone sends one message after the other, and none of them waits
// for a third NIC. So each domain gives each other one a whole number of NICs where that costs
// little.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstddef>
#include <vector>

namespace tahoma::sim {

struct NicPair {
  struct End {
    std::size_t group = 0;
    std::size_t place = 0;
    friend bool operator==(const End&, const End&) = default;
  };
  End one;  // of the earlier group
  End other;
  int permille = 0;  // of a NIC's rate: what the pair has of both
  friend bool operator==(const NicPair&, const NicPair&) = default;
};

// The rates of the NICs, in thousandths, by group and place; those of a group are not all 0. There
// are 2 to kDomainTreesMost groups. Pairs of the same groups follow one another.
std::vector<NicPair> PairNics(const std::vector<std::vector<int>>& nics);

}  // namespace tahoma::sim
