// The devices of Kubernetes (lib/kube/objects), and the names of those that we place pods on.
//
//   Device chip{.name = "neuron-device-3"};
//   chip.attributes.push_back({{"neuron.aws.com", "deviceId"}, std::int64_t{3}});
//
// Names without a domain belong to the driver's domain
// (docs/reference/kubernetes-dra.md#device-selectors).
//
// Scope: values as published. What a device *is* (which chip, which cores) is derived in
// inventory.h.
//
// Thread safety: values.

#pragma once

#include <string_view>

#include "lib/kube/objects/device.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::controller {

using kube::Attribute;
using kube::AttributeValue;
using kube::Capacity;
using kube::Device;
using kube::ParseQualifiedName;
using kube::QualifiedName;
using kube::Taint;
using kube::TaintEffect;
using kube::Tolerates;
using kube::Toleration;
using kube::TolerationOperator;
using kube::Version;

// The driver, device class and attribute domain of AWS, and our own domain.
inline constexpr std::string_view kNeuronDriver = "neuron.aws.com";
inline constexpr std::string_view kTahomaDomain = "tahoma.dev";

// The toleration that every allocation of ours carries (docs/design/0001-seams.md).
Toleration ManagedToleration();

}  // namespace tahoma::controller
