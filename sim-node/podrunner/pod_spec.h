// The fields of a Pod object that the pod runner reads: enough to start its containers as local
// processes.
//
//   absl::StatusOr<PodSpec> pod = ParsePod(object);
//   if (!pod.ok()) …           // "pod default/a: spec.containers[0].name is missing"
//
// Scope: parsing and bounds. PodMachine (life of the containers) and environment.h (values of
// variables) act on the fields. Fields a local process cannot honour are listed in PodSpec::ignored
// so that the runner can say so in an event.
//
// Thread safety: values.

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

namespace tahoma::sim {

// An API server accepts objects up to 1.5 MiB (etcd's request limit), so these are never met by a
// real pod; they bound what one pod can make the runner hold.
inline constexpr std::size_t kMaxContainersPerPod = 64;
inline constexpr std::size_t kMaxClaimsPerPod = 64;
inline constexpr std::size_t kMaxListEntries = 4096;

struct EnvVar {
  enum class Source { kValue, kField, kConfigMapKey, kSecretKey, kUnsupported };
  std::string name{};
  Source source = Source::kValue;
  std::string value{};   // kValue: the text; kField: the field path; kUnsupported: what it was
  std::string object{};  // name of the ConfigMap or Secret
  std::string key{};
  bool optional = false;
};

struct EnvFrom {
  enum class Source { kConfigMap, kSecret };
  Source source = Source::kConfigMap;
  std::string object{};
  std::string prefix{};
  bool optional = false;
};

// One entry of a container's resources.claims; an empty request means all of the claim's.
struct ClaimUse {
  std::string claim{};
  std::string request{};
};

struct ContainerSpec {
  std::string name{};
  std::string image{};
  std::vector<std::string> command{};
  std::vector<std::string> args{};
  std::string working_dir{};
  std::vector<EnvVar> env{};
  std::vector<EnvFrom> env_from{};
  std::vector<ClaimUse> claims{};
};

// One entry of spec.resourceClaims. `object` is the ResourceClaim's name, empty as long as the
// claim of a template has not been made (status.resourceClaimStatuses). A template that needs no
// claim is marked `not_needed`.
struct PodClaim {
  std::string name{};
  std::string object{};
  bool not_needed = false;
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
  bool run_as_non_root = false;               // of the pod or of one of its containers
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  std::chrono::seconds grace{30};
  std::optional<std::chrono::seconds> active_deadline{};
  std::vector<ContainerSpec> init_containers{};
  std::vector<ContainerSpec> containers{};
  std::vector<PodClaim> claims{};
  // Set once the pod is being deleted: how long its containers may take.
  std::optional<std::chrono::seconds> deletion_grace{};
  std::vector<std::string> ignored{};

  // "default/trainer-0"
  std::string full_name() const { return name_space + "/" + name; }
  const ContainerSpec* FindContainer(const std::string& container) const;
};

absl::StatusOr<PodSpec> ParsePod(const Json& object);

}  // namespace tahoma::sim
