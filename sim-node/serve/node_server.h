// What a sim-node answers on its sockets: the plugin's calls, and those of workloads by token.
//
//   NodeServer server(live, {.driver_version = "2.26.10.0",
//                            .workload_socket = "unix:/run/w.sock"});
//   server.AddWorkloadCall("join", [&](const Caller& caller, const wire::Request& request) { … });
//   auto node = wire::Server::Start(node_socket, {}, [&](const wire::Request& request) {
//     return server.ServePlugin(request);
//   });
//   auto workloads = wire::Server::Start(workload_socket, {}, [&](const wire::Request& request) {
//     return server.ServeWorkload(request);
//   });
//
// There are two sockets because the plugin's calls hand out claims: containers get only the other
// one, where nothing is answered without the token of a claim that is held.
//
// Scope: translation between lib/wire and Instance; see docs/formats/wire.md.
//
// Thread safety: the Serve members may be called from any thread; AddWorkloadCall before them.

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

// Who calls: the claim that the token belongs to, as it was when the call came in.
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

  // A further method for workloads; its name must be new.
  void AddWorkloadCall(std::string method, WorkloadCall call);

  // inventory, watchInventory, applyClaim, releaseClaim, listClaims. kUnimplemented otherwise.
  absl::StatusOr<wire::Reply> ServePlugin(const wire::Request& request);
  // devices, and what was added. kPermissionDenied unless params.token belongs to a claim held now.
  absl::StatusOr<wire::Reply> ServeWorkload(const wire::Request& request);

  // What the plugin publishes.
  wire::Inventory MakeInventory() const;

 private:
  absl::StatusOr<wire::Reply> WatchInventory(const wire::Request& request);
  absl::StatusOr<wire::Reply> ApplyClaim(const wire::Request& request);

  LiveInstance& live_;
  const Options options_;
  std::map<std::string, WorkloadCall, std::less<>> calls_;
};

// What the plugin publishes of an election, and the labels of the node say.
wire::UltraServerElection ElectionOf(const ElectionResult& result);

// The devices of a claim as `devices` answers them and neuron-ls prints them (JSON, an object).
std::string DevicesJson(const Instance& instance, const HeldClaim& claim);

}  // namespace tahoma::sim
