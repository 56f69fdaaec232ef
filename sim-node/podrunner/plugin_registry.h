// The plugins registered on this node: the plugins with a socket in the registry folder.
//
//   auto registry = PluginRegistry::Watch("/var/lib/kubelet/plugins_registry", log);
//   absl::StatusOr<std::shared_ptr<PluginClient>> plugin = (*registry)->Find("neuron.aws.com");
//
// A plugin with a new socket is asked for its name and told that it is registered; removing the
// socket ends the registration (docs/reference/kubernetes-dra.md#registration). When a driver has
// several sockets, during a rolling update, the socket registered last is used. A silent socket is
// tried again.
//
// Scope: registration. Names with a leading dot are not plugins.
//
// Thread safety: Find may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/mutex.h"
#include "sim-node/podrunner/plugin_client.h"

namespace tahoma::sim {

class PluginRegistry {
 public:
  using Log = std::function<void(std::string_view line)>;

  // Creates a missing folder. kUnavailable when the folder cannot be watched.
  static absl::StatusOr<std::unique_ptr<PluginRegistry>> Watch(std::filesystem::path folder,
                                                               Log log);
  ~PluginRegistry();
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  // kUnavailable when no plugin of this name is registered.
  absl::StatusOr<std::shared_ptr<PluginClient>> Find(const std::string& driver) const;

 private:
  struct Plugin {
    std::string driver{};
    std::uint64_t order = 0;
    std::shared_ptr<PluginClient> client{};
  };

  PluginRegistry(std::filesystem::path folder, Log log, int inotify, int wake_read, int wake_write);
  void Loop();
  // Compares the folder with the registered plugins. False when a socket must be tried again.
  bool Reconcile();
  bool Register(const std::filesystem::path& socket);

  const std::filesystem::path folder_;
  const Log log_;
  const int inotify_;
  const int wake_read_;
  const int wake_write_;
  std::uint64_t last_order_ = 0;
  mutable Mutex mutex_;
  // By the identity of the registration socket.
  std::map<std::string, Plugin> plugins_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tahoma::sim
