// The modes of the driver in which the nodes of an UltraServer work together, as data.
//
//   ParseMode("X2V");                              // UltraServerMode::kX2V
//   NodesOf(UltraServerMode::kX2V);                // 2
//   PartnersOf(UltraServerMode::kX2V, /*place=*/3);// 0b1100: nodes 2 and 3
//
// An UltraServer is a ring of four nodes; places 0 and 1, and 2 and 3, are joined by their left
// cables, which a pair in mode X2V uses; 1 and 2, and 3 and 0, by their right ones, which a pair in
// mode X2H uses (docs/reference/trainium2.md#ultraserver-election).
//
// Scope: arithmetic. Which mode a node may use is elected (sim-node/node/election.h).

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tahoma::hw {

// Numbers as in the driver (aws-neuron-driver share/neuron_driver_shared.h) and in
// ultraserver_mode.
enum class UltraServerMode : std::uint8_t { kUnset, kX4, kX2H, kX2V, kX1 };

inline constexpr std::array kUltraServerModes = {UltraServerMode::kX4, UltraServerMode::kX2H,
                                                 UltraServerMode::kX2V, UltraServerMode::kX1};

// "unset", "X4", "X2H", "X2V", "X1".
std::string_view ModeName(UltraServerMode mode);
// kInvalidArgument for anything but X4, X2H, X2V and X1.
absl::StatusOr<UltraServerMode> ParseMode(std::string_view text);

// Nodes that work together: 4, 2 or 1; 0 for kUnset.
int NodesOf(UltraServerMode mode);
// Places that work together with `place` (0 to 3), itself included, one bit each; 0 for kUnset.
std::uint8_t PartnersOf(UltraServerMode mode, int place);

// Returns the first of `modes` in which `nodes` nodes work together. A pair over the left cable
// comes before one over the right cable, as in AWS's k8s-ultraserver-init-script.sh. kUnset when
// there is none.
UltraServerMode ModeFor(int nodes, std::span<const UltraServerMode> modes);

// The sizes of `modes`, ascending, as AWS's device plugin labels a node with them: "1_2_4"
// (docs/reference/aws-dra-driver.md#ultraserver-labels).
std::string SizesLabel(std::span<const UltraServerMode> modes);

}  // namespace tahoma::hw
