// The annotation api-approved.kubernetes.io: a CustomResourceDefinition of a group of Kubernetes
// itself must have it.
//
//   const std::optional<ApiApproval> approval = ApprovalOf(crd);   // nothing for other groups
//   if (approval && approval->state == ApiApproval::State::kMissing) …
//
// Other groups must not look like Kubernetes' own: the annotation says where the API was approved,
// or that it was not ("unapproved, …"). Sources of rules and texts: apiextensions-apiserver
// pkg/apihelpers/helpers.go, pkg/apis/apiextensions/validation and pkg/controller/apiapproval.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controller/apiserver/schema/causes.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

struct ApiApproval {
  enum class State : std::uint8_t { kMissing, kInvalid, kUnapproved, kApproved };
  State state = State::kMissing;
  std::string annotation = {};
  std::string reason = {};
};

// Returns the approval of the CRD; nothing unless its group is k8s.io or kubernetes.io, or ends
// with either.
std::optional<ApiApproval> ApprovalOf(const Json& crd);

// Adds why the CRD is refused. A stored CRD (`old_crd`, else null) may keep its annotation.
void CheckApproval(const Json& old_crd, const Json& crd, Causes& causes);

// Sets the condition KubernetesAPIApprovalPolicyConformant in the CRD's status to match its
// approval. `now` is RFC 3339; it is the transition time when the condition's status changes.
void SetApprovalCondition(std::string_view now, Json& crd);

}  // namespace tahoma::controller::apiserver
