// The attributes and capacities of devices as an expression sees them.
//
// Thread safety: pure functions.

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/kube/cel/value.h"
#include "lib/kube/objects/device.h"

namespace tahoma::kube {

// Returns nullopt for a text that is no semantic version: the API server admits only versions that
// are, and any other text counts as no value.
std::optional<CelValue> ToCel(const AttributeValue& value);

// Returns nullopt when there is no such capacity, or the text is no quantity.
std::optional<CelValue> CapacityAmong(const std::vector<Capacity>& capacities,
                                      std::string_view domain, std::string_view id);
DeviceView::Names NamesOf(const std::vector<Capacity>& capacities);

}  // namespace tahoma::kube
