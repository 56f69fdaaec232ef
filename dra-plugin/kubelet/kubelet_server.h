// The plugin's two gRPC servers: the driver's calls, and its registration with the kubelet.
//
//   absl::StatusOr<std::unique_ptr<KubeletServer>> server =
//       KubeletServer::Start(options, driver, lock, board, clock);
//   …
//   (*server)->Stop();     // the registration's socket goes first: that is how a plugin signs off
//
// Serves DRAPlugin v1 and v1beta1 and DRAResourceHealth v1 and v1alpha1 on a socket and
// Registration on another, started in this order (docs/reference/kubernetes-dra.md#registration,
// #prepare-and-unprepare, #health).
//
// Both sockets are open to root and the plugin's own user only: whoever connects is believed to be
// the kubelet.
//
// Scope: gRPC in, DriverCalls out. A claim's problem becomes the claim's error in the answer, never
// a failed RPC. Before an error, a call is repeated for some seconds while sim-node or the API
// server is away.
//
// A failed prepare or unprepare leaves a line in the log, with the reason and the kubelet's wait.
//
// Thread safety: Start and Stop belong to one thread; DriverCalls come from several threads, one at
// a time (CallLock).

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "dra-plugin/kubelet/call_lock.h"
#include "dra-plugin/kubelet/driver_calls.h"
#include "dra-plugin/kubelet/health_board.h"
#include "lib/base/clock.h"

namespace tahoma::dra {

struct KubeletOptions {
  std::string driver;        // the driver's DNS name
  std::string registry_dir;  // where the kubelet looks for registration sockets
  std::string data_dir;      // the driver's own folder: socket and lock
  std::string pod_uid;       // empty: no rolling update
  // A kubelet waits 45 s for the answer to a request, with any number of claims.
  std::chrono::milliseconds answer_within = std::chrono::seconds(40);
  // How long a call is repeated while sim-node or the API server is away: first after
  // `first_repeat`, then after twice as long, and so on. Well below `answer_within`, because calls
  // that wait behind this call must be answered, too.
  std::chrono::milliseconds repeat_for = std::chrono::seconds(15);
  std::chrono::milliseconds first_repeat = std::chrono::milliseconds(100);
  // A kubelet takes a device for Unknown 30 s after the device's last update.
  std::chrono::milliseconds health_period = std::chrono::seconds(10);
  // A request of the kubelet came (1), or was answered (-1). From any thread.
  std::function<void(int change)> on_requests = {};
  // The kubelet's verdict; `error` is set after a refusal.
  std::function<void(bool registered, const std::string& error)> on_registration = {};
};

class KubeletServer {
 public:
  // kAlreadyExists when another program answers on one of the sockets; kInvalidArgument for a path
  // that is too long. `lock` serialises the driver's calls. References must outlive the server.
  static absl::StatusOr<std::unique_ptr<KubeletServer>> Start(KubeletOptions options,
                                                              DriverCalls& driver, CallLock& lock,
                                                              HealthBoard& board,
                                                              const Clock& clock);
  virtual ~KubeletServer() = default;

  // Removes the sockets and waits for running calls. Closes the health board.
  virtual void Stop() = 0;

  virtual const std::string& registration_socket() const = 0;
  virtual const std::string& driver_socket() const = 0;
};

}  // namespace tahoma::dra
