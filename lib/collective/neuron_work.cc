#include "lib/collective/neuron_work.h"

#include "lib/base/check.h"

namespace tahoma::collective {
namespace {

ChipUse UseOfBytes(Algorithm algorithm, Phase phase, int ranks) {
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
    case Algorithm::kRing:
      return {.reads = (reduces ? 2 : 1) * ranks, .writes = ranks, .starts = ranks};
    case Algorithm::kHier:
      break;
  }
  TAHOMA_CHECK(false);  // those in one topology domain are above
  return {};
}

}  // namespace

ChipUse NeuronUse(Algorithm algorithm, Phase phase, int ranks, int banks) {
  ChipUse use = UseOfBytes(algorithm, phase, ranks);
  use.banks = banks;
  return use;
}

Picoseconds MemoryTime(std::uint64_t touched, int banks, const LinkCosts& costs) {
  if (!costs.memory) return Picoseconds(0);
  return TimeAtMost(touched, 1, static_cast<std::uint64_t>(hw::HbmRate(*costs.chip, banks)));
}

Picoseconds StepStart(const ChipUse& use, std::uint64_t destinations, const LinkCosts& costs) {
  const Picoseconds start = costs.step * use.starts;
  const std::uint64_t commands = destinations * static_cast<std::uint64_t>(use.commands);
  if (commands == 0) return start;
  const auto cores = static_cast<std::uint64_t>(costs.chip->cc_cores);
  return start + costs.command * static_cast<Picoseconds::rep>((commands - 1) / cores);
}

ChipStages NeuronStages(Algorithm algorithm, Phase phase, std::uint64_t bytes, std::uint64_t chips,
                        int ranks, int banks, const LinkCosts& costs) {
  const bool reduces = phase == Phase::kReduceScatter;
  const auto stage = [&](std::uint64_t touched) {
    return costs.step + MemoryTime(touched, banks, costs);
  };
  const auto all = static_cast<std::uint64_t>(ranks);
  ChipStages stages;
  if (algorithm == Algorithm::kMesh && reduces && chips > 1) {
    // Each rank combines what has come from every chip, and its own chip's from all ranks.
    stages.after = stage((chips + (ranks > 1 ? 1 + all : 1)) * (bytes / chips));
  } else if (algorithm == Algorithm::kKangaRing || algorithm == Algorithm::kRing) {
    // The cycle goes on through the ranks of the last chip.
    const ChipUse use = NeuronUse(algorithm, phase, ranks);
    const auto touches = static_cast<std::uint64_t>((use.reads + use.writes) / use.starts);
    stages.after = stage(touches * (bytes / chips)) * (use.starts - 1);
    // The first pair combines, or its second rank gets a copy; several chips hide that behind their
    // messages.
    if (algorithm == Algorithm::kKangaRing && chips == 1) {
      stages.after += stage((reduces ? 3 : 2) * bytes);
    }
  } else if (ranks > 1) {
    // Each rank gets its part combined first; in the end it gives its part to the others.
    (reduces ? stages.before : stages.after) = stage((reduces ? all + 1 : all) * bytes);
  }
  return stages;
}

}  // namespace tahoma::collective
