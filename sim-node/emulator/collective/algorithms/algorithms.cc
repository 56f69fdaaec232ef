#include "sim-node/emulator/collective/algorithms/algorithms.h"

#include <algorithm>
#include <bit>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

Action ActionOf(Phase phase) {
  return phase == Phase::kReduceScatter ? Action::kReduce : Action::kCopy;
}

std::vector<Step> MeshSteps(Phase phase, const ChipSet& set, const Layout& layout) {
  const Cutter cutter(layout, {1});
  Step step;
  for (std::size_t to = 0; to < set.size(); ++to) {
    for (std::size_t from = 0; from < set.size(); ++from) {
      if (from == to) continue;
      const std::size_t block = phase == Phase::kReduceScatter ? to : from;
      cutter.Append(step, set.chips()[from], set.chips()[to], block, 0, ActionOf(phase));
    }
  }
  return {std::move(step)};
}

std::vector<Step> RingSteps(Phase phase, const ChipSet& set, const TorusLinks& links,
                            const Layout& layout) {
  std::vector<std::vector<ChipIndex>> channels;
  for (auto& ring : set.Rings(links)) {
    channels.push_back(ring);
    std::reverse(ring.begin(), ring.end());
    channels.push_back(std::move(ring));
  }
  const std::size_t n = set.size();
  const Cutter cutter(layout, std::vector<std::uint32_t>(channels.size(), 1));
  std::vector<std::size_t> place(64);
  for (const ChipIndex chip : set.chips()) {
    place[static_cast<std::size_t>(chip.value())] = set.PlaceOf(chip);
  }
  std::vector<Step> steps(n - 1);
  for (std::size_t t = 0; t + 1 < n; ++t) {
    for (std::size_t channel = 0; channel < channels.size(); ++channel) {
      for (std::size_t i = 0; i < n; ++i) {
        // The owner of the block that place i passes on: in all-gather it starts with its own, in
        // reduce-scatter it ends with receiving its own.
        const std::size_t behind = phase == Phase::kReduceScatter ? t + 1 : t;
        const ChipIndex owner = channels[channel][(i + n - behind) % n];
        cutter.Append(steps[t], channels[channel][i], channels[channel][(i + 1) % n],
                      place[static_cast<std::size_t>(owner.value())], channel, ActionOf(phase));
      }
    }
  }
  return steps;
}

}  // namespace

Cutter::Cutter(const Layout& layout, const std::vector<std::uint32_t>& weights)
    : parts_(weights.size()) {
  std::uint64_t total = 0;
  for (const std::uint32_t weight : weights) total += weight;
  const auto whole = static_cast<Wide>(total);
  TAHOMA_CHECK(whole > 0);
  bounds_.reserve((layout.bounds.size() - 1) * (parts_ + 1));
  for (std::size_t block = 0; block + 1 < layout.bounds.size(); ++block) {
    const std::uint64_t begin = layout.bounds[block];
    const std::uint64_t count = layout.bounds[block + 1] - begin;
    std::uint64_t before = 0;
    for (std::size_t part = 0; part <= parts_; ++part) {
      const Wide first = static_cast<Wide>(count) * before / whole;
      bounds_.push_back((begin + static_cast<std::uint64_t>(first)) * layout.element_bytes);
      if (part < parts_) before += weights[part];
    }
  }
}

void Cutter::Append(Step& step, ChipIndex from, ChipIndex to, std::size_t block, std::size_t part,
                    Action action) const {
  const auto [first, last] = Range(block, part);
  if (first == last) return;
  step.push_back({.from = from,
                  .to = to,
                  .offset = first,
                  .to_offset = first,
                  .bytes = last - first,
                  .action = action});
}

std::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kMesh:
      return "mesh";
    case Algorithm::kRdh:
      return "rdh";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kHier:
      return "hier";
    case Algorithm::kKangaRing:
      return "kangaring";
  }
  return "";
}

