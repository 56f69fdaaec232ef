// Single chips that are out of service. The Node object carries their numbers, where kubectl shows
// and writes them:
//
//   kubectl annotate node trn2-0 tahoma.dev/cordoned-chips=3,5
//
// The controller reads and applies the annotation.
//
//   const std::uint16_t chips = ParseCordonedChips("3,5");   // bits 3 and 5
//   AddCordonTaints(chips, devices);                         // nothing more is placed on them
//
// Each device with a cordoned chip gets the taint tahoma.dev/cordoned, beside the taints that its
// driver publishes: running pods stay, no new pods come, and the chip counts as broken.
//
// Scope: the annotation's text, and the taints of a node's devices.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/device.h"

namespace tahoma::controller {

inline constexpr std::string_view kCordonedChips = "tahoma.dev/cordoned-chips";
inline constexpr std::string_view kCordonedTaint = "tahoma.dev/cordoned";

// Reads numbers from 0 to 15 with commas between them. Skips other text: anybody may write the
// annotation.
std::uint16_t ParseCordonedChips(std::string_view text);
// Writes "3,5"; empty for none.
std::string CordonedChipsText(std::uint16_t chips);

void AddCordonTaints(std::uint16_t chips, std::vector<Device>& devices);

}  // namespace tahoma::controller
