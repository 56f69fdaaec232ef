#include "controller/core/queue/other_places.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::controller {

bool OtherPlaces::Concerns(const OtherPodTraits& traits) const {
  return !traits.apart.empty() || std::ranges::any_of(traits.labels, [&](const auto& one) {
    return with_label_.contains(one.first);
  });
}

void OtherPlaces::Remember(const OtherPodTraits& traits) {
  for (const auto& [label, value] : traits.labels) {
    const auto found = with_label_.find(label);
    if (found != with_label_.end()) found->second[value].insert(&traits);
  }
  for (const auto& term : traits.apart) avoiding_[term.label].insert(&traits);
}

void OtherPlaces::Forget(const OtherPodTraits& traits) {
  for (const auto& [label, value] : traits.labels) {
    const auto found = with_label_.find(label);
    if (found == with_label_.end()) continue;
    const auto of_value = found->second.find(value);
    TAHOMA_CHECK(of_value != found->second.end());  // Remember and Follow have put it there
    of_value->second.erase(&traits);
    if (of_value->second.empty()) found->second.erase(of_value);
  }
  for (const auto& term : traits.apart) {
    const auto found = avoiding_.find(term.label);
    if (found == avoiding_.end()) continue;  // two terms may name one label
    found->second.erase(&traits);
    if (found->second.empty()) avoiding_.erase(found);
  }
}

bool OtherPlaces::Add(const Traits& traits, NodeId node) {
  Placed& placed = all_[traits.get()];
  if (placed.traits == nullptr) {
    placed.traits = traits;
    Remember(*traits);
  }
  ++placed.nodes[node];
  return Concerns(*traits);
}

bool OtherPlaces::Remove(const Traits& traits, NodeId node) {
  const auto placed = all_.find(traits.get());
  TAHOMA_CHECK(placed != all_.end());  // only a pod that was added leaves
  Nodes& nodes = placed->second.nodes;
  const auto count = nodes.find(node);
  TAHOMA_CHECK(count != nodes.end());
  if (--count->second == 0) nodes.erase(count);
  if (nodes.empty()) {
    Forget(*traits);
    all_.erase(placed);
  }
  return Concerns(*traits);
}

void OtherPlaces::Follow(const std::string& label) {
  if (label.empty()) return;
  const auto [found, added] = with_label_.try_emplace(label);
  if (!added) return;
  for (const auto& [traits, placed] : all_) {
    const std::string* value = kube::FindLabel(traits->labels, label);
    if (value != nullptr) found->second[*value].insert(traits);
  }
}

void OtherPlaces::VisitAll(const Set& set, Visit visit) const {
  for (const OtherPodTraits* traits : set) visit(*traits, all_.at(traits).nodes);
}

void OtherPlaces::ForEachOf(const kube::PodAffinityTerm& term, Visit visit) const {
  if (term.label.empty()) {
    for (const auto& [traits, placed] : all_) visit(*traits, placed.nodes);
    return;
  }
  const auto found = with_label_.find(term.label);
  if (found == with_label_.end()) return;
  if (term.label_values.empty()) {
    for (const auto& [value, set] : found->second) VisitAll(set, visit);
    return;
  }
  for (const std::string& value : term.label_values) {
    const auto set = found->second.find(value);
    if (set != found->second.end()) VisitAll(set->second, visit);
  }
}

void OtherPlaces::ForEachAvoiding(const kube::Labels& labels, Visit visit) const {
  const auto look = [&](const std::string& label) {
    const auto found = avoiding_.find(label);
    if (found != avoiding_.end()) VisitAll(found->second, visit);
  };
  look("");
  for (const auto& [label, value] : labels) look(label);
}

}  // namespace tahoma::controller
