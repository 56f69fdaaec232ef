// Calls to a DRA plugin over its unix sockets, as a kubelet makes them.
//
// Scope: gRPC of pluginregistration and DRAPlugin v1 and v1beta1
// (docs/reference/kubernetes-dra.md#registration, #prepare-and-unprepare). A claim's error in the
// answer becomes the call's error.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sim-node/podrunner/node_pods.h"

namespace tahoma::sim {

// The kubelet's own limit (kubernetes/kubernetes pkg/kubelet/cm/dra/plugin/dra_plugin.go).
inline constexpr std::chrono::seconds kPluginCallTimeout{45};

enum class PluginVersion { kV1, kV1Beta1 };

struct PluginFacts {
  std::string driver{};
  std::string endpoint{};  // path of the socket with the driver's calls
  PluginVersion version = PluginVersion::kV1;
};

// Asks the plugin behind a registration socket for its name, endpoint and versions. kUnavailable
// when it does not answer; kInvalidArgument when it is no DRA plugin, has no name or endpoint, or
// speaks no version that we know.
absl::StatusOr<PluginFacts> AskPlugin(const std::string& registration_socket,
                                      std::chrono::milliseconds timeout);

// Tells it our verdict; `error` is empty when it is registered.
absl::Status NotifyPlugin(const std::string& registration_socket, const std::string& error,
                          std::chrono::milliseconds timeout);

class PluginClient {
 public:
  PluginClient(const std::string& endpoint, PluginVersion version,
               std::chrono::milliseconds timeout = kPluginCallTimeout);
  ~PluginClient();

  // kInternal when the answer skips the claim; the plugin's own error text otherwise.
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimFacts& claim);
  absl::Status Unprepare(const ClaimFacts& claim);

 private:
  class Stubs;
  std::unique_ptr<Stubs> stubs_;
  const PluginVersion version_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace tahoma::sim
