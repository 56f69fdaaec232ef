// Label selectors of objects as one line.
//
//   SelectorText({{"matchLabels", {{"app", "web"}}}});   // "app=web"
//
// Scope: the form of a selector. Whether an object has the labels is asked of kube::LabelSelector.
//
// Thread safety: pure function.

#pragma once

#include <optional>
#include <string>

#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// "app=web,!old,tier in (a,b)": terms in the order of their keys. Empty when the selector is absent
// or has no terms; nullopt when an operator is unknown or does not fit the values.
std::optional<std::string> SelectorText(const Json& selector);

}  // namespace tahoma::controller::apiserver
