#include "controller/model/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tahoma::controller {
namespace {

std::optional<std::int64_t> ToInteger(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Applies Kubernetes' operators: NotIn and DoesNotExist hold for a label that is absent; Gt and Lt
// compare integers.
bool Meets(const NodeRequirement& requirement, const std::string* value) {
  const auto& wanted = requirement.values;
  const bool in = value != nullptr && std::ranges::binary_search(wanted, *value);
  switch (requirement.op) {
    case NodeOperator::kIn:
      return in;
    case NodeOperator::kNotIn:
      return !in;
    case NodeOperator::kExists:
      return value != nullptr;
    case NodeOperator::kDoesNotExist:
      return value == nullptr;
    case NodeOperator::kGt:
    case NodeOperator::kLt:
      break;
  }
  if (value == nullptr || wanted.size() != 1) return false;
  const auto have = ToInteger(*value);
  const auto bound = ToInteger(wanted[0]);
  if (!have || !bound) return false;
  return requirement.op == NodeOperator::kGt ? *have > *bound : *have < *bound;
}

bool MeetsAll(const std::vector<NodeRequirement>& requirements, const Node& node) {
  return std::all_of(requirements.begin(), requirements.end(), [&](const NodeRequirement& r) {
    if (r.field) return Meets(r, r.key == "metadata.name" ? &node.name : nullptr);
    const auto at = std::lower_bound(
        node.labels.begin(), node.labels.end(), r.key,
        [](const auto& label, const std::string& key) { return label.first < key; });
    const bool found = at != node.labels.end() && at->first == r.key;
    return Meets(r, found ? &at->second : nullptr);
  });
}

// A term without requirements selects nothing (core/v1 NodeSelectorTerm).
bool MeetsOne(const kube::NodeTerms& terms, const Node& node) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const auto& term) { return !term.empty() && MeetsAll(term, node); });
}

}  // namespace

bool NodeDemand::IsKeptAwayBy(const Taint& taint) const {
  return taint.effect != TaintEffect::kNone &&
         std::none_of(tolerations.begin(), tolerations.end(),
                      [&](const Toleration& t) { return Tolerates(t, taint); });
}

bool NodeDemand::Admits(const Node& candidate) const {
  return std::none_of(candidate.taints.begin(), candidate.taints.end(),
                      [&](const Taint& taint) { return IsKeptAwayBy(taint); }) &&
         SelectorAdmits(candidate) && AffinityAdmits(candidate) &&
         VolumeAgainst(candidate) == nullptr;
}

bool NodeDemand::SelectorAdmits(const Node& candidate) const { return MeetsAll(all, candidate); }

bool NodeDemand::AffinityAdmits(const Node& candidate) const {
  return any_term.empty() || MeetsOne(any_term, candidate);
}

const VolumeDemand* NodeDemand::VolumeAgainst(const Node& candidate) const {
  const auto found = std::find_if(volumes.begin(), volumes.end(), [&](const VolumeDemand& volume) {
    return !MeetsOne(volume.nodes, candidate);
  });
  return found == volumes.end() ? nullptr : &*found;
}

std::string GangSpec::Describe() const {
  return fmt::format("{} {}", single_pod ? "pod" : "gang", ToString(key));
}

}  // namespace tahoma::controller
