#include "lib/collective/domain_links.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr Wide kPicosecondsPerSecond = 1'000'000'000'000;

std::uint64_t RateOf(const hw::LinkRates& rates, std::uint32_t permille, Axis axis) {
  const std::int64_t raw = axis == Axis::kZ ? rates.inter_instance : rates.intra_instance;
  return static_cast<std::uint64_t>(raw) * permille / 1000;
}

Axis AxisOf(int arc) { return torus::kAxes.at(static_cast<std::size_t>(arc % kPortsPerChip / 2)); }

}  // namespace

Picoseconds TimeAtLeast(Wide numerator, std::uint64_t denominator, std::uint64_t rate) {
  if (numerator == 0) return Picoseconds(0);
  if (rate == 0) return Picoseconds::max();
  const Wide per = static_cast<Wide>(denominator) * rate;
  return Picoseconds(static_cast<Picoseconds::rep>(numerator * kPicosecondsPerSecond / per));
}

Picoseconds TimeAtMost(Wide numerator, std::uint64_t denominator, std::uint64_t rate) {
  if (numerator == 0) return Picoseconds(0);
  if (rate == 0) return Picoseconds::max();
  const Wide per = static_cast<Wide>(denominator) * rate;
  return Picoseconds(
      static_cast<Picoseconds::rep>((numerator * kPicosecondsPerSecond + per - 1) / per));
}

Topology::Topology(const torus::Shape& shape)
    : torus(shape), chips(~ChipMask{0} >> (kChipsMax - shape.chip_count())) {
  TAHOMA_CHECK(shape.chip_count() <= kChipsMax);
  for (int chip = 0; chip < shape.chip_count(); ++chip) {
    const torus::Coord at = shape.CoordOf(ChipIndex(chip));
    for (const Axis axis : torus::kAxes) {
      for (const Direction direction : torus::kDirections) {
        const auto next = shape.Neighbour(at, axis, direction);
        if (!next) continue;
        const ChipIndex neighbour = shape.IndexOf(*next);
        to[DomainLinks::ArcOf(ChipIndex(chip), axis, direction)] =
            static_cast<std::uint8_t>(neighbour.value());
        neighbours[static_cast<std::size_t>(chip)] |= MaskOf(neighbour);
      }
    }
  }
  for (const Axis axis : torus::kAxes) {
    const int extent = shape.extent(axis);
    for (int begin = 0; begin < extent; ++begin) {
      for (int length = 1; length < extent; ++length) {
        ChipMask& slab = slabs.emplace_back(0);
        for (int chip = 0; chip < shape.chip_count(); ++chip) {
          const int at = shape.CoordOf(ChipIndex(chip)).along(axis);
          if ((at - begin + extent) % extent < length) slab |= MaskOf(ChipIndex(chip));
        }
      }
    }
  }
}

std::shared_ptr<const Topology> Topology::Of(const torus::Shape& torus) {
  static const auto ultra_server = std::make_shared<const Topology>(torus::kUltraServerShape);
  static const auto instance = std::make_shared<const Topology>(torus::kInstanceShape);
  if (torus == torus::kUltraServerShape) return ultra_server;
  return torus == torus::kInstanceShape ? instance : std::make_shared<const Topology>(torus);
}

DomainLinks::DomainLinks(const torus::Shape& torus, std::span<const std::uint64_t> rates,
                         const LinkCosts& costs)
    : topology_(Topology::Of(torus)), costs_(costs) {
  TAHOMA_CHECK(rates.size() == static_cast<std::size_t>(arc_count()));
  TAHOMA_CHECK(costs.efficiency_permille > 0 && costs.efficiency_permille <= 1000);
  std::copy(rates.begin(), rates.end(), rates_.begin());
}

