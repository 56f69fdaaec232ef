// The part of Checks that judges a world at rest.

#include <algorithm>

#include "controller/core/journal/block_record.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/sim/checks.h"
#include "tests/sim/objects.h"
#include "tests/sim/users.h"

namespace tahoma::simulation {

using json = Json;
using controller::GangReason;

namespace {

// Reasons for want of room. All but kWaitsForCapacity also mean that there would be no room if
// every device were free.
bool IsForWantOfRoom(GangReason reason) {
  return reason == GangReason::kWaitsForCapacity || reason == GangReason::kWaitsForRepair ||
         reason == GangReason::kNeverFits;
}

std::string Text(const json& object, const char* pointer) {
  const json& value = At(object, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

bool Finished(const json& pod) {
  const std::string phase = Text(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

std::set<std::string> DevicesOf(const json& claim) {
  std::set<std::string> devices;
  for (const json& result : At(claim, "/status/allocation/devices/results")) {
    devices.insert(result.at("pool").get<std::string>() + "/" +
                   result.at("device").get<std::string>());
  }
  return devices;
}

}  // namespace

std::map<controller::RunId, Checks::Run> Checks::ReadJournal(controller::Journal& journal) {
  std::map<controller::RunId, Run> runs;
  const absl::Status loaded = journal.Load([&](controller::Sequence at, std::string_view bytes) {
    if (controller::IsBlockEntry(bytes) || controller::IsUsageEntry(bytes)) {
      return absl::OkStatus();
    }
    const auto record = controller::DecodeRecord(bytes);
    if (!record.ok()) return record.status();
    if (const auto* prepared = std::get_if<controller::GangPrepared>(&*record)) {
      runs[at].decision = prepared->decision;
    } else if (const auto* bound = std::get_if<controller::GangBound>(&*record)) {
      runs[bound->run].bound = true;
    } else if (const auto* undoing = std::get_if<controller::GangUndoing>(&*record)) {
      runs[undoing->run].undoing = true;
    } else if (const auto* replaced = std::get_if<controller::MemberReplaced>(&*record)) {
      auto& decision = runs[replaced->run].decision;
      decision = std::make_shared<const controller::GangDecision>(
          controller::WithMember(*decision, *replaced));
    } else if (const auto* added = std::get_if<controller::MemberAdded>(&*record)) {
      Run& run = runs[added->run];
      run.decision = std::make_shared<const controller::GangDecision>(
          controller::WithMember(*run.decision, *added));
      for (const auto& claim : added->claims) run.released.erase(claim.index);
    } else if (const auto* released = std::get_if<controller::ClaimReleased>(&*record)) {
      runs[released->run].released.insert(released->claim);
    }
    return absl::OkStatus();
  });
  if (!loaded.ok()) world_.Fail("the journal cannot be read at rest");
  return runs;
}

void Checks::AtRest(const controller::Snapshot& snapshot, controller::Journal& journal) {
  const auto runs = ReadJournal(journal);
  CheckJournal(runs);
  CheckClaims(runs);
  CheckPods(runs);
  CheckNodes(snapshot);
  CheckWaiting(snapshot);
  blocks_.AtRest(snapshot);
  promises_.AtRest(snapshot);
  if (world_.swarm.queues) CheckCounts(world_, snapshot);
}

// Every decision in the journal is whole, and published as decided.
void Checks::CheckJournal(const std::map<controller::RunId, Run>& runs) {
  for (const auto& [id, run] : runs) {
    if (run.decision == nullptr) return world_.Fail("journal: run {} has no decision", id);
    const std::string name = run.decision->key.name;
    if (!run.bound || run.undoing) {
      return world_.Fail("gang {} is still {} at rest", name,
                         run.undoing ? "being undone" : "being committed");
    }
    for (std::uint32_t i = 0; i < run.decision->claims.size(); ++i) {
      const auto& claim = run.decision->claims[i];
      if (run.released.contains(i) || AwaitsNextPod(*run.decision, claim)) continue;
      const auto object = api_.objects().Get(
          kClaims, controller::apiserver::ObjectKey(run.decision->key.ns, claim.name));
      if (object == nullptr || Text(*object->body, "/metadata/uid") != claim.uid) {
        return world_.Fail("the journal holds claim {} of gang {}, which does not exist",
                           claim.name, name);
      }
      std::set<std::string> decided;
      for (const auto& result : claim.allocation.results) {
        decided.insert(result.pool + "/" + result.device);
      }
      if (!claim.allocated_before && DevicesOf(*object->body) != decided) {
        return world_.Fail("claim {} of gang {} is not allocated as the journal says", claim.name,
                           name);
      }
    }
  }
}

// Returns whether the claim's devices are kept for the next pod of a gang that goes on without a
// member. That is over at rest, except where the clock was set.
bool Checks::AwaitsNextPod(const controller::GangDecision& decision,
                           const controller::DecidedClaim& claim) const {
  using controller::apiserver::ObjectKey;
  const auto gang = api_.objects().Get(kGangs, ObjectKey(decision.key.ns, decision.key.name));
  if (world_.swarm.purchases == 0 || decision.single || gang == nullptr) return false;
  if (Text(*gang->body, "/spec/failurePolicy") != "Replace") return false;
  return std::ranges::all_of(claim.consumers, [&](std::uint32_t index) {
    const auto& decided = decision.pods[index];
    const auto pod = api_.objects().Get(kPods, ObjectKey(decision.key.ns, decided.name));
    return pod == nullptr || Text(*pod->body, "/metadata/uid") != decided.uid ||
           Text(*pod->body, "/status/phase") == "Failed";
  });
}

// Every allocation has a living holder, and is in the journal.
void Checks::CheckClaims(const std::map<controller::RunId, Run>& runs) {
  std::set<std::string> decided;
  for (const auto& [id, run] : runs) {
    for (std::uint32_t i = 0; i < run.decision->claims.size(); ++i) {
      if (!run.released.contains(i)) decided.insert(run.decision->claims[i].uid);
    }
  }
  for (const auto& object : api_.objects().List(kClaims, "").objects) {
    const json& claim = *object->body;
    if (At(claim, "/status/allocation").is_null()) continue;
    if (!decided.contains(Text(claim, "/metadata/uid"))) {
      return world_.Fail("claim {} is allocated and no decision in the journal says so",
                         object->key);
    }
    bool held = false;
    for (const json& user : At(claim, "/status/reservedFor")) {
      const auto pod = api_.objects().Get(
          kPods, controller::apiserver::ObjectKey("default", user.at("name").get<std::string>()));
      held = held || (pod != nullptr && !Finished(*pod->body) &&
                      Text(*pod->body, "/metadata/uid") == user.at("uid").get<std::string>());
    }
    if (!held) return world_.Fail("claim {} is allocated and nobody uses it", object->key);
  }
}

// Gangs are whole or absent, and bound pods run.
void Checks::CheckPods(const std::map<controller::RunId, Run>& runs) {
  std::set<std::string> decided;
  for (const auto& [id, run] : runs) {
    for (const auto& pod : run.decision->pods) {
      decided.insert(pod.uid);
      const auto object = api_.objects().Get(
          kPods, controller::apiserver::ObjectKey(run.decision->key.ns, pod.name));
      if (object == nullptr || Text(*object->body, "/metadata/uid") != pod.uid) continue;
      if (Text(*object->body, "/spec/nodeName") != pod.node) {
        return world_.Fail("gang {} is not whole: pod {} is not on {}", run.decision->key.name,
                           pod.name, pod.node);
      }
    }
  }
  for (const auto& object : api_.objects().List(kPods, "").objects) {
    const json& pod = *object->body;
    const std::string node = Text(pod, "/spec/nodeName");
    if (node.empty() || Finished(pod)) continue;
    if (!decided.contains(Text(pod, "/metadata/uid"))) {
      return world_.Fail("pod {} is bound and no decision in the journal says so", object->key);
    }
    if (!At(pod, "/metadata/deletionTimestamp").is_null()) {
      return world_.Fail("pod {} never ends", object->key);
    }
    if (Text(pod, "/status/phase") != "Running" && !UsesBrokenChip(Text(pod, "/metadata/uid"))) {
      return world_.Fail("pod {} is bound to {} and does not run: {}", object->key, node,
                         At(pod, "/status").dump());
    }
  }
}

bool Checks::UsesBrokenChip(const std::string& pod_uid) const {
  for (const auto& claim : api_.objects().List(kClaims, "").objects) {
    const auto cores = cores_of_claim_.find(claim->key);
    if (cores == cores_of_claim_.end()) continue;
    bool used = false;
    for (const json& user : At(*claim->body, "/status/reservedFor")) {
      used = used || user.value("uid", "") == pod_uid;
    }
    for (const auto& [node, core] : cores->second) {
      if (used && NodeOf(node)->broken(core / 8)) return true;
    }
  }
  return false;
}

// Each node holds exactly its pods' claims, and the controller knows the broken hardware.
void Checks::CheckNodes(const controller::Snapshot& snapshot) {
  for (const auto& node : nodes_) {
    const std::string& name = node->plan().name;
    std::set<std::string> wanted;
    for (const auto& object : api_.objects().List(kPods, "").objects) {
      const json& pod = *object->body;
      if (Text(pod, "/spec/nodeName") != name || Finished(pod)) continue;
      for (const auto& claim : api_.objects().List(kClaims, "").objects) {
        for (const json& user : At(*claim->body, "/status/reservedFor")) {
          if (user.value("uid", "") == Text(pod, "/metadata/uid")) {
            wanted.insert(Text(*claim->body, "/metadata/uid"));
          }
        }
      }
    }
    // A claim whose chips failed after the allocation is not prepared, and a restarted node refuses
    // it.
    const std::set<std::string> prepared = node->PreparedClaims();
    const std::set<std::string> held = node->HeldByInstance();
    const bool all = prepared == wanted && held == wanted;
    const bool some =
        std::includes(wanted.begin(), wanted.end(), prepared.begin(), prepared.end()) &&
        std::includes(prepared.begin(), prepared.end(), held.begin(), held.end());
    if (!all && !(some && node->has_broken_chip())) {
      return world_.Fail("node {}: {} claims are prepared, {} held, {} wanted", name,
                         prepared.size(), held.size(), wanted.size());
    }
    const auto id = snapshot.cluster->FindNode(name);
    if (!id || !snapshot.cluster->node(*id).domain.valid()) {
      return world_.Fail("the controller does not know node {}", name);
    }
    const auto& state = snapshot.cluster->node(*id);
    for (int chip = 0; chip < node->chip_count(); ++chip) {
      const auto& domain = snapshot.cluster->domain(state.domain);
      const bool known = (domain.broken >> (chip + 16 * state.z) & 1U) != 0;
      if (known != node->broken(chip)) {
        return world_.Fail("the controller thinks chip {} of {} {}", chip, name,
                           known ? "broken" : "healthy");
      }
    }
  }
}

bool Checks::Usable(const VirtualNode& node) const {
  const auto object =
      api_.objects().Get(kNodes, controller::apiserver::ObjectKey("", node.plan().name));
  if (object == nullptr || !node.powered()) return false;
  for (const json& condition : At(*object->body, "/status/conditions")) {
    if (condition.value("type", "") == "Ready") return condition.value("status", "") == "True";
  }
  return false;
}

std::vector<OracleDomain> Checks::Fleet(bool empty) const {
  std::map<std::string, OracleDomain> domains;
  for (const auto& node : nodes_) {
    const NodePlan& plan = node->plan();
    const bool ultra = !plan.ultra_server.empty();
    OracleDomain& domain = domains[ultra ? plan.ultra_server : plan.name];
    if (ultra) domain.size = {4, 4, 4};
    if (node->chip_count() == 1) domain.size = {1, 1, 1};
    domain.links_whole = domain.links_whole && !node->has_broken_link();
    if (!Usable(*node)) continue;
    for (int chip = 0; chip < node->chip_count(); ++chip) {
      bool free = !node->broken(chip);
      for (int core = 0; core < 8 && !empty; ++core) {
        free = free && !claim_of_core_.contains({plan.name, chip * 8 + core});
      }
      if (free) domain.free.insert({chip % 4, chip / 4, ultra ? plan.z : 0});
    }
  }
  std::vector<OracleDomain> fleet;
  for (auto& [name, domain] : domains) fleet.push_back(std::move(domain));
  return fleet;
}

bool Checks::SomeNodeHas(int chips, bool empty) const {
  for (const OracleDomain& domain : Fleet(empty)) {
    std::map<int, int> of_node;
    for (const Position& chip : domain.free) ++of_node[chip[2]];
    for (const auto& [z, free] : of_node) {
      if (free >= chips) return true;
    }
  }
  return false;
}

// Every gang that waits has a true reason.
void Checks::CheckWaiting(const controller::Snapshot& snapshot) {
  for (const auto& object : api_.objects().List(kGangs, "").objects) {
    const json& gang = *object->body;
    const auto* view =
        snapshot.gangs.Find(controller::GangRef{{"default", Text(gang, "/metadata/name")}, false});
    if (view == nullptr) return world_.Fail("the controller does not know gang {}", object->key);
    const std::string told = Text(gang, "/status/phase");
    if (told != ToString((*view)->phase)) {
      return world_.Fail("gang {} is {} and its status says \"{}\"", object->key,
                         ToString((*view)->phase), told);
    }
    if (told == "Running") CheckGangRuns(**view, gang);
    CheckSize(**view, gang);
    if ((*view)->decision == nullptr) CheckGangWaits(**view, gang);
  }
  for (const auto& object : api_.objects().List(kPods, "").objects) {
    const json& pod = *object->body;
    if (At(pod, "/metadata/labels/tahoma.dev~1gang").is_string() || Finished(pod) ||
        !Text(pod, "/spec/nodeName").empty()) {
      continue;
    }
    const auto* view =
        snapshot.gangs.Find(controller::GangRef{{"default", Text(pod, "/metadata/name")}, true});
    if (view == nullptr) return world_.Fail("the controller does not know pod {}", object->key);
    if ((*view)->decision == nullptr) CheckPodWaits(**view, pod);
  }
}

// A gang with minMembers has so many bound pods or none, no more than members, and no pod of it
// waits while a chip is free for the pod.
void Checks::CheckSize(const controller::GangView& view, const json& gang) {
  const json& least = At(gang, "/spec/minMembers");
  if (!least.is_number() || view.decision == nullptr) return;
  int bound = 0;
  int waiting = 0;
  int succeeded = 0;
  for (const auto& object : api_.objects().List(kPods, "").objects) {
    const json& pod = *object->body;
    if (Text(pod, "/metadata/labels/tahoma.dev~1gang") != view.ref.key.name) continue;
    succeeded += Text(pod, "/status/phase") == "Succeeded" ? 1 : 0;
    if (Finished(pod)) continue;
    ++(Text(pod, "/spec/nodeName").empty() ? waiting : bound);
  }
  const int members = gang.at("spec").at("members").get<int>();
  if (bound > members) {
    world_.Fail("gang {} of {} members has {} bound pods", view.ref.key.name, members, bound);
  }
  const bool runs = view.phase == controller::GangPhase::kRunning;
  if (runs && bound + succeeded < least.get<int>()) {
    world_.Fail("gang {} runs with {} of at least {} pods", view.ref.key.name, bound, least.dump());
  }
  if (bound < members && bound > 0) world_.Meet("gang with fewer pods at rest");
  if (waiting == 0 || bound >= members || !runs) return;
  if (world_.swarm.purchases > 0 || world_.swarm.needs || world_.swarm.nics) return;
  if (!SomeNodeHas(1, false)) return;
  world_.Fail("gang {} has {} of {} pods, {} wait, and a chip is free", view.ref.key.name, bound,
              members, waiting);
}

// A gang that runs is whole: each of its pods is ready, or has succeeded. With minMembers that many
// are.
void Checks::CheckGangRuns(const controller::GangView& view, const json& gang) {
  if (view.decision == nullptr) {
    return world_.Fail("gang {} runs without a place", view.ref.key.name);
  }
  const json& least = At(gang, "/spec/minMembers");
  int all_ready = 0;
  std::set<std::uint32_t> ranks;
  for (const auto& pod : view.decision->pods) {
    if (!ranks.insert(pod.rank).second) {
      return world_.Fail("rank {} of gang {} is given twice", pod.rank, view.ref.key.name);
    }
    const auto object =
        api_.objects().Get(kPods, controller::apiserver::ObjectKey(view.ref.key.ns, pod.name));
    // A pod that has succeeded may be deleted.
    if (object == nullptr || Text(*object->body, "/metadata/uid") != pod.uid) {
      ++all_ready;
      continue;
    }
    bool ready = Text(*object->body, "/status/phase") == "Succeeded";
    for (const json& condition : At(*object->body, "/status/conditions")) {
      ready = ready ||
              (condition.value("type", "") == "Ready" && condition.value("status", "") == "True");
    }
    all_ready += ready ? 1 : 0;
    if (!ready && !least.is_number()) {
      return world_.Fail("gang {} is Running and pod {} is not ready: {}", view.ref.key.name,
                         pod.name, At(*object->body, "/status").dump());
    }
  }
  if (least.is_number() && all_ready < least.get<int>()) {
    world_.Fail("gang {} is Running and {} of at least {} pods are ready", view.ref.key.name,
                all_ready, least.dump());
  }
}

void Checks::CheckGangWaits(const controller::GangView& view, const json& gang) {
  const std::string name = view.ref.key.name;
  int alive = 0;
  for (const auto& object : api_.objects().List(kPods, "").objects) {
    if (Text(*object->body, "/metadata/labels/tahoma.dev~1gang") == name &&
        !Finished(*object->body)) {
      ++alive;
    }
  }
  if (view.phase == controller::GangPhase::kFailed && view.reason == GangReason::kMemberLost)
    return;
  const int members = gang.at("spec").at("members").get<int>();
  const json& min_members = At(gang, "/spec/minMembers");
  const int least = min_members.is_number() ? min_members.get<int>() : members;
  const bool complete = alive >= least && alive <= members;
  const bool counted = view.reason == GangReason::kWaitingForPods ||
                       view.reason == GangReason::kTooManyPods ||
                       view.reason == GangReason::kPodsEnded;
  // Two pods of one index are told first, whether or not there are more pods than members.
  const bool twice = view.reason == GangReason::kIndexTwice && alive >= least;
  if (counted == complete && !twice) {
    return world_.Fail("gang {} has {} live pods and waits as {}: {}", name, alive,
                       ToString(view.reason), view.message);
  }
  // The oracle knows neither hosts that are kept for blocks nor what pods need beside chips.
  if (!IsForWantOfRoom(view.reason) || world_.swarm.purchases > 0) return;
  if (world_.swarm.needs || world_.swarm.nics) return;
  const auto shape = ParseSides(Text(gang, "/spec/shape"));
  const json& per_pod = At(gang, "/metadata/annotations/sim~1chips-per-pod");
  if (!shape || !per_pod.is_string()) return;
  const json& spec = gang.at("spec");
  const ShapeWish wish{.shape = *shape,
                       .slices = spec.at("slices").get<int>(),
                       .chips_per_pod = std::stoi(per_pod.get<std::string>())};
  // Claims whose chips are not as many as the shape has never fit.
  const int chips = wish.shape[0] * wish.shape[1] * wish.shape[2] * wish.slices;
  if (spec.at("members").get<int>() * wish.chips_per_pod != chips) return;
  if (CanPlace(Fleet(view.reason != GangReason::kWaitsForCapacity), wish)) {
    world_.Fail("gang {} waits as {} and it fits: {}", name, ToString(view.reason), view.message);
  }
}

void Checks::CheckPodWaits(const controller::GangView& view, const json& pod) {
  const json& chips = At(pod, "/metadata/annotations/sim~1chips-per-pod");
  if (!chips.is_string() || world_.swarm.purchases > 0 || world_.swarm.needs) return;
  if (!IsForWantOfRoom(view.reason)) return;
  if (SomeNodeHas(std::stoi(chips.get<std::string>()),
                  view.reason != GangReason::kWaitsForCapacity)) {
    world_.Fail("pod {} waits as {} and it fits: {}", view.ref.key.name, ToString(view.reason),
                view.message);
  }
}

void Checks::AtEnd(const controller::Snapshot& snapshot, controller::Journal& journal) {
  const auto runs = ReadJournal(journal);
  if (!runs.empty()) {
    return world_.Fail("everything is deleted and the journal still has gang {}",
                       runs.begin()->second.decision->key.name);
  }
  if (!claim_of_core_.empty()) return world_.Fail("everything is deleted and chips are allocated");
  snapshot.gang_usage.ForEach([this](const controller::UsageKey& key, const auto& sum) {
    for (const controller::UsageSum::OfType& one : sum.types) {
      if (one.eighths == 0) continue;
      world_.Fail("everything is deleted and {} eighths of chips count for queue {}", one.eighths,
                  key.queue);
    }
  });
  snapshot.cluster->ForEachHolding([this](const controller::Holding& holding) {
    world_.Fail("everything is deleted and the controller holds claim {}", holding.claim.name);
  });
  for (std::size_t i = 0; i < snapshot.cluster->node_count(); ++i) {
    const controller::NodeState& node = snapshot.cluster->node(controller::NodeId(i));
    if (node.use == nullptr) continue;
    world_.Fail("everything is deleted and the controller counts pods on node {}",
                node.node == nullptr ? "without an object" : node.node->name);
  }
  CheckNodes(snapshot);
}

}  // namespace tahoma::simulation
