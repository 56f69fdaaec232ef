// Counts the reasons why nodes do not take a pod, each node once.
//
// Scope: the Node object and its words. why.cc counts what a node's devices lack.
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
  // Counts one node under `cause`.
  void Add(const std::string& cause) {
    ++nodes_[cause];
    ++count_;
  }
  // Lists the causes with most nodes first; beyond kCausesMax causes the rest is counted together.
  static constexpr std::size_t kCausesMax = 8;
  std::string ToString() const;

 private:
  std::map<std::string, std::size_t> nodes_;
  std::size_t count_ = 0;
};

// Returns the first reason that applies for which the node does not admit the pod: "cordoned",
// "with taint team=red not tolerated", "not matching the node selector", "not matching node
// affinity", "had volume node affinity conflict (…)", "not ready". Returns "" when it admits the
// pod. "not ready" comes last: such a node admits the pod once it is ready.
std::string CauseOf(const NodeDemand& demand, const Node& node);

// Returns whether the node admits the pod now or would once it is ready: the taints that Kubernetes
// puts on a node that is not ready are then gone. A cordoned node does not.
bool AdmitsWhenReady(const NodeDemand& demand, const Node& node);

}  // namespace tahoma::controller
