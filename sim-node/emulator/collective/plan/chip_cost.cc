#include "sim-node/emulator/collective/plan/chip_cost.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

using torus::ChipMask;

// Returns the time from a signal to the first byte.
VirtualDuration StartTime(const ChipCosts& costs, const LinkTiming& timing) {
  return costs.dma_start ? std::max(timing.step, timing.chip->dma.start) : timing.step;
}

}  // namespace

VirtualDuration MemoryTime(std::uint64_t touched, const ChipCosts& costs,
                           const hw::ChipModel& chip) {
  if (!costs.memory) return VirtualDuration(0);
  return TransferTime(touched, static_cast<std::uint64_t>(chip.hbm_bytes_per_second));
}

ChipUse NeuronUse(Algorithm algorithm, Phase phase, int ranks) {
  const bool reduces = phase == Phase::kReduceScatter;
  switch (algorithm) {
    case Algorithm::kMesh:
      return {.reads = reduces ? ranks : 1, .writes = 1, .commands = ranks};
    case Algorithm::kRdh:
    case Algorithm::kTree:
      return {.reads = reduces ? 2 : 1, .writes = 1};
    case Algorithm::kKangaRing: {
      const int pairs = ranks / 2;
      return {
          .reads = (reduces ? 3 : 1) * pairs, .writes = (reduces ? 1 : 2) * pairs, .starts = pairs};
    }
    default:
      TAHOMA_CHECK(algorithm == Algorithm::kRing);
      return {.reads = (reduces ? 2 : 1) * ranks, .writes = ranks, .starts = ranks};
  }
}

VirtualDuration StageTime(std::uint64_t touched, const ChipCosts& costs, const LinkTiming& timing) {
  return StartTime(costs, timing) + MemoryTime(touched, costs, *timing.chip);
}

ChipStages NeuronStages(Algorithm algorithm, Phase phase, std::uint64_t bytes, std::uint64_t chips,
                        int ranks, const ChipCosts& costs, const LinkTiming& timing) {
  const bool reduces = phase == Phase::kReduceScatter;
  const auto stage = [&](std::uint64_t touched) { return StageTime(touched, costs, timing); };
  const auto all = static_cast<std::uint64_t>(ranks);
  ChipStages stages;
  if (algorithm == Algorithm::kMesh && reduces && chips > 1) {
    // Each rank combines what has come from every chip, and its own chip's from all ranks.
    stages.after = stage((chips + (ranks > 1 ? 1 + all : 1)) * (bytes / chips));
  } else if (algorithm == Algorithm::kMesh || algorithm == Algorithm::kRdh ||
             algorithm == Algorithm::kTree) {
    // Each rank gets its part combined first; in the end it gives its part to the others.
    if (ranks > 1)
      (reduces ? stages.before : stages.after) = stage((reduces ? all + 1 : all) * bytes);
  } else {
    // The cycle goes on through the ranks of the last chip.
    const ChipUse use = NeuronUse(algorithm, phase, ranks);
    const auto touches = static_cast<std::uint64_t>((use.reads + use.writes) / use.starts);
    stages.after = stage(touches * (bytes / chips)) * (use.starts - 1);
    // The first pair combines, or its second rank gets a copy; several chips hide that behind their
    // messages.
    if (algorithm == Algorithm::kKangaRing && chips == 1) {
      stages.after += stage((reduces ? 3 : 2) * bytes);
    }
  }
  return stages;
}

StepWork WorkOf(std::uint64_t touched, int destinations, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing) {
  StepWork work;
  work.start = StartTime(costs, timing) * use.starts - timing.step;
  const int commands = destinations * use.commands;
  if (costs.cc_cores && commands > 0) {
    work.start += timing.chip->costs.command * ((commands - 1) / timing.chip->cc_cores);
  }
  work.memory = MemoryTime(touched, costs, *timing.chip);
  return work;
}

namespace {

// The most chips of which each has a mask of those that it sends to.
constexpr std::size_t kMaskedChips = 1U << 13U;

// Returns the most chips that one sends to.
int Destinations(std::span<const Send> step, std::size_t chips) {
  const std::size_t words = (chips + 63) / 64;
  std::vector<ChipMask> to(chips * words);
  for (const Send& send : step) {
    const auto from = static_cast<std::size_t>(send.from.value());
    const auto into = static_cast<std::size_t>(send.to.value());
    if (from != into) to[from * words + into / 64] |= ChipMask{1} << (into % 64);
  }
  int most = 0;
  for (std::size_t chip = 0; chip < chips; ++chip) {
    int destinations = 0;
    for (std::size_t word = 0; word < words; ++word) {
      destinations += std::popcount(to[chip * words + word]);
    }
    most = std::max(most, destinations);
  }
  return most;
}
int DestinationsOfMany(std::span<const Send> step) {
  std::vector<std::pair<torus::ChipIndex, torus::ChipIndex>> pairs;
  for (const Send& send : step) {
    if (send.from != send.to) pairs.emplace_back(send.from, send.to);
  }
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  int most = 0;
  int destinations = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    destinations = i > 0 && pairs[i].first == pairs[i - 1].first ? destinations + 1 : 1;
    most = std::max(most, destinations);
  }
  return most;
}

}  // namespace

StepWork WorkOf(std::span<const Send> step, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing) {
  // Chips of several topology domains have numbers beyond a mask's.
  std::size_t chips = 64;
  for (const Send& send : step) {
    const int highest = std::max(send.from.value(), send.to.value());
    chips = std::max(chips, static_cast<std::size_t>(highest) + 1);
  }
  std::vector<std::uint64_t> touched(chips);
  for (const Send& send : step) {
    touched[static_cast<std::size_t>(send.from.value())] +=
        send.bytes * static_cast<std::uint64_t>(use.reads);
    touched[static_cast<std::size_t>(send.to.value())] +=
        send.bytes * static_cast<std::uint64_t>(use.writes);
  }
  const int most = chips > kMaskedChips ? DestinationsOfMany(step) : Destinations(step, chips);
  return WorkOf(*std::max_element(touched.begin(), touched.end()), most, use, costs, timing);
}

}  // namespace tahoma::sim
