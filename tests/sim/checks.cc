#include "tests/sim/checks.h"

#include <algorithm>
#include <cstdio>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/objects/node.h"
#include "lib/kube/objects/pod_needs.h"
#include "tests/sim/objects.h"

namespace tahoma::simulation {

using json = Json;

namespace {

constexpr std::size_t kEventsMost = 100000;

bool Alive(const json& pod) {
  const json& phase = At(pod, "/status/phase");
  return At(pod, "/metadata/deletionTimestamp").is_null() && phase != "Succeeded" &&
         phase != "Failed";
}

bool ReservedFor(const json& claim, const std::string& uid) {
  for (const json& user : At(claim, "/status/reservedFor")) {
    if (user.value("uid", "") == uid) return true;
  }
  return false;
}

}  // namespace

// Interfaces are numbered behind cores.
constexpr int kFirstNic = 10000;

std::vector<int> CoresOf(const std::string& device, int chips) {
  std::vector<int> cores;
  int chip = 0;
  int lnc = 0;
  int core = 0;
  if (device == "neuron-node") {
    for (int i = 0; i < chips * 8; ++i) cores.push_back(i);
  } else if (std::sscanf(device.c_str(), "neuron-device-%d", &chip) == 1) {
    for (int i = 0; i < 8; ++i) cores.push_back(chip * 8 + i);
  } else if (std::sscanf(device.c_str(), "nic-%d", &chip) == 1) {
    cores.push_back(kFirstNic + chip);
  } else if (std::sscanf(device.c_str(), "neuron-core-%d-lnc%d-%d", &chip, &lnc, &core) == 3) {
    for (int i = 0; i < lnc; ++i) cores.push_back(chip * 8 + core * lnc + i);
  }
  return cores;
}

const VirtualNode* Checks::NodeOf(const std::string& name) const {
  for (const auto& node : nodes_) {
    if (node->plan().name == name) return node.get();
  }
  return nullptr;
}

void Checks::Reload() {
  life_ = api_.life();
  cores_of_claim_.clear();
  claim_of_core_.clear();
  const auto list = api_.objects().List(kClaims, "");
  version_ = list.version;
  for (const auto& object : list.objects) OnClaim(object->key, object->body.get());
}

void Checks::AfterStep() {
  if (!api_.up() || (life_ == api_.life() && version_ == api_.version())) return;
  if (life_ != api_.life()) return Reload();
  const auto batch =
      api_.objects().Next(kClaims, version_, kEventsMost, std::chrono::milliseconds(0));
  if (!batch.ok()) return Reload();
  version_ = batch->version;
  for (const auto& event : batch->events) {
    const bool gone = event->type == controller::apiserver::Event::Type::kDeleted;
    OnClaim(event->object->key, gone ? nullptr : event->object->body.get());
  }
}

void Checks::OnClaim(const std::string& key, const json* claim) {
  for (const Core& core : cores_of_claim_[key]) claim_of_core_.erase(core);
  cores_of_claim_.erase(key);
  if (claim == nullptr) return;
  for (const json& result : At(*claim, "/status/allocation/devices/results")) {
    const std::string pool = result.at("pool");
    const VirtualNode* node = NodeOf(pool);
    if (node == nullptr) return world_.Fail("claim {} has a device of node {}", key, pool);
    for (const int number : CoresOf(result.at("device"), node->chip_count())) {
      const Core core{pool, number};
      const auto [held, fresh] = claim_of_core_.emplace(core, key);
      if (number >= kFirstNic) world_.Meet("interface given");
      if (!fresh && number >= kFirstNic) {
        return world_.Fail("interface {} of node {} is in claims {} and {}", number - kFirstNic,
                           pool, held->second, key);
      }
      if (!fresh) {
        return world_.Fail("core {} of chip {} of node {} is in claims {} and {}", number % 8,
                           number / 8, pool, held->second, key);
      }
      cores_of_claim_[key].push_back(core);
    }
  }
}

void Checks::OnDecided(const controller::GangDecision& decision,
                       const controller::ClusterState& view) {
  world_.Meet("gang decided");
  if (!api_.up()) return;
  CheckChips(decision, view);
  CheckShape(decision);
}

bool Checks::IsAllocated(const std::string& ns, const std::string& claim) const {
  const auto object = api_.objects().Get(kClaims, controller::apiserver::ObjectKey(ns, claim));
  return object != nullptr && !At(*object->body, "/status/allocation").is_null();
}

// The chips and cores of the decision's claims; where a claim was allocated before, those of the
// API.
std::vector<Checks::PlacedDevice> Checks::PlacedDevices(
    const controller::GangDecision& decision) const {
  std::vector<PlacedDevice> devices;
  for (const auto& claim : decision.claims) {
    if (claim.consumers.empty()) continue;
    const std::uint32_t slice = decision.pods[claim.consumers.at(0)].slice;
    for (const auto& result : claim.allocation.results) {
      if (result.driver != controller::kNeuronDriver) continue;
      devices.push_back({slice, result.pool, result.device});
    }
    if (!claim.allocated_before) continue;
    world_.Meet("decided around a claim");
    const auto object =
        api_.objects().Get(kClaims, controller::apiserver::ObjectKey(decision.key.ns, claim.name));
    if (object == nullptr) continue;
    for (const json& result : At(*object->body, "/status/allocation/devices/results")) {
      if (result.at("driver") != controller::kNeuronDriver) continue;
      devices.push_back({slice, result.at("pool"), result.at("device")});
    }
  }
  return devices;
}

// Checks that the controller gives away nothing broken, as far as the controller knows.
void Checks::CheckChips(const controller::GangDecision& decision,
                        const controller::ClusterState& view) {
  for (const auto& claim : decision.claims) {
    if (IsAllocated(decision.key.ns, claim.name)) continue;
    for (const auto& result : claim.allocation.results) {
      const auto id = view.FindNode(result.pool);
      const VirtualNode* node = NodeOf(result.pool);
      if (result.driver != controller::kNeuronDriver) continue;
      if (!id || node == nullptr || !view.node(*id).domain.valid()) continue;
      const auto& state = view.node(*id);
      for (const int core : CoresOf(result.device, node->chip_count())) {
        const int bit = core / 8 + 16 * state.z;
        if ((view.domain(state.domain).broken >> bit & 1U) != 0) {
          return world_.Fail("{} was given chip {} of {}, which is broken", claim.name, core / 8,
                             result.pool);
        }
      }
    }
  }
}

// Checks that each gang slice of a gang with a shape is a box of that shape.
void Checks::CheckShape(const controller::GangDecision& decision) {
  if (decision.single) return;
  const auto gang = api_.objects().Get(
      kGangs, controller::apiserver::ObjectKey(decision.key.ns, decision.key.name));
  if (gang == nullptr || At(*gang->body, "/metadata/uid") != decision.uid) return;
  const json& text = At(*gang->body, "/spec/shape");
  if (!text.is_string()) return;
  // Decided again from what was published when the journal was lost: without members that ended.
  if (At(*gang->body, "/spec/members") != decision.pods.size()) return;
  // Decided by an old word of a watch that lags: undone as soon as the API is asked.
  for (const auto& claim : decision.claims) {
    if (claim.allocated_before && !IsAllocated(decision.key.ns, claim.name)) {
      return world_.Meet("decided by an old word");
    }
  }
  const auto shape = ParseSides(text.get<std::string>());
  if (!shape) return world_.Fail("a gang of shape {} was placed", text.dump());
  std::map<std::uint32_t, std::set<Position>> slices;
  std::map<std::uint32_t, std::set<std::string>> domains;
  Position torus = {4, 4, 1};
  for (const auto& [slice, pool, device] : PlacedDevices(decision)) {
    const VirtualNode* node = NodeOf(pool);
    if (node == nullptr) return world_.Fail("a device of node {} was given away", pool);
    if (node->lied()) return world_.Meet("a gang with a shape beside a lie");
    const bool ultra = !node->plan().ultra_server.empty();
    torus = ultra ? Position{4, 4, 4} : node->chip_count() == 1 ? Position{1, 1, 1} : torus;
    domains[slice].insert(ultra ? node->plan().ultra_server : node->plan().name);
    for (const int core : CoresOf(device, node->chip_count())) {
      slices[slice].insert({core / 8 % 4, core / 8 / 4, ultra ? node->plan().z : 0});
    }
  }
  for (const auto& [slice, chips] : slices) {
    if (domains[slice].size() != 1 || !IsBox(chips, torus, *shape)) {
      std::string found;
      for (const Position& chip : chips) found += fmt::format(" {}", fmt::join(chip, ","));
      return world_.Fail("slice {} of gang {} is no {} box on {}:{}", slice, decision.key.name,
                         text.get<std::string>(), fmt::join(domains[slice], ", "), found);
    }
  }
}

// Checks the needs of the node's pods against the node's allocatable amounts.
void Checks::CheckNeeds(const std::string& node) {
  const auto object = api_.objects().Get(kNodes, controller::apiserver::ObjectKey("", node));
  if (object == nullptr) return;
  const auto facts = kube::ParseNode(*object->body);
  if (!facts.ok() || !facts->allocatable) return;
  kube::NodeUse use;
  for (const auto& pod : api_.objects().List(kPods, "").objects) {
    if (At(*pod->body, "/spec/nodeName") != node || !Alive(*pod->body)) continue;
    kube::Reading reading(*pod->body);
    const kube::PodNeeds needs = kube::ParsePodNeeds(reading.root());
    if (const std::string why = kube::WhyNotOn(*facts->allocatable, use, needs); !why.empty()) {
      return world_.Fail("pod {} is on node {} beside others: {}", pod->key, node, why);
    }
    use.Add(needs);
  }
}

void Checks::OnBound(const controller::GangDecision& decision, std::size_t pod) {
  world_.Meet("pod bound");
  CheckNeeds(decision.pods[pod].node);
  for (const auto& claim : decision.claims) {
    const auto object =
        api_.objects().Get(kClaims, controller::apiserver::ObjectKey(decision.key.ns, claim.name));
    for (const std::uint32_t consumer : claim.consumers) {
      const auto& user = decision.pods[consumer];
      const auto user_object =
          api_.objects().Get(kPods, controller::apiserver::ObjectKey(decision.key.ns, user.name));
      if (user_object == nullptr || At(*user_object->body, "/metadata/uid") != user.uid ||
          !Alive(*user_object->body)) {
        continue;
      }
      const bool whole = object != nullptr && At(*object->body, "/metadata/uid") == claim.uid &&
                         !At(*object->body, "/status/allocation").is_null() &&
                         ReservedFor(*object->body, user.uid);
      if (!whole) {
        return world_.Fail("pod {} was bound while claim {} of its gang was not allocated for {}",
                           decision.pods[pod].name, claim.name, user.name);
      }
    }
  }
}

}  // namespace tahoma::simulation
