// The configuration of dra-plugin (kind DraPluginConfig), in the form of docs/formats/config.md.
//
// Scope: texts. Whether a folder or a socket is there is found out where it is used.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dra-plugin/inventory/pool.h"
#include "lib/config/log.h"
#include "lib/config/spec.h"

namespace tahoma::dra {

struct Settings {
  std::string node_name{};
  std::string kubeconfig{};
  std::string node_socket{};
  std::string plugin_dir = "/var/lib/kubelet/plugins";
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
  std::string cdi_dir = "/var/run/cdi";
  std::vector<std::string> publish = {"chips", "lnc1", "lnc2", "node"};
  bool managed_taint = true;
  bool efa = true;
  std::map<std::string, std::string> fault_effects{};
  std::chrono::nanoseconds flap_hold = std::chrono::seconds(10);
  bool label_node = false;
  std::string pod_uid{};
  std::string metrics_address{};
  std::chrono::nanoseconds node_lost_after = std::chrono::seconds(10);
  std::chrono::nanoseconds resync_period = std::chrono::minutes(5);
  config::LogOptions log;
};

// `settings` must outlive what is returned.
config::Spec DeclareSettings(Settings& settings);

// kInvalidArgument, naming the option, when one is missing that every plugin needs, or is no name
// or address.
absl::Status CheckSettings(const Settings& settings);

// Returns the options of the node's pool. kInvalidArgument names the option.
absl::StatusOr<PoolOptions> PoolOptionsOf(const Settings& settings);

}  // namespace tahoma::dra
