// Fleets for tests: nodes with the devices that dra-plugin, or AWS's own driver, publishes.
//
//   ClusterState state;
//   AddUltraServer(state, "us-0");                       // four trn2u.48xlarge: us-0-n0 … us-0-n3
//   state.PutNode(NodeFactsOf({.name = "lone", .type = "trn2.48xlarge"}));
//
// Attributes follow docs/design/0001-seams.md; what a selector or constraint of AWS's manifests
// reads is complete, the rest is left out.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"

namespace tahoma::controller {

struct FleetNode {
  std::string name;
  std::string type = "trn2.48xlarge";
  std::string ultra_server = {};  // id; empty for a lone instance
  int z = 0;
  bool cores = true;         // publish NeuronCore partitions
  bool aws_only = false;     // as AWS's driver does: chips only, no tahoma.dev, in another order
  std::uint16_t broken = 0;  // chips with tahoma.dev/unhealthy
  std::string driver_version = "2.26.10.0";
  std::vector<std::string> links_down = {};  // by chip: "x+,z-"
  std::string modes = {};                    // elected: "X4,X2V,X1" or "busy"; empty: no election
  std::string mode = "unset";                // chosen
  std::string top_layer = {};                // of the network; empty: the node has one of its own
};

NodeFacts NodeFactsOf(const FleetNode& node);

// Four nodes "<id>-n0" … "<id>-n3".
void AddUltraServer(ClusterState& state, const std::string& id, bool cores = true);
// The same nodes, which have elected those modes ("X4,X2V,X1", "busy"); `chosen` on all of them.
void Elect(ClusterState& state, const std::string& id, const std::array<std::string, 4>& modes,
           const std::string& chosen = "unset");

// The selectors of the DeviceClasses (charts/tahoma).
inline constexpr const char* kNeuronClassSelector =
    "device.driver == \"neuron.aws.com\" && device.attributes[\"neuron.aws.com\"].resourceType in "
    "[\"neuron_device\", \"neuron_node\"]";
inline constexpr const char* kCoreClassSelector =
    "device.driver == \"neuron.aws.com\" && device.attributes[\"neuron.aws.com\"].resourceType == "
    "\"neuron_core\"";

// A claim of one request "neurons" for `count` devices of class neuron.aws.com.
ClaimSpec ChipClaim(const std::string& name, std::int64_t count);
// The same with allocationMode All.
ClaimSpec AllClaim(const std::string& name);
// `count` logical cores of that size, of class neuroncore.tahoma.dev.
ClaimSpec CoreClaim(const std::string& name, int lnc, std::int64_t count);
// One neuron_node.
ClaimSpec NodeClaim(const std::string& name);

// `members` pods of `claim_of(pod name)` each.
template <typename ClaimOf>
GangSpec GangOf(const std::string& name, int members, ClaimOf&& claim_of) {
  GangSpec gang;
  gang.key = {"default", name};
  gang.uid = "uid-" + name;
  for (int i = 0; i < members; ++i) {
    MemberSpec member;
    const std::string pod = name + "-" + std::to_string(i);
    member.pod = {"default", pod};
    member.uid = "uid-" + pod;
    member.claims.push_back(claim_of(pod));
    gang.members.push_back(std::move(member));
  }
  gang.single_pod = members == 1;
  return gang;
}

}  // namespace tahoma::controller
