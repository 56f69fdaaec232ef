#include "controller/allocate/selection.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/cel/device_values.h"

namespace tahoma::controller::allocate {
namespace {

class SliceDevice final : public kube::DeviceView {
 public:
  explicit SliceDevice(const Candidate& candidate) : candidate_(candidate) {}

  std::string_view Driver() const override { return candidate_.slice->driver; }
  bool AllowsMultipleAllocations() const override {
    return candidate_.device().allow_multiple_allocations;
  }
  std::optional<kube::CelValue> Attribute(std::string_view domain,
                                          std::string_view id) const override {
    if (const auto* value = candidate_.device().Find(domain, id)) return kube::ToCel(*value);
    for (const kube::ListAttribute& list : candidate_.details().lists) {
      if (list.name.id != id || list.name.domain != domain) continue;
      kube::CelValue::List values;
      for (const kube::AttributeValue& one : list.values) {
        auto value = kube::ToCel(one);
        if (value) values.push_back(*std::move(value));
      }
      return kube::CelValue(std::move(values));
    }
    return std::nullopt;
  }
  std::optional<kube::CelValue> Capacity(std::string_view domain,
                                         std::string_view id) const override {
    return kube::CapacityAmong(candidate_.device().capacities, domain, id);
  }
  Names AttributeNames() const override {
    Names names;
    for (const kube::Attribute& one : candidate_.device().attributes) {
      names.emplace_back(one.name.domain, one.name.id);
    }
    for (const kube::ListAttribute& one : candidate_.details().lists) {
      names.emplace_back(one.name.domain, one.name.id);
    }
    return names;
  }
  Names CapacityNames() const override { return kube::NamesOf(candidate_.device().capacities); }

 private:
  const Candidate& candidate_;
};

absl::StatusOr<bool> Matches(const CompiledSelector& selector, const Candidate& candidate,
                             const Features& features) {
  if (!selector.selector.ok()) return Annotate(selector.selector.status(), selector.where);
  for (const kube::ListAttribute& list : candidate.details().lists) {
    if (features.list_attributes && !list.values.empty()) continue;
    return InvalidArgument("{}: device {} has the attribute {}/{}, of a type that is not known",
                           selector.where, candidate.device().name, list.name.domain, list.name.id);
  }
  const auto matches = selector.selector->Matches(SliceDevice(candidate));
  if (matches.ok()) return *matches;
  return Annotate(matches.status(),
                  fmt::format("{}: CEL selector \"{}\" on device {}", selector.where,
                              CutUtf8(selector.selector->source(), 200), candidate.device().name));
}

}  // namespace

absl::StatusOr<bool> Selects(const Alternative& alternative, const Candidate& candidate,
                             NodeView node, const Features& features) {
  const kube::DeviceDetails& details = candidate.details();
  if (!features.binding_conditions && !details.binding_conditions.empty()) return false;
  for (const CompiledSelector& selector : alternative.selectors) {
    TAHOMA_ASSIGN_OR_RETURN(const bool matches, Matches(selector, candidate, features));
    if (!matches) return false;
  }
  return !candidate.slice->per_device_nodes ||
         IsFor(node, details.node, details.all_nodes, details.node_terms);
}

}  // namespace tahoma::controller::allocate
