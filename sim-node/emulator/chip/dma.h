// The time of a transfer in a chip's DMA engines, limited by nothing else.
//
//   DmaEngineTime(32 << 10, /*engines=*/1, hw::kDma);   // 1.41 us: the published sample of 32 KiB
//   DmaRate(1 << 20, hw::kDma);                 // bytes per second that the engines of a core give
//
// A transfer is cut into packets; a packet costs its engine a fixed time and its bytes. A core
// deals its packets to its engines round robin.
//
// Scope: the engines. sim-node/emulator/collective adds the links and the memory.

#pragma once

#include <cstdint>

#include "lib/hw/catalogue.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// The rate of an engine with packets of full size: 23.2 GB/s.
constexpr std::uint64_t DmaEngineRate(const hw::DmaModel& dma) {
  const auto bytes = static_cast<std::uint64_t>(dma.packet_bytes);
  const VirtualDuration packet =
      dma.packet + TransferTime(bytes, static_cast<std::uint64_t>(dma.bytes_per_second));
  return bytes * kPicosecondsPerSecond / static_cast<std::uint64_t>(packet.count());
}

// Returns the time of the busiest engine when `engines` share `bytes`, without the start.
VirtualDuration DmaEngineTime(std::uint64_t bytes, int engines, const hw::DmaModel& dma);
// The same for all engines of a core.
VirtualDuration DmaEngineTime(std::uint64_t bytes, const hw::DmaModel& dma);

// `bytes` over DmaEngineTime, for the engines of a core. `bytes` must be positive.
std::uint64_t DmaRate(std::uint64_t bytes, const hw::DmaModel& dma);

}  // namespace tahoma::sim
