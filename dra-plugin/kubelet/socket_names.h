// Names of the plugin's sockets, as the kubelet's Go library chooses them
// (kubernetes/dynamic-resource-allocation kubeletplugin/endpoint.go).
//
// With a pod's uid two instances can serve side by side during a rolling update.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace tahoma::dra {

// The first of three spellings whose path fits a unix socket; kInvalidArgument when none does.
absl::StatusOr<std::string> RegistrationSocket(std::string_view registry_dir,
                                               std::string_view driver, std::string_view pod_uid);

// "dra.sock" or "dra-<podUID>.sock" in `data_dir`; kInvalidArgument when the path is too long.
absl::StatusOr<std::string> DriverSocket(std::string_view data_dir, std::string_view pod_uid);

}  // namespace tahoma::dra