DomainLinks::DomainLinks(const torus::Shape& torus, const hw::LinkRates& rates,
                         const LinkCosts& costs)
    : topology_(Topology::Of(torus)), costs_(costs) {
  TAHOMA_CHECK(costs.efficiency_permille > 0 && costs.efficiency_permille <= 1000);
  std::array<std::uint64_t, kPortsPerChip> by_port{};
  for (const Axis axis : torus::kAxes) {
    const auto port = 2 * static_cast<std::size_t>(axis);
    if (torus.extent(axis) == 1) continue;
    by_port.at(port) = by_port.at(port + 1) = RateOf(rates, costs.efficiency_permille, axis);
  }
  for (int chip = 0; chip < torus.chip_count(); ++chip) {
    const int first = chip * kPortsPerChip;
    std::copy(by_port.begin(), by_port.end(), &rates_.at(static_cast<std::size_t>(first)));
  }
}

LinkCosts CostsOf(const hw::ChipModel& chip) {
  return {.step = std::max(chip.costs.step, chip.dma.start),
          .hop = chip.costs.hop,
          .command = chip.costs.command,
          .chip = &chip};
}

DomainLinks::DomainLinks(const torus::Shape& torus, const hw::ChipModel& chip)
    : DomainLinks(torus, chip.links, CostsOf(chip)) {}

Arc DomainLinks::ArcOf(ChipIndex from, Axis axis, Direction direction) {
  return static_cast<Arc>(from.value() * kPortsPerChip + 2 * static_cast<int>(axis) +
                          static_cast<int>(direction));
}

void DomainLinks::SetPermille(const LinkFault& fault) {
  TAHOMA_CHECK(fault.permille <= 1000 && torus().extent(fault.axis) > 1);
  TAHOMA_CHECK(fault.chip.value() < torus().chip_count());
  std::uint64_t& rate = rates_[ArcOf(fault.chip, fault.axis, fault.direction)];
  rate = rate * fault.permille / 1000;
}

void DomainLinks::Kill(ChipMask chips) {
  for (int arc = 0; arc < arc_count(); ++arc) {
    const auto at = static_cast<std::size_t>(arc);
    const ChipMask ends = ChipMask{1} << (arc / kPortsPerChip) | ChipMask{1} << topology_->to[at];
    if ((ends & chips) != 0) rates_[at] = 0;
  }
}

DomainLinks DomainLinks::SlowerOf(const DomainLinks& other) const {
  TAHOMA_CHECK(torus() == other.torus());
  DomainLinks slower = *this;
  for (std::size_t arc = 0; arc < rates_.size(); ++arc) {
    slower.rates_[arc] = std::min(rates_[arc], other.rates_[arc]);
  }
  return slower;
}

DomainLinks DomainLinks::Repaired() const {
  std::array<std::uint64_t, kPortsPerChip> full{};
  for (int arc = 0; arc < arc_count(); ++arc) {
    std::uint64_t& of_axis = full[static_cast<std::size_t>(AxisOf(arc))];
    of_axis = std::max(of_axis, rates_[static_cast<std::size_t>(arc)]);
  }
  DomainLinks whole = *this;
  for (int arc = 0; arc < arc_count(); ++arc) {
    whole.rates_[static_cast<std::size_t>(arc)] = full[static_cast<std::size_t>(AxisOf(arc))];
  }
  return whole;
}

ChipMask DomainLinks::Reach(ChipMask chips) const {
  ChipMask reached = chips & (~chips + 1);
  for (ChipMask grown = reached; grown != 0;) {
    ChipMask next = 0;
    for (; grown != 0; grown &= grown - 1) {
      next |= topology_->neighbours[static_cast<std::size_t>(std::countr_zero(grown))];
    }
    grown = next & chips & ~reached;
    reached |= grown;
  }
  return reached;
}

bool DomainLinks::IsHealthy(ChipMask chips) const {
  std::array<std::uint64_t, 3> full{};
  for (const Axis axis : torus::kAxes) {
    full[static_cast<std::size_t>(axis)] =
        RateOf(costs_.chip->links, costs_.efficiency_permille, axis);
  }
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    const int first = std::countr_zero(left) * kPortsPerChip;
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<std::size_t>(first) + static_cast<std::size_t>(port);
      if (torus().extent(AxisOf(port)) == 1 || (chips >> topology_->to[arc] & 1) == 0) continue;
      if (rates_[arc] != full[static_cast<std::size_t>(port / 2)]) return false;
    }
  }
  return true;
}

}  // namespace tahoma::collective
