#include "sim-node/emulator/chip/dma.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::sim {

VirtualDuration DmaEngineTime(std::uint64_t bytes, int engines, const hw::DmaModel& dma) {
  TAHOMA_CHECK(engines > 0);
  const auto count = static_cast<std::uint64_t>(engines);
  const auto full = static_cast<std::uint64_t>(dma.packet_bytes);
  const std::uint64_t whole = bytes / full;
  const std::uint64_t rest = bytes % full;
  const auto cost = [&](std::uint64_t packets, std::uint64_t carried) {
    return dma.packet * static_cast<VirtualDuration::rep>(packets) +
           TransferTime(carried, static_cast<std::uint64_t>(dma.bytes_per_second));
  };
  const std::uint64_t each = whole / count;
  // The first engines have one packet more, and the one after them the packet that is not full.
  if (whole % count != 0 || rest == 0) {
    const std::uint64_t most = each + (whole % count != 0 ? 1 : 0);
    return cost(most, most * full);
  }
  return cost(each + 1, each * full + rest);
}

VirtualDuration DmaEngineTime(std::uint64_t bytes, const hw::DmaModel& dma) {
  return DmaEngineTime(bytes, dma.engines_of_core, dma);
}

std::uint64_t DmaRate(std::uint64_t bytes, const hw::DmaModel& dma) {
  TAHOMA_CHECK(bytes > 0);
  const auto time = static_cast<std::uint64_t>(DmaEngineTime(bytes, dma).count());
  return static_cast<std::uint64_t>(static_cast<Wide>(bytes) * kPicosecondsPerSecond / time);
}

}  // namespace tahoma::sim
