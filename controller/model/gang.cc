#include "controller/model/gang.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/kube/objects/node_selector.h"

namespace tahoma::controller {

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

}  // namespace tahoma::controller
