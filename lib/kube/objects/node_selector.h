// Requirements on a node by its labels and name: core/v1's NodeSelector.
//
//   const NodeTerms terms = ParseNodeTerms(affinity.At("required"));
//   if (MeetsOne(terms, node.name, node.labels)) …
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::kube {

enum class NodeOperator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// A requirement of a pod on its node. `key` "metadata.name" with `field` set is the node's name.
struct NodeRequirement {
  std::string key;
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string>
      values;  // sorted: there may be thousands (controller/core/queue/neighbours.h)
  bool field = false;

  friend bool operator==(const NodeRequirement&, const NodeRequirement&) = default;
};

// A node must meet every requirement of one of the terms.
using NodeTerms = std::vector<std::vector<NodeRequirement>>;

// An operator that Kubernetes does not know fails the reading.
NodeTerms ParseNodeTerms(Field selector);
// Reads one of the terms.
std::vector<NodeRequirement> ParseNodeTerm(Field term);
Json RenderNodeTerms(const NodeTerms& terms);

// Returns whether a node of this name and these labels, sorted by key, meets every requirement.
// As in Kubernetes, NotIn and DoesNotExist hold for an absent label, and Gt and Lt compare
// integers.
bool MeetsAll(const std::vector<NodeRequirement>& requirements, const std::string& name,
              const Labels& labels);
// Returns whether the node meets a term. A term without requirements selects nothing.
bool MeetsOne(const NodeTerms& terms, const std::string& name, const Labels& labels);

}  // namespace tahoma::kube
