#include "sim-node/emulator/chip/dma.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::sim {

VirtualDuration DmaEngineTime(std::uint64_t bytes, int engines) {
  TAHOMA_CHECK(engines > 0);
  const auto count = static_cast<std::uint64_t>(engines);
  const std::uint64_t whole = bytes / kDmaPacketBytes;
  const std::uint64_t rest = bytes % kDmaPacketBytes;
  const auto cost = [](std::uint64_t packets, std::uint64_t carried) {
    return kDmaPacketCost * static_cast<VirtualDuration::rep>(packets) +
           TransferTime(carried, kDmaEngineBytesPerSecond);
  };
  const std::uint64_t each = whole / count;
  // The first engines have one packet more, and the one after them the packet that is not full.
  if (whole % count != 0 || rest == 0) {
    const std::uint64_t most = each + (whole % count != 0 ? 1 : 0);
    return cost(most, most * kDmaPacketBytes);
  }
  return cost(each + 1, each * kDmaPacketBytes + rest);
}

std::uint64_t DmaRate(std::uint64_t bytes) {
  TAHOMA_CHECK(bytes > 0);
  const auto time = static_cast<std::uint64_t>(DmaEngineTime(bytes).count());
  return static_cast<std::uint64_t>(static_cast<Wide>(bytes) * kPicosecondsPerSecond / time);
}

}  // namespace tahoma::sim
