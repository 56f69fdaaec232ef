#include "controller/model/cordoned_chips.h"

#include <algorithm>
#include <charconv>

#include "controller/model/inventory.h"

namespace tahoma::controller {
namespace {

bool IsPartOf(std::uint16_t chips, const DeviceRole& role) {
  if (role.kind == DeviceKind::kNode) return chips != 0;
  return role.kind != DeviceKind::kOther && ((unsigned{chips} >> role.chip) & 1U) != 0;
}

}  // namespace

std::uint16_t ParseCordonedChips(std::string_view text) {
  unsigned chips = 0;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    unsigned chip = 0;
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, chip);
    if (error != std::errc() || rest != end || chip >= kChipsPerNode) continue;
    chips |= 1U << chip;
  }
  return static_cast<std::uint16_t>(chips);
}

std::string CordonedChipsText(std::uint16_t chips) {
  std::string text;
  for (unsigned chip = 0; chip < kChipsPerNode; ++chip) {
    if (((unsigned{chips} >> chip) & 1U) == 0) continue;
    text += (text.empty() ? "" : ",") + std::to_string(chip);
  }
  return text;
}

void AddCordonTaints(std::uint16_t chips, std::vector<Device>& devices) {
  if (chips == 0) return;
  for (Device& device : devices) {
    if (!IsPartOf(chips, RoleOf(device))) continue;
    device.taints.push_back({.key = std::string(kCordonedTaint),
                             .value = "",
                             .effect = kube::TaintEffect::kNoSchedule});
  }
}

}  // namespace tahoma::controller
