// The parameters of the routers and links of the flit level, in cycles and flits.
//
// A cycle is the time of a flit on the fastest link. NeuronLink's flow control, virtual channels,
// packets and routers are not public: each default is the reference model's or the project's own
// choice, and no fact about Trainium2.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>

#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// The direction of a packet round a ring when both directions are equally short.
enum class TieRule : std::uint8_t {
  kByParity,  // as torus::Route: plus from an even coordinate, minus from an odd one
  kByChance,  // drawn for each packet and axis, from the network's seed
};

// The assignment of a ring's virtual channels that keeps packets from waiting for each other in a
// circle (Dally, Seitz, "Deadlock-free message routing in multiprocessor interconnection networks",
// 1987). With a dateline, between the last coordinate and 0, the channels of each link are two
// classes; a packet starts afresh in each dimension.
enum class Dateline : std::uint8_t {
  kOff,          // every packet may use every channel: rings can deadlock
  kChangeClass,  // the first class before the dateline, the second class on the dateline and after
  // The second class on the whole route of a packet that crosses the dateline in the ring, else the
  // first. Uses the channels more evenly; BookSim2's dim_order.
  kClassOfRing,
};

struct FlitConfig {
  int vcs = 4;            // virtual channels of each link, 1 to 8; even unless the dateline is off
  int buffer_flits = 16;  // of each virtual channel, at the receiving end
  int packet_flits = 8;
  int flit_bytes = 64;

  // The pipeline of a router. A head flit is routed, then gets a virtual channel of its output (a
  // cycle, if the channel is free); every flit then gets the switch (likewise) and crosses the
  // switch.
  int route_cycles = 1;     // 0: the route was looked up by the router before
  int crossbar_cycles = 1;  // from the grant of the switch to the link
  int link_cycles = 3;      // from the link's begin to the next buffer; a credit takes as long back
  int local_cycles = 2;     // between a chip and its own router
  // Cycles for which a flit occupies a link of the axis: 2 for links of half the rate.
  std::array<int, 3> link_period = {1, 1, 1};
  // Whether the chip has a router port for each link, with the link's rate in each direction, or a
  // single port for all links.
  bool local_port_per_link = false;

  Dateline dateline = Dateline::kChangeClass;
  TieRule ties = TieRule::kByParity;
  // The period of the check for deadlocks, and the longest time without a move while flits are in
  // flight. Must exceed the longest delay above.
  int watchdog_cycles = 1000;

  // BookSim2 28f4329 with its default router, 4 virtual channels of 16 flits, packets of 8
  // (docs/reference/collectives.md#network-models-to-compare-with). A link of its torus takes 2
  // cycles, a chip's link 1; another cycle passes before the router reads the flit.
  static FlitConfig Reference();

  // Returns the configuration for healthy links, with a local port for each link.
  // kFailedPrecondition if a link is not healthy; kInvalidArgument if the fastest rate is no
  // multiple of another axis' rate.
  static absl::StatusOr<FlitConfig> Of(const TorusLinks& links);

  // kInvalidArgument names the first value outside the model.
  absl::Status Validate() const;

  int local_ports() const { return local_port_per_link ? 6 : 1; }

  // Returns the cycles that a lone flit spends in the empty pipelines over so many links of each
  // axis, beyond its time on the slowest link. A packet spends the same beyond its flits' time, or
  // CatchUpCycles() less behind a slow link: gaps open there between the packet's flits, and in the
  // last router only the head waits for a route and a channel.
  std::int64_t FillCycles(std::array<int, 3> hops_by_axis) const;
  std::int64_t CatchUpCycles() const { return route_cycles + 1; }
};

}  // namespace tahoma::sim
