// Label selectors of objects: as one line, and as what selects.
//
//   SelectorText({{"matchLabels", {{"app", "web"}}}});   // "app=web"
//
// Scope: the form of a selector. Whether an object has the labels is asked of kube::LabelSelector.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/selector.h"

namespace tahoma::controller::apiserver {

// "app=web,!old,tier in (a,b)": terms in the order of their keys. Empty when the selector is absent
// or has no terms; nullopt when an operator is unknown or does not fit the values.
std::optional<std::string> SelectorText(const Json& selector);

// Returns what selects; an absent selector takes everything. kInvalidArgument as nullopt above.
absl::StatusOr<kube::LabelSelector> LabelSelectorOf(const Json& selector);

}  // namespace tahoma::controller::apiserver
