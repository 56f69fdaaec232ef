// Reads ResourceClaims from the API server.
//
//   ApiClaimSource source(transport);
//   absl::StatusOr<std::string> claim = source.Get("training", "worker-0-chips");
//
// Thread safety: as the transport's.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "dra-plugin/claims/claims.h"
#include "lib/kube/client.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::dra {

class ApiClaimSource final : public ClaimSource {
 public:
  // `transport` must outlive this object.
  explicit ApiClaimSource(kube::Transport& transport)
      : api_(transport, no_sleep_, Rng(0), {.attempts = 1}) {}
  absl::StatusOr<std::string> Get(const std::string& name_space, const std::string& name) override;

 private:
  kube::InterruptibleSleeper no_sleep_;  // nothing is repeated: the kubelet asks again
  kube::Client api_;
};

}  // namespace tahoma::dra
