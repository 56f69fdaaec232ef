#include "sim-node/emulator/collective/plan/estimate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>

#include "lib/base/check.h"
#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;

// `numerator / denominator` bytes.
std::uint64_t Share(std::uint64_t bytes, Wide numerator, Wide denominator) {
  TAHOMA_CHECK(denominator > 0);
  return static_cast<std::uint64_t>(static_cast<Wide>(bytes) * numerator / denominator);
}

// Returns the rate of a link along the axis that leaves the box's first chip and stays inside.
std::uint64_t RateOf(const torus::Box& box, const TorusLinks& links, Axis axis) {
  return links.capacity(
      TorusLinks::IdOf(links.torus().IndexOf(box.origin), axis, torus::Direction::kPlus));
}

// The axis of each dimension of the hypercube that the box is.
std::vector<Axis> AxesOf(const torus::Box& box, const torus::Shape& torus) {
  const std::vector<ChipIndex> chips = torus::BoxChips(box, torus);
  std::vector<Axis> axes;
  for (std::size_t bit = 1; bit < chips.size(); bit *= 2) {
    axes.push_back(torus::Route(torus, chips[0], chips[bit]).front().axis);
  }
  return axes;
}

}  // namespace

std::vector<StepOutline> MeshOutline(const torus::Box& box, const TorusLinks& links,
                                     std::uint64_t bytes) {
  StepOutline step{.links = 0, .destinations = box.size.chip_count() - 1};
  for (const Axis axis : torus::kAxes) {
    const int extent = box.size.extent(axis);
    if (extent == 1) continue;
    // Along a side of 2, half of the buffer has one link to go; along a ring of 4 all of it has, on
    // average, and there are two directions.
    step.link = std::max(step.link, TransferTime(bytes / 2, RateOf(box, links, axis)));
    step.links += extent / 2;
  }
  const auto chips = static_cast<std::uint64_t>(box.size.chip_count());
  step.bytes = Share(bytes, chips - 1, chips);
  return {step};
}

std::vector<StepOutline> HalvingOutline(const std::vector<Channel>& channels, const torus::Box& box,
                                        const TorusLinks& links, std::uint64_t bytes) {
  const std::vector<Axis> axes = AxesOf(box, links.torus());
  std::uint64_t total = 0;
  std::size_t count = 0;
  for (const Channel& channel : channels) {
    total += channel.weight;
    if (!channel.step.empty()) {
      count = std::max(count, static_cast<std::size_t>(channel.step.back()) + 1);
    }
  }
  // Weights that go over each dimension, in 2^-64ths: depth d sends 2^-(d + 1) of the buffer.
  constexpr int kMaxDepth = 6;
  std::vector<std::array<std::uint64_t, kMaxDepth>> weights(count);
  for (const Channel& channel : channels) {
    for (std::size_t depth = 0; depth < channel.order.size(); ++depth) {
      weights[static_cast<std::size_t>(channel.step[depth])].at(
          static_cast<std::size_t>(channel.order[depth])) +=
          static_cast<std::uint64_t>(channel.weight) << (kMaxDepth - depth - 1);
    }
  }
  std::vector<StepOutline> steps;
  for (const auto& of_dimension : weights) {
    StepOutline step{.destinations = 0};
    for (std::size_t dimension = 0; dimension < axes.size(); ++dimension) {
      if (of_dimension.at(dimension) == 0) continue;
      const std::uint64_t sent =
          Share(bytes, of_dimension.at(dimension), static_cast<Wide>(total) << kMaxDepth);
      step.bytes += sent;
      step.link = std::max(step.link, TransferTime(sent, RateOf(box, links, axes[dimension])));
      ++step.destinations;
    }
    steps.push_back(step);
  }
  return steps;
}

std::vector<StepOutline> RingOutline(const ChipSet& set, const TorusLinks& links,
                                     std::uint64_t bytes) {
  const auto rings = set.Rings(links);
  std::map<LinkId, std::uint64_t> uses;
  std::set<ChipIndex> next;  // of the first chip
  for (const auto& ring : rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const ChipIndex one = ring[i];
      const ChipIndex other = ring[(i + 1) % ring.size()];
      for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
        const torus::Hop hop = torus::Route(links.torus(), from, to).front();
        ++uses[TorusLinks::IdOf(hop.from, hop.axis, hop.direction)];
        if (from == set.chips()[0]) next.insert(to);
      }
    }
  }
  StepOutline step{.bytes = bytes / set.size(), .destinations = static_cast<int>(next.size())};
  for (const auto& [link, count] : uses) {
    const std::uint64_t share = Share(step.bytes, count, 2 * rings.size());
    step.link = std::max(step.link, TransferTime(share, links.capacity(link)));
  }
  return std::vector<StepOutline>(set.size() - 1, step);
}

VirtualDuration EstimateTime(const std::vector<PlannedStep>& steps, std::size_t stripes,
                             const LinkTiming& timing) {
  const auto parts = static_cast<VirtualDuration::rep>(stripes);
  std::vector<VirtualDuration> ends;
  VirtualDuration sent(0);
  VirtualDuration memory_free(0);
  for (const PlannedStep& step : steps) {
    for (std::size_t stripe = 0; stripe < stripes; ++stripe) {
      const VirtualDuration ready =
          ends.size() < stripes ? VirtualDuration(0) : ends[ends.size() - stripes];
      const VirtualDuration departure = std::max(ready + timing.step + step.work.start, sent);
      sent = departure + step.outline.link / parts;
      memory_free = std::max(memory_free, departure) + step.work.memory;
      ends.push_back(std::max(sent + timing.hop * step.outline.links, memory_free));
    }
  }
  VirtualDuration last(0);
  for (const VirtualDuration end : ends) last = std::max(last, end);
  return last;
}

}  // namespace tahoma::sim
