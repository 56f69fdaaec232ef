#include "controller/ctl/fleet_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/read_facts.h"
#include "controller/model/cordoned_chips.h"
#include "lib/base/json.h"

namespace tahoma::controller {

void FleetBuilder::Put(const std::optional<Command>& command) {
  if (!command) return;
  if (const auto* seen = std::get_if<NodeSeen>(&*command)) fleet_.cluster.PutNode(seen->node);
}

void FleetBuilder::AddNode(const Json& object) {
  auto node = kube::ParseNode(object, std::string(kCordonedChips));
  if (node.ok()) Put(join_.OnNode(*std::move(node)));
}

void FleetBuilder::AddSlice(const Json& object) {
  auto slice = kube::ParseResourceSlice(object);
  if (slice.ok() && slice->driver == kNeuronDriver) Put(join_.OnSlice(*std::move(slice)));
}

void FleetBuilder::AddPod(const Json& object) {
  const auto pod = ParsePod(object);
  if (!pod.ok()) return;
  const std::string holder = Describe(GangOf(**pod));
  holder_of_pod_[(*pod)->uid] = holder;
  std::string& note = fleet_.notes[holder];
  if (note.empty()) note = (*pod)->bound_placement;
  pods_of_holder_[holder].push_back((*pod)->key.name);
}

void FleetBuilder::AddClaim(const Json& object) {
  const auto claim = ParseClaimState(object);
  if (!claim.ok() || (*claim)->allocation == nullptr) return;
  auto holding = std::make_shared<Holding>();
  holding->claim = (*claim)->key;
  holding->claim_uid = (*claim)->uid;
  holding->holder = "claim " + ToString((*claim)->key);
  for (const Reservation& held : (*claim)->reserved_for) {
    const auto holder = holder_of_pod_.find(held.uid);
    if (holder != holder_of_pod_.end()) holding->holder = holder->second;
  }
  HoldDevicesOf(*(*claim)->allocation, *holding);
  fleet_.cluster.Hold(std::move(holding));
}

Fleet FleetBuilder::Finish() && {
  for (auto& [holder, pods] : pods_of_holder_) {
    std::sort(pods.begin(), pods.end(), NaturalLess);
    std::string& note = fleet_.notes[holder];
    note += fmt::format("{}pods {}", note.empty() ? "" : "  ", fmt::join(pods, ", "));
  }
  return std::move(fleet_);
}

}  // namespace tahoma::controller
