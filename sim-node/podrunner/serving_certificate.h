// A self-signed certificate for the log endpoint, as a kubelet makes one for itself when it is
// given none: a real API server talks to kubelets over TLS only, without checking who they are.
//
//   absl::StatusOr<ServingCertificate> made = MakeServingCertificate(folder, "node-0", now);
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

#include "lib/base/clock.h"

namespace tahoma::sim {

struct ServingCertificate {
  std::string cert_file{};  // PEM
  std::string key_file{};   // PEM, readable by the owner only
};

// P-256, valid for a year from an hour before `now`, for the names `node`, localhost and 127.0.0.1.
absl::StatusOr<ServingCertificate> MakeServingCertificate(const std::filesystem::path& folder,
                                                          const std::string& node, WallTime now);

}  // namespace tahoma::sim
