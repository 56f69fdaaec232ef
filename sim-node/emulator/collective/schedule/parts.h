// A request divided among ranks: replica groups that work side by side, all-to-all with counts,
// permute by pairs.
//
//   const Division division{.groups = {{0, 1, 2, 3}, {4, 5, 6, 7}}};
//   TAHOMA_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(request, division, members));
//   parts[1].members;                // the chips of ranks 4 to 7, with those ranks only
//
// Ranks are logical cores, numbered through the members of the communicator. Within a part they
// count from 0 in the order of its group.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "sim-node/emulator/collective/schedule/blocks.h"
#include "sim-node/emulator/collective/schedule/request.h"

namespace tahoma::sim {

struct Division {
  // Groups of equal size; a rank is in one at most. Empty: one group of all ranks.
  std::vector<std::vector<int>> groups{};
  // The counts of an all-to-all: one for all ranks, or one for each rank. Empty: even blocks.
  std::vector<VariableCounts> counts{};
  // The pairs of a permute: from and to. Empty: round a ring of links.
  std::vector<std::pair<int, int>> pairs{};

  bool empty() const { return groups.empty() && counts.empty() && pairs.empty(); }
  // ", divided as 0123…" with a digest of all of it; empty when nothing is divided.
  std::string ToString() const;
};

// The request of one group of ranks.
struct Part {
  std::vector<Member> members;  // chips, with those of their ranks that are in the group
  Request request;
};

// Returns at least one part, in the order of groups. kInvalidArgument, naming the rank, for one
// that does not exist or is in two groups, for groups of different sizes, for ranks of a chip that
// do not follow one another in their group; for counts or pairs that do not belong to the
// operation, and as BlocksOf.
absl::StatusOr<std::vector<Part>> PartsOf(const Request& request, const Division& division,
                                          const std::vector<Member>& members);

}  // namespace tahoma::sim
