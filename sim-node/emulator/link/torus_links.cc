#include "sim-node/emulator/link/torus_links.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr LinkId kPortsPerChip = kPorts;
constexpr std::uint32_t kMillion = 1'000'000;

ChipMask MaskOfAll(const torus::Shape& torus) {
  return torus.chip_count() == 64 ? kAllChips : (ChipMask{1} << torus.chip_count()) - ChipMask{1};
}

}  // namespace

absl::Status CheckFlapping(const Flapping& flapping) {
  if (flapping == Flapping{}) return absl::OkStatus();
  if (flapping.period < kMinFlapPeriod || flapping.period > kMaxFlapPeriod) {
    return InvalidArgument("a link flaps with a period of {} ps; expected {} to {}",
                           flapping.period.count(), kMinFlapPeriod.count(), kMaxFlapPeriod.count());
  }
  if (flapping.down <= VirtualDuration(0) || flapping.down >= flapping.period) {
    return InvalidArgument("a link is down for {} ps of each period of {}; expected 1 to {}",
                           flapping.down.count(), flapping.period.count(),
                           flapping.period.count() - 1);
  }
  return absl::OkStatus();
}

TorusLinks::TorusLinks(const torus::Shape& torus, const hw::LinkRates& rates,
                       const LinkTiming& timing)
    : torus_(torus), timing_(timing) {
  TAHOMA_CHECK(torus.chip_count() <= 64);
  TAHOMA_CHECK(timing.efficiency_permille > 0 && timing.efficiency_permille <= 1000);
  const auto ids = static_cast<std::size_t>(torus.chip_count()) * kPortsPerChip;
  rate_.assign(ids, 0);
  permille_.assign(ids, kHealthy);
  loss_ppm_.assign(ids, 0);
  capacity_.assign(ids, 0);
  for (int chip = 0; chip < torus.chip_count(); ++chip) {
    for (const Axis axis : torus::kAxes) {
      if (torus.extent(axis) == 1) continue;
      const std::int64_t raw = axis == Axis::kZ ? rates.inter_instance : rates.intra_instance;
      for (const Direction direction : torus::kDirections) {
        const LinkId link = IdOf(ChipIndex(chip), axis, direction);
        rate_[link] = static_cast<std::uint64_t>(raw) * timing.efficiency_permille / 1000;
        Recompute(link);
      }
    }
  }
}

TorusLinks::TorusLinks(const torus::Shape& torus, const hw::ChipModel& chip)
    : TorusLinks(torus, chip.links,
                 {.step = chip.costs.step, .hop = chip.costs.hop, .chip = &chip}) {}

LinkId TorusLinks::IdOf(ChipIndex from, Axis axis, Direction direction) {
  return static_cast<LinkId>(from.value()) * kPortsPerChip +
         static_cast<LinkId>(PortIndex({axis, direction}));
}

torus::Hop TorusLinks::HopOf(LinkId link) const {
  const ChipIndex from(static_cast<int>(link / kPortsPerChip));
  const auto [axis, direction] = kAllPorts[link % kPortsPerChip];
  const auto to = torus_.Neighbour(torus_.CoordOf(from), axis, direction);
  return {
      .from = from, .to = to ? torus_.IndexOf(*to) : from, .axis = axis, .direction = direction};
}

std::string TorusLinks::Name(LinkId link) {
  return fmt::format("chip {} {}", link / kPortsPerChip, PortName(kAllPorts[link % kPortsPerChip]));
}

void TorusLinks::Recompute(LinkId link) {
  const std::uint64_t sent = rate_[link] * permille_[link] / 1000;
  capacity_[link] =
      static_cast<std::uint64_t>(static_cast<Wide>(sent) * (kMillion - loss_ppm_[link]) / kMillion);
}

VirtualDuration TorusLinks::latency(LinkId link) const {
  const auto lost = static_cast<VirtualDuration::rep>(loss_ppm_[link]);
  return timing_.hop + 2 * timing_.hop * lost / (VirtualDuration::rep{kMillion} - lost);
}

VirtualDuration TorusLinks::LatencyOf(std::span<const LinkId> route) const {
  VirtualDuration sum{};
  for (const LinkId link : route) sum += latency(link);
  return sum;
}

absl::Status TorusLinks::CheckLink(LinkId link) const {
  if (link < id_count() && Exists(link)) return absl::OkStatus();
  return InvalidArgument("link {} does not exist in a torus of {}", link, torus_.ToString());
}

