// The NeuronLinks of a torus: their present rates, and the routes from chip to chip.
//
//   TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
//   const LinkId x_plus = links.IdOf(five, torus::Axis::kX, torus::Direction::kPlus);
//   links.SetPermille(x_plus, 0);              // down, in this direction only
//   links.FindRoute(five, six, kAllChips);     // three hops around it
//
//   links.SetLoss(x_plus, 10'000);             // 1 % of the packets are sent again
//
// A cable has two directions, separate here. A directed link belongs to the sending chip, and so to
// the chip's node; no other node changes its state.
//
// Scope: rates, states and routes. max_min.h shares links among flows, transfer.h computes times.
//
// Thread safety: const members may run together; SetPermille needs the object alone.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/hw/catalogue.h"
#include "lib/torus/box.h"
#include "lib/torus/path.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/port.h"

namespace tahoma::sim {

// A directed link, dense from 0: 6 * chip + PortIndex of the sending port.
using LinkId = std::uint32_t;

inline constexpr torus::ChipMask kAllChips = ~torus::ChipMask{0};

// The costs of a message besides its bytes (docs/reference/trainium2.md#costs-of-collectives: 1 to
// 2 us for each hop of a ring, software included; AWS publishes no split, so 1.0 + 0.5 us is the
// project's own split).
struct LinkTiming {
  VirtualDuration step = Microseconds(1.0);  // software: from step to step
  VirtualDuration hop = Microseconds(0.5);   // each link of the route
  // The share of the raw rate after protocol and packet headers, in thousandths.
  std::uint32_t efficiency_permille = 1000;
  friend bool operator==(const LinkTiming&, const LinkTiming&) = default;
};

// A link that goes down and comes up again and again: down for the first `down` of every `period`
// of the user's clock. A period of zero is a link without such changes.
struct Flapping {
  VirtualDuration period{};
  VirtualDuration down{};
  friend bool operator==(const Flapping&, const Flapping&) = default;
};
// Shorter periods are no failure of a cable; a link needs longer than this to train.
inline constexpr VirtualDuration kMinFlapPeriod = Microseconds(10);
inline constexpr VirtualDuration kMaxFlapPeriod = Microseconds(3'600e6);
// OK for no flapping; kInvalidArgument unless the period is within the limits and 0 < down <
// period.
absl::Status CheckFlapping(const Flapping& flapping);

// A link that loses more than every other packet counts as down.
inline constexpr std::uint32_t kMaxLossPpm = 500'000;

// A link with a fault.
struct LinkState {
  LinkId link = 0;
  std::uint16_t permille = 1000;  // of the link's rate; 0 = down
  std::uint32_t loss_ppm = 0;     // lost packets of a million, which are sent again
  Flapping flapping{};
  friend bool operator==(const LinkState&, const LinkState&) = default;
};

class TorusLinks {
 public:
  static constexpr std::uint16_t kHealthy = 1000;

  // At most 64 chips: a torus here is an instance or an UltraServer.
  TorusLinks(const torus::Shape& torus, const hw::LinkRates& rates, const LinkTiming& timing = {});

  const torus::Shape& torus() const { return torus_; }
  const LinkTiming& timing() const { return timing_; }
  // Ids run from 0 to here; along an axis of extent 1 an id names no link (Exists is false).
  LinkId id_count() const { return static_cast<LinkId>(capacity_.size()); }

  static LinkId IdOf(torus::ChipIndex from, torus::Axis axis, torus::Direction direction);
  torus::Hop HopOf(LinkId link) const;
  bool Exists(LinkId link) const { return rate_[link] != 0; }
  // "chip 5 x+".
  static std::string Name(LinkId link);

  // kInvalidArgument for an id without a link, or for more than 1000 thousandths.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);
  // Sets how many of a million packets are lost. A link repeats lost packets, so nothing is lost
  // above the link (NeuronLink's own protocol is not published; PCIe, whose lanes NeuronLink uses,
  // does so). A packet is sent 1 / (1 - p) times on average, which leaves 1 - p of the rate. The
  // far end asks for each repetition, which costs a round trip. The effects are expected values,
  // not random. kInvalidArgument for an id without a link, or for more than kMaxLossPpm.
  absl::Status SetLoss(LinkId link, std::uint32_t loss_ppm);
  // SetPermille for both directions of the cable.
  absl::Status SetCablePermille(LinkId link, std::uint16_t permille);
  std::uint16_t permille(LinkId link) const { return permille_[link]; }
  std::uint32_t loss_ppm(LinkId link) const { return loss_ppm_[link]; }
  bool damaged() const { return !Unhealthy(kAllChips).empty(); }

  // Whether a link between two of these chips is not healthy.
  bool IsDamaged(torus::ChipMask chips) const;
  // The unhealthy links of these senders, in order of id.
  std::vector<LinkState> Unhealthy(torus::ChipMask senders) const;

  // The link's present bytes per second; 0 when down or without a link.
  std::uint64_t capacity(LinkId link) const { return capacity_[link]; }
  std::span<const std::uint64_t> capacities() const { return capacity_; }

  // Whether all of these links are up.
  bool IsUp(std::span<const LinkId> route) const;

  // The latency of the first byte over the link, repetitions included.
  VirtualDuration latency(LinkId link) const;
  VirtualDuration LatencyOf(std::span<const LinkId> route) const;

  // The dimension-order route if all its links are up; else a shortest route over working links and
  // chips in `through` (the first found in order of axis and direction). Empty for from == to.
  // kFailedPrecondition naming both chips when there is no route.
  absl::StatusOr<std::vector<LinkId>> FindRoute(torus::ChipIndex from, torus::ChipIndex to,
                                                torus::ChipMask through) const;

  // Whether every chip of `chips` reaches every other over healthy hardware without leaving the
  // set.
  bool IsConnected(torus::ChipMask chips) const;

 private:
  absl::Status CheckLink(LinkId link) const;
  void Recompute(LinkId link);

  torus::Shape torus_;
  LinkTiming timing_;
  std::vector<std::uint64_t> rate_;  // with efficiency; 0 = no such link
  std::vector<std::uint16_t> permille_;
  std::vector<std::uint32_t> loss_ppm_;
  std::vector<std::uint64_t> capacity_;  // rate x permille x the share of packets that arrive
};

}  // namespace tahoma::sim
