#include "sim-node/emulator/collective/plan/chip_cost.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace tahoma::sim {
collective::LinkCosts LinkCostsOf(const ChipCosts& costs, const LinkTiming& timing) {
  return {.step = costs.dma_start ? std::max(timing.step, timing.chip->dma.start) : timing.step,
          .hop = timing.hop,
          .command = costs.cc_cores ? timing.chip->costs.command : VirtualDuration(0),
          .efficiency_permille = timing.efficiency_permille,
          .chip = timing.chip,
          .memory = costs.memory};
}

collective::DomainLinks DomainLinksOf(const TorusLinks& links, const ChipCosts& costs) {
  return RatesOf(links, LinkCostsOf(costs, links.timing()));
}

StepWork WorkOf(std::uint64_t touched, int destinations, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing) {
  const collective::LinkCosts all = LinkCostsOf(costs, timing);
  const auto others = static_cast<std::uint64_t>(destinations);
  return {.start = collective::StepStart(use, others, all) - timing.step,
          .memory = collective::MemoryTime(touched, all)};
}

namespace {

// The most chips of which each has a mask of those that it sends to.
constexpr std::size_t kMaskedChips = 1U << 13U;

// Returns the most chips that one sends to.
int Destinations(std::span<const Send> step, std::size_t chips) {
  const std::size_t words = (chips + 63) / 64;
  std::vector<torus::ChipMask> to(chips * words);
  for (const Send& send : step) {
    const auto from = static_cast<std::size_t>(send.from.value());
    const auto into = static_cast<std::size_t>(send.to.value());
    if (from != into) to[from * words + into / 64] |= torus::ChipMask{1} << (into % 64);
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
