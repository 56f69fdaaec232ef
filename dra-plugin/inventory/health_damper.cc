#include "dra-plugin/inventory/health_damper.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace tahoma::dra {
namespace {

// The place of a chip's NIC, beside the names of links.
constexpr std::string_view kEfa = "efa";

}  // namespace

void HealthDamper::See(const Place& place, const std::string& reason, MonotonicTime now) {
  Fault& fault = faults_[place];
  fault.reason = reason;
  if (fault.there) return;
  const bool again = fault.times > 0 && now - fault.ended <= options_.memory;
  fault.times = again ? fault.times + 1 : 1;
  fault.there = true;
}

std::chrono::nanoseconds HealthDamper::HoldOf(const Fault& fault) const {
  std::chrono::nanoseconds hold = fault.times < 2 ? std::chrono::nanoseconds(0) : options_.hold;
  for (int i = 2; i < fault.times && hold < options_.longest; ++i) hold *= 2;
  return std::min(hold, options_.longest);
}

wire::Inventory HealthDamper::Damp(wire::Inventory inventory, MonotonicTime now) {
  std::set<Place> there;
  const auto see = [&](const Place& place, const std::string& reason) {
    See(place, reason, now);
    there.insert(place);
  };
  for (const wire::Chip& chip : inventory.chips) {
    if (!chip.healthy) see({chip.index, ""}, chip.reason);
    for (const std::string& link : chip.links_down) see({chip.index, link}, "");
    if (chip.efa_down) see({chip.index, std::string(kEfa)}, "");
  }
  wake_.reset();
  std::map<int, wire::Chip*> chips;
  for (wire::Chip& chip : inventory.chips) chips[chip.index] = &chip;
  for (auto next = faults_.begin(); next != faults_.end();) {
    const auto at = next++;
    auto& [place, fault] = *at;
    if (there.contains(place)) continue;
    if (std::exchange(fault.there, false)) fault.ended = now;
    const auto chip = chips.find(place.first);
    const MonotonicTime until = fault.ended + HoldOf(fault);
    if (chip == chips.end() || (now >= until && now - fault.ended > options_.memory)) {
      faults_.erase(at);
      continue;
    }
    if (now >= until) continue;
    wake_ = std::min(wake_.value_or(until), until);
    if (place.second.empty()) {
      chip->second->healthy = false;
      chip->second->reason = fault.reason;
    } else if (place.second == kEfa) {
      chip->second->efa_down = true;
    } else {
      chip->second->links_down.push_back(place.second);
    }
  }
  for (wire::Chip& chip : inventory.chips) {
    std::sort(chip.links_down.begin(), chip.links_down.end());
  }
  return inventory;
}

}  // namespace tahoma::dra
