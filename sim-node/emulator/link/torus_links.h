// The NeuronLinks of one torus: their present rates, and the routes from chip to chip.
//
//   TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
//   const LinkId x_plus = links.IdOf(five, torus::Axis::kX, torus::Direction::kPlus);
//   links.SetPermille(x_plus, 0);              // down, in this direction only
//   links.FindRoute(five, six, kAllChips);     // three hops around it
//
//   links.SetLoss(x_plus, 10'000);             // 1 % of the packets are sent again
//
// A link has two directions that are separate here: a directed link belongs to the chip that
// sends on it, and so to that chip's node. Nobody else changes its state.
//
// Scope: rates, states and routes. How flows share links is max_min.h, how long they take
// transfer.h.
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

// A directed link, dense from 0: 6 * chip + PortIndex of the port on which it leaves.
using LinkId = std::uint32_t;

inline constexpr torus::ChipMask kAllChips = ~torus::ChipMask{0};

// The costs of a message besides its bytes, and the chips that the links join.
struct LinkTiming {
  VirtualDuration step = hw::kMessageCosts.step;  // software: from step to step
  VirtualDuration hop = hw::kMessageCosts.hop;    // each link of the route
  // The share of the raw rate that is left after protocol and packet headers, in thousandths.
  std::uint32_t efficiency_permille = 1000;
  const hw::ChipModel* chip = &hw::kTrainium2;  // never nullptr
  // Models of one name differ only in their links.
  friend bool operator==(const LinkTiming& a, const LinkTiming& b) {
    return a.step == b.step && a.hop == b.hop && a.efficiency_permille == b.efficiency_permille &&
           a.chip->name == b.chip->name;
  }
};

// A link that goes down and comes up again and again: down for the first `down` of every `period`
// of the clock of whoever uses it. A period of zero is a link that stays as it is.
struct Flapping {
  VirtualDuration period{};
  VirtualDuration down{};
  friend bool operator==(const Flapping&, const Flapping&) = default;
};
// Shorter ones are no failure of a cable; a link needs longer than this to train.
inline constexpr VirtualDuration kMinFlapPeriod = Microseconds(10);
inline constexpr VirtualDuration kMaxFlapPeriod = Microseconds(3'600e6);
// OK for no flapping; kInvalidArgument unless the period is within the limits and 0 < down <
// period.
absl::Status CheckFlapping(const Flapping& flapping);

// More lost packets than every other one are a link that is down.
inline constexpr std::uint32_t kMaxLossPpm = 500'000;

// A link that does not run as it should.
struct LinkState {
  LinkId link = 0;
  std::uint16_t permille = 1000;  // of its rate; 0 = down
  std::uint32_t loss_ppm = 0;     // packets of a million that are lost and sent again
  Flapping flapping{};
  friend bool operator==(const LinkState&, const LinkState&) = default;
};

class TorusLinks {
 public:
  static constexpr std::uint16_t kHealthy = 1000;

  // At most 64 chips: a torus here is an instance or an UltraServer.
  TorusLinks(const torus::Shape& torus, const hw::LinkRates& rates, const LinkTiming& timing = {});
  // Joins chips of this model, which must outlive the object, at its rates and costs.
  TorusLinks(const torus::Shape& torus, const hw::ChipModel& chip);

  const torus::Shape& torus() const { return torus_; }
  const LinkTiming& timing() const { return timing_; }
  const hw::ChipModel& chip() const { return *timing_.chip; }
  // Ids run from 0 to here; along an axis of extent 1 they name no link (Exists is false).
  LinkId id_count() const { return static_cast<LinkId>(capacity_.size()); }

  static LinkId IdOf(torus::ChipIndex from, torus::Axis axis, torus::Direction direction);
  torus::Hop HopOf(LinkId link) const;
  bool Exists(LinkId link) const { return rate_[link] != 0; }
  // "chip 5 x+".
  static std::string Name(LinkId link);

  // kInvalidArgument for an id that names no link or more than 1000 thousandths.
  absl::Status SetPermille(LinkId link, std::uint16_t permille);
  // Sets how many of a million packets are lost. A link repeats them itself, so nothing is lost
  // above it (NeuronLink's own protocol is not published; PCIe, whose lanes it uses, does so). A
  // packet is sent 1 / (1 - p) times on average, which leaves 1 - p of the rate, and each
  // repetition is asked for by the other end, which costs a round trip. The effects are expected
  // values, not random. kInvalidArgument for an id that names no link or more than kMaxLossPpm.
  absl::Status SetLoss(LinkId link, std::uint32_t loss_ppm);
  // SetPermille for both directions of the cable.
  absl::Status SetCablePermille(LinkId link, std::uint16_t permille);
  std::uint16_t permille(LinkId link) const { return permille_[link]; }
  std::uint32_t loss_ppm(LinkId link) const { return loss_ppm_[link]; }
  bool damaged() const { return !Unhealthy(kAllChips).empty(); }

  // Whether a link between two of these chips is not healthy.
  bool IsDamaged(torus::ChipMask chips) const;
  // Links of these senders that are not healthy, in order of id.
  std::vector<LinkState> Unhealthy(torus::ChipMask senders) const;

  // Bytes per second that the link carries now; 0 when it is down or does not exist.
  std::uint64_t capacity(LinkId link) const { return capacity_[link]; }
  std::span<const std::uint64_t> capacities() const { return capacity_; }

  // The latency of the first byte over the link, repetitions included.
  VirtualDuration latency(LinkId link) const;
  VirtualDuration LatencyOf(std::span<const LinkId> route) const;

  // The dimension-order route if all its links are up; else a shortest route over links that are up
  // and chips in `through` (the first found in order of axis and direction). Empty for from == to.
  // kFailedPrecondition naming both chips when there is none.
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
  std::vector<std::uint64_t> capacity_;  // rate x permille x what is not lost
};

}  // namespace tahoma::sim
