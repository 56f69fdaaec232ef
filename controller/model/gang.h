// Gangs: pods that are placed together on pieces of the torus, or not at all.
//
//   GangSpec gang{.key = {"default", "train"}, .shape_text = "4x4x4"};
//   gang.members = …;                      // one MemberSpec per pod, in the order of their ranks
//   auto waiting = std::make_shared<const GangSpec>(std::move(gang));
//
// A pod without a gang is a gang of one with the pod's own key and no shape.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controller/model/claim.h"
#include "controller/model/ids.h"
#include "controller/model/inventory.h"
#include "lib/base/clock.h"
#include "lib/torus/shape.h"

namespace tahoma::controller {

enum class NodeOperator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// A pod's requirement on its node. `key` "metadata.name" with `field` set is the node's name.
struct NodeRequirement {
  std::string key;
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string> values;
  bool field = false;
};

// A pod's spec.nodeSelector and required node affinity. A node must meet every requirement in `all`
// and, unless `any_term` is empty, every requirement of one of its terms.
struct NodeDemand {
  std::vector<NodeRequirement> all;
  std::vector<std::vector<NodeRequirement>> any_term;
  std::vector<Toleration> tolerations;  // the pod's, against taints of the Node

  // Returns whether the node's labels, name and taints meet the demand.
  bool Admits(const Node& node) const;
  // Check the parts of the demand.
  bool IsKeptAwayBy(const Taint& taint) const;  // it has an effect, and is not tolerated
  bool SelectorAdmits(const Node& node) const;  // `all`
  bool AffinityAdmits(const Node& node) const;  // `any_term`
};

struct MemberSpec {
  PodKey pod;
  std::string uid;
  NodeDemand node;
  std::vector<ClaimSpec> claims;  // in the order of the pod's resourceClaims
};

struct GangSpec {
  // The key that the user knows: the Gang's, or the pod's own for a pod without a gang.
  GangKey key;
  std::string uid;  // uid of the Gang, or of the pod
  bool single_pod = false;
  std::string shape_text;             // as the user wrote it; empty when there is none
  std::optional<std::int64_t> chips;  // chips of one slice
  int slices = 1;
  std::string queue = "default";
  std::int32_t priority = 0;
  std::optional<std::chrono::seconds> max_runtime;
  WallTime created;
  std::vector<MemberSpec> members;  // all of them, in the order of their ranks

  // Returns "gang default/train" or "pod default/p".
  std::string Describe() const;
};

using Queue = std::vector<std::shared_ptr<const GangSpec>>;

}  // namespace tahoma::controller
