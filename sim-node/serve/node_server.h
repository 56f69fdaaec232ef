// Answers a sim-node's sockets: the plugin's calls, and those of workloads by token.
//
//   NodeServer server(live, {.driver_version = "2.26.10.0",
//                            .workload_socket = "unix:/run/w.sock"});
//   server.AddWorkloadCall("commJoin", [&](const Caller& caller, const wire::Request& request) {
//     return Join(caller.claim, request);
//   });
//   auto node = wire::Server::Start(node_socket, {}, [&](const wire::Request& request) {
//     return server.ServePlugin(request);
//   });
//   auto workloads = wire::Server::Start(workload_socket, {}, [&](const wire::Request& request) {
//     return server.ServeWorkload(request);
//   });
//
// There are two sockets because the plugin's calls hand out claims. Containers get only the other
// socket, where nothing is answered without the token of a claim that is held.
//
// Scope: translation between lib/wire and Instance; see docs/formats/wire.md.
//
// Thread safety: the Serve functions may be called from any thread, once AddWorkloadCall is no
// longer called.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <string>

#include "lib/wire/call.h"
#include "lib/wire/messages.h"
#include "sim-node/serve/live_instance.h"

namespace tahoma::sim {

inline constexpr std::string_view kDevices = "devices";

// The caller of a workload's call: its token and the token's claim, as it was when the call came.
struct Caller {
  HeldClaim claim{};
  std::string token{};
};

class NodeServer {
 public:
  struct Options {
    std::string driver_version{};
    std::string workload_socket{};  // an address of lib/wire
  };
  using WorkloadCall = std::function<absl::StatusOr<wire::Reply>(const Caller& caller,
                                                                 const wire::Request& request)>;

  NodeServer(LiveInstance& live, Options options);

  // Adds a method for workloads; its name must be new.
  void AddWorkloadCall(std::string method, WorkloadCall call);

  // Answers inventory, watchInventory, applyClaim, releaseClaim and listClaims. kUnimplemented for
  // another method.
  absl::StatusOr<wire::Reply> ServePlugin(const wire::Request& request);
  // Answers devices and the methods that were added. kPermissionDenied unless params.token belongs
  // to a claim that is held now; kUnimplemented for another method.
  absl::StatusOr<wire::Reply> ServeWorkload(const wire::Request& request);

  // Returns the node's inventory, which the plugin publishes.
  wire::Inventory MakeInventory() const;

 private:
  absl::StatusOr<wire::Reply> WatchInventory(const wire::Request& request);
  absl::StatusOr<wire::Reply> ApplyClaim(const wire::Request& request);

  LiveInstance& live_;
  const Options options_;
  std::map<std::string, WorkloadCall, std::less<>> calls_;
};

// Returns the result of an election as the plugin publishes it and the node's labels show it.
wire::UltraServerElection ElectionOf(const ElectionResult& result);

// Returns the reply to `devices`, from which neuron-ls prints a claim's devices: a JSON object.
std::string DevicesJson(const Instance& instance, const HeldClaim& claim);

}  // namespace tahoma::sim
