// A label selector as it stands in objects (metav1.LabelSelector).
//
// Scope: reading. What a selector matches: lib/kube/selector.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/functional/function_ref.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/selector.h"

namespace tahoma::kube {

using OnRequirement = absl::FunctionRef<void(Field at, std::string_view key, std::string_view op,
                                             std::vector<std::string> values)>;

// Calls f for each entry of matchExpressions and matchLabels; `op` of a label is "In".
void ForEachRequirement(Field selector, OnRequirement f);

// Returns the selector; a requirement that Kubernetes would refuse is a failure of its field.
LabelSelector ParseLabelSelector(Field selector);

bool Selects(const LabelSelector& selector, const Labels& labels);

}  // namespace tahoma::kube
