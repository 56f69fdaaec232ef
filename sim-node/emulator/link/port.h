// One of the six NeuronLink ports of a chip, and its name in URLs, attributes and messages.
//
//   PortName({torus::Axis::kX, torus::Direction::kPlus});    // "x+"
//   for (const Port port : kAllPorts) …                      // x-, x+, y-, y+, z-, z+
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "lib/torus/shape.h"

namespace tahoma::sim {

struct Port {
  torus::Axis axis = torus::Axis::kX;
  torus::Direction direction = torus::Direction::kPlus;
  friend constexpr bool operator==(const Port&, const Port&) = default;
};

inline constexpr std::size_t kPorts = 6;
inline constexpr std::array<Port, kPorts> kAllPorts = {{
    {torus::Axis::kX, torus::Direction::kMinus},
    {torus::Axis::kX, torus::Direction::kPlus},
    {torus::Axis::kY, torus::Direction::kMinus},
    {torus::Axis::kY, torus::Direction::kPlus},
    {torus::Axis::kZ, torus::Direction::kMinus},
    {torus::Axis::kZ, torus::Direction::kPlus},
}};
constexpr std::size_t PortIndex(Port port) {
  return 2 * static_cast<std::size_t>(port.axis) + static_cast<std::size_t>(port.direction);
}

// "x+", "z-".
std::string PortName(Port port);
// kInvalidArgument for anything else.
absl::StatusOr<Port> ParsePort(std::string_view text);

}  // namespace tahoma::sim
