#include "controller/model/gang.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/check.h"
#include "lib/kube/objects/node_selector.h"

namespace tahoma::controller {
namespace {

// Separates the parts of a text: no name or value contains it.
constexpr char kMark = '\x1f';

}  // namespace

std::string TextOf(const Toleration& t) {
  return fmt::format("{}{}{}{}{}{}{}{}", t.key, kMark, static_cast<int>(t.op), kMark, t.value,
                     kMark, t.effect ? static_cast<int>(*t.effect) : -1, kMark);
}

std::string TextOf(const NodeDemand& demand) {
  std::string text;
  const auto add = [&text](const std::vector<NodeRequirement>& requirements) {
    for (const NodeRequirement& r : requirements) {
      text += fmt::format("{}{}{}[{}]", r.field, r.key, static_cast<int>(r.op),
                          fmt::join(r.values, ","));
    }
    text += ';';
  };
  add(demand.all);
  for (const auto& term : demand.any_term) add(term);
  for (const VolumeDemand& volume : demand.volumes) {
    text += kMark;
    for (const auto& term : volume.nodes) add(term);
  }
  for (const Toleration& t : demand.tolerations) text += TextOf(t);
  return text;
}

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

bool NodeDemand::SelectorAdmits(const Node& candidate) const {
  return kube::MeetsAll(all, candidate.name, candidate.labels);
}

bool NodeDemand::AffinityAdmits(const Node& candidate) const {
  return any_term.empty() || kube::MeetsOne(any_term, candidate.name, candidate.labels);
}

const VolumeDemand* NodeDemand::VolumeAgainst(const Node& candidate) const {
  const auto found = std::find_if(volumes.begin(), volumes.end(), [&](const VolumeDemand& volume) {
    return !kube::MeetsOne(volume.nodes, candidate.name, candidate.labels);
  });
  return found == volumes.end() ? nullptr : &*found;
}

std::string GangSpec::Describe() const {
  return fmt::format("{} {}", single_pod ? "pod" : "gang", ToString(key));
}

std::shared_ptr<const GangSpec> FirstOf(const GangSpec& gang, std::size_t count) {
  TAHOMA_CHECK(count >= 1 && count <= gang.members.size());
  auto first = std::make_shared<GangSpec>(gang);
  first->members.resize(count);
  first->rules.clear();
  first->preferred.clear();
  for (auto& drawn : first->drawn) drawn = FirstOf(*drawn, count);
  return first;
}

}  // namespace tahoma::controller
