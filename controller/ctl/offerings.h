// Searches for offerings of Capacity Blocks at the controller's admin API.
//
//   const OfferingsAsked asked{.type = "u-trn2x64", .count = 1, .hours = 24};
//   TAHOMA_ASSIGN_OR_RETURN(const Json answer, AskForOfferings(admin, asked));
//   fmt::print("{}", OfferingsText(answer));
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// As typed; the controller checks the values.
struct OfferingsAsked {
  std::string type = {};  // of instances, or of UltraServers ("u-…")
  std::int64_t count = 1;
  std::int64_t hours = 24;
  std::int64_t hours_most = 0;  // 0: as `hours`
  std::int64_t segments = 1;    // the most pieces of time, with gaps
  std::string from = {};
  std::string to = {};
  std::string zone = {};
  bool any_cell = false;
  std::string order = {};
  std::int64_t most = 6;
  std::string ns = {};
};

// Asks the admin API; `admin` has the address and credentials. A refusal is an error with EC2's
// code.
absl::StatusOr<Json> AskForOfferings(kube::Transport& admin, const OfferingsAsked& asked);

// Returns whether the answer has any offering, in one piece or in several.
bool HasOfferings(const Json& answer);

// Makes a table of the offerings, and a table of offerings in segments with their ids in the form
// that `book` takes. Without offerings: the reasons, and the nearest offerings.
std::string OfferingsText(const Json& answer);

}  // namespace tahoma::controller
