// The steps of one phase among the members of one topology domain, as PlanCollective makes them, on
// whatever part of the buffers a chunk is.
//
// Scope: internal to hierarchical.h. Blocks of unequal size are planned as if all were as long as
// the longest ("padded"); what lies beyond the end of a block is then left out.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// The operation among the members of one topology domain.
enum class Inside : std::uint8_t { kReduceScatter, kAllGather, kScatter };

std::uint64_t BytesOf(const Request& request, std::uint64_t elements);

// Returns a send of these elements, which have the same place in both buffers.
Send MakeSend(const Request& request, torus::ChipIndex from, torus::ChipIndex to,
              const Extent& elements, Action action);

// Steps with what the chips add to each.
struct WorkedSteps {
  std::vector<Step> steps;
  std::vector<StepWork> work;  // of each step
};

// Makes the steps of a group on a padded buffer, in which every place has a block of `block`
// elements, on `times` such buffers at once: all of them together decide which algorithm is best.
// The first and last step may be without sends: work of the ranks that share a chip.
class PaddedSteps {
 public:
  // Both outlive it.
  PaddedSteps(const Request& request, const HierarchyChoice& choice)
      : request_(request), choice_(choice) {}

  // Errors are those of PlanCollective.
  absl::StatusOr<WorkedSteps> Of(Inside inside, const DomainSet::Group& group,
                                 const TorusLinks& links, std::uint64_t block,
                                 std::uint64_t times) const;

 private:
  absl::StatusOr<WorkedSteps> Scatter(const DomainSet::Group& group, const TorusLinks& links,
                                      std::uint64_t block) const;

  const Request& request_;
  const HierarchyChoice& choice_;
};

// Returns the sends of padded steps on the region, whose places have [bounds[p], bounds[p + 1]).
std::vector<Step> Unpadded(const std::vector<Step>& padded, const Request& request,
                           std::uint64_t block, const Region& region,
                           const std::vector<std::uint64_t>& bounds);

}  // namespace tahoma::sim
