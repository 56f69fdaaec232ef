#include "sim-node/emulator/collective/domains/chunk_sizes.h"

#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {
namespace {

using collective::Operation;

std::uint64_t WeightOf(Operation operation, std::uint64_t chunk, std::uint64_t chunks) {
  constexpr std::uint64_t kWhole = 6;
  const std::uint64_t left = chunks - 1 - chunk;
  if (operation == Operation::kAllGather) return chunk < 2 ? 2 * (chunk + 1) : kWhole;
  if (operation != Operation::kReduceScatter) return kWhole;
  if (left < 2) return 2 * (left + 1);
  return chunk == 0 ? kWhole / 2 : kWhole;
}

}  // namespace

ChunkSizes::ChunkSizes(Operation operation, std::uint64_t chunks) : weights_before_({0}) {
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    weights_before_.push_back(weights_before_.back() + WeightOf(operation, chunk, chunks));
  }
}

std::uint64_t ChunkSizes::Before(std::uint64_t chunk, std::uint64_t elements) const {
  return static_cast<std::uint64_t>(static_cast<Wide>(elements) * weights_before_[chunk] /
                                    weights_before_.back());
}

}  // namespace tahoma::sim
