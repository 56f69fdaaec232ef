#include "dra-plugin/inventory/shown_pool.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/driver/device_name.h"

namespace tahoma::dra {
namespace {

// The counter set with a counter for each chip, made by BuildPool.
constexpr std::string_view kChipCounters = "node";

struct Kinds {
  bool chips = false;
  bool node = false;
  bool lnc2 = false;
  bool lnc1 = false;
};

bool& KindOf(const Device& device, Kinds& kinds) {
  const auto name = hw::ParseDeviceName(device.name);
  TAHOMA_CHECK_OK(name.status());  // BuildPool made the name
  if (name->kind == hw::DeviceKind::kChip) return kinds.chips;
  if (name->kind == hw::DeviceKind::kNode) return kinds.node;
  return name->lnc == 2 ? kinds.lnc2 : kinds.lnc1;
}

Kinds KindsOf(const DevicePool& pool) {
  Kinds kinds;
  for (const auto& group : pool.groups) {
    for (const Device& device : group) KindOf(device, kinds) = true;
  }
  return kinds;
}

// Returns the kinds of `all` for a server with `support`.
Kinds Shown(const Kinds& all, CounterSupport support) {
  if (support == CounterSupport::kApart) return all;
  if (support == CounterSupport::kTogether && (all.chips || all.node)) {
    return {.chips = all.chips, .node = all.node, .lnc2 = all.lnc2};
  }
  if (all.chips) return {.chips = true};
  if (all.lnc2) return {.lnc2 = true};
  if (all.lnc1) return {.lnc1 = true};
  return all;
}

}  // namespace

DevicePool ShownPool(const DevicePool& pool, CounterSupport support) {
  if (support == CounterSupport::kApart) return pool;
  if (pool.counter_sets.empty()) return pool;  // no devices overlap
  const bool counters = support == CounterSupport::kTogether;
  Kinds kinds = Shown(KindsOf(pool), support);
  DevicePool shown = {.counter_sets = {}, .together = counters, .groups = {}};
  for (const auto& group : pool.groups) {
    std::vector<Device> devices;
    for (Device device : group) {
      if (!KindOf(device, kinds)) continue;
      std::erase_if(device.consumes,
                    [&](const CounterSet& set) { return !counters || set.name != kChipCounters; });
      devices.push_back(std::move(device));
    }
    if (!devices.empty()) shown.groups.push_back(std::move(devices));
  }
  for (const CounterSet& set : pool.counter_sets) {
    if (counters && set.name == kChipCounters) shown.counter_sets.push_back(set);
  }
  return shown;
}

Publish LeftOut(const DevicePool& pool, CounterSupport support) {
  const Kinds all = KindsOf(pool);
  const Kinds shown = Shown(all, support);
  return {.chips = all.chips && !shown.chips,
          .lnc1 = all.lnc1 && !shown.lnc1,
          .lnc2 = all.lnc2 && !shown.lnc2,
          .node = all.node && !shown.node};
}

DevicePool WithoutUnhealthy(DevicePool pool) {
  for (auto& group : pool.groups) {
    std::erase_if(group, [](const Device& device) { return !UnhealthyReason(device).empty(); });
  }
  std::erase_if(pool.groups, [](const auto& group) { return group.empty(); });
  return pool;
}

}  // namespace tahoma::dra
