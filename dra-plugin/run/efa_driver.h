// The plugin's second driver, dra.net: publishes the node's NICs and serves the kubelet for claims
// on NICs, in the place of AWS's driver for EFA (chart aws-dranet).
//
// Thread safety: Start and Stop belong to one thread, Publish to one thread, Show to any.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "dra-plugin/inventory/pool.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

struct EfaDriverOptions {
  std::string node_name = {};
  std::string node_socket = {};  // an address of lib/wire
  std::string plugin_dir = {};
  std::string registry_dir = {};
  std::string cdi_dir = {};
  std::string pod_uid = {};
  std::chrono::milliseconds repeat_for = {};
  // The kubelet has registered the driver, or refused it with an error. From any thread.
  std::function<void(bool registered, const std::string& error)> on_registration = {};
};

class EfaDriver {
 public:
  // Fails for wrong paths and for sockets in use. References must outlive the driver.
  static absl::StatusOr<std::unique_ptr<EfaDriver>> Start(EfaDriverOptions options,
                                                          kube::Transport& transport,
                                                          const Clock& clock);
  virtual ~EfaDriver() = default;

  // Makes the pool of the inventory's NICs. Returns whether the pool has changed.
  virtual bool Show(const wire::Inventory& inventory, const PoolOptions& options) = 0;
  // Publishes the pool that was shown last. Fails as SlicePublisher::Publish.
  virtual absl::Status Publish() = 0;
  virtual void Stop() = 0;
};

}  // namespace tahoma::dra
