// One request to the Kubernetes API with a JSON answer, HTTP errors as Status.
//
//   absl::StatusOr<Json> node = CallApi(transport, {.target = "/api/v1/nodes/a"});
//
// Scope: what this plugin's few requests need.
//
// Thread safety: as the transport's.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "dra-plugin/claims/claims.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::dra {

// Refusals are kube::ToStatus's, with the request and the server's message.
absl::StatusOr<Json> CallApi(kube::Transport& transport, const kube::Request& request);

// Reads ResourceClaims from the API server.
class ApiClaimSource final : public ClaimSource {
 public:
  // `transport` must outlive this object.
  explicit ApiClaimSource(kube::Transport& transport) : transport_(transport) {}
  absl::StatusOr<std::string> Get(const std::string& name_space, const std::string& name) override;

 private:
  kube::Transport& transport_;
};

}  // namespace tahoma::dra
