#include "controller/plan/value_index.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

// Calls f(value) for the values that the node's devices have, some of them more than once.
template <typename F>
void ForEachValue(const Node& node, const QualifiedName& attribute, F&& f) {
  const NodeTemplate& all = *node.family->devices;
  const auto found = std::find(all.slot_names.begin(), all.slot_names.end(), attribute);
  if (found != all.slot_names.end()) {
    const auto slot = static_cast<std::size_t>(found - all.slot_names.begin());
    if (!all.own_slot[slot]) return f(node.family->values[slot]);
    for (const AttributeValue& value : *node.own[slot]) f(value);
    return;
  }
  for (const auto& device : all.devices) {
    const AttributeValue* value = device->device.Find(attribute.domain, attribute.id);
    if (value != nullptr) f(*value);
  }
}

}  // namespace

void ValueIndex::Update(const ClusterState& state, DomainId id) {
  if (domains_.size() <= id.value()) domains_.resize(id.value() + 1);
  Nodes now;
  if (id.value() < state.domain_count()) {
    const DomainState& domain = state.domain(id);
    for (std::size_t z = 0; z < now.size(); ++z) {
      if (domain.nodes[z].valid()) now[z] = state.node(domain.nodes[z]).node;
    }
  }
  Nodes& before = domains_[id.value()];
  if (before == now) return;
  const auto number = static_cast<std::uint32_t>(id.value());
  for (auto& [attribute, by_value] : attributes_) {
    auto& domains_of = by_value;  // clang 14 captures no structured binding
    for (const auto& node : before) {
      if (node == nullptr) continue;
      ForEachValue(*node, attribute, [&](const AttributeValue& value) {
        const auto at = domains_of.find(value);
        if (at == domains_of.end()) return;
        at->second.erase(number);
        if (at->second.empty()) domains_of.erase(at);
      });
    }
    for (const auto& node : now) {
      if (node == nullptr) continue;
      ForEachValue(*node, attribute,
                   [&](const AttributeValue& value) { domains_of[value].insert(number); });
    }
  }
  before = std::move(now);
}

void ValueIndex::Sync(const ClusterState& state) {
  ClusterState::ForEachChangedDomain(synced_, state, [&](DomainId id) { Update(state, id); });
  for (std::size_t i = state.domain_count(); i < domains_.size(); ++i) Update(state, DomainId(i));
  synced_ = state;
}

std::optional<std::vector<DomainId>> ValueIndex::DomainsWith(
    const QualifiedName& attribute, std::span<const AttributeValue> values) {
  auto indexed = attributes_.find(attribute);
  if (indexed == attributes_.end()) {
    if (attributes_.size() >= kAttributesMax) return std::nullopt;
    indexed = attributes_.try_emplace(attribute).first;
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      for (const auto& node : domains_[i]) {
        if (node == nullptr) continue;
        ForEachValue(*node, attribute, [&](const AttributeValue& value) {
          indexed->second[value].insert(static_cast<std::uint32_t>(i));
        });
      }
    }
  }
  std::vector<DomainId> domains;
  for (const AttributeValue& value : values) {
    const auto at = indexed->second.find(value);
    if (at == indexed->second.end()) continue;
    TAHOMA_CHECK(*at->second.rbegin() <
                 synced_.domain_count());  // a domain that is gone has no values
    for (const std::uint32_t domain : at->second) domains.emplace_back(domain);
  }
  std::sort(domains.begin(), domains.end());
  domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
  return domains;
}

}  // namespace tahoma::controller