absl::StatusOr<Algorithm> ParseAlgorithm(std::string_view name) {
  std::string known;
  for (const Algorithm algorithm : kAllAlgorithms) {
    if (Name(algorithm) == name) return algorithm;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", Name(algorithm));
  }
  return InvalidArgument("unknown algorithm \"{}\"; expected one of {}", name, known);
}

Layout Layout::Weighted(const std::vector<int>& weights, std::uint64_t elements,
                        std::uint64_t element_bytes) {
  std::uint64_t total = 0;
  for (const int weight : weights) total += static_cast<std::uint64_t>(weight);
  TAHOMA_CHECK(total > 0);
  Layout layout{.element_bytes = element_bytes, .bounds = {0}};
  std::uint64_t sum = 0;
  for (const int weight : weights) {
    sum += static_cast<std::uint64_t>(weight);
    layout.bounds.push_back(elements * sum / total);
  }
  return layout;
}

namespace {

// One swap of halving: over the dimension `across`, after those of `before`.
struct Swap {
  std::size_t channel;
  std::size_t step;
  std::size_t before;
  std::size_t across;
};

std::vector<Swap> SwapsOf(const std::vector<Channel>& channels) {
  std::vector<Swap> swaps;
  for (std::size_t channel = 0; channel < channels.size(); ++channel) {
    std::size_t before = 0;
    for (std::size_t depth = 0; depth < channels[channel].order.size(); ++depth) {
      const std::size_t across = std::size_t{1} << channels[channel].order[depth];
      swaps.push_back({.channel = channel,
                       .step = static_cast<std::size_t>(channels[channel].step[depth]),
                       .before = before,
                       .across = across});
      before |= across;
    }
  }
  return swaps;
}

std::vector<std::uint32_t> WeightsOf(const std::vector<Channel>& channels) {
  std::vector<std::uint32_t> weights;
  for (const Channel& channel : channels) weights.push_back(channel.weight);
  return weights;
}

// The places of the set's chips by hypercube address.
std::vector<std::size_t> PlacesOf(const ChipSet& set, const torus::Shape& torus) {
  std::vector<std::size_t> places;
  for (const ChipIndex chip : torus::BoxChips(*set.box(), torus)) {
    places.push_back(set.PlaceOf(chip));
  }
  return places;
}

std::size_t StepCount(const std::vector<Swap>& swaps) {
  std::size_t count = 0;
  for (const Swap& swap : swaps) count = std::max(count, swap.step + 1);
  return count;
}

}  // namespace

namespace {

// The channels of `layout` if no chip's block is fixed: each channel has a part of the buffer to
// itself, cut such that the data of one exchange is contiguous.
class ChannelRanges {
 public:
  ChannelRanges(const Layout& layout, const std::vector<Channel>& channels)
      : channels_(channels),
        // The whole buffer is one block, cut into channels as blocks are.
        ends_(Layout{.element_bytes = 1, .bounds = {0, layout.bounds.back()}}, WeightsOf(channels)),
        element_bytes_(layout.element_bytes) {}

  // Returns the message with all blocks that the chip with address `to` is to have after the
  // exchange: those whose addresses equal its own in the dimensions so far.
  Send Message(const Swap& swap, std::size_t depth, std::size_t to) const {
    const std::vector<int>& order = channels_[swap.channel].order;
    std::uint64_t prefix = 0;
    for (std::size_t d = 0; d <= depth; ++d) {
      prefix = prefix << 1U | (to >> static_cast<std::size_t>(order[d]) & 1U);
    }
    const auto [first, last] = ends_.Range(0, swap.channel);
    const auto at = [&, channel_first = first, channel_last = last](std::uint64_t part) {
      const Wide whole = static_cast<Wide>(channel_last - channel_first) * part;
      return channel_first + static_cast<std::uint64_t>(whole >> (depth + 1));
    };
    const std::uint64_t begin = at(prefix) * element_bytes_;
    return {.from = ChipIndex(0),
            .to = ChipIndex(0),
            .offset = begin,
            .to_offset = begin,
            .bytes = at(prefix + 1) * element_bytes_ - begin,
            .action = Action::kCopy};
  }

