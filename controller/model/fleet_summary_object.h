// The fleet's summary as the ConfigMap in which the leading controller publishes it
// (docs/formats/topology.md).
//
//   Json object = FleetSummaryObject({.summary = SummarizeFleet(cluster), .made = now});
//   TAHOMA_ASSIGN_OR_RETURN(const PublishedSummary read, ParseFleetSummaryObject(object));
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include "controller/model/fleet_summary.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// kube-system exists in every cluster, and its users may not write there: what is read is what the
// controller wrote.
inline constexpr const char* kSummaryNamespace = "kube-system";
inline constexpr const char* kSummaryName = "tahoma-topology";

struct PublishedSummary {
  FleetSummary summary;
  WallTime made{};  // whole seconds are kept
};

Json FleetSummaryObject(const PublishedSummary& published);

// Fails with kInvalidArgument, naming the part at fault, when the object is not of this format.
absl::StatusOr<PublishedSummary> ParseFleetSummaryObject(const Json& object);

}  // namespace tahoma::controller
