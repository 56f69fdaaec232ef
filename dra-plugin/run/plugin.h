// The whole plugin: follows sim-node, publishes ResourceSlices, serves the kubelet.
//
//   absl::StatusOr<std::unique_ptr<Plugin>> plugin =
//       Plugin::Start(options, transport, clock, metrics);
//   …
//   (*plugin)->Stop();
//
// Threads: one thread follows sim-node's inventory (and reconciles claims after every connection);
// one thread publishes; gRPC's threads call the claims' state machine, one call at a time.
//
// When sim-node does not answer for `node_lost_after`, all devices become unhealthy (node-lost),
// until sim-node's next inventory. Slices stay when the plugin ends.
//
// Every `resync_period` the published slices are compared. Half as often, claims missing in the API
// server are unprepared: claims of an earlier boot at once, other claims when missing for the
// second time, because a kubelet must end their pods first.
//
// With `efa` the plugin is the driver of the node's NICs, too (efa_driver.h).
//
// Thread safety: Start and Stop belong to one thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "dra-plugin/claims/claims.h"
#include "dra-plugin/claims/posix_files.h"
#include "dra-plugin/inventory/health_damper.h"
#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/kubelet/kubelet_server.h"
#include "dra-plugin/run/efa_driver.h"
#include "dra-plugin/run/node_client.h"
#include "dra-plugin/run/plugin_metrics.h"
#include "dra-plugin/slices/claim_source.h"
#include "dra-plugin/slices/completeness.h"
#include "dra-plugin/slices/health_reporter.h"
#include "dra-plugin/slices/node_labeller.h"
#include "dra-plugin/slices/slice_publisher.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/kube/transport.h"
#include "lib/wire/socket.h"

namespace tahoma::dra {

struct PluginOptions {
  std::string node_name;
  std::string node_socket;  // an address of lib/wire
  std::string plugin_dir;
  std::string registry_dir;
  std::string cdi_dir;
  std::string pod_uid;
  std::string boot_id = {};  // the id of the machine's boot; empty: unknown
  PoolOptions pool = {};
  DampingOptions damping = {};
  bool efa = false;         // also be the driver of the NICs, dra.net
  bool label_node = false;  // as AWS's device plugin and EC2's cloud controller do
  std::chrono::milliseconds node_lost_after = std::chrono::seconds(10);
  std::chrono::milliseconds retry_after_max = std::chrono::seconds(2);
  std::chrono::milliseconds resync_period = std::chrono::minutes(5);
  // How long a prepare is repeated while sim-node or the API server is away.
  std::chrono::milliseconds repeat_for = std::chrono::seconds(15);
  // The kubelet refused the plugin: the program should end with an error.
  std::function<void(const std::string& error)> on_refused = {};
};

class Plugin {
 public:
  // Starts the plugin. Fails for wrong paths, a damaged checkpoint, or sockets in use; sim-node and
  // the API server may still be away. References must outlive the plugin.
  static absl::StatusOr<std::unique_ptr<Plugin>> Start(PluginOptions options,
                                                       kube::Transport& transport,
                                                       const Clock& clock, PluginMetrics& metrics);
  ~Plugin();

  // Changes the published devices. Prepared claims stay prepared, with any devices. From any
  // thread.
  void SetPublish(const dra::Publish& publish);

  // Shut the transport down first; otherwise Stop waits for a waiting publication.
  void Stop();

  const std::string& registration_socket() const { return server_->registration_socket(); }

 private:
  // The claims, for the kubelet's calls.
  class Driver;

  Plugin(PluginOptions options, kube::Transport& transport, const Clock& clock,
         PluginMetrics& metrics);
  absl::Status Open(kube::Transport& transport);
  absl::Status StartEfa(kube::Transport& transport);

  void FollowLoop();
  absl::Status Session();
  // Claims::Reconcile under the lock between processes.
  absl::StatusOr<std::size_t> GiveClaims();
  absl::Status AdoptInventory(const wire::Inventory& inventory);
  void MarkLost();
  // Makes the pool of an inventory and keeps the inventory; changes nothing when no pool can be
  // made.
  absl::Status MakePool(wire::Inventory inventory, bool lost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void PublishLoop();
  absl::Status PublishNode(const DevicePool& pool, const wire::Inventory& inventory);
  absl::Status PublishNics();
  // Reports the devices missing in the ResourceSlices, and unhealthy devices. Logs failures.
  void TellUsers(const DevicePool& pool);
  absl::StatusOr<Checkpoint> LoadClaims();
  absl::Status DropStaleClaims();
  void OnRegistration(bool registered, const std::string& error);

  // Waits for something to publish, or for `deadline`; shows repairs when due.
  void WaitForWork(CondVar::Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Waits for `duration` or the end; false at the end.
  bool Pause(std::chrono::milliseconds duration);

  const PluginOptions options_;
  const Clock& clock_;
  PluginMetrics& metrics_;
  const std::string data_dir_;
  NodeClient node_;
  ApiClaimSource source_;
  SlicePublisher publisher_;           // the publishing thread's
  NodeLabeller labeller_;              // the same
  HealthReporter reporter_;            // the same
  CompletenessReporter completeness_;  // the same
  CallLock call_lock_;
  HealthBoard board_;
  std::unique_ptr<PosixFiles> state_files_;
  std::unique_ptr<PosixFiles> cdi_files_;
  std::unique_ptr<Claims> claims_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<KubeletServer> server_;
  std::unique_ptr<EfaDriver> efa_;  // null: the NICs are another program's

  // The problem that was logged last, by kind; the publishing thread's.
  struct LastProblems {
    std::string report = {};
    std::string condition = {};
    std::string nics = {};
  } last_problems_;
  std::set<std::string> stale_;  // the publishing thread's: uids of stale claims not yet dropped
  bool session_good_ = false;    // the following thread's: the last session gave an inventory

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<wire::Connection> session_ ABSL_GUARDED_BY(mutex_);
  dra::Publish publish_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  HealthDamper damper_ ABSL_GUARDED_BY(mutex_);
  std::optional<CondVar::Deadline> repair_shows_ ABSL_GUARDED_BY(mutex_);  // of a damped repair
  std::optional<wire::Inventory> inventory_ ABSL_GUARDED_BY(mutex_);
  std::optional<DevicePool> pool_ ABSL_GUARDED_BY(mutex_);  // made from inventory_
  bool publish_now_ ABSL_GUARDED_BY(mutex_) = false;
  bool publish_soon_ ABSL_GUARDED_BY(mutex_) =
      false;  // the kubelet came back and may yet wipe our ResourceSlices

  std::thread follow_thread_;
  std::thread publish_thread_;
};

}  // namespace tahoma::dra
