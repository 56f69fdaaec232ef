// The priority classes that every cluster has.
//
//   for (const SystemPriorityClass& known : kSystemPriorityClasses) …
//
// Source: Kubernetes 1.36, pkg/apis/scheduling/v1/helpers.go and types.go.
//
// Thread safety: constants and pure functions.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tahoma::controller::apiserver {

struct SystemPriorityClass {
  const char* name;
  std::int32_t value;
  const char* description;
};
inline constexpr std::array kSystemPriorityClasses = {
    SystemPriorityClass{
        "system-node-critical", 2'000'001'000,
        "Used for system critical pods that must not be moved from their current node."},
    SystemPriorityClass{"system-cluster-critical", 2'000'000'000,
                        "Used for system critical pods that must run in the cluster, but can be "
                        "moved to another node if necessary."}};
// Larger values are the system's own.
inline constexpr std::int32_t kUserPriorityMost = 1'000'000'000;

// nullptr when it is none of them.
inline const SystemPriorityClass* FindSystemPriorityClass(std::string_view name) {
  for (const SystemPriorityClass& known : kSystemPriorityClasses) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

}  // namespace tahoma::controller::apiserver
