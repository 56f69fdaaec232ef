#include "sim-node/emulator/link/port.h"

#include "lib/base/status.h"

namespace tahoma::sim {

std::string PortName(Port port) {
  std::string name;
  name += "xyz"[static_cast<std::size_t>(port.axis)];
  name += port.direction == torus::Direction::kPlus ? '+' : '-';
  return name;
}

absl::StatusOr<Port> ParsePort(std::string_view text) {
  for (const Port port : kAllPorts) {
    if (PortName(port) == text) return port;
  }
  return InvalidArgument("link \"{}\" is unknown; expected x+, x-, y+, y-, z+ or z-", text);
}

}  // namespace tahoma::sim
