#include "controller/plan/eligibility.h"

#include <algorithm>
#include <string>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/cel/device_values.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kCacheMax = 1 << 16;

// A device of a node, in CEL's view.
class NodeDevice final : public kube::DeviceView {
 public:
  NodeDevice(const Node& node, std::uint16_t index) : node_(node), index_(index) {}

  std::string_view Driver() const override { return kNeuronDriver; }
  bool AllowsMultipleAllocations() const override {
    return node_.device(index_).allow_multiple_allocations;
  }
  std::optional<kube::CelValue> Attribute(std::string_view domain,
                                          std::string_view id) const override {
    const AttributeValue* value = node_.Lookup(index_, domain, id);
    return value == nullptr ? std::nullopt : kube::ToCel(*value);
  }
  std::optional<kube::CelValue> Capacity(std::string_view domain,
                                         std::string_view id) const override {
    return kube::CapacityAmong(node_.device(index_).capacities, domain, id);
  }
  Names AttributeNames() const override {
    Names names;
    for (const controller::Attribute& attribute : node_.Attributes(index_)) {
      names.emplace_back(attribute.name.domain, attribute.name.id);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Names CapacityNames() const override { return kube::NamesOf(node_.device(index_).capacities); }

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
                      fmt::format("CEL selector \"{}\"", CutUtf8(selector->source(), 200)));
    }
    if (!*matches) return false;
  }
  return true;
}

// Returns whether a selector requires a value that no device of the node has in an own slot.
bool LacksPin(const SelectorSet& set, const std::vector<std::uint16_t>& own, const Node& node) {
  return std::any_of(set.pins.begin(), set.pins.end(), [&](const SelectorSet::Pin& pin) {
    return std::any_of(own.begin(), own.end(), [&](std::uint16_t slot) {
      return node.family->devices->slot_names[slot] == pin.attribute &&
             std::find_first_of(node.own[slot]->begin(), node.own[slot]->end(), pin.values.begin(),
                                pin.values.end()) == node.own[slot]->end();
    });
  });
}

}  // namespace

Eligible Eligibility::Evaluate(const SelectorSet& set, const Node& node) {
  ++evaluations_;
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

Eligibility::Entry& Eligibility::EntryOf(const std::shared_ptr<const SelectorSet>& selectors,
                                         const Node& node) {
  const Key key(selectors.get(), node.family.get());
  if (const auto found = cache_.find(key); found != cache_.end()) return *found->second;
  if (cache_.size() >= kCacheMax) Forget();
  auto entry = std::make_unique<Entry>();
  entry->selectors = selectors;
  entry->family = node.family;
  const NodeTemplate& devices = *node.family->devices;
  for (std::size_t slot = 0; slot < devices.slot_names.size(); ++slot) {
    if (devices.own_slot[slot] && selectors->MayRead(devices.slot_names[slot].id)) {
      entry->own.push_back(static_cast<std::uint16_t>(slot));
    }
  }
  if (entry->own.empty()) entry->eligible = Evaluate(*selectors, node);
  return *cache_.emplace(key, std::move(entry)).first->second;
}

void Eligibility::Forget() {
  cache_.clear();
  own_entries_ = 0;
}

bool Eligibility::ReadsOwn(const std::shared_ptr<const SelectorSet>& selectors, const Node& node) {
  return !EntryOf(selectors, node).own.empty();
}

const Eligible& Eligibility::Of(const std::shared_ptr<const SelectorSet>& selectors,
                                const Node& node) {
  if (own_entries_ >= kCacheMax) Forget();
  Entry& entry = EntryOf(selectors, node);
  if (entry.own.empty()) return entry.eligible;
  if (LacksPin(*selectors, entry.own, node)) return nothing_;
  OwnKey key;
  for (const std::uint16_t slot : entry.own) {
    TAHOMA_CHECK(node.own[slot] != nullptr);  // the template says that the node keeps the slot
    key.push_back(node.own[slot].get());
  }
  std::unique_ptr<OwnEntry>& own = entry.by_values[std::move(key)];
  if (own != nullptr) return own->eligible;
  own = std::make_unique<OwnEntry>();
  for (const std::uint16_t slot : entry.own) own->values.push_back(node.own[slot]);
  own->eligible = Evaluate(*selectors, node);
  ++own_entries_;
  return own->eligible;
}

}  // namespace tahoma::controller
