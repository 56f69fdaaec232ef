#include "sim-node/emulator/collective/algorithms/algorithms.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/channels.h"
#include "lib/torus/path.h"

namespace tahoma::sim {

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

using collective::Channel;
using torus::ChipIndex;

Action ActionOf(Phase phase) {
  return phase == Phase::kReduceScatter ? Action::kReduce : Action::kCopy;
}

// Cuts each block into so many equal parts, and makes sends of them.
class Cutter {
 public:
  Cutter(const Layout& layout, std::size_t parts) : parts_(parts) {
    TAHOMA_CHECK(parts > 0);
    bounds_.reserve((layout.bounds.size() - 1) * (parts + 1));
    for (std::size_t block = 0; block + 1 < layout.bounds.size(); ++block) {
      const std::uint64_t begin = layout.bounds[block];
      const std::uint64_t count = layout.bounds[block + 1] - begin;
      for (std::size_t part = 0; part <= parts; ++part) {
        const Wide first = static_cast<Wide>(count) * part / parts;
        bounds_.push_back((begin + static_cast<std::uint64_t>(first)) * layout.element_bytes);
      }
    }
  }

  // The first byte of the part and the one after its last.
  std::pair<std::uint64_t, std::uint64_t> Range(std::size_t block, std::size_t part) const {
    const std::size_t at = block * (parts_ + 1) + part;
    return {bounds_[at], bounds_[at + 1]};
  }
  void Append(Step& step, ChipIndex from, ChipIndex to, std::size_t block, std::size_t part,
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

 private:
  std::size_t parts_;
  std::vector<std::uint64_t> bounds_;  // in bytes, parts_ + 1 for each block
};

std::vector<Step> MeshSteps(Phase phase, const ChipSet& set, const Layout& layout) {
  const Cutter cutter(layout, 1);
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
  const Cutter cutter(layout, channels.size());
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
    for (std::size_t step = 0; step < channels[channel].size(); ++step) {
      const std::size_t across = std::size_t{1} << channels[channel][step];
      swaps.push_back({.channel = channel, .step = step, .before = before, .across = across});
      before |= across;
    }
  }
  return swaps;
}

// The places of the set's chips by hypercube address.
std::vector<std::size_t> PlacesOf(const ChipSet& set, const torus::Shape& torus) {
  std::vector<std::size_t> places;
  for (const ChipIndex chip : torus::BoxChips(*set.box(), torus)) {
    places.push_back(set.PlaceOf(chip));
  }
  return places;
}

// The channels of `layout` if no chip's block is fixed: each channel has a part of the buffer to
// itself, cut such that the data of one exchange is contiguous.
class ChannelRanges {
 public:
  ChannelRanges(const Layout& layout, const std::vector<Channel>& channels)
      : channels_(channels),
        // The whole buffer is one block, cut into channels as blocks are.
        ends_(Layout{.element_bytes = 1, .bounds = {0, layout.bounds.back()}}, channels.size()),
        element_bytes_(layout.element_bytes) {}

  // Returns the message with all blocks for the chip with address `to` after the exchange: their
  // addresses equal the chip's in the dimensions so far.
  Send Message(const Swap& swap, std::size_t to) const {
    std::uint64_t prefix = 0;
    for (std::size_t step = 0; step <= swap.step; ++step) {
      prefix = prefix << 1U | (to >> static_cast<std::size_t>(channels_[swap.channel][step]) & 1U);
    }
    const auto [first, last] = ends_.Range(0, swap.channel);
    const auto at = [&, channel_first = first, channel_last = last](std::uint64_t part) {
      const Wide whole = static_cast<Wide>(channel_last - channel_first) * part;
      return channel_first + static_cast<std::uint64_t>(whole >> (swap.step + 1));
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

std::vector<Step> HalvingSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                               const Layout& layout) {
  const std::vector<Channel> channels = collective::BalancedChannels(*set.box(), torus);
  const std::vector<std::size_t> places = PlacesOf(set, torus);
  const std::vector<Swap> swaps = SwapsOf(channels);
  const Cutter cutter(layout, channels.size());
  const ChannelRanges ranges(layout, channels);
  // All-gather undoes reduce-scatter: last exchange first.
  const bool gathers = phase == Phase::kAllGather;
  std::vector<Step> steps(channels[0].size());
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
        Send send = ranges.Message(swap, side);
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

}  // namespace

std::vector<Step> ScatterSteps(const ChipSet& set, const torus::Shape& torus,
                               const Layout& layout) {
  const std::vector<Channel> channels = collective::BalancedChannels(*set.box(), torus);
  const std::vector<std::size_t> places = PlacesOf(set, torus);
  const auto root = static_cast<std::size_t>(
      std::find(places.begin(), places.end(), std::size_t{0}) - places.begin());
  const std::vector<Swap> swaps = SwapsOf(channels);
  const Cutter cutter(layout, channels.size());
  std::vector<Step> steps(channels[0].size());
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
      return HalvingSteps(phase, set, links.torus(), layout);
    default:
      TAHOMA_CHECK(algorithm == Algorithm::kRing || algorithm == Algorithm::kKangaRing);
      return RingSteps(phase, set, links, layout);
  }
}

}  // namespace tahoma::sim
