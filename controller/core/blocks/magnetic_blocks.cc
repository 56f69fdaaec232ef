#include "controller/core/blocks/magnetic_blocks.h"

namespace tahoma::controller {

void MagneticBlocks::OnChange(const Block& block) {
  const bool draws =
      block.state == BlockState::kActive && block.terms.magnetic && !block.reclaiming;
  if (!draws) return Forget(block.reservation);
  Drawing now{.end = block.end, .namespaces = block.terms.access, .hosts = block.hosts};
  now.namespaces.push_back(block.key.ns);
  const auto known = drawing_.find(block.reservation);
  if (known != drawing_.end() && known->second == now) return;
  Forget(block.reservation);
  for (const std::string& ns : now.namespaces) {
    by_namespace_[ns].emplace(now.end, block.reservation);
  }
  Touch(now);
  drawing_[block.reservation] = std::move(now);
}

void MagneticBlocks::Forget(const std::string& reservation) {
  const auto known = drawing_.find(reservation);
  if (known == drawing_.end()) return;
  for (const std::string& ns : known->second.namespaces) {
    const auto blocks = by_namespace_.find(ns);
    if (blocks == by_namespace_.end()) continue;  // a namespace that is named twice
    blocks->second.erase({known->second.end, reservation});
    if (blocks->second.empty()) by_namespace_.erase(blocks);
  }
  Touch(known->second);
  drawing_.erase(known);
}

void MagneticBlocks::Touch(const Drawing& drawing) {
  for (const std::string& ns : drawing.namespaces) {
    const auto gangs = asked_.find(ns);
    if (gangs == asked_.end()) continue;
    touched_.insert(touched_.end(), gangs->second.begin(), gangs->second.end());
    asked_.erase(gangs);
  }
}

void MagneticBlocks::ForgetAsked(const GangRef& ref) {
  const auto gangs = asked_.find(ref.key.ns);
  if (gangs == asked_.end()) return;
  gangs->second.erase(ref);
  if (gangs->second.empty()) asked_.erase(gangs);
}

std::vector<std::string> MagneticBlocks::DrawingFor(const std::string& ns) const {
  std::vector<std::string> found;
  const auto blocks = by_namespace_.find(ns);
  if (blocks == by_namespace_.end()) return found;
  for (const auto& [end, reservation] : blocks->second) {
    if (found.size() == kOffersMost) break;
    found.push_back(reservation);
  }
  return found;
}

}  // namespace tahoma::controller
