// Reads YAML as kubectl does, into JSON.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json pod, YamlToJson(text));
//   TAHOMA_ASSIGN_OR_RETURN(const std::vector<Json> all, YamlDocuments(text));   // "---" between
//
// Plain scalars are typed as sigs.k8s.io/yaml does, which is YAML 1.1 in part: null and ~; true,
// yes, on, y and their opposites are booleans; decimal, octal (0o, 0), hexadecimal and binary
// integers, with _ between digits; floats, which without a fraction are integers. Keys are typed in
// the same way and then made text. Quoted scalars stay text. JSON is YAML too. Depth, size, and how
// much aliases may expand are bounded. Anchors and aliases are expanded, merge keys (<<) too;
// duplicate keys and other tags are errors, and infinities stay text.
//
// libyaml reads the text; kubectl's reader is a Go translation of libyaml. libyaml hands over each
// value as it comes and looks ahead no further than a key's length, so a text costs no more memory
// than its values.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::kube {

inline constexpr std::size_t kYamlBytesMax = 3 << 20;  // Kubernetes' bound on a request body
inline constexpr int kYamlDepthMax = 100;
inline constexpr std::size_t kYamlDocumentsMax = 1000;
// The most values, aliases expanded; 64 bytes of text count as a value, and a node with an anchor
// counts twice. A value takes some 64 bytes of memory, so a text takes 32 MiB at most.
inline constexpr std::size_t kYamlNodesMax = 500'000;

// Parses exactly one document (an empty one is null). kInvalidArgument with line and reason.
absl::StatusOr<Json> YamlToJson(std::string_view text);

// Parses all documents; empty ones are left out.
absl::StatusOr<std::vector<Json>> YamlDocuments(std::string_view text);

}  // namespace tahoma::kube
