#include "sim-node/emulator/flit/uniform_load.h"

#include "lib/base/check.h"
#include "lib/base/rng.h"

namespace tahoma::sim {

LoadResult RunUniformLoad(const torus::Shape& torus, const FlitConfig& config,
                          const UniformLoad& load) {
  constexpr std::uint64_t kMillion = 1'000'000;
  constexpr std::uint64_t kMeasured = 1;  // the tag
  TAHOMA_CHECK(load.load_ppm <= kMillion);
  Rng rng(load.seed);
  FlitNetwork network(torus, config, rng.Next());
  const auto chips = static_cast<std::uint64_t>(torus.chip_count());
  const auto size = static_cast<std::uint64_t>(config.packet_flits);
  const std::uint64_t end = load.warmup_cycles + load.measured_cycles;
  LoadResult result;
  std::uint64_t in_flight = 0;
  std::uint64_t ejected_before = 0;
  while (network.cycle() < end || (in_flight != 0 && network.cycle() < end + load.drain_cycles)) {
    const bool measured = network.cycle() >= load.warmup_cycles && network.cycle() < end;
    if (network.cycle() == load.warmup_cycles) ejected_before = network.flits_ejected();
    for (int chip = 0; chip < torus.chip_count(); ++chip) {
      if (!rng.Chance(load.load_ppm, kMillion * size)) continue;
      const auto to = static_cast<int>(rng.Below(chips));
      network.Send({.from = torus::ChipIndex(chip),
                    .to = torus::ChipIndex(to),
                    .flits = size,
                    .tag = measured ? kMeasured : 0});
      if (measured) ++in_flight;
    }
    const std::uint64_t now = network.cycle();
    for (const FlitNetwork::Arrival& packet : network.Step()) {
      if (packet.tag != kMeasured) continue;
      --in_flight;
      ++result.packets;
      result.latency_cycles += now - packet.sent;
      result.hops += static_cast<std::uint64_t>(packet.hops);
    }
    if (network.cycle() == end) result.ejected_flits = network.flits_ejected() - ejected_before;
    if (network.deadlock()) break;
  }
  result.drained = in_flight == 0 && network.cycle() >= end;
  result.trace_hash = network.trace_hash();
  result.deadlock = network.deadlock();
  return result;
}

}  // namespace tahoma::sim
