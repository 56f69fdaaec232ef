// The configuration of sim-node (kind SimNodeConfig), in the form of docs/formats/config.md.
//
// Thread safety: none; used once, at the program's start.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/config/log.h"
#include "lib/config/spec.h"
#include "lib/wire/tls.h"
#include "sim-node/fleet/fleet.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/serve/node_communicators.h"
#include "sim-node/trace/efa_layers.h"

namespace tahoma::sim {

struct Options {
  struct Peer {
    int node_id = 0;
    std::string address{};
    std::string node_name{};  // needed with peer_tls only
  };
  // The mutual authentication of nodes, over linkAddress and efa.address.
  struct PeerTls {
    std::string cert_file{};  // its names must be this node's; empty: no TLS
    std::string key_file{};
    std::string ca_file{};
    bool insecure = false;  // anybody who can reach the address is believed
  };
  struct UltraServer {
    std::string id{};  // empty: the node is in none
    int node_id = 0;
    std::vector<Peer> peers{};
    // NRT gives a collective 30 s; a hung node is to be named before that.
    std::chrono::nanoseconds peer_timeout = std::chrono::seconds(10);
    std::chrono::nanoseconds election_timeout = std::chrono::seconds(600);
  };
  // The connections to nodes of other UltraServers, and between nodes that are in none.
  struct Efa {
    struct Peer {
      std::string node_name{};
      std::string address{};
    };
    std::string address{};  // empty: the node reaches no other over EFA
    std::vector<Peer> peers{};
    std::chrono::nanoseconds peer_timeout = std::chrono::seconds(10);
    EfaLayers layers{};  // keys of `efa` itself; the same on all nodes of a job
  };
  struct Runner {
    bool enabled = false;
    std::string kubeconfig{};
    std::string registry_dir = "/var/lib/kubelet/plugins_registry";
    std::string cdi_dir = "/var/run/cdi";
    std::string log_address = "127.0.0.1:0";
    bool log_tls = true;
    std::string log_client_ca_file{};
    std::string log_token_file{};
    std::string pods_dir{};        // empty: the state folder
    std::string pod_user = "own";  // or "same"
    std::uint32_t first_user = 0;  // 0: the first range that is free
    std::uint32_t users = 1024;
    int processes_most = 4096;
    std::chrono::nanoseconds shutdown_grace = std::chrono::seconds(10);
    ImageMap images{};
  };

  // The virtual nodes of a fleet, in place of one node.
  struct FleetNodes {
    std::string kubeconfig{};  // empty: in a pod
    std::string name = "fleet";
    std::map<std::string, std::string> instance_types = {{"trn2u.48xlarge", "1"}};
    std::vector<std::string> publish = {"chips"};
    std::string taint = "NoSchedule";  // or "NoExecute", "none"
    std::chrono::nanoseconds lease_period = std::chrono::seconds(10);
    std::chrono::nanoseconds resync_period = std::chrono::minutes(5);
    int workers = 16;
  };

  std::uint32_t fleet = 0;  // 0: one node, which is the rest of this
  FleetNodes fleet_nodes{};

  std::string node_name{};
  std::string instance_type = "trn2.48xlarge";
  UltraServer ultra_server{};
  Efa efa{};
  std::vector<std::string> network_layers{};
  std::string capacity_block_id{};
  std::string driver_version = "2.26.10.0";
  std::string node_socket = "/run/tahoma/node.sock";
  std::string workload_socket{};  // empty: <node_socket>.pods/workload.sock
  std::string link_address{};     // empty: no other node
  PeerTls peer_tls{};
  std::string admin_address = "127.0.0.1:0";
  std::string admin_token_file{};
  std::string admin_tls_cert_file{};  // empty: plain HTTP
  std::string admin_tls_key_file{};
  std::vector<std::string> allowed_hosts{};
  std::string state_dir = "/var/lib/tahoma/sim-node";
  std::string port_file{};
  Runner pod_runner{};
  config::LogOptions log;
};

config::Spec DeclareOptions(Options& options);

// Checks options that depend on each other; also fills defaults that follow another option.
absl::Status CheckOptions(Options& options);

wire::TlsFiles PeerTlsFiles(const Options& options);

// Reads options that CheckOptions has passed.
NodeCommunicators::Options CommunicatorOptionsOf(const Options& options);

// kInvalidArgument, naming the key, when a fleet cannot be so.
absl::StatusOr<FleetOptions> FleetOptionsOf(const Options& options);

}  // namespace tahoma::sim
