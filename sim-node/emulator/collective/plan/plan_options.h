// The options of planning a collective: the algorithms that are offered, and the costs of a chip
// that count.
//
//   PlanOptions options{.mode = *ParsePlanMode("aws")};
//   options.costs.memory = false;                       // as if HBM had no limit
//   auto plan = PlanCollective(request, members, links, options);
//
// All members of a communicator must plan alike.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tahoma::sim {

// best  the fastest of all algorithms, on chips whose ranks act as one
// aws   the algorithms of Neuron with the work that Neuron's documents describe for them: mesh,
//       rdh, kangaring and ring, whichever is fastest
enum class PlanMode : std::uint8_t { kBest, kAws };

// "best", "aws".
std::string_view Name(PlanMode mode);
// kInvalidArgument lists the known ones.
absl::StatusOr<PlanMode> ParsePlanMode(std::string_view name);

// The costs of a chip's own hardware that are added to the time on the links (chip_cost.h says how
// much). Without all of them a step takes only the time of its software and its links.
struct ChipCosts {
  bool memory = true;     // reading and writing HBM
  bool dma_start = true;  // from the signal to the first byte
  bool cc_cores = true;   // commands that wait for a CC-core
  friend bool operator==(const ChipCosts&, const ChipCosts&) = default;
};
inline constexpr ChipCosts kNoChipCosts = {.memory = false, .dma_start = false, .cc_cores = false};

// The most stripes into which a buffer is cut on request, such that one stripe's messages are in
// flight while the other's next step starts up (schedule.h). Unasked, pieces that flow along trees
// may take more (plan_pipelines.h).
inline constexpr int kMaxStripes = 2;

struct PlanOptions {
  PlanMode mode = PlanMode::kBest;
  ChipCosts costs{};
  int stripes = 0;  // 1 to kMaxStripes; 0 = what is fastest
  // Alike buffers, this one included, whose steps are taken together, as one message each: the
  // bytes of all of them decide how a box's links are shared.
  std::uint64_t copies = 1;
  // The parts of the buffer that chips sum up or have at first, in proportion, by member, if not as
  // many as they have ranks: of a reduce-scatter or an all-gather over trees. Not all are 0.
  std::vector<int> shares = {};
  // Every message of an exchange takes one route, around damage too, as Neuron's are assumed to.
  bool one_route = false;
};

}  // namespace tahoma::sim
