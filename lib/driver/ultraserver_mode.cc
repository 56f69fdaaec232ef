#include "lib/driver/ultraserver_mode.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/hw/catalogue.h"

namespace tahoma::hw {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"unset", "X4", "X2H", "X2V", "X1"};

}  // namespace

std::string_view ModeName(UltraServerMode mode) { return kNames[static_cast<std::size_t>(mode)]; }

absl::StatusOr<UltraServerMode> ParseMode(std::string_view text) {
  for (const UltraServerMode mode : kUltraServerModes) {
    if (ModeName(mode) == text) return mode;
  }
  return InvalidArgument("UltraServer mode \"{}\" is unknown; expected X4, X2H, X2V or X1", text);
}

int NodesOf(UltraServerMode mode) {
  switch (mode) {
    case UltraServerMode::kX4:
      return kUltraServerNodes;
    case UltraServerMode::kX2H:
    case UltraServerMode::kX2V:
      return 2;
    case UltraServerMode::kX1:
      return 1;
    case UltraServerMode::kUnset:
      break;
  }
  return 0;
}

std::uint8_t PartnersOf(UltraServerMode mode, int place) {
  TAHOMA_CHECK(place >= 0 && place < kUltraServerNodes);
  switch (mode) {
    case UltraServerMode::kX4:
      return 0b1111;
    case UltraServerMode::kX2H:
      return place == 0 || place == 3 ? 0b1001 : 0b0110;
    case UltraServerMode::kX2V:
      return place < 2 ? 0b0011 : 0b1100;
    case UltraServerMode::kX1:
      return static_cast<std::uint8_t>(1U << static_cast<unsigned>(place));
    case UltraServerMode::kUnset:
      break;
  }
  return 0;
}

UltraServerMode ModeFor(int nodes, std::span<const UltraServerMode> modes) {
  for (const UltraServerMode wanted :
       {UltraServerMode::kX4, UltraServerMode::kX2V, UltraServerMode::kX2H, UltraServerMode::kX1}) {
    if (NodesOf(wanted) == nodes && std::find(modes.begin(), modes.end(), wanted) != modes.end()) {
      return wanted;
    }
  }
  return UltraServerMode::kUnset;
}

std::string SizesLabel(std::span<const UltraServerMode> modes) {
  std::string label;
  for (const int size : {1, 2, 4}) {
    if (ModeFor(size, modes) == UltraServerMode::kUnset) continue;
    label += fmt::format("{}{}", label.empty() ? "" : "_", size);
  }
  return label;
}

}  // namespace tahoma::hw
