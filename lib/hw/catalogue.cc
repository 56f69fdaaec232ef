#include "lib/hw/catalogue.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::hw {
namespace {

using torus::Axis;
using torus::Direction;

// D neuron-ls.rst; EFA from M lookup/neuron/trn2.json (docs/reference/trainium2.md#instances).
constexpr std::string_view kNuma0 = "0-47,96-143";
constexpr std::string_view kNuma1 = "48-95,144-191";
constexpr std::array<ChipSite, 16> kTrn2Chips = {{
    {"0000:cc:00.0", "0000:c9:00.0", 1, kNuma1},
    {"0000:b5:00.0", "0000:b4:00.0", 1, kNuma1},
    {"0000:b6:00.0", "0000:b3:00.0", 1, kNuma1},
    {"0000:cb:00.0", "0000:ca:00.0", 1, kNuma1},
    {"0000:6f:00.0", "0000:6c:00.0", 0, kNuma0},
    {"0000:58:00.0", "0000:57:00.0", 0, kNuma0},
    {"0000:59:00.0", "0000:56:00.0", 0, kNuma0},
    {"0000:6e:00.0", "0000:6d:00.0", 0, kNuma0},
    {"0000:9b:00.0", "0000:98:00.0", 0, kNuma0},
    {"0000:84:00.0", "0000:83:00.0", 0, kNuma0},
    {"0000:85:00.0", "0000:82:00.0", 0, kNuma0},
    {"0000:9a:00.0", "0000:99:00.0", 0, kNuma0},
    {"0000:f8:00.0", "0000:f5:00.0", 1, kNuma1},
    {"0000:e1:00.0", "0000:e0:00.0", 1, kNuma1},
    {"0000:e2:00.0", "0000:df:00.0", 1, kNuma1},
    {"0000:f7:00.0", "0000:f6:00.0", 1, kNuma1},
}};
// No neuron-ls output of this type is published; the first slot of a host is assumed.
constexpr std::array<ChipSite, 1> kTrn2SmallChips = {{{"0000:cc:00.0", "0000:c9:00.0", 0, "0-11"}}};

// D neuron-ls.rst of release 2.9 (addresses); EFA from M lookup/neuron/trn1.json: two chips share
// one. NUMA nodes by bus, and their CPUs (A).
constexpr std::string_view kTrn1Numa0 = "0-31,64-95";
constexpr std::string_view kTrn1Numa1 = "32-63,96-127";
constexpr std::array<ChipSite, 16> kTrn1Chips = {{
    {"0000:10:1c.0", "0000:10:1a.0", 0, kTrn1Numa0},
    {"0000:10:1d.0", "0000:10:1a.0", 0, kTrn1Numa0},
    {"0000:a0:1c.0", "0000:a0:1a.0", 1, kTrn1Numa1},
    {"0000:a0:1d.0", "0000:a0:1a.0", 1, kTrn1Numa1},
    {"0000:20:1b.0", "0000:20:19.0", 0, kTrn1Numa0},
    {"0000:20:1c.0", "0000:20:19.0", 0, kTrn1Numa0},
    {"0000:90:1b.0", "0000:90:19.0", 1, kTrn1Numa1},
    {"0000:90:1c.0", "0000:90:19.0", 1, kTrn1Numa1},
    {"0000:20:1d.0", "0000:20:1a.0", 0, kTrn1Numa0},
    {"0000:20:1e.0", "0000:20:1a.0", 0, kTrn1Numa0},
    {"0000:90:1d.0", "0000:90:1a.0", 1, kTrn1Numa1},
    {"0000:90:1e.0", "0000:90:1a.0", 1, kTrn1Numa1},
    {"0000:10:1e.0", "0000:10:19.0", 0, kTrn1Numa0},
    {"0000:10:1b.0", "0000:10:19.0", 0, kTrn1Numa0},
    {"0000:a0:1e.0", "0000:a0:19.0", 1, kTrn1Numa1},
    {"0000:a0:1b.0", "0000:a0:19.0", 1, kTrn1Numa1},
}};

// Types whose addresses are published nowhere: one slot after the other (A). The first few of the
// list are those of a type with fewer chips.
constexpr std::array<ChipSite, 16> kAssumedChips = {{
    {"0000:00:10.0", "", 0, ""},
    {"0000:00:11.0", "", 0, ""},
    {"0000:00:12.0", "", 0, ""},
    {"0000:00:13.0", "", 0, ""},
    {"0000:00:14.0", "", 0, ""},
    {"0000:00:15.0", "", 0, ""},
    {"0000:00:16.0", "", 0, ""},
    {"0000:00:17.0", "", 0, ""},
    {"0000:00:18.0", "", 0, ""},
    {"0000:00:19.0", "", 0, ""},
    {"0000:00:1a.0", "", 0, ""},
    {"0000:00:1b.0", "", 0, ""},
    {"0000:00:1c.0", "", 0, ""},
    {"0000:00:1d.0", "", 0, ""},
    {"0000:00:1e.0", "", 0, ""},
    {"0000:00:1f.0", "", 0, ""},
}};
constexpr std::span<const ChipSite> Assumed(std::size_t chips) {
  return std::span<const ChipSite>(kAssumedChips).first(chips);
}

constexpr std::int64_t Gibibytes(std::int64_t count) { return count << 30; }

constexpr InstanceType OneChip(std::string_view name, const ChipModel* chip,
                               std::span<const ChipSite> sites, int vcpus, std::int64_t gibibytes) {
  return {.name = name,
          .chip = chip,
          .fabric = FabricKind::kNone,
          .torus = torus::Shape::Of<1, 1, 1>(),
          .chips = sites,
          .ultra_server = false,
          .device_groups = false,
          .vcpus = vcpus,
          .memory_bytes = Gibibytes(gibibytes)};
}

// A 4x4 torus of 16 chips, of an EFA type.
constexpr InstanceType FourByFour(std::string_view name, const ChipModel* chip,
                                  std::span<const ChipSite> sites, int vcpus,
                                  std::int64_t gibibytes) {
  return {.name = name,
          .chip = chip,
          .fabric = FabricKind::kTorus,
          .torus = torus::kInstanceShape,
          .chips = sites,
          .ultra_server = false,
          .device_groups = true,
          .vcpus = vcpus,
          .memory_bytes = Gibibytes(gibibytes)};
}

template <int kChips>
constexpr InstanceType Row(std::string_view name, const ChipModel* chip, FabricKind fabric,
                           int vcpus, std::int64_t gibibytes) {
  return {.name = name,
          .chip = chip,
          .fabric = fabric,
          .torus = torus::Shape::Of<kChips, 1, 1>(),
          .chips = Assumed(kChips),
          .ultra_server = false,
          .device_groups = false,
          .vcpus = vcpus,
          .memory_bytes = Gibibytes(gibibytes)};
}

constexpr InstanceType UltraServerMember(InstanceType type) {
  type.ultra_server = true;
  return type;
}

// D inf2-arch.rst, trn1-arch.rst, trn2-arch.rst, trn3-arch.rst; EC2 instance type data for vCPUs
// and memory. Trn3 has no published instance names: these are the members of its UltraServers of
// the first and the second generation.
constexpr std::array kTypes = {
    OneChip("inf2.xlarge", &kInferentia2, Assumed(1), 4, 16),
    OneChip("inf2.8xlarge", &kInferentia2, Assumed(1), 32, 128),
    Row<6>("inf2.24xlarge", &kInferentia2, FabricKind::kRing, 96, 384),
    Row<12>("inf2.48xlarge", &kInferentia2, FabricKind::kRing, 192, 768),
    OneChip("trn1.2xlarge", &kTrainium1, Assumed(1), 8, 32),
    FourByFour("trn1.32xlarge", &kTrainium1, kTrn1Chips, 128, 512),
    FourByFour("trn1n.32xlarge", &kTrainium1N, kTrn1Chips, 128, 512),
    OneChip("trn2.3xlarge", &kTrainium2, kTrn2SmallChips, 12, 128),
    FourByFour("trn2.48xlarge", &kTrainium2, kTrn2Chips, 192, 2048),
    UltraServerMember(FourByFour("trn2u.48xlarge", &kTrainium2, kTrn2Chips, 192, 2048)),
    Row<16>("trn3-gen1", &kTrainium3, FabricKind::kSwitch, 192, 2048),
    Row<4>("trn3-gen2", &kTrainium3, FabricKind::kSwitch, 64, 768),
};

constexpr std::array kUltraServerModels = {
    UltraServerModel{"trn2", "trn2u.48xlarge", kUltraServerNodes, FabricKind::kTorus},
    UltraServerModel{"trn3-gen1", "trn3-gen1", 4, FabricKind::kSwitch},
    UltraServerModel{"trn3-gen2", "trn3-gen2", 36, FabricKind::kSwitch},
};

}  // namespace

