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
          .memory = collective::MemoryTime(touched, use.banks, all)};
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

// The work of a step: the chips' bytes by their numbers.
struct ChipSteps {
  std::vector<std::uint64_t> touched;  // bytes
  int destinations = 0;                // of the chip that has the most
};

ChipSteps StepsOfChips(std::span<const Send> step, const ChipUse& use) {
  // Chips of several topology domains have numbers beyond a mask's.
  std::size_t chips = 64;
  for (const Send& send : step) {
    const int highest = std::max(send.from.value(), send.to.value());
    chips = std::max(chips, static_cast<std::size_t>(highest) + 1);
  }
  ChipSteps of{.touched = std::vector<std::uint64_t>(chips)};
  for (const Send& send : step) {
    of.touched[static_cast<std::size_t>(send.from.value())] +=
        send.bytes * static_cast<std::uint64_t>(use.reads);
    of.touched[static_cast<std::size_t>(send.to.value())] +=
        send.bytes * static_cast<std::uint64_t>(use.writes);
  }
  of.destinations = chips > kMaskedChips ? DestinationsOfMany(step) : Destinations(step, chips);
  return of;
}

}  // namespace

StepWork WorkOf(std::span<const Send> step, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing) {
  const ChipSteps of = StepsOfChips(step, use);
  return WorkOf(std::ranges::max(of.touched), of.destinations, use, costs, timing);
}

StepWork WorkOf(std::span<const Send> step, const ChipUse& use, std::span<const Member> members,
                const ChipCosts& costs, const LinkTiming& timing) {
  const ChipSteps of = StepsOfChips(step, use);
  StepWork work = WorkOf(std::uint64_t{0}, of.destinations, use, costs, timing);
  const collective::LinkCosts all = LinkCostsOf(costs, timing);
  for (const Member& member : members) {
    const auto chip = static_cast<std::size_t>(member.chip.value());
    if (chip >= of.touched.size()) continue;
    work.memory =
        std::max(work.memory, collective::MemoryTime(of.touched[chip], member.banks, all));
  }
  return work;
}

}  // namespace tahoma::sim
