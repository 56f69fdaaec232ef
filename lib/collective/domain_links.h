// The NeuronLinks of one topology domain as numbers: which chips they join, and at what rate now.
//
//   DomainLinks links(torus::kUltraServerShape, hw::kTrainium2);
//   links.SetPermille({.chip = torus::ChipIndex(5), .axis = torus::Axis::kX,
//                      .direction = torus::Direction::kPlus, .permille = 0});   // down, one way
//   links.Reach(0xffff);                                // 0xffff: they hang together
//
// An arc is a link in one direction, numbered 6 * chip + 2 * axis + (1 for plus), from the chip
// that sends on it.
//
// Scope: rates. Their effect on collectives is in cuts.h, routes.h and predict.h.
//
// Thread safety: const members may run together.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/hw/catalogue.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::collective {

using Picoseconds = hw::Picoseconds;

// 128 bits hold bytes x 10^12.
__extension__ using Wide = unsigned __int128;

// Time for `numerator / denominator` bytes at `rate` bytes per second, rounded down.
Picoseconds TimeAtLeast(Wide numerator, std::uint64_t denominator, std::uint64_t rate);
// The same, rounded up.
Picoseconds TimeAtMost(Wide numerator, std::uint64_t denominator, std::uint64_t rate);

// The costs of a message besides its bytes.
struct LinkCosts {
  // The time from step to step: while the software works, a DMA engine starts; the longer counts.
  Picoseconds step = std::max(hw::kMessageCosts.step, hw::kDma.start);
  Picoseconds hop = hw::kMessageCosts.hop;          // each link of the route
  Picoseconds command = hw::kMessageCosts.command;  // from one of a CC-core to its next
  std::uint32_t efficiency_permille = 1000;     // what protocol and packets leave of the raw rate
  const hw::ChipModel* chip = &hw::kTrainium2;  // never nullptr
  bool memory = true;                           // reading and writing HBM takes time
  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

// Returns the costs of messages between chips of this model, which must outlive them.
LinkCosts CostsOf(const hw::ChipModel& chip);

// A link that does not run at its full rate, in the direction in which `chip` sends on it.
struct LinkFault {
  torus::ChipIndex chip;
  torus::Axis axis;
  torus::Direction direction;
  std::uint16_t permille = 0;  // of its rate, 0 to 1000
};

using Arc = std::uint16_t;
inline constexpr int kPortsPerChip = 6;
inline constexpr int kChipsMax = 64;

// The constant facts of a torus.
struct Topology {
  explicit Topology(const torus::Shape& torus);
  // Returns the topology of a torus; those of an UltraServer and an instance are made once.
  static std::shared_ptr<const Topology> Of(const torus::Shape& torus);

  torus::Shape torus;
  torus::ChipMask chips = 0;
  std::array<std::uint8_t, kChipsMax * kPortsPerChip> to{};  // of arcs that exist
  std::array<torus::ChipMask, kChipsMax> neighbours{};
  // Runs of planes along each axis: the parts with the fewest links for their chips.
  std::vector<torus::ChipMask> slabs;
};

class DomainLinks {
 public:
  // At most 64 chips.
  DomainLinks(const torus::Shape& torus, const hw::LinkRates& rates, const LinkCosts& costs = {});
  // Joins chips of this model, which must outlive the object, at its rates and costs.
  DomainLinks(const torus::Shape& torus, const hw::ChipModel& chip);
  // Takes the rate of each arc, 0 where it is down or does not exist.
  DomainLinks(const torus::Shape& torus, std::span<const std::uint64_t> rates,
              const LinkCosts& costs);

  // The arc must exist.
  void SetPermille(const LinkFault& fault);
  // All links of these chips are down, in both directions.
  void Kill(torus::ChipMask chips);
  // Every link as slow as here or in the other, which has the same torus.
  DomainLinks SlowerOf(const DomainLinks& other) const;
  // The same torus in full health: every link is as fast as the fastest of its axis.
  DomainLinks Repaired() const;

  const torus::Shape& torus() const { return topology_->torus; }
  const Topology& topology() const { return *topology_; }
  const LinkCosts& costs() const { return costs_; }
  torus::ChipMask chips() const { return topology_->chips; }
  int arc_count() const { return torus().chip_count() * kPortsPerChip; }
  // Bytes per second.
  std::uint64_t rate(Arc arc) const { return rates_[arc]; }
  // Meaningful for arcs that exist.
  int to(Arc arc) const { return topology_->to[arc]; }
  static Arc ArcOf(torus::ChipIndex from, torus::Axis axis, torus::Direction direction);

  // Returns those of `chips` that the lowest of them reaches over cables between them, working or
  // not.
  torus::ChipMask Reach(torus::ChipMask chips) const;
  // Whether every link between these chips has the full rate of costs().chip.
  bool IsHealthy(torus::ChipMask chips) const;

 private:
  std::shared_ptr<const Topology> topology_;
  LinkCosts costs_;
  std::array<std::uint64_t, kChipsMax * kPortsPerChip> rates_{};
};

}  // namespace tahoma::collective
