// YAML as kubectl reads it, into JSON.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json pod, YamlToJson(text));
//   TAHOMA_ASSIGN_OR_RETURN(const std::vector<Json> all, YamlDocuments(text));   // "---" between
//
// Plain scalars are typed as sigs.k8s.io/yaml does: null and ~, true and false (not yes or on),
// decimal, octal (0o, 0) and hexadecimal integers, floats; what is quoted stays text. JSON is YAML
// too. Bounded: depth, size, and how much aliases may expand. Anchors and aliases are expanded,
// merge keys (<<) too; duplicate keys and other tags are errors.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace tahoma::kube {

inline constexpr std::size_t kYamlBytesMax = 3 << 20;  // Kubernetes' bound on a request body
inline constexpr int kYamlDepthMax = 100;
inline constexpr std::size_t kYamlDocumentsMax = 1000;
inline constexpr std::size_t kYamlNodesMax = 1'000'000;  // after aliases are expanded

// Exactly one document (an empty one is null). kInvalidArgument with line and reason.
absl::StatusOr<nlohmann::json> YamlToJson(std::string_view text);

// All documents; empty ones are left out.
absl::StatusOr<std::vector<nlohmann::json>> YamlDocuments(std::string_view text);

}  // namespace tahoma::kube
