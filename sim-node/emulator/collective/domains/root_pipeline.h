// The root's domain of a broadcast over several: all of its chips get the buffer along packed trees
// (lib/collective/branchings.h), part after part, while the chunks that they have go on to other
// domains. Each link of the root carries its share of the buffer once.
//
//   auto pipeline = RootPipelineOf(asked, /*chunks=*/{0, 1000, 4000});  // two, in elements
//   pipeline->steps.steps[i];         // of the stripe i % stripes, after the one before it in that
//   pipeline->ends[chunk];            // so many of the steps bring a chunk to all chips
//
// Scope: internal to hierarchical.h.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/domains/padded_steps.h"
#include "sim-node/emulator/collective/plan/question.h"

namespace tahoma::sim {

struct RootPipeline {
  std::size_t stripes = 1;        // one starts up while the other is in flight
  WorkedSteps steps;              // of all stripes alternately, to leave in this order
  std::vector<std::size_t> ends;  // by chunk
};

// The question is the broadcast's, of the members of the root's domain, the root first. Chunk c is
// elements [chunks[c], chunks[c + 1]). kFailedPrecondition when links that are up do not lead from
// the root to all of them.
absl::StatusOr<RootPipeline> RootPipelineOf(const Question& asked,
                                            const std::vector<std::uint64_t>& chunks);

}  // namespace tahoma::sim
