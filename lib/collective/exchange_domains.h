// The time of an exchange over several topology domains: all messages leave at once, inside the
// domains and between them.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "lib/collective/inside_domains.h"

namespace tahoma::collective {

// The chips of all domains together, and of the one with the fewest. kInvalidArgument for an
// all-to-all of fewer elements than ranks.
struct ChipCounts {
  std::uint64_t all = 0;
  std::uint64_t fewest = 0;
};
absl::StatusOr<Picoseconds> ExchangeTime(const InsideDomains& inside, const ChipCounts& chips,
                                         const FormRequest& request, const hw::ChipModel& chip);

}  // namespace tahoma::collective
