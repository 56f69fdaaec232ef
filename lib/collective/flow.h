// Maximum flows over the NeuronLinks of some chips: what cuts.h finds cuts with.
//
//   const Graph graph(links, through, /*backwards=*/false);
//   Flow flow(graph, /*times=*/1, torus::MaskOf(root), /*fed=*/0, /*feed=*/0);
//   flow.Fill(sink, wanted);          // bytes per second, `wanted` at most
//
// Augmenting paths are found breadth first over masks of chips (Edmonds, Karp 1972).
//
// Scope: internal to lib/collective.
//
// Thread safety: const members may run together.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/collective/domain_links.h"
#include "lib/torus/box.h"

namespace tahoma::collective {

// Rates between chips, parallel links added up; backwards if asked.
class Graph {
 public:
  Graph(const DomainLinks& links, torus::ChipMask through, bool backwards);

  torus::ChipMask chips() const { return chips_; }
  torus::ChipMask Into(int to) const { return into_[static_cast<std::size_t>(to)]; }
  torus::ChipMask OutOf(int from) const { return out_of_[static_cast<std::size_t>(from)]; }
  std::uint64_t Rate(int from, int to) const { return rate_[At(from, to)]; }
  // The summed rate of the links into `part` from other chips.
  std::uint64_t RateInto(torus::ChipMask part) const;

  // 0 takes the link out.
  void SetRate(int from, int to, std::uint64_t rate);

 private:
  static std::size_t At(int from, int to) {
    return static_cast<std::size_t>(from) * kChipsMax + static_cast<std::size_t>(to);
  }

  torus::ChipMask chips_;
  std::array<std::uint64_t, std::size_t{kChipsMax} * kChipsMax> rate_{};
  std::array<torus::ChipMask, kChipsMax> into_{};
  std::array<torus::ChipMask, kChipsMax> out_of_{};
};

// The residual graph of a maximum flow, with all rates multiplied by `times`, from a growing set of
// sources to one sink after the other. Flow that was found stays when the sink changes.
class Flow {
 public:
  // Every chip of `fed` can also take in `feed` from outside.
  Flow(const Graph& graph, std::uint64_t times, torus::ChipMask sources, torus::ChipMask fed,
       std::uint64_t feed);
  // Every chip can take in what is given by chip.
  Flow(const Graph& graph, std::uint64_t times, torus::ChipMask sources,
       const std::array<std::uint64_t, kChipsMax>& feed);

  // Lets flow into `sink` what can, up to `wanted`; less is the most that can.
  std::uint64_t Fill(int sink, std::uint64_t wanted);
  // The chips from which the sink can be reached, after a Fill that got less than wanted.
  torus::ChipMask reaching() const { return seen_; }

  void AddSource(int chip) { sources_ |= torus::MaskOf(torus::ChipIndex(chip)); }

 private:
  static std::size_t At(int from, int to) {
    return static_cast<std::size_t>(from) * kChipsMax + static_cast<std::size_t>(to);
  }
  void AddLinks(const Graph& graph, std::uint64_t times);
  // Backwards from the sink to a chip that has something to give; -1 if there is none.
  int FindGiver(int sink);
  std::uint64_t Push(int begin, int sink, std::uint64_t most);

  torus::ChipMask sources_;
  torus::ChipMask fed_;
  std::array<std::uint64_t, kChipsMax> feed_{};
  std::array<std::uint64_t, std::size_t{kChipsMax} * kChipsMax> left_{};
  std::array<torus::ChipMask, kChipsMax> into_{};  // from where something can still flow
  torus::ChipMask seen_ = 0;
  std::array<std::uint8_t, kChipsMax> onward_{};
};

// The least rate at which the root reaches a member.
std::uint64_t LeastRateFrom(const Graph& graph, torus::ChipMask members, int root);

}  // namespace tahoma::collective
