// The options of planning a collective: the costs of a chip that count.
//
//   PlanOptions options;
//   options.costs.memory = false;                       // as if HBM had no limit
//   auto plan = PlanCollective(request, members, links, options);
//
// All members of a communicator must plan alike.
//
// Thread safety: values.

#pragma once

#include <cstdint>

namespace tahoma::sim {

// The costs of a chip's own hardware that are added to the time on the links (chip_cost.h says how
// much). Without all of them a step takes only the time of its software and its links.
struct ChipCosts {
  bool memory = true;     // reading and writing HBM
  bool dma_start = true;  // from the signal to the first byte
  bool cc_cores = true;   // commands that wait for a CC-core
  friend bool operator==(const ChipCosts&, const ChipCosts&) = default;
};
inline constexpr ChipCosts kNoChipCosts = {.memory = false, .dma_start = false, .cc_cores = false};

struct PlanOptions {
  ChipCosts costs{};
  // Alike buffers, this one included, whose steps are taken together, as one message each: the
  // bytes of all of them decide how a box's links are shared.
  std::uint64_t copies = 1;
};

// What is so instead of the keys and flags that once chose between modes of planning.
inline constexpr char kOneMode[] = "there is one mode: the algorithms of AWS's Neuron runtime";

}  // namespace tahoma::sim
