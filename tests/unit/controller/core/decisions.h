// Decisions for the gangs of a FakeApi, without a planner.
//
//   api.AddGang("train", 2);
//   api.AddPodWithClaim("train-0", "train", 4);      // its claim: train-0-chips
//   api.AddPodWithClaim("train-1", "train", 4);
//   std::shared_ptr<GangDecision> decision = DecisionFor(api, "train");   // node-0 and node-1
//
// Thread safety: values.

#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "controller/core/journal/gang_decision.h"
#include "controller/model/device.h"
#include "tests/support/fake_api.h"

namespace tahoma::controller {

// Pod i of the gang, in the order of the names, and chip 0 of node-i for its claim.
inline std::shared_ptr<GangDecision> DecisionFor(const FakeApi& api, const std::string& gang) {
  auto decision = std::make_shared<GangDecision>();
  decision->key = {"default", gang};
  decision->uid = "uid-" + gang;
  for (const auto& [name, pod] : api.pods()) {
    if (pod.gang != gang) continue;
    const auto index = static_cast<std::uint32_t>(decision->pods.size());
    const std::string node = fmt::format("node-{}", index);
    decision->pods.push_back({.name = name, .uid = pod.uid, .node = node, .rank = index});
    DecidedClaim claim;
    claim.name = name + "-chips";
    claim.uid = api.claims().at(claim.name).uid;
    claim.consumers = {index};
    claim.allocation.node = node;
    DeviceResult chip;
    chip.request = "chips";
    chip.driver = std::string(kNeuronDriver);
    chip.pool = node;
    chip.device = "neuron-device-0";
    claim.allocation.results = {chip};
    decision->claims.push_back(std::move(claim));
  }
  return decision;
}

}  // namespace tahoma::controller
