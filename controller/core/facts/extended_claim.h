// The ResourceClaim of a pod that asks for devices by the names of extended resources
// (lib/kube/objects/extended_resource.h), as kube-scheduler makes such claims.
//
//   const std::optional<ExtendedClaim> wished = ExtendedClaimOf(pod, facts);
//   if (wished && !(pod.extended_claim == wished->status)) …    // the pod does not show it yet
//   if (!IsSpecOf(*wished, *claim.spec)) …                      // made for other classes
//
// A pod gets a resource by the claim when a DeviceClass has the resource's name. Of several classes
// with one name the class that was created last counts; of classes of one age, the first by name.
// The claim has one request for each resource of each container. An init container that ends before
// the next container starts uses the devices of later containers; the init container that needs the
// most beyond those devices has a request for the difference, and other init containers share the
// request.
//
// Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
// createRequestsAndMappings; dynamic-resource-allocation deviceclass/extendedresourcecache.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/facts/facts.h"

namespace tahoma::controller {

struct ExtendedRequest {
  std::string name;
  std::string device_class;
  std::int64_t count = 1;
};

struct ExtendedClaim {
  std::vector<ExtendedRequest> requests;
  // The claim as the pod's status shows the claim. The name is made of the pod's name and uid:
  // nobody makes a second claim for the pod.
  kube::ExtendedClaimStatus status;
};

// Returns the class that pods ask for by the resource's name; nullptr when there is none.
const ClassFact* ClassOf(std::string_view resource, const Facts& facts);

// Returns nullopt when no DeviceClass has a name that the pod asks for.
std::optional<ExtendedClaim> ExtendedClaimOf(const PodFact& pod, const Facts& facts);

// Returns whether a claim of this spec has the wished requests and nothing else.
bool IsSpecOf(const ExtendedClaim& wished, const kube::ResourceClaimSpec& spec);

// Returns the resources that the claim stands for, sorted.
std::vector<std::string> ResourcesOf(const kube::ExtendedClaimStatus& status);

// Returns the first resource that the pod can get neither by a claim nor of a device plugin of any
// node; "" for none. Judges only names of Neuron devices and of DeviceClasses: the planner counts
// nodes that lack any other resource.
std::string UnknownResource(const PodFact& pod, const Facts& facts);

}  // namespace tahoma::controller
