// Why nodes do not take a pod, each node counted once.
//
//   Causes causes;
//   causes.Add(CauseOf(demand, node));
//   causes.ToString();                     // "0/640 nodes: 600 not ready, 40 cordoned"
//
// Scope: the Node object and its words. What its devices lack is counted by why.cc.
//
// Thread safety: values.

#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "controller/model/gang.h"

namespace tahoma::controller {

class Causes {
 public:
  // Of one node.
  void Add(const std::string& cause) {
    ++nodes_[cause];
    ++count_;
  }
  // Most nodes first; beyond kCausesMax causes the rest is counted together.
  static constexpr std::size_t kCausesMax = 8;
  std::string ToString() const;

 private:
  std::map<std::string, std::size_t> nodes_;
  std::size_t count_ = 0;
};

// Why the node does not admit the pod, by the first that applies: "cordoned", "with taint team=red
// not tolerated", "not matching the node selector", "not matching node affinity", "not ready".
// Empty when it does. "not ready" comes last: such a node admits the pod once it is ready.
std::string CauseOf(const NodeDemand& demand, const Node& node);

// Whether the node admits the pod, or would once it is ready: the taints that Kubernetes puts on
// nodes that are not go with it. A cordon does not.
bool AdmitsWhenReady(const NodeDemand& demand, const Node& node);

}  // namespace tahoma::controller
