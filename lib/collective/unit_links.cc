#include "lib/collective/unit_links.h"

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

UnitLinks::UnitLinks(const torus::Shape& torus, std::span<const std::uint64_t> rates,
                     const LinkCosts& costs)
    : torus_(torus), costs_(costs) {
  TAHOMA_CHECK(torus.chip_count() <= kChipsMax);
  TAHOMA_CHECK(rates.size() == static_cast<std::size_t>(arc_count()));
  TAHOMA_CHECK(costs.efficiency_permille > 0 && costs.efficiency_permille <= 1000);
  chips_ = ~ChipMask{0} >> (kChipsMax - torus.chip_count());
  std::copy(rates.begin(), rates.end(), rates_.begin());
  for (int chip = 0; chip < torus.chip_count(); ++chip) {
    const torus::Coord at = torus.CoordOf(ChipIndex(chip));
    for (const Axis axis : torus::kAxes) {
      for (const Direction direction : torus::kDirections) {
        const auto next = torus.Neighbour(at, axis, direction);
        if (!next) continue;
        const ChipIndex neighbour = torus.IndexOf(*next);
        to_[ArcOf(ChipIndex(chip), axis, direction)] = static_cast<std::uint8_t>(neighbour.value());
        neighbours_[static_cast<std::size_t>(chip)] |= MaskOf(neighbour);
      }
    }
  }
}

UnitLinks::UnitLinks(const torus::Shape& torus, const hw::LinkRates& rates, const LinkCosts& costs)
    : UnitLinks(
          torus,
          std::vector<std::uint64_t>(static_cast<std::size_t>(torus.chip_count()) * kPortsPerChip),
          costs) {
  for (int arc = 0; arc < arc_count(); ++arc) {
    if (torus.extent(AxisOf(arc)) == 1) continue;
    rates_[static_cast<std::size_t>(arc)] = RateOf(rates, costs.efficiency_permille, AxisOf(arc));
  }
}

Arc UnitLinks::ArcOf(ChipIndex from, Axis axis, Direction direction) {
  return static_cast<Arc>(from.value() * kPortsPerChip + 2 * static_cast<int>(axis) +
                          static_cast<int>(direction));
}

void UnitLinks::SetPermille(const LinkFault& fault) {
  TAHOMA_CHECK(fault.permille <= 1000 && torus_.extent(fault.axis) > 1);
  TAHOMA_CHECK(fault.chip.value() < torus_.chip_count());
  std::uint64_t& rate = rates_[ArcOf(fault.chip, fault.axis, fault.direction)];
  rate = rate * fault.permille / 1000;
}

void UnitLinks::Kill(ChipMask chips) {
  for (int arc = 0; arc < arc_count(); ++arc) {
    const auto at = static_cast<std::size_t>(arc);
    const ChipMask ends = ChipMask{1} << (arc / kPortsPerChip) | ChipMask{1} << to_[at];
    if ((ends & chips) != 0) rates_[at] = 0;
  }
}

ChipMask UnitLinks::Reach(ChipMask chips) const {
  ChipMask reached = chips & (~chips + 1);
  for (ChipMask grown = reached; grown != 0;) {
    ChipMask next = 0;
    for (; grown != 0; grown &= grown - 1) {
      next |= neighbours_[static_cast<std::size_t>(std::countr_zero(grown))];
    }
    grown = next & chips & ~reached;
    reached |= grown;
  }
  return reached;
}

bool UnitLinks::IsHealthyTrainium2(ChipMask chips) const {
  std::array<std::uint64_t, 3> full{};
  for (const Axis axis : torus::kAxes) {
    full[static_cast<std::size_t>(axis)] =
        RateOf(hw::kTrainium2.links, costs_.efficiency_permille, axis);
  }
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    const int chip = std::countr_zero(left);
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<std::size_t>(chip * kPortsPerChip + port);
      if (torus_.extent(AxisOf(port)) == 1 || (chips >> to_[arc] & 1) == 0) continue;
      if (rates_[arc] != full[static_cast<std::size_t>(port / 2)]) return false;
    }
  }
  return true;
}

}  // namespace tahoma::collective
