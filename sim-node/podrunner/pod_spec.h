// The fields of a Pod object that the pod runner reads to start its containers as local processes.
//
// Scope: fields that lib/kube/objects leaves out, and pods that cannot be run. PodMachine (life of
// the containers) and environment.h (values of variables) act on the fields. PodSpec::ignored lists
// fields that a local process cannot honour; the runner reports the list in an event.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/objects/container.h"
#include "lib/kube/objects/pod.h"
#include "sim-node/podrunner/volume_spec.h"

namespace tahoma::sim {

using kube::ClaimUse;
using kube::EnvFrom;
using kube::EnvVar;
using kube::PodClaim;
using ContainerSpec = kube::Container;

// How a container's stdin is kept: for sessions, and as a terminal.
struct StdinUse {
  bool open = false;  // stdin
  bool once = false;  // stdinOnce
  bool tty = false;
};

enum class RestartPolicy { kAlways, kOnFailure, kNever };

struct PodSpec {
  std::string name{};
  std::string name_space{};
  std::string uid{};
  std::map<std::string, std::string> labels{};
  std::map<std::string, std::string> annotations{};
  std::string node_name{};
  std::string service_account{};
  std::optional<std::int64_t> run_as_user{};  // securityContext.runAsUser of the whole pod
  bool run_as_non_root = false;               // of the pod or of a container
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  std::chrono::seconds grace{30};
  std::optional<std::chrono::seconds> active_deadline{};
  std::vector<ContainerSpec> init_containers{};
  std::vector<ContainerSpec> containers{};
  // Added to a running pod for debugging, with the devices of the containers that they target; of
  // the first container without a target.
  std::vector<ContainerSpec> ephemeral_containers{};
  std::map<std::string, StdinUse> stdin_uses{};  // by container
  std::vector<VolumeSpec> volumes{};
  std::map<std::string, std::vector<MountSpec>> mounts{};  // by container
  std::vector<PodClaim> claims{};
  // The grace of the containers; set once the pod is being deleted.
  std::optional<std::chrono::seconds> deletion_grace{};
  std::vector<std::string> ignored{};

  // "default/trainer-0"
  std::string full_name() const { return name_space + "/" + name; }
  const ContainerSpec* FindContainer(const std::string& container) const;
};

absl::StatusOr<PodSpec> ParsePod(const Json& object);

}  // namespace tahoma::sim
