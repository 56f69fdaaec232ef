// The chip time of gangs as the controller's admin API tells it: `kubectl tahoma usage`.
//
//   TAHOMA_ASSIGN_OR_RETURN(GangUsageRead read, ReadGangUsage(admin, "team-a"));
//   fmt::print("{}", GangUsageTable(read.lines, UsageBy::kQueue, false));
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

struct GangUsageLine {
  std::string ns = {};
  std::string queue = {};
  std::string type = {};
  std::int64_t chip_seconds = 0;
  double chips = 0;  // held now
};

struct GangUsageRead {
  std::string as_of = {};
  std::vector<GangUsageLine> lines = {};
};

enum class UsageBy : std::uint8_t { kBoth, kNamespace, kQueue };

// Reads all pages of GET /v1/usage; of one namespace, or of all when `ns` is empty.
absl::StatusOr<GangUsageRead> ReadGangUsage(kube::Transport& admin, const std::string& ns);

// Makes a table by namespace and queue, or of sums by one of them, with the total at the end where
// there are several lines. `wide` keeps instance types apart.
std::string GangUsageTable(const std::vector<GangUsageLine>& lines, UsageBy by, bool wide);
// [{"namespace", "queue", "instanceType", "chipSeconds", "chipHours", "chips"}…] of the same lines;
// without the member that is summed over.
Json GangUsageJson(const std::vector<GangUsageLine>& lines, UsageBy by);

}  // namespace tahoma::controller
