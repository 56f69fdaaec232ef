// The variables and arguments a container starts with.
//
// Order as in the kubelet: envFrom, then env from top to bottom, each able to use those before it.
//
// Scope: values. The variables of a claim's devices come from cdi.h, and the caller adds them.
//
// Thread safety: pure functions; `read` is called from the caller's thread.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim-node/podrunner/pod_machine.h"
#include "sim-node/podrunner/pod_spec.h"

namespace tahoma::sim {

using Environment = std::map<std::string, std::string>;

enum class KeyedObject { kConfigMap, kSecret };
// The decoded entries of a ConfigMap or Secret in the pod's namespace; kNotFound when it is absent.
using ObjectReader = std::function<absl::StatusOr<std::map<std::string, std::string>>(
    KeyedObject kind, const std::string& name)>;

// Returns what a field path of the pod stands for, as downwardAPI has it: metadata.labels and
// metadata.annotations are lines key="value". kInvalidArgument for an unknown path.
absl::StatusOr<std::string> FieldText(const PodSpec& pod, const PodMachine::Addresses& addresses,
                                      const std::string& path);

// kNotFound or kInvalidArgument names the variable and what it asked for.
absl::StatusOr<Environment> BuildEnvironment(const PodSpec& pod, const ContainerSpec& container,
                                             const PodMachine::Addresses& addresses,
                                             const ObjectReader& read);

// Replaces $(NAME) by its value where NAME is known; $$ stands for one $ (Kubernetes'
// third_party/forked/golang/expansion).
std::string Expand(std::string_view text, const Environment& environment);
std::vector<std::string> ExpandAll(const std::vector<std::string>& texts,
                                   const Environment& environment);

}  // namespace tahoma::sim
