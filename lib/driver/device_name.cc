#include "lib/driver/device_name.h"

#include <charconv>

#include "lib/base/status.h"

namespace tahoma::hw {
namespace {

constexpr int kMaxChips = 16;
constexpr int kPhysicalCores = 8;

// Takes a number below `bound` from the front of `text`.
bool ConsumeNumber(std::string_view& text, int bound, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || out < 0 || out >= bound) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool ConsumeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool ParseParts(std::string_view text, DeviceName& name) {
  if (text == "neuron-node") {
    name.kind = DeviceKind::kNode;
    return true;
  }
  if (ConsumeText(text, "neuron-device-")) {
    name.kind = DeviceKind::kChip;
    return ConsumeNumber(text, kMaxChips, name.chip) && text.empty();
  }
  name.kind = DeviceKind::kCore;
  return ConsumeText(text, "neuron-core-") && ConsumeNumber(text, kMaxChips, name.chip) &&
         ConsumeText(text, "-lnc") && ConsumeNumber(text, 3, name.lnc) && name.lnc > 0 &&
         ConsumeText(text, "-") && ConsumeNumber(text, kPhysicalCores / name.lnc, name.core) &&
         text.empty();
}

}  // namespace

std::string ToString(const DeviceName& name) {
  switch (name.kind) {
    case DeviceKind::kNode:
      return "neuron-node";
    case DeviceKind::kChip:
      return fmt::format("neuron-device-{}", name.chip);
    case DeviceKind::kCore:
      break;
  }
  return fmt::format("neuron-core-{}-lnc{}-{}", name.chip, name.lnc, name.core);
}

absl::StatusOr<DeviceName> ParseDeviceName(std::string_view text) {
  DeviceName name;
  if (!ParseParts(text, name) || ToString(name) != text) {
    return InvalidArgument(
        "\"{}\" is no device of this driver; expected neuron-device-N, neuron-node or "
        "neuron-core-N-lncL-K",
        text.substr(0, 128));
  }
  return name;
}

}  // namespace tahoma::hw
