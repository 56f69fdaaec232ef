// The time of a transfer in a chip's DMA engines, limited by nothing else.
//
//   DmaEngineTime(32 << 10, /*engines=*/1);      // 1.41 us: the published sample of 32 KiB
//   DmaRate(1 << 20);                            // bytes per second that its engines give
//
// A transfer is cut into packets; a packet costs its engine a fixed time and its bytes. A core
// deals its packets to its engines round robin. The constants fit all published points
// (docs/reference/trainium2.md#dma).
//
// Scope: the engines. sim-node/emulator/collective adds the links and the memory.

#pragma once

#include <cstdint>

#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// The time from the trigger to the start.
inline constexpr VirtualDuration kDmaStart = Microseconds(1.3);
inline constexpr std::uint64_t kDmaPacketBytes = 4096;
inline constexpr VirtualDuration kDmaPacketCost = Microseconds(0.026);
inline constexpr std::uint64_t kDmaEngineBytesPerSecond = 27'200'000'000;
inline constexpr int kDmaEnginesOfCore = 16;
// The rate of an engine with packets of full size: 23.2 GB/s.
inline constexpr std::uint64_t kDmaEngineRate =
    kDmaPacketBytes * kPicosecondsPerSecond /
    static_cast<std::uint64_t>(
        (kDmaPacketCost + TransferTime(kDmaPacketBytes, kDmaEngineBytesPerSecond)).count());

// Returns the time of the busiest engine when `engines` share `bytes`, without the start.
VirtualDuration DmaEngineTime(std::uint64_t bytes, int engines = kDmaEnginesOfCore);

// `bytes` over DmaEngineTime, for the engines of a core. `bytes` must be positive.
std::uint64_t DmaRate(std::uint64_t bytes);

}  // namespace tahoma::sim
