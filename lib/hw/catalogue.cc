#include "lib/hw/catalogue.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::hw {
namespace {

using torus::Axis;
using torus::Direction;

// trainium2-hardware 4.2 (D neuron-ls.rst); EFA from M lookup/neuron/trn2.json.
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

// D trn2-arch.rst; EC2 instance type data for vCPUs and memory.
constexpr std::array<InstanceType, 3> kTypes = {{
    {.name = "trn2.3xlarge",
     .chip = &kTrainium2,
     .torus = torus::Shape::Of<1, 1, 1>(),
     .chips = kTrn2SmallChips,
     .ultra_server = false,
     .device_groups = false,
     .vcpus = 12,
     .memory_bytes = std::int64_t{128} << 30},
    {.name = "trn2.48xlarge",
     .chip = &kTrainium2,
     .torus = torus::kInstanceShape,
     .chips = kTrn2Chips,
     .ultra_server = false,
     .device_groups = true,
     .vcpus = 192,
     .memory_bytes = std::int64_t{2048} << 30},
    {.name = "trn2u.48xlarge",
     .chip = &kTrainium2,
     .torus = torus::kInstanceShape,
     .chips = kTrn2Chips,
     .ultra_server = true,
     .device_groups = true,
     .vcpus = 192,
     .memory_bytes = std::int64_t{2048} << 30},
}};

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

int LogicalCores(const ChipModel& chip, int lnc) {
  TAHOMA_CHECK(std::find(kLncSizes.begin(), kLncSizes.end(), lnc) != kLncSizes.end());
  return chip.physical_cores / lnc;
}

int HbmBank(const ChipModel& chip, int lnc, int logical_core) {
  TAHOMA_CHECK(logical_core >= 0 && logical_core < LogicalCores(chip, lnc));
  return logical_core * lnc * chip.hbm_banks / chip.physical_cores;
}

std::string ConnectedDevices(const InstanceType& type, int device) {
  constexpr std::array<std::pair<Axis, Direction>, 4> kOrder = {{{Axis::kY, Direction::kMinus},
                                                                 {Axis::kX, Direction::kMinus},
                                                                 {Axis::kY, Direction::kPlus},
                                                                 {Axis::kX, Direction::kPlus}}};
  std::string list;
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
