// The functions that CEL expressions over devices may call.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/kube/cel/expression.h"

namespace tahoma::kube::internal {

enum class CelCallStyle : std::uint8_t {
  kGlobal,    // size(x)
  kMember,    // x.size(); the receiver is the first argument
  kNamespace  // sets.contains(a, b)
};

struct CelSignature {
  std::string_view name;  // with its namespace: "sets.contains"
  CelCallStyle style;
  std::size_t args_min;  // receiver included
  std::size_t args_max;
  CelFunction function;
  CelType result;    // kDyn when it depends on the arguments
  CelType receiver;  // type of the first argument; kDyn when several are possible
};

// Returns nullptr when there is no such function at all.
const CelSignature* FindCelFunction(std::string_view name, CelCallStyle style, std::size_t args);
bool IsCelNamespace(std::string_view name);

// Patterns of matches() and find(). The memory bounds the time that a few bytes of nested
// repetitions take to compile: about 10 ms, and 50 ms.
inline constexpr std::int64_t kPatternMemoryInEvaluation = 1 << 18;
inline constexpr std::int64_t kPatternMemory = 1 << 20;
absl::StatusOr<std::unique_ptr<re2::RE2>> CompileCelPattern(std::string_view pattern,
                                                            std::int64_t memory);

}  // namespace tahoma::kube::internal
