// Reads one UltraServer or lone instance from the Kubernetes API, instead of the whole fleet.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Fleet fleet, ReadDomain(transport, "us-0"));  // or a node's name
//   DrawDomain(fleet.cluster, fleet.notes, "us-0");
//
// Nodes are found by the labels that name their UltraServer, their slices and pods by the selector
// spec.nodeName. No selector of Kubernetes finds the claims of a node: those are read page by page.
// Where the nodes of an UltraServer do not have the labels, as its id is in their slices only, the
// whole fleet is read.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/ctl/fleet_builder.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// The result lacks the domain when there is none of that name. Its notes name the pods that are on
// the domain's nodes, or whose claims are.
absl::StatusOr<Fleet> ReadDomain(kube::Transport& transport, const std::string& name);

}  // namespace tahoma::controller
