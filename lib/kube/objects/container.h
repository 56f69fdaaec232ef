// The containers of a Pod: program, environment, and claims.
//
//   for (const Container& container : ParseContainers(spec.At("containers"))) …
//
// Scope: the fields that a pod runner honours, with bounds on a pod's use of memory.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/kube/field.h"

namespace tahoma::kube {

// An API server accepts objects up to 1.5 MiB (etcd's request limit), so no real pod meets these
// bounds.
inline constexpr std::size_t kContainersMost = 64;
inline constexpr std::size_t kPodClaimsMost = 64;
inline constexpr std::size_t kEntriesMost = 4096;

struct EnvVar {
  enum class Source { kValue, kField, kConfigMapKey, kSecretKey, kUnsupported };
  std::string name{};
  Source source = Source::kValue;
  // kValue: the text; kField: the field path; kUnsupported: the unsupported field
  std::string value{};
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

// An entry of a container's resources.claims; an empty request means every request of the claim.
struct ClaimUse {
  std::string claim{};
  std::string request{};
};

struct Container {
  std::string name{};
  std::string image{};
  std::vector<std::string> command{};
  std::vector<std::string> args{};
  std::string working_dir{};
  std::vector<EnvVar> env{};
  std::vector<EnvFrom> env_from{};
  std::vector<ClaimUse> claims{};
};

// `list` is spec.containers or spec.initContainers. A container or variable without a name is an
// error.
std::vector<Container> ParseContainers(Field list);

}  // namespace tahoma::kube
