#include "lib/kube/cel/device_values.h"

#include <string>
#include <utility>
#include <variant>

#include "lib/kube/cel/semver.h"
#include "lib/kube/quantity.h"

namespace tahoma::kube {

std::optional<CelValue> ToCel(const AttributeValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return CelValue(*flag);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return CelValue(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return CelValue(*text);
  auto version = Semver::Parse(std::get<Version>(value).text);
  return version.ok() ? std::optional(CelValue(*std::move(version))) : std::nullopt;
}

std::optional<CelValue> CapacityAmong(const std::vector<Capacity>& capacities,
                                      std::string_view domain, std::string_view id) {
  for (const Capacity& capacity : capacities) {
    if (capacity.name.id != id || capacity.name.domain != domain) continue;
    const auto quantity = Quantity::Parse(capacity.quantity);
    if (quantity.ok()) return CelValue(*quantity);
  }
  return std::nullopt;
}

DeviceView::Names NamesOf(const std::vector<Capacity>& capacities) {
  DeviceView::Names names;
  for (const Capacity& one : capacities) names.emplace_back(one.name.domain, one.name.id);
  return names;
}

}  // namespace tahoma::kube
