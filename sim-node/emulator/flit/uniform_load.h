// Uniform random traffic on a FlitNetwork, and the latency that it sees.
//
// In every cycle every chip begins a packet with the chance that makes the load, to any chip
// (itself included). A packet's latency runs from that cycle, so it counts the time in the source's
// queue, to the arrival of its tail. Only packets made in the measured cycles count; the load goes
// on until the last of them has arrived. This is how BookSim2 measures (trafficmanager.cpp).

#pragma once

#include <cstdint>
#include <optional>

#include "lib/torus/shape.h"
#include "sim-node/emulator/flit/flit_config.h"
#include "sim-node/emulator/flit/network.h"

namespace tahoma::sim {

struct UniformLoad {
  std::uint32_t load_ppm = 0;  // flits per chip in a million cycles; at most a million
  std::uint64_t warmup_cycles = 10'000;
  std::uint64_t measured_cycles = 30'000;
  // Cycles after the measured ones in which the measured packets must arrive, or the load is more
  // than the network takes.
  std::uint64_t drain_cycles = 100'000;
  std::uint64_t seed = 1;
};

struct LoadResult {
  std::uint64_t packets = 0;         // measured and arrived
  std::uint64_t latency_cycles = 0;  // their sum
  std::uint64_t hops = 0;            // their sum
  std::uint64_t ejected_flits = 0;   // of all packets, in the measured cycles
  bool drained = false;              // all measured packets arrived
  std::uint64_t trace_hash = 0;
  std::optional<Deadlock> deadlock;

  double mean_latency() const {
    return static_cast<double>(latency_cycles) / static_cast<double>(packets);
  }
  double mean_hops() const { return static_cast<double>(hops) / static_cast<double>(packets); }
};

LoadResult RunUniformLoad(const torus::Shape& torus, const FlitConfig& config,
                          const UniformLoad& load);

}  // namespace tahoma::sim
