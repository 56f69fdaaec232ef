// Answers a sim-node's sockets: the plugin's calls, and workloads' calls by token.
//
//   NodeServer server(live, {.driver_version = "2.26.10.0",
//                            .workload_socket = "unix:/run/w.sock"});
//   server.AddWorkloadCall("commJoin", [&](const Caller& caller, const wire::Request& request) {
//     return Join(caller.claim, request);
//   });
//   auto node = wire::Server::Start(node_socket, {}, [&](const wire::Request& request) {
//     return server.ServePlugin(request);
//   });
//   auto workloads = wire::Server::Start(workload_socket, server.WorkloadOptions(),
//                                        [&](const wire::Request& request) {
//     return server.ServeWorkload(request);
//   });
//
// There are two sockets because the plugin's calls hand out claims. Containers get only the other
// socket; without the token of a held claim that socket answers nothing and keeps no payload.
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

#include "lib/base/json_fwd.h"
#include "lib/wire/call.h"
#include "lib/wire/messages.h"
#include "lib/wire/server.h"
#include "sim-node/serve/live_instance.h"

namespace tahoma::sim {

inline constexpr std::string_view kDevices = "devices";

// The bounds of a workload's call. A commAccess of 256 accesses has a header of 34 KiB; memStore
// has the largest payload.
inline constexpr wire::FrameBounds kWorkloadFrame = {.header_bytes = std::size_t{64} << 10U,
                                                     .payload_bytes = std::size_t{32} << 20U};

// The caller of a workload's call: its token and the token's claim, as they were when the call
// came.
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

  // Returns the largest payload of a call's reply, by the call's parameters.
  using ReplyBytes = std::function<std::size_t(const Json& params)>;

  NodeServer(LiveInstance& live, Options options);

  // Adds a method for workloads; the name must be new. Without `reply_bytes` replies have no
  // payload.
  void AddWorkloadCall(std::string method, WorkloadCall call, ReplyBytes reply_bytes = nullptr);

  // Returns the options of the workloads' socket: a call's token is checked before its payload is
  // read. The object must outlive the server.
  wire::Server::Options WorkloadOptions() const;

  // Answers inventory, watchInventory, applyClaim, releaseClaim and listClaims. kUnimplemented for
  // another method.
  absl::StatusOr<wire::Reply> ServePlugin(const wire::Request& request);
  // Answers `devices` and the added methods. kPermissionDenied unless params.token belongs to a
  // held claim; kUnimplemented for another method.
  absl::StatusOr<wire::Reply> ServeWorkload(const wire::Request& request);

  // Returns the node's inventory, for the plugin to publish.
  wire::Inventory MakeInventory() const;

 private:
  absl::StatusOr<wire::Reply> WatchInventory(const wire::Request& request);
  absl::StatusOr<wire::Reply> ApplyClaim(const wire::Request& request);
  // Returns the caller of the token in params; kPermissionDenied without a good token.
  absl::StatusOr<Caller> CallerOf(const Json& params) const;
  absl::StatusOr<wire::CallerOf> Introduce(const wire::Request& request) const;

  struct Served {
    WorkloadCall call;
    ReplyBytes reply_bytes;
  };

  LiveInstance& live_;
  const Options options_;
  std::map<std::string, Served, std::less<>> calls_;
};

// Returns the result of an election in the form of the plugin and of the node's labels.
wire::UltraServerElection ElectionOf(const ElectionResult& result);

// Returns the reply to `devices`, from which neuron-ls prints a claim's devices: a JSON object.
std::string DevicesJson(const Instance& instance, const HeldClaim& claim);

}  // namespace tahoma::sim
