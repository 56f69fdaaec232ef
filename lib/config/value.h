// A parsed YAML text as plain values that remember their line.
//
// Scope: the only place where this library meets yaml-cpp. Text, depth and the number of values
// are bounded, so aliases that multiply ("billion laughs") are an error and not a full memory.
//
// Thread safety: values are plain; the function may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tahoma::config {

inline constexpr std::size_t kMaxTextBytes = 4 << 20;
inline constexpr int kMaxDepth = 32;
inline constexpr int kMaxValues = 20'000;

struct Entry;

struct Value {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string scalar;
  bool quoted = false;  // "30" in quotes is a string only
  int line = 0;         // 1-based; 0 when it did not come from a file
  std::vector<Value> items;
  std::vector<Entry> entries;  // in the file's order, keys unique
};

struct Entry {
  std::string key;
  Value value;
};

// Reads one YAML document; an empty one is kNull. kInvalidArgument names the line.
absl::StatusOr<Value> ParseYaml(std::string_view text);

}  // namespace tahoma::config