absl::Status TorusLinks::SetLoss(LinkId link, std::uint32_t loss_ppm) {
  TAHOMA_RETURN_IF_ERROR(CheckLink(link));
  if (loss_ppm > kMaxLossPpm) {
    return InvalidArgument("a link loses {} of a million packets; expected 0 to {}", loss_ppm,
                           kMaxLossPpm);
  }
  loss_ppm_[link] = loss_ppm;
  Recompute(link);
  return absl::OkStatus();
}

absl::Status TorusLinks::SetPermille(LinkId link, std::uint16_t permille) {
  TAHOMA_RETURN_IF_ERROR(CheckLink(link));
  if (permille > kHealthy) {
    return InvalidArgument("a link's rate is {} thousandths; expected 0 to 1000", permille);
  }
  permille_[link] = permille;
  Recompute(link);
  return absl::OkStatus();
}

absl::Status TorusLinks::SetCablePermille(LinkId link, std::uint16_t permille) {
  TAHOMA_RETURN_IF_ERROR(SetPermille(link, permille));
  const torus::Hop hop = HopOf(link);
  return SetPermille(IdOf(hop.to, hop.axis, Opposite(hop.direction)), permille);
}

std::vector<LinkState> TorusLinks::Unhealthy(ChipMask senders) const {
  std::vector<LinkState> found;
  for (LinkId link = 0; link < id_count(); ++link) {
    if (permille_[link] == kHealthy && loss_ppm_[link] == 0) continue;
    if (((senders >> (link / kPortsPerChip)) & 1) == 0) continue;
    found.push_back({.link = link, .permille = permille_[link], .loss_ppm = loss_ppm_[link]});
  }
  return found;
}

bool TorusLinks::IsDamaged(ChipMask chips) const {
  const std::vector<LinkState> unhealthy = Unhealthy(chips);
  return std::any_of(unhealthy.begin(), unhealthy.end(), [&](const LinkState& state) {
    return (MaskOf(HopOf(state.link).to) & chips) != 0;
  });
}

absl::StatusOr<std::vector<LinkId>> TorusLinks::FindRoute(ChipIndex from, ChipIndex to,
                                                          ChipMask through) const {
  std::vector<LinkId> route;
  bool usable = true;
  for (const torus::Hop& hop : torus::Route(torus_, from, to)) {
    route.push_back(IdOf(hop.from, hop.axis, hop.direction));
    usable = usable && capacity_[route.back()] != 0 && (through & MaskOf(hop.to)) != 0;
  }
  if (usable) return route;

  // Breadth first from `from`; links in ascending id, so the result is unique.
  std::vector<LinkId> came_by(static_cast<std::size_t>(torus_.chip_count()), id_count());
  std::vector<ChipIndex> frontier = {from};
  ChipMask seen = MaskOf(from);
  for (std::size_t next = 0; next < frontier.size() && (seen & MaskOf(to)) == 0; ++next) {
    for (LinkId port = 0; port < kPortsPerChip; ++port) {
      const LinkId link = static_cast<LinkId>(frontier[next].value()) * kPortsPerChip + port;
      if (capacity_[link] == 0) continue;
      const ChipIndex neighbour = HopOf(link).to;
      if (((seen | ~through) & MaskOf(neighbour)) != 0) continue;
      seen |= MaskOf(neighbour);
      came_by[static_cast<std::size_t>(neighbour.value())] = link;
      frontier.push_back(neighbour);
    }
  }
  if ((seen & MaskOf(to)) == 0) {
    return FailedPrecondition("no NeuronLink route from chip {} to chip {}: links are down",
                              from.value(), to.value());
  }
  route.clear();
  for (ChipIndex at = to; at != from;) {
    const LinkId link = came_by[static_cast<std::size_t>(at.value())];
    route.push_back(link);
    at = HopOf(link).from;
  }
  std::reverse(route.begin(), route.end());
  return route;
}

bool TorusLinks::IsConnected(ChipMask chips) const {
  chips &= MaskOfAll(torus_);
  if (chips == 0) return true;
  ChipMask reached = chips & (~chips + 1);
  for (ChipMask grown = reached; grown != 0;) {
    ChipMask next = 0;
    for (; grown != 0; grown &= grown - 1) {
      const torus::Coord at = torus_.CoordOf(ChipIndex(std::countr_zero(grown)));
      for (const Axis axis : torus::kAxes) {
        for (const Direction direction : torus::kDirections) {
          const auto neighbour = torus_.Neighbour(at, axis, direction);
          if (neighbour) next |= MaskOf(torus_.IndexOf(*neighbour)) & chips & ~reached;
        }
      }
    }
    reached |= next;
    grown = next;
  }
  return reached == chips;
}

}  // namespace tahoma::sim
