// The fleet's summary as the leading controller has published it: one small object, where reading
// the fleet itself takes minutes at 62,500 nodes.
//
//   TAHOMA_ASSIGN_OR_RETURN(const PublishedSummary read, ReadPublishedSummary(transport));
//   fmt::print("{}", PublishedSummaryText(read, clock.WallNow()));
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>

#include "controller/model/fleet_summary_object.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// A summary that is older says how old it is.
inline constexpr std::chrono::seconds kSummaryFresh{30};

// Fails when there is none, it cannot be read, or is not of the known format: then the fleet itself
// has to be read.
absl::StatusOr<PublishedSummary> ReadPublishedSummary(kube::Transport& transport);

std::string PublishedSummaryText(const PublishedSummary& published, WallTime now);

}  // namespace tahoma::controller
