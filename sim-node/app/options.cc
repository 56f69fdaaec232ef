#include "sim-node/app/options.h"

#include <set>
#include <string>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "lib/wire/socket.h"
#include "sim-node/collective/plan_options.h"

namespace tahoma::sim {
namespace {

void DeclareUltraServer(config::Fields& fields, Options::UltraServer& ultra_server) {
  fields.String("id", &ultra_server.id, "\"us-…\"; empty: the node is in no UltraServer");
  fields.Int("nodeId", &ultra_server.node_id, {.min = 0, .max = 3}, "its place in the ring");
  fields.List<Options::Peer>(
      "peers", &ultra_server.peers, "the other members", [](config::Fields& f, Options::Peer& p) {
        f.Int("nodeId", &p.node_id, {.min = 0, .max = 3}, "its place in the ring");
        f.String("address", &p.address, "its linkAddress");
      });
  fields.Duration("peerTimeout", &ultra_server.peer_timeout,
                  {.min = std::chrono::milliseconds(100), .max = std::chrono::minutes(10)},
                  "how long a member may be silent before it counts as lost");
  fields.Duration("electionTimeout", &ultra_server.election_timeout,
                  {.min = std::chrono::seconds(1), .max = std::chrono::hours(24)},
                  "how long an election waits for the other members");
}

void DeclareEfa(config::Fields& fields, Options::Efa& efa) {
  fields.String("address", &efa.address, "where nodes of other units connect; empty: none do");
  fields.List<Options::Efa::Peer>("peers", &efa.peers, "nodes outside the UltraServer",
                                  [](config::Fields& f, Options::Efa::Peer& p) {
                                    f.String("nodeName", &p.node_name, "its nodeName");
                                    f.String("address", &p.address, "its efa.address");
                                  });
  fields.Duration("peerTimeout", &efa.peer_timeout,
                  {.min = std::chrono::milliseconds(100), .max = std::chrono::minutes(10)},
                  "how long a node may be silent before it counts as lost");
  DeclareEfaLayers(fields, efa.layers);
}

absl::Status CheckEfa(const Options& options) {
  TAHOMA_RETURN_IF_ERROR(Annotate(EfaTimingOf(options.efa.layers).status(), "efa"));
  if (!options.efa.peers.empty() && options.efa.address.empty()) {
    return InvalidArgument("efa.address is empty, but efa.peers names other nodes");
  }
  std::set<std::string> names = {options.node_name};
  for (const Options::Efa::Peer& peer : options.efa.peers) {
    if (peer.node_name.empty()) return InvalidArgument("efa.peers: a nodeName is empty");
    if (!names.insert(peer.node_name).second) {
      return InvalidArgument("efa.peers: node \"{}\" is {}", peer.node_name,
                             peer.node_name == options.node_name ? "this one" : "named twice");
    }
    const auto parsed = wire::ParseAddress(peer.address);
    if (!parsed.ok()) {
      return Annotate(parsed.status(), fmt::format("efa.peers: address of {}", peer.node_name));
    }
  }
  return absl::OkStatus();
}

void DeclarePodRunner(config::Fields& fields, Options::Runner& runner) {
  fields.Bool("enabled", &runner.enabled, "run the pods of this node as local processes");
  fields.String("kubeconfig", &runner.kubeconfig, "the API server to serve");
  fields.String("registryDir", &runner.registry_dir, "where plugins show their sockets");
  fields.String("cdiDir", &runner.cdi_dir, "where plugins write CDI specs");
  fields.String("logAddress", &runner.log_address,
                "where container logs are served to the API server; port 0: any");
  fields.Bool("logTls", &runner.log_tls,
              "serve logs over TLS, as kube-apiserver wants; the standalone "
              "API takes plain HTTP");
  fields.Duration("shutdownGrace", &runner.shutdown_grace, {.max = std::chrono::hours(1)},
                  "how long pods may take when sim-node ends");
  fields.MapOf<Image>("images", &runner.images, "local programs by image name",
                      [](config::Fields& f, Image& image) {
                        f.String("entrypoint", &image.entrypoint,
                                 "program of a container without command");
                        f.Map("commands", &image.commands, "program by command name");
                      });
}

}  // namespace

config::Spec DeclareOptions(Options& options) {
  config::Spec spec({.program = "sim-node",
                     .kind = "SimNodeConfig",
                     .version = "0.1.0",
                     .summary = "Emulates one Trn2 instance, and runs the pods bound to it."});
  spec.String("nodeName", &options.node_name, "name of the Kubernetes node");
  spec.String("instanceType", &options.instance_type, "of the catalogue");
  spec.Section("ultraServer", "the UltraServer the node belongs to",
               [&](config::Fields& f) { DeclareUltraServer(f, options.ultra_server); });
  spec.Section("efa", "the network to nodes of other units",
               [&](config::Fields& f) { DeclareEfa(f, options.efa); });
  spec.Strings("networkLayers", &options.network_layers, "three \"nn-…\", top first, or none");
  spec.String("capacityBlockId", &options.capacity_block_id, "of the Capacity Block, if any");
  spec.String("driverVersion", &options.driver_version, "of the Neuron driver, four numbers");
  spec.String("nodeSocket", &options.node_socket, "unix socket for the node's dra-plugin");
  spec.String("workloadSocket", &options.workload_socket,
              "unix socket for containers; empty: beside nodeSocket");
  spec.String("linkAddress", &options.link_address, "where other sim-nodes connect");
  spec.String("adminAddress", &options.admin_address,
              "where faults are injected over REST; port 0: any");
  spec.String("adminTokenFile", &options.admin_token_file, "bearer token its callers must show");
  spec.String("stateDir", &options.state_dir, "folder of logs and the pod runner's state");
  spec.String("portFile", &options.port_file, "file that receives the bound addresses as YAML");
  spec.Section("collectives", "how collectives are planned; the same on all nodes of a gang",
               [&](config::Fields& f) {
                 f.String("mode", &options.collectives_mode,
                          "best: the fastest there is; aws: Neuron's algorithms as AWS describes "
                          "them");
               });
  spec.Section("podRunner", "the kubelet's place",
               [&](config::Fields& f) { DeclarePodRunner(f, options.pod_runner); });
  return spec;
}

absl::Status CheckOptions(Options& options) {
  if (options.node_name.empty()) return InvalidArgument("nodeName is empty; name the node");
  if (hw::FindInstanceType(options.instance_type) == nullptr) {
    return InvalidArgument("instanceType \"{}\" is unknown; known are {}", options.instance_type,
                           hw::InstanceTypeNames());
  }
  if (options.workload_socket.empty()) options.workload_socket = options.node_socket + ".pods";
  for (const std::string* address : {&options.node_socket, &options.workload_socket}) {
    const absl::StatusOr<wire::Address> parsed = wire::ParseAddress(*address);
    if (!parsed.ok()) return Annotate(parsed.status(), "nodeSocket or workloadSocket");
  }
  TAHOMA_RETURN_IF_ERROR(
      Annotate(ParsePlanMode(options.collectives_mode).status(), "collectives.mode"));
  if (options.pod_runner.enabled && options.pod_runner.kubeconfig.empty()) {
    return InvalidArgument("podRunner.kubeconfig is empty; the pod runner needs an API server");
  }
  if (!options.ultra_server.peers.empty()) {
    if (options.ultra_server.id.empty()) return InvalidArgument("ultraServer.id is empty");
    if (options.link_address.empty()) {
      return InvalidArgument("linkAddress is empty, but ultraServer.peers names other nodes");
    }
  }
  return CheckEfa(options);
}

}  // namespace tahoma::sim
