// The configuration of sim-node (kind SimNodeConfig), as
// docs/design/0001-seams.md lists it.
//
//   Options options;
//   config::Spec spec = DeclareOptions(options);
//   if (const auto exit = config::Parse(argc, argv, spec)) return *exit;
//   TAHOMA_RETURN_IF_ERROR(CheckOptions(options));
//
// Thread safety: none; used once, at the program's start.

#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/config/spec.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/trace/efa_layers.h"

namespace tahoma::sim {

struct Options {
  struct Peer {
    int node_id = 0;
    std::string address{};
  };
  struct UltraServer {
    std::string id{};  // empty: the node is in none
    int node_id = 0;
    std::vector<Peer> peers{};
    // NRT gives a collective 30 s; a hung node is to be named before that.
    std::chrono::nanoseconds peer_timeout = std::chrono::seconds(10);
    std::chrono::nanoseconds election_timeout = std::chrono::seconds(600);
  };
  // The way to nodes of other UltraServers, and between nodes that are in none.
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
    std::chrono::nanoseconds shutdown_grace = std::chrono::seconds(10);
    ImageMap images{};
  };

  std::string node_name{};
  std::string instance_type = "trn2.48xlarge";
  UltraServer ultra_server{};
  Efa efa{};
  std::vector<std::string> network_layers{};
  std::string capacity_block_id{};
  std::string driver_version = "2.26.10.0";
  std::string node_socket = "/run/tahoma/node.sock";
  std::string workload_socket{};  // empty: beside the node socket
  std::string link_address{};     // empty: no other node
  std::string admin_address = "127.0.0.1:0";
  std::string admin_token_file{};
  std::string state_dir = "/var/lib/tahoma/sim-node";
  std::string port_file{};
  std::string collectives_mode = "best";
  Runner pod_runner{};
};

config::Spec DeclareOptions(Options& options);

// What depends on several options; also fills what defaults to something near
// another option.
absl::Status CheckOptions(Options& options);

}  // namespace tahoma::sim
