// Parses Kubernetes objects into facts.
//
//   absl::StatusOr<std::shared_ptr<const PodFact>> pod = ParsePod(object);
//   if (!pod.ok()) Log(pod.status());             // and go on: one bad object harms no other
//
// A claim or Gang whose spec cannot be used is still a fact: it says why (spec_error). Unknown
// fields are ignored: newer API servers add some.
//
// Scope: objects that somebody else has fetched: watches (controller/ingest) and answers to writes
// (controller/publish). The core itself sees facts only.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "controller/core/facts/facts.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// Each fails with kInvalidArgument when the object is not of its kind at all: a name is missing, a
// field has another type.
absl::StatusOr<std::shared_ptr<const PodFact>> ParsePod(const Json& object);
absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaim(const Json& object);
// The same without the spec, which never changes: for answers to writes.
absl::StatusOr<std::shared_ptr<const ClaimFact>> ParseClaimState(const Json& object);
absl::StatusOr<std::shared_ptr<const VolumeClaimFact>> ParseVolumeClaim(const Json& object);
absl::StatusOr<std::shared_ptr<const GangFact>> ParseGang(const Json& object);
absl::StatusOr<std::shared_ptr<const BlockFact>> ParseBlock(const Json& object);

// Returns a number that is the same, in this process, for objects with the same status: members
// that are null are as absent ones. It is never 0.
std::uint64_t StatusDigest(const Json& object);

}  // namespace tahoma::controller
