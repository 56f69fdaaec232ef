#include "sim-node/app/options.h"

#include <set>
#include <string>
#include <utility>

#include "lib/base/loopback.h"
#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "lib/rest/site_check.h"
#include "lib/wire/socket.h"
#include "sim-node/emulator/collective/plan/plan_options.h"

namespace tahoma::sim {
namespace {

void DeclareUltraServer(config::Fields& fields, Options::UltraServer& ultra_server) {
  fields.String("id", &ultra_server.id, "\"us-…\"; empty: the node is in no UltraServer");
  fields.Int("nodeId", &ultra_server.node_id, {.min = 0, .max = 3}, "its place in the ring");
  fields.List<Options::Peer>(
      "peers", &ultra_server.peers, "the other members", [](config::Fields& f, Options::Peer& p) {
        f.Int("nodeId", &p.node_id, {.min = 0, .max = 3}, "its place in the ring");
        f.String("address", &p.address, "its linkAddress");
        f.String("nodeName", &p.node_name, "its nodeName; needed with peerTls");
      });
  fields.Duration("peerTimeout", &ultra_server.peer_timeout,
                  {.min = std::chrono::milliseconds(100), .max = std::chrono::minutes(10)},
                  "how long a member may be silent before it counts as lost");
  fields.Duration("electionTimeout", &ultra_server.election_timeout,
                  {.min = std::chrono::seconds(1), .max = std::chrono::hours(24)},
                  "how long an election waits for the other members");
}

void DeclareEfa(config::Fields& fields, Options::Efa& efa) {
  fields.String("address", &efa.address,
                "where nodes outside the UltraServer connect; empty: none do");
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

void DeclarePeerTls(config::Fields& fields, Options::PeerTls& tls) {
  fields.String("certFile", &tls.cert_file, "PEM, for this node's nodeName; empty: no TLS");
  fields.String("keyFile", &tls.key_file, "PEM, of certFile");
  fields.String("caFile", &tls.ca_file, "PEM, the authority that signs every node's certificate");
  fields.Bool("insecure", &tls.insecure,
              "listen beyond loopback without TLS: every machine that gets through is believed to "
              "be the node that it says it is");
}

bool IsUnix(const std::string& address) {
  return address.starts_with('/') || address.starts_with("unix:");
}

bool ReachesBeyondThisMachine(const std::string& address) {
  return !IsUnix(address) && !IsLoopback(address);
}

absl::Status CheckPeerTls(const Options& options) {
  const Options::PeerTls& tls = options.peer_tls;
  const bool on = !tls.cert_file.empty();
  if (on != !tls.key_file.empty() || on != !tls.ca_file.empty()) {
    return InvalidArgument("peerTls needs certFile, keyFile and caFile, or none of them");
  }
  if (on && tls.insecure) return InvalidArgument("peerTls is insecure and has a certFile too");
  for (const auto& [key, address] : {std::pair("linkAddress", &options.link_address),
                                     std::pair("efa.address", &options.efa.address)}) {
    if (address->empty() || on || tls.insecure || !ReachesBeyondThisMachine(*address)) continue;
    return PermissionDenied(
        "{} {} can be reached from outside, and without peerTls whoever reaches it can pass for "
        "any "
        "node: give certFile, keyFile and caFile, or listen on loopback or a unix socket (or say "
        "peerTls.insecure: true)",
        key, *address);
  }
  if (!on) return absl::OkStatus();
  for (const Options::Peer& peer : options.ultra_server.peers) {
    if (!peer.node_name.empty()) continue;
    return InvalidArgument(
        "ultraServer.peers: node {} has no nodeName, which its certificate must be for (peerTls)",
        peer.node_id);
  }
  return Annotate(wire::Tls::Open(PeerTlsFiles(options)).status(), "peerTls");
}

absl::Status CheckAdmin(const Options& options) {
  if (options.admin_tls_cert_file.empty() != options.admin_tls_key_file.empty()) {
    return InvalidArgument("adminTlsCertFile and adminTlsKeyFile go together");
  }
  if (!options.admin_token_file.empty() || IsLoopback(options.admin_address)) {
    return absl::OkStatus();
  }
  return PermissionDenied(
      "adminAddress {} can be reached from outside: give an adminTokenFile, or a loopback address",
      options.admin_address);
}

// Checks the options of the log endpoint, which stands in the kubelet's place.
absl::Status CheckLogs(const Options::Runner& runner) {
  if (!runner.log_client_ca_file.empty() && !runner.log_tls) {
    return InvalidArgument("podRunner.logClientCaFile needs podRunner.logTls: true");
  }
  const bool known = !runner.log_client_ca_file.empty() || !runner.log_token_file.empty();
  if (IsLoopback(runner.log_address) || (known && runner.log_tls)) return absl::OkStatus();
  return PermissionDenied(
      "podRunner.logAddress {} can be reached from outside: give podRunner.logClientCaFile (the "
      "authority of the API server's kubelet client certificate) or logTokenFile, with logTls: "
      "true, or a loopback address",
      runner.log_address);
}

// Containers get the folder of the workload socket, so no file of ours may lie below it.
absl::Status CheckWorkloadSocket(const Options& options) {
  const std::string folder = options.workload_socket.substr(0, options.workload_socket.rfind('/'));
  for (const auto& [key, path] :
       {std::pair("nodeSocket", &options.node_socket), std::pair("stateDir", &options.state_dir),
        std::pair("podRunner.cdiDir", &options.pod_runner.cdi_dir),
        std::pair("podRunner.registryDir", &options.pod_runner.registry_dir)}) {
    if (*path != folder && !path->starts_with(folder + "/")) continue;
    return InvalidArgument(
        "workloadSocket {}: its folder is given to containers, and {} {} is in it; give the socket "
        "a "
        "folder of its own",
        options.workload_socket, key, *path);
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
  fields.String("logClientCaFile", &runner.log_client_ca_file,
                "PEM; clients of the logs must show a certificate of this authority");
  fields.String("logTokenFile", &runner.log_token_file,
                "bearer token that clients of the logs must show, of this node only");
  fields.String("podsDir", &runner.pods_dir,
                "folder of the pods' logs and work folders, which their users must be able to "
                "enter; empty: stateDir");
  fields.String("podUser", &runner.pod_user,
                "own: every pod runs as a user of its own, which takes root; same: pods run as "
                "sim-node's user and can do what it can",
                {"own", "same"});
  fields.Int("firstUser", &runner.first_user, {.max = 4'000'000'000},
             "number of the first user for pods; 0: the first range that is free");
  fields.Int("users", &runner.users, {.min = 1, .max = 65'536}, "how many users, one for each pod");
  fields.Int("processesMost", &runner.processes_most, {.min = 0, .max = 4'194'304},
             "processes and threads of a pod with a user of its own; 0: no limit");
  fields.Duration("shutdownGrace", &runner.shutdown_grace, {.max = std::chrono::hours(1)},
                  "how long pods may take when sim-node ends");
  fields.MapOf<Image>("images", &runner.images, "local programs by image name",
                      [](config::Fields& f, Image& image) {
                        f.String("entrypoint", &image.entrypoint,
                                 "program of a container without command");
                        f.Strings("defaultCommand", &image.default_command,
                                  "command of a container that gives neither command nor args, "
                                  "of an image without entrypoint");
                        f.Map("commands", &image.commands, "program by command name");
                      });
}

void DeclareFleetNodes(config::Fields& fields, Options::FleetNodes& nodes) {
  fields.String("kubeconfig", &nodes.kubeconfig, "the API server to fill; empty: in a pod");
  fields.String("name", &nodes.name,
                "label tahoma.dev/fleet of its nodes, and the beginning of their names: "
                "NAME-00000, NAME-00001, …");
  fields.Map("instanceTypes", &nodes.instance_types,
             "how many nodes of a type there are for so many of the others: "
             "trn2u.48xlarge=3,trn2.48xlarge=1; trn2u are in UltraServers of four");
  fields.Strings("publish", &nodes.publish, "which devices each node shows",
                 {"chips", "lnc1", "lnc2", "node"});
  fields.String("taint", &nodes.taint,
                "what the nodes' taint tahoma.dev/virtual-node does with pods that do not tolerate "
                "it; nobody runs pods there",
                {"NoSchedule", "NoExecute", "none"});
  fields.Duration("leasePeriod", &nodes.lease_period,
                  {.min = std::chrono::seconds(1), .max = std::chrono::seconds(30)},
                  "how often each node's lease is renewed; one that is not for 40 s is lost");
  fields.Duration("resyncPeriod", &nodes.resync_period,
                  {.min = std::chrono::seconds(10), .max = std::chrono::hours(24)},
                  "how often each node and its ResourceSlices are looked at and mended");
  fields.Int("workers", &nodes.workers, {.min = 1, .max = 256},
             "threads, each with a connection to the API server");
}

// A fleet uses no option of a single node; such an option is a mistake.
absl::Status CheckFleetAlone(const Options& options) {
  const Options defaults;
  const auto refuse = [](std::string_view key, std::string_view instead) {
    return InvalidArgument("fleet and {} do not go together: {}", key, instead);
  };
  if (!options.node_name.empty()) {
    return refuse("nodeName", "the nodes of a fleet have their names from fleetNodes.name");
  }
  if (options.instance_type != defaults.instance_type) {
    return refuse("instanceType", "a fleet has fleetNodes.instanceTypes");
  }
  if (options.pod_runner.enabled) {
    return refuse("podRunner.enabled", "nobody runs pods on virtual nodes");
  }
  if (!options.ultra_server.id.empty() || !options.ultra_server.peers.empty()) {
    return refuse("ultraServer", "trn2u nodes of a fleet are in UltraServers of four");
  }
  if (!options.link_address.empty()) return refuse("linkAddress", "virtual nodes have no links");
  if (!options.efa.address.empty() || !options.efa.peers.empty()) {
    return refuse("efa", "virtual nodes have no network");
  }
  if (!options.network_layers.empty()) {
    return refuse("networkLayers", "a fleet has layers of its own, of 128, 2048 and 16384 nodes");
  }
  if (!options.capacity_block_id.empty()) {
    return refuse("capacityBlockId", "virtual nodes are in no Capacity Block of EC2's");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FleetOptions> FleetOptionsOf(const Options& options) {
  const Options::FleetNodes& nodes = options.fleet_nodes;
  FleetOptions fleet = {.plan = {.nodes = options.fleet,
                                 .name = nodes.name,
                                 .neuron_driver_version = options.driver_version},
                        .lease_period = nodes.lease_period,
                        .resync_period = nodes.resync_period,
                        .workers = nodes.workers};
  TAHOMA_RETURN_IF_ERROR(CheckFleetName(nodes.name));
  TAHOMA_ASSIGN_OR_RETURN(fleet.plan.types, ParseFleetTypes(nodes.instance_types));
  const absl::StatusOr<dra::Publish> publish = dra::ParsePublish(nodes.publish);
  if (!publish.ok()) return Annotate(publish.status(), "fleetNodes");
  fleet.plan.publish = *publish;
  fleet.plan.taint = std::nullopt;
  if (nodes.taint == "NoSchedule") fleet.plan.taint = kube::TaintEffect::kNoSchedule;
  if (nodes.taint == "NoExecute") fleet.plan.taint = kube::TaintEffect::kNoExecute;
  return fleet;
}

config::Spec DeclareOptions(Options& options) {
  config::Spec spec({.program = "sim-node",
                     .kind = "SimNodeConfig",
                     .summary =
                         "Emulates one Trn2 instance, and runs the pods bound to it; or shows "
                         "a fleet of virtual ones."});
  spec.String("nodeName", &options.node_name, "name of the Kubernetes node");
  spec.String("instanceType", &options.instance_type, "of the catalogue");
  spec.Section("ultraServer", "the UltraServer the node belongs to",
               [&](config::Fields& f) { DeclareUltraServer(f, options.ultra_server); });
  spec.Section("efa", "the EFA network to nodes outside the UltraServer",
               [&](config::Fields& f) { DeclareEfa(f, options.efa); });
  spec.Strings("networkLayers", &options.network_layers, "three \"nn-…\", top first, or none");
  spec.String("capacityBlockId", &options.capacity_block_id, "of the Capacity Block, if any");
  spec.String("driverVersion", &options.driver_version, "of the Neuron driver, four numbers");
  spec.String("nodeSocket", &options.node_socket, "unix socket for the node's dra-plugin");
  spec.String("workloadSocket", &options.workload_socket,
              "unix socket for containers, in a folder of its own; empty: "
              "<nodeSocket>.pods/workload.sock");
  spec.String("linkAddress", &options.link_address, "where other sim-nodes connect");
  spec.Section("peerTls", "how sim-nodes prove to each other who they are",
               [&](config::Fields& f) { DeclarePeerTls(f, options.peer_tls); });
  spec.String("adminAddress", &options.admin_address,
              "where faults are injected over REST; port 0: any");
  spec.String("adminTokenFile", &options.admin_token_file, "bearer token its callers must show");
  spec.String("adminTlsCertFile", &options.admin_tls_cert_file, "PEM; empty: plain HTTP");
  spec.String("adminTlsKeyFile", &options.admin_tls_key_file, "PEM, of adminTlsCertFile");
  spec.Strings("allowedHosts", &options.allowed_hosts,
               "hosts by whose names adminAddress and podRunner.logAddress may be called, and from "
               "whose pages, beside their own (docs/formats/config.md)");
  spec.String("stateDir", &options.state_dir, "folder of logs and the pod runner's state");
  spec.String("portFile", &options.port_file, "file that receives the bound addresses as YAML");
  spec.Section("collectives", "", [](config::Fields& f) { f.Gone("mode", kOneMode); });
  spec.Section("podRunner", "the kubelet's place",
               [&](config::Fields& f) { DeclarePodRunner(f, options.pod_runner); });
  spec.Int("fleet", &options.fleet, {.max = kFleetNodesMax},
           "how many virtual nodes to keep in an API server in the place of one emulated node: "
           "Nodes, Leases and ResourceSlices; 0: none. What they are: fleetNodes");
  spec.Section("fleetNodes", "the virtual nodes of a fleet",
               [&](config::Fields& f) { DeclareFleetNodes(f, options.fleet_nodes); });
  config::DeclareLog(spec, &options.log);
  return spec;
}

absl::Status CheckOptions(Options& options) {
  if (options.fleet > 0) {
    TAHOMA_RETURN_IF_ERROR(CheckFleetAlone(options));
    return FleetOptionsOf(options).status();
  }
  if (!options.fleet_nodes.kubeconfig.empty()) {
    return InvalidArgument("fleetNodes.kubeconfig is given, but fleet is 0; say how many nodes");
  }
  if (options.node_name.empty()) return InvalidArgument("nodeName is empty; name the node");
  if (hw::FindInstanceType(options.instance_type) == nullptr) {
    return InvalidArgument("instanceType \"{}\" is unknown; known are {}", options.instance_type,
                           hw::InstanceTypeNames());
  }
  if (options.workload_socket.empty()) {
    options.workload_socket = options.node_socket + ".pods/workload.sock";
  }
  for (std::string* address : {&options.node_socket, &options.workload_socket}) {
    const absl::StatusOr<wire::Address> parsed = wire::ParseAddress(*address);
    if (!parsed.ok()) return Annotate(parsed.status(), "nodeSocket or workloadSocket");
    if (!parsed->is_unix()) {
      return InvalidArgument("nodeSocket or workloadSocket: {} is no path of a unix socket",
                             *address);
    }
    *address = parsed->path;
  }
  TAHOMA_RETURN_IF_ERROR(CheckWorkloadSocket(options));
  if (options.pod_runner.pods_dir.empty()) options.pod_runner.pods_dir = options.state_dir;
  if (options.pod_runner.enabled && options.pod_runner.kubeconfig.empty()) {
    return InvalidArgument("podRunner.kubeconfig is empty; the pod runner needs an API server");
  }
  if (!options.ultra_server.peers.empty()) {
    if (options.ultra_server.id.empty()) return InvalidArgument("ultraServer.id is empty");
    if (options.link_address.empty()) {
      return InvalidArgument("linkAddress is empty, but ultraServer.peers names other nodes");
    }
  }
  TAHOMA_RETURN_IF_ERROR(CheckEfa(options));
  TAHOMA_RETURN_IF_ERROR(CheckAdmin(options));
  TAHOMA_RETURN_IF_ERROR(Annotate(rest::CheckAllowedHosts(options.allowed_hosts), "allowedHosts"));
  if (options.pod_runner.enabled) TAHOMA_RETURN_IF_ERROR(CheckLogs(options.pod_runner));
  return CheckPeerTls(options);
}

wire::TlsFiles PeerTlsFiles(const Options& options) {
  return {.cert_file = options.peer_tls.cert_file,
          .key_file = options.peer_tls.key_file,
          .ca_file = options.peer_tls.ca_file};
}

NodeCommunicators::Options CommunicatorOptionsOf(const Options& options) {
  using std::chrono::milliseconds;
  NodeCommunicators::Options made{.efa_timing = *EfaTimingOf(options.efa.layers),
                                  .election_timeout = std::chrono::duration_cast<VirtualDuration>(
                                      options.ultra_server.election_timeout)};
  if (!options.peer_tls.cert_file.empty()) made.tls = PeerTlsFiles(options);
  if (!options.link_address.empty() && !options.ultra_server.id.empty()) {
    PeerLink::Options& link = made.ultra_server.emplace();
    link.ultra_server = options.ultra_server.id;
    link.listen_address = options.link_address;
    link.silence = std::chrono::duration_cast<milliseconds>(options.ultra_server.peer_timeout);
    for (const Options::Peer& peer : options.ultra_server.peers) {
      link.peers.push_back(
          {.node_id = peer.node_id, .address = peer.address, .name = peer.node_name});
    }
  }
  if (!options.efa.address.empty()) {
    PeerLink::Options& link = made.efa.emplace();
    link.name = options.node_name;
    link.listen_address = options.efa.address;
    link.silence = std::chrono::duration_cast<milliseconds>(options.efa.peer_timeout);
    for (const Options::Efa::Peer& peer : options.efa.peers) {
      const int number = kFirstEfaNode + static_cast<int>(link.peers.size());
      link.peers.push_back({.node_id = number, .address = peer.address, .name = peer.node_name});
    }
  }
  return made;
}

}  // namespace tahoma::sim