 private:
  const std::vector<Channel>& channels_;
  Cutter ends_;
  std::uint64_t element_bytes_;
};

}  // namespace

std::vector<Step> HalvingSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                               const Layout& layout, const std::vector<Channel>& channels) {
  const std::vector<std::size_t> places = PlacesOf(set, torus);
  const std::vector<Swap> swaps = SwapsOf(channels);
  const Cutter cutter(layout, WeightsOf(channels));
  const ChannelRanges ranges(layout, channels);
  // All-gather undoes reduce-scatter: last exchange first.
  const bool gathers = phase == Phase::kAllGather;
  std::vector<Step> steps(StepCount(swaps));
  const auto step_of = [&](const Swap& swap) -> Step& {
    return steps[gathers ? steps.size() - 1 - swap.step : swap.step];
  };
  std::vector<std::size_t> counts(steps.size());
  for (const Swap& swap : swaps) {
    const int matched = std::popcount(swap.before | swap.across);
    counts[swap.step] += places.size() * (layout.fixed ? places.size() >> matched : 1);
  }
  for (const Swap& swap : swaps) step_of(swap).reserve(counts[swap.step]);
  for (const Swap& swap : swaps) {
    Step& step = step_of(swap);
    const std::size_t fixed = swap.before | swap.across;
    for (std::size_t from = 0; from < places.size(); ++from) {
      const std::size_t to = from ^ swap.across;
      const std::size_t side = gathers ? from : to;
      const ChipIndex sender = set.chips()[places[from]];
      const ChipIndex receiver = set.chips()[places[to]];
      if (!layout.fixed) {
        Send send =
            ranges.Message(swap, static_cast<std::size_t>(std::popcount(swap.before)), side);
        send.from = sender;
        send.to = receiver;
        send.action = ActionOf(phase);
        if (send.bytes > 0) step.push_back(send);
        continue;
      }
      for (std::size_t block = 0; block < places.size(); ++block) {
        if (((block ^ side) & fixed) != 0) continue;
        cutter.Append(step, sender, receiver, places[block], swap.channel, ActionOf(phase));
      }
    }
  }
  return steps;
}

std::vector<Step> ScatterSteps(const ChipSet& set, const torus::Shape& torus, const Layout& layout,
                               const std::vector<Channel>& channels) {
  const std::vector<std::size_t> places = PlacesOf(set, torus);
  const auto root = static_cast<std::size_t>(
      std::find(places.begin(), places.end(), std::size_t{0}) - places.begin());
  const std::vector<Swap> swaps = SwapsOf(channels);
  const Cutter cutter(layout, WeightsOf(channels));
  std::vector<Step> steps(StepCount(swaps));
  for (const Swap& swap : swaps) {
    const std::size_t fixed = swap.before | swap.across;
    for (std::size_t from = 0; from < places.size(); ++from) {
      if (((from ^ root) & ~swap.before) != 0) continue;  // has nothing yet
      const std::size_t to = from ^ swap.across;
      for (std::size_t block = 0; block < places.size(); ++block) {
        if (((block ^ to) & fixed) != 0) continue;
        cutter.Append(steps[swap.step], set.chips()[places[from]], set.chips()[places[to]],
                      places[block], swap.channel, Action::kCopy);
      }
    }
  }
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  return steps;
}

std::vector<Step> Steps(Algorithm algorithm, Phase phase, const ChipSet& set,
                        const TorusLinks& links, const Layout& layout) {
  TAHOMA_CHECK(layout.bounds.size() == set.size() + 1);
  if (set.size() == 1) return {};
  switch (algorithm) {
    case Algorithm::kMesh:
      return MeshSteps(phase, set, layout);
    case Algorithm::kRdh:
      TAHOMA_CHECK(set.box() != nullptr);
      return HalvingSteps(phase, set, links.torus(), layout,
                          BalancedChannels(*set.box(), links.torus()));
    default:
      TAHOMA_CHECK(algorithm == Algorithm::kRing || algorithm == Algorithm::kKangaRing);
      return RingSteps(phase, set, links, layout);
  }
}

}  // namespace tahoma::sim
