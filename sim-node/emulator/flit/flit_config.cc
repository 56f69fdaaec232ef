#include "sim-node/emulator/flit/flit_config.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

struct Bound {
  std::string_view name;
  int value;
  int least;
  int most;
};

}  // namespace

FlitConfig FlitConfig::Reference() {
  FlitConfig config;
  config.dateline = Dateline::kClassOfRing;
  config.ties = TieRule::kByChance;
  return config;
}

absl::StatusOr<FlitConfig> FlitConfig::Of(const TorusLinks& links) {
  if (links.damaged()) {
    return FailedPrecondition("{} is not healthy; the flit level knows only links at full rate",
                              TorusLinks::Name(links.Unhealthy(kAllChips).front().link));
  }
  FlitConfig config;
  config.local_port_per_link = true;
  const torus::ChipIndex first(0);
  std::uint64_t fastest = 0;
  for (const torus::Axis axis : torus::kAxes) {
    const LinkId link = TorusLinks::IdOf(first, axis, torus::Direction::kPlus);
    fastest = std::max(fastest, links.capacity(link));
  }
  for (const torus::Axis axis : torus::kAxes) {
    const std::uint64_t rate =
        links.capacity(TorusLinks::IdOf(first, axis, torus::Direction::kPlus));
    if (rate == 0) continue;  // no links along this axis
    if (fastest % rate != 0) {
      return InvalidArgument("a link of {} B/s beside one of {} B/s: expected a whole multiple",
                             fastest, rate);
    }
    config.link_period.at(static_cast<std::size_t>(axis)) = static_cast<int>(fastest / rate);
  }
  TAHOMA_RETURN_IF_ERROR(config.Validate());
  return config;
}

absl::Status FlitConfig::Validate() const {
  constexpr int kVcsMax = 8;
  constexpr int kPortsTimesVcsMax = 64;  // the input channels of a router are the bits of one word
  constexpr int kCyclesMax = 10'000;
  const int longest = crossbar_cycles + link_cycles + local_cycles + route_cycles +
                      *std::max_element(link_period.begin(), link_period.end());
  for (const Bound& bound : {
           Bound{"vcs", vcs, dateline != Dateline::kOff ? 2 : 1,
                 std::min(kVcsMax, kPortsTimesVcsMax / (6 + local_ports()))},
           Bound{"buffer_flits", buffer_flits, 1, 4096},
           Bound{"packet_flits", packet_flits, 1, 65'535},
           Bound{"flit_bytes", flit_bytes, 1, 65'536},
           Bound{"route_cycles", route_cycles, 0, kCyclesMax},
           Bound{"crossbar_cycles", crossbar_cycles, 1, kCyclesMax},
           Bound{"link_cycles", link_cycles, 1, kCyclesMax},
           Bound{"local_cycles", local_cycles, 1, kCyclesMax},
           Bound{"link_period of x", link_period[0], 1, kCyclesMax},
           Bound{"link_period of y", link_period[1], 1, kCyclesMax},
           Bound{"link_period of z", link_period[2], 1, kCyclesMax},
           Bound{"watchdog_cycles", watchdog_cycles, longest + 1, std::numeric_limits<int>::max()},
       }) {
    if (bound.value < bound.least || bound.value > bound.most) {
      return InvalidArgument("{} is {}; expected {} to {}", bound.name, bound.value, bound.least,
                             bound.most);
    }
  }
  if (dateline != Dateline::kOff && vcs % 2 != 0) {
    return InvalidArgument("vcs is {}; a dateline needs an even number", vcs);
  }
  return absl::OkStatus();
}

std::int64_t FlitConfig::FillCycles(std::array<int, 3> hops_by_axis) const {
  constexpr int kAllocateChannel = 1;
  const std::int64_t router = route_cycles + kAllocateChannel + crossbar_cycles;
  std::int64_t fill = local_cycles + router + local_cycles;
  int slowest = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (hops_by_axis.at(axis) == 0) continue;
    const int period = link_period.at(axis);
    fill += hops_by_axis.at(axis) * (router + link_cycles + period - 1);
    slowest = std::max(slowest, period);
  }
  return fill - (slowest - 1);
}

}  // namespace tahoma::sim
