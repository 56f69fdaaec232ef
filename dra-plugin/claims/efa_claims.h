// Prepares and unprepares claims on NICs, for the driver hw::kEfaDriver.
//
//   EfaClaims claims("node-a", cdi_folder, node, source);
//   absl::StatusOr<std::vector<PreparedDevice>> devices = claims.Prepare(claim);
//
// sim-node does not guard NICs by claims, so a prepared claim is its CDI file and nothing more.
// Prepare reads the claim, checks that its NICs are this node's and up, and writes the file; a
// repeated Prepare does not look at the NICs' state again. Opaque configurations are not read: the
// emulated NIC has no interface to name.
//
// Thread safety: one call at a time.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "dra-plugin/claims/allocation.h"
#include "dra-plugin/claims/checkpoint.h"
#include "dra-plugin/claims/claims.h"
#include "dra-plugin/claims/files.h"

namespace tahoma::dra {

class EfaClaims {
 public:
  // References must outlive this object.
  EfaClaims(std::string node_name, Files& cdi, NodePort& node, ClaimSource& source)
      : node_name_(std::move(node_name)), cdi_(cdi), node_(node), source_(source) {}

  // kFailedPrecondition for a NIC that is down; kInvalidArgument for one that the node does not
  // have. Idempotent.
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim);

  // Unknown claims succeed.
  absl::Status Unprepare(const ClaimRef& claim);

 private:
  absl::StatusOr<std::vector<PreparedDevice>> PrepareNamed(const ClaimRef& claim);

  const std::string node_name_;
  Files& cdi_;
  NodePort& node_;
  ClaimSource& source_;
};

}  // namespace tahoma::dra
