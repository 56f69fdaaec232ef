// The one port of dra-plugin/claims to a disk: small files in one folder.
//
// Implementations: PosixFiles; tests keep them in memory and let writes fail.
//
// Thread safety: one thread at a time, unless an implementation says more.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::dra {

class Files {
 public:
  virtual ~Files() = default;

  // nullopt when there is no such file. Files over 16 MiB are kInvalidArgument.
  virtual absl::StatusOr<std::optional<std::string>> Read(std::string_view name) = 0;

  // Replaces the file. After success the new bytes survive a power cut; after a failure or a crash
  // the old file or the new one is there, never a mixture.
  virtual absl::Status Write(std::string_view name, std::string_view bytes) = 0;

  // A file that is not there is fine.
  virtual absl::Status Remove(std::string_view name) = 0;

  // Names of all files, in no order.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;

  // For messages: "/var/lib/kubelet/plugins/neuron.aws.com/claims.json".
  virtual std::string PathOf(std::string_view name) const = 0;
};

}  // namespace tahoma::dra
