#include "controller/plan/eligibility.h"

#include <algorithm>
#include <string>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kCacheMax = 1 << 16;

std::optional<kube::CelValue> ToCel(const AttributeValue* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(value)) return kube::CelValue(*flag);
  if (const auto* number = std::get_if<std::int64_t>(value)) return kube::CelValue(*number);
  if (const auto* text = std::get_if<std::string>(value)) return kube::CelValue(*text);
  auto version = kube::Semver::Parse(std::get<Version>(*value).text);
  // The API server admits only semantic versions; another one is as good as none.
  return version.ok() ? std::optional(kube::CelValue(*std::move(version))) : std::nullopt;
}

// One device of a node, as CEL sees it.
class NodeDevice final : public kube::DeviceView {
 public:
  NodeDevice(const Node& node, std::uint16_t index) : node_(node), index_(index) {}

  std::string_view Driver() const override { return kNeuronDriver; }
  bool AllowsMultipleAllocations() const override {
    return node_.device(index_).allow_multiple_allocations;
  }
  std::optional<kube::CelValue> Attribute(std::string_view domain,
                                          std::string_view id) const override {
    return ToCel(node_.Lookup(index_, domain, id));
  }
  std::optional<kube::CelValue> Capacity(std::string_view domain,
                                         std::string_view id) const override {
    for (const controller::Capacity& capacity : node_.device(index_).capacities) {
      if (capacity.name.id != id || capacity.name.domain != domain) continue;
      auto quantity = kube::Quantity::Parse(capacity.quantity);
      if (quantity.ok()) return kube::CelValue(*quantity);
    }
    return std::nullopt;
  }
  Names AttributeNames() const override {
    Names names;
    for (const controller::Attribute& attribute : node_.Attributes(index_)) {
      names.emplace_back(attribute.name.domain, attribute.name.id);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Names CapacityNames() const override {
    Names names;
    for (const controller::Capacity& capacity : node_.device(index_).capacities) {
      names.emplace_back(capacity.name.domain, capacity.name.id);
    }
    return names;
  }

 private:
  const Node& node_;
  std::uint16_t index_;
};

absl::StatusOr<bool> Selects(const SelectorSet& set, const Node& node, std::uint16_t index) {
  const NodeDevice device(node, index);
  for (const auto& selector : set.selectors) {
    const auto matches = selector->Matches(device);
    if (!matches.ok()) {
      return Annotate(matches.status(),
                      fmt::format("CEL selector \"{}\"", selector->source().substr(0, 200)));
    }
    if (!*matches) return false;
  }
  return true;
}

Eligible Evaluate(const SelectorSet& set, const Node& node) {
  Eligible made;
  const auto& devices = node.family->devices->devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i]->role.kind == DeviceKind::kOther) continue;
    const auto index = static_cast<std::uint16_t>(i);
    const auto selected = Selects(set, node, index);
    if (!selected.ok()) {
      made.error = selected.status();
      made.error_device = index;
      return made;
    }
    if (*selected) made.devices.push_back(index);
  }
  for (const std::uint16_t index : made.devices) {
    made.kind = std::min(made.kind, devices[index]->role.kind);
  }
  std::erase_if(made.devices,
                [&](std::uint16_t index) { return devices[index]->role.kind != made.kind; });
  for (const std::uint16_t index : made.devices) {
    if (made.kind == DeviceKind::kNode) made.chips = node.family->devices->chip_mask;
    if (made.kind != DeviceKind::kNode) {
      made.chips |= static_cast<std::uint16_t>(1U << devices[index]->role.chip);
    }
  }
  return made;
}

}  // namespace

const Eligible& Eligibility::Of(const std::shared_ptr<const SelectorSet>& selectors,
                                const Node& node) {
  if (selectors->reads_place) {
    scratch_ = Evaluate(*selectors, node);
    return scratch_;
  }
  const Key key(selectors.get(), node.family.get());
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second->eligible;
  if (cache_.size() >= kCacheMax) cache_.clear();
  auto entry = std::make_unique<Entry>(Entry{selectors, node.family, Evaluate(*selectors, node)});
  const Eligible& eligible = entry->eligible;
  cache_.emplace(key, std::move(entry));
  return eligible;
}

}  // namespace tahoma::controller