std::span<const InstanceType> InstanceTypes() { return kTypes; }

const InstanceType* FindInstanceType(std::string_view name) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const InstanceType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

std::string InstanceTypeNames() {
  std::string names;
  for (const InstanceType& type : kTypes) {
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

std::string_view FabricName(FabricKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "ring", "torus", "switch"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const UltraServerModel> UltraServers() { return kUltraServerModels; }

int CableCount(const torus::Shape& torus, Axis axis) {
  const int extent = torus.extent(axis);
  return extent == 1 ? 0 : torus.chip_count() / (extent == 2 ? 2 : 1);
}

bool HasLnc(const ChipModel& chip, int lnc) {
  return lnc <= chip.lnc_max &&
         std::find(kLncSizes.begin(), kLncSizes.end(), lnc) != kLncSizes.end();
}

int LogicalCores(const ChipModel& chip, int lnc) {
  TAHOMA_CHECK(HasLnc(chip, lnc));
  return chip.physical_cores / lnc;
}

int HbmBank(const ChipModel& chip, int lnc, int logical_core) {
  TAHOMA_CHECK(logical_core >= 0 && logical_core < LogicalCores(chip, lnc));
  return logical_core * lnc * chip.hbm_banks / chip.physical_cores;
}

std::int64_t HbmRate(const ChipModel& chip, int banks) {
  TAHOMA_CHECK(banks >= 1);
  const bool all = banks >= chip.hbm_banks || chip.hbm_bank_bytes_per_second == 0;
  return all ? chip.hbm_bytes_per_second : banks * chip.hbm_bank_bytes_per_second;
}

std::string ConnectedDevices(const InstanceType& type, int device) {
  constexpr std::array<std::pair<Axis, Direction>, 4> kOrder = {{{Axis::kY, Direction::kMinus},
                                                                 {Axis::kX, Direction::kMinus},
                                                                 {Axis::kY, Direction::kPlus},
                                                                 {Axis::kX, Direction::kPlus}}};
  std::string list;
  if (type.fabric == FabricKind::kSwitch) return list;
  for (const auto& [axis, direction] : kOrder) {
    const auto to =
        type.torus.Neighbour(type.torus.CoordOf(torus::ChipIndex(device)), axis, direction);
    if (!to) continue;
    if (!list.empty()) list += ", ";
    list += fmt::format("{}", type.torus.IndexOf(*to).value());
  }
  return list;
}

}  // namespace tahoma::hw
