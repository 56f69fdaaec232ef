// The Node object that a kubelet keeps for its node (its Lease is kube::MakeNodeLease).
//
//   Json node = MakeNode(facts, now);          // to create
//   Json status = MakeNodeStatus(facts, now);  // to patch, every few minutes or when it is wrong
//
// The labels are the labels that EC2's cloud controller, AWS's device plugin
// (lib/wire/node_labels.h) and the kubelet set on a real node.
//
// Scope: objects. pod_runner sends the objects.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/wire/messages.h"

namespace tahoma::sim {

struct NodeFacts {
  std::string name{};
  std::string instance_type{};
  int vcpus = 0;
  std::int64_t memory_bytes = 0;
  int efa_interfaces = 0;         // as AWS's EFA device plugin counts them
  std::string ultra_server_id{};  // empty: in none
  int ultra_server_node = 0;
  // The result of the node's election; without an election the labels show a whole UltraServer as
  // wired.
  std::optional<wire::UltraServerElection> election{};
  std::vector<std::string> network_layers{};
  std::string capacity_block_id{};
  std::string address = "127.0.0.1";
  int log_port = 0;  // where /containerLogs is served
  WallTime ready_since{};
};

// A kubelet's default (KubeletConfiguration v1beta1, maxPods).
inline constexpr int kMaxPods = 110;

std::map<std::string, std::string> NodeLabels(const NodeFacts& facts);
// Returns a merge patch of metadata.labels: NodeLabels, and null for the UltraServer's labels
// missing there.
Json LabelPatch(const NodeFacts& facts);
Json MakeNode(const NodeFacts& facts, WallTime now);
Json MakeNodeStatus(const NodeFacts& facts, WallTime now);

}  // namespace tahoma::sim
