// The resources of nodes and the needs of pods, counted as kube-scheduler counts them.
//
//   Reading reading(pod);
//   const PodNeeds needs = ParsePodNeeds(reading.root());
//   NodeUse use;
//   use.Add(needs);                                    // the pod is on the node
//   WhyNotOn(allocatable, use, needs);                 // "Insufficient cpu", or ""
//
// Amounts are integers: cpu in thousandths of a core, everything else in units (bytes, pods,
// devices). An amount of an object beyond 2^55 counts as 2^55, so that sums stay exact.
//
// A pod needs what its containers request together, or what its init containers need one after the
// other where that is more; a sidecar (an init container with restartPolicy Always) runs beside all
// that start after the sidecar. The pod's overhead is added, and the pod counts as one of the
// resource "pods". A resource of spec.resources replaces the sum over the containers. A container
// that has a limit and no request requests the limit (source: kubernetes
// component-helpers/resource/helpers.go, PodRequests). A resize that has not taken effect yet does
// not count.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/kube/field.h"

namespace tahoma::kube {

// Amounts by resource, sorted by name. An absent resource is 0.
using Amounts = std::vector<std::pair<std::string, std::int64_t>>;

// Returns the amount of the resource.
std::int64_t AmountOf(const Amounts& amounts, std::string_view resource);

// A port of the node that a container takes.
struct HostPort {
  std::string ip;  // empty: every address of the node
  std::string protocol;
  std::int32_t port = 0;

  // Returns whether both cannot be taken on one node.
  bool ConflictsWith(const HostPort& other) const;

  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

struct PodNeeds {
  Amounts amounts;  // "pods" is 1; amounts of 0 are left out
  std::vector<HostPort> ports;
  // Resources that the pod gets by a claim: a node whose device plugin offers such a resource is
  // not for the pod. Sorted.
  std::vector<std::string> claimed = {};

  friend bool operator==(const PodNeeds&, const PodNeeds&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PodNeeds& needs) {
    h = H::combine(std::move(h), needs.amounts);
    for (const HostPort& port : needs.ports) {
      h = H::combine(std::move(h), port.ip, port.protocol, port.port);
    }
    return H::combine(std::move(h), needs.claimed);
  }
};

// Reads a pod. A quantity that cannot be parsed fails the reading.
PodNeeds ParsePodNeeds(Field pod);

// Reads a list of amounts, such as status.allocatable of a Node.
Amounts ParseAmounts(Field list);

// The needs of all pods of a node together.
struct NodeUse {
  Amounts amounts;
  std::vector<HostPort> ports;  // sorted; a port that two pods took is there twice

  void Add(const PodNeeds& needs);
  // Takes back what was added.
  void Subtract(const PodNeeds& needs);
  bool empty() const { return amounts.empty() && ports.empty(); }
};

// Changes the pod's needs to get these resources, which are sorted, by a claim.
void TakeByClaim(std::vector<std::string> resources, PodNeeds& needs);

// Returns why a node with these amounts and this use has no room for the pod, in kube-scheduler's
// words: "Too many pods", "Insufficient memory", "no free host port 80"; "" when there is room.
std::string WhyNotOn(const Amounts& allocatable, const NodeUse& use, const PodNeeds& needs);
// Returns whether WhyNotOn is "", without making a text.
bool HasRoomFor(const Amounts& allocatable, const NodeUse& use, const PodNeeds& needs);

}  // namespace tahoma::kube
