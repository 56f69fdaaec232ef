// The functions that CEL expressions over devices may call.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <optional>
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
  CelType result;    // kDyn where it depends
  CelType receiver;  // type of the first argument; kDyn where there are several
};

// nullptr when there is no such function at all.
const CelSignature* FindCelFunction(std::string_view name, CelCallStyle style, std::size_t args);
bool IsCelNamespace(std::string_view name);

}  // namespace tahoma::kube::internal
