#include "controller/core/facts/gang_membership.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "controller/core/facts/extended_claim.h"
#include "controller/core/facts/member_index.h"
#include "controller/core/facts/ultraserver_workload.h"
#include "controller/core/facts/volumes.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Labels of pods: Kueue's for plain pods and for pods of admitted Jobs, Volcano's, KAI's.
constexpr std::array<std::string_view, 4> kQueueLabels = {
    "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name", "volcano.sh/queue-name",
    "kai.scheduler/queue"};

Readiness Waits(GangReason reason, std::string message) {
  Readiness readiness;
  readiness.reason = reason;
  readiness.message = std::move(message);
  return readiness;
}

// Copies the selectors and configs of the classes into the claim, as they apply at the time of
// allocation. Class configs come first (docs/reference/kubernetes-dra.md#allocation).
void ResolveClasses(ClaimSpec& spec, const Facts& facts) {
  std::vector<DeviceConfig> configs;
  for (ClaimRequest& request : spec.requests) {
    for (DeviceRequest& alternative : request.alternatives) {
      const auto found = facts.classes.find(alternative.device_class);
      alternative.class_found = found != facts.classes.end();
      if (!alternative.class_found) continue;
      alternative.class_selectors = found->second->selectors;
      for (DeviceConfig config : found->second->configs) {
        config.requests = {alternative.name.empty() ? request.name
                                                    : request.name + "/" + alternative.name};
        configs.push_back(std::move(config));
      }
    }
  }
  configs.insert(configs.end(), spec.configs.begin(), spec.configs.end());
  spec.configs = std::move(configs);
}

std::string NotMade(const PodFact& pod, const std::string& entry, const Facts& facts) {
  std::string why =
      fmt::format("pod {}: the claim for \"{}\" is not made yet", pod.key.name, entry);
  for (const std::string& name : pod.templates) {
    if (facts.claim_templates.Find(ClaimTemplateKey{pod.key.ns, name}) != nullptr) continue;
    return why + fmt::format(": ResourceClaimTemplate {} does not exist", name);
  }
  return why;
}

// Adds the member's claims, or says why the pod waits.
std::optional<Readiness> AddClaims(const PodFact& pod, const Facts& facts,
                                   const GangMembership::ClaimBusy& busy, MemberSpec& member) {
  for (const PodClaim& entry : pod.claims) {
    if (entry.none) continue;
    if (entry.claim.empty()) {
      return Waits(GangReason::kWaitingForClaims, NotMade(pod, entry.entry, facts));
    }
    const ClaimKey key{pod.key.ns, entry.claim};
    const std::shared_ptr<const ClaimFact> claim = facts.claims.Find(key);
    if (claim == nullptr || claim->deleting) {
      return Waits(GangReason::kWaitingForClaims,
                   fmt::format("pod {}: claim {} {}", pod.key.name, entry.claim,
                               claim == nullptr ? "does not exist" : "is being deleted"));
    }
    if (!claim->spec_error.empty() || claim->spec == nullptr) {
      return Waits(GangReason::kInvalid,
                   fmt::format("claim {}: {}", entry.claim, claim->spec_error));
    }
    if (std::string why = busy(key); !why.empty()) {
      return Waits(GangReason::kWaitingForClaims, std::move(why));
    }
    ClaimSpec spec{*claim->spec, key, claim->uid, std::nullopt};
    if (claim->allocation != nullptr) spec.allocated_node = claim->allocation->node;
    ResolveClasses(spec, facts);
    member.claims.push_back(std::move(spec));
  }
  return std::nullopt;
}

Readiness WaitsUnclaimed(const PodFact& pod, std::string message) {
  Readiness waits = Waits(GangReason::kWaitingForClaims, std::move(message));
  waits.unclaimed = pod.key;
  return waits;
}

// Says why the pod waits for the claim of its extended resources, or lets the member get them by
// the claim, which is among the pod's.
std::optional<Readiness> CheckExtended(const PodFact& pod, const Facts& facts, MemberSpec& member) {
  if (pod.extended_asks == nullptr) return std::nullopt;
  if (const std::string unknown = UnknownResource(pod, facts); !unknown.empty()) {
    return Waits(GangReason::kInvalid,
                 fmt::format("pod {} asks for {}, and neither has a DeviceClass "
                             "spec.extendedResourceName {} nor does any node offer the resource",
                             pod.key.name, unknown, unknown));
  }
  const std::optional<ExtendedClaim> wished = ExtendedClaimOf(pod, facts);
  if (!wished) return std::nullopt;
  const std::string& name = wished->status.claim;
  const auto claim = facts.claims.Find(ClaimKey{pod.key.ns, name});
  if (claim != nullptr && claim->spec != nullptr && !IsSpecOf(*wished, *claim->spec)) {
    return Waits(GangReason::kInvalid,
                 fmt::format("pod {}: claim {} is not for the resources that the pod asks for, as "
                             "the DeviceClasses name them now: delete the claim to have it made "
                             "anew",
                             pod.key.name, name));
  }
  if (claim == nullptr || pod.extended_claim != wished->status) {
    return WaitsUnclaimed(pod, fmt::format("pod {}: the claim of its extended resources is being "
                                           "made",
                                           pod.key.name));
  }
  auto needs = std::make_shared<kube::PodNeeds>(*pod.needs);
  kube::TakeByClaim(ResourcesOf(wished->status), *needs);
  member.needs = std::move(needs);
  return std::nullopt;
}

// Adds what the pod's volumes demand of its node, or says why the pod waits.
std::optional<Readiness> AddVolumes(const PodFact& pod, const Facts& facts, MemberSpec& member) {
  for (const kube::PodVolume& volume : pod.volumes) {
    VolumePlace place = PlaceOf(pod, volume, facts);
    if (!place.waits.empty()) {
      return Waits(GangReason::kWaitingForVolumes,
                   fmt::format("pod {}: {}", pod.key.name, place.waits));
    }
    if (place.nodes.empty()) continue;
    member.node.volumes.push_back({.claim = volume.claim, .nodes = std::move(place.nodes)});
  }
  return std::nullopt;
}

std::optional<Readiness> AddMember(const PodFact& pod, const Facts& facts,
                                   const GangMembership::ClaimBusy& busy, GangSpec& spec) {
  if (pod.gated) {
    return Waits(GangReason::kWaitingForPods,
                 fmt::format("pod {} has scheduling gates", pod.key.name));
  }
  if (!pod.spec_error.empty()) {
    return Waits(
        GangReason::kInvalid,
        spec.single_pod ? pod.spec_error : fmt::format("pod {}: {}", pod.key.name, pod.spec_error));
  }
  MemberSpec member;
  member.pod = pod.key;
  member.uid = pod.uid;
  member.node = pod.demand;
  member.needs = pod.needs;
  spec.grace = std::max(spec.grace, pod.grace());
  if (auto waits = CheckExtended(pod, facts, member)) return waits;
  if (auto waits = AddClaims(pod, facts, busy, member)) return waits;
  if (auto waits = AddVolumes(pod, facts, member)) return waits;
  spec.members.push_back(std::move(member));
  return std::nullopt;
}

std::optional<Readiness> AddUnbound(const PodFact& pod, const Facts& facts,
                                    const GangMembership::ClaimBusy& busy, GangSpec& spec) {
  if (pod.node.empty()) return AddMember(pod, facts, busy, spec);
  return Waits(GangReason::kWaitingForPods,
               fmt::format("pod {} is bound to node {} without the gang", pod.key.name, pod.node));
}

Readiness AssessPod(const GangRef& ref, const Facts& facts, const GangMembership::ClaimBusy& busy) {
  const auto pod = facts.pods.Find(PodKey{ref.key.ns, ref.key.name});
  if (pod == nullptr) return Waits(GangReason::kWaitingForPods, "the pod does not exist");
  if (!pod->alive() || !pod->node.empty()) {
    Readiness ended = Waits(GangReason::kFinished, "the pod is bound or has ended");
    ended.finished = pod->finished;
    ended.succeeded = pod->succeeded;
    return ended;
  }
  auto spec = std::make_shared<GangSpec>();
  spec->key = ref.key;
  spec->uid = pod->uid;
  spec->single_pod = true;
  spec->max_runtime = pod->max_runtime;
  spec->preemptible = pod->preemptible;
  spec->checkpointable = pod->checkpointable;
  spec->block = pod->block;
  spec->priority = pod->priority;
  spec->preempts = pod->preempts;
  spec->queue = QueueOf(nullptr, std::array{pod});
  spec->created = pod->created;
  if (auto waits = AddMember(*pod, facts, busy, *spec)) return *std::move(waits);
  Readiness ready;
  ready.spec = std::move(spec);
  return ready;
}

std::shared_ptr<GangSpec> SpecOf(const GangFact& gang) {
  auto spec = std::make_shared<GangSpec>();
  spec->key = gang.key;
  spec->uid = gang.uid;
  spec->shape_text = gang.shape;
  spec->chips = gang.chips;
  spec->slices = gang.slices;
  if (gang.changes_size()) spec->min_members = static_cast<std::size_t>(*gang.min_members);
  spec->max_runtime = gang.max_runtime;
  spec->preemptible = gang.preemptible;
  spec->checkpointable = gang.checkpointable;
  spec->block = gang.block;
  spec->created = gang.created;
  return spec;
}

// Returns the PodGroup or the Workload that the pod joins.
std::optional<PodGroupKey> GroupOf(const PodFact& pod) {
  if (pod.wish == nullptr || pod.wish->group.api == GroupApi::kNone ||
      pod.wish->group.api == GroupApi::kNeuron) {
    return std::nullopt;
  }
  return PodGroupKey{pod.wish->group.api, {pod.key.ns, pod.wish->group.group}};
}

template <typename Sets, typename Key>
const auto& FindSet(const Sets& sets, const Key& key) {
  static const typename Sets::mapped_type kNone;
  const auto found = sets.find(key);
  return found == sets.end() ? kNone : found->second;
}

template <typename Sets, typename Key, typename Member>
void Forget(Sets& sets, const Key& key, const Member& member) {
  const auto found = sets.find(key);
  if (found == sets.end()) return;
  found->second.erase(member);
  if (found->second.empty()) sets.erase(found);
}

// Gives the wish the priority of the group, or returns why the group has none.
std::string TakePriority(const PodGroupFact& group, const Facts& facts, GangWish& wish) {
  wish.priority = group.priority;
  if (group.priority_class.empty()) return "";
  const auto found = facts.priorities.find(group.priority_class);
  if (found == facts.priorities.end()) {
    return fmt::format("names PriorityClass {}, which does not exist", group.priority_class);
  }
  wish.priority = found->second;
  return "";
}

// Completes the wish of pods of a NeuronUltraServerWorkload, or returns why the workload cannot be
// used.
std::optional<Readiness> CompleteByWorkload(const GangKey& key, const Facts& facts,
                                            std::shared_ptr<const GangWish>& wish) {
  const auto workload = facts.workloads.Find(key);
  if (workload == nullptr || workload->deleting) {
    return Waits(GangReason::kWaitingForGang,
                 fmt::format("NeuronUltraServerWorkload {} {}", key.name,
                             workload == nullptr ? "does not exist" : "is being deleted"));
  }
  if (const std::string trouble = TroubleOf(*workload, facts); !trouble.empty()) {
    return Waits(GangReason::kInvalid,
                 fmt::format("NeuronUltraServerWorkload {}: {}", key.name, trouble));
  }
  wish = workload->wish;
  return std::nullopt;
}

// Completes the wish of pods that join a PodGroup, or returns why the group cannot be used.
std::optional<Readiness> CompleteByGroup(const GangKey& key, const Facts& facts,
                                         std::shared_ptr<const GangWish>& wish) {
  if (wish->group.api == GroupApi::kNeuron) return CompleteByWorkload(key, facts, wish);
  const GroupMark& mark = wish->group;
  const std::string name = mark.ToString();
  const auto group = facts.pod_groups.Find({mark.api, {key.ns, mark.group}});
  if (group == nullptr) {
    return Waits(GangReason::kWaitingForGang, name + " does not exist");
  }
  const auto members = group->MembersOf(mark);
  if (!members) {
    return Waits(GangReason::kInvalid, fmt::format("{} has no pod group {}", name, mark.part));
  }
  if (!group->unfollowed.empty()) {
    return Waits(GangReason::kInvalid,
                 fmt::format("{} has {}, which Tahoma does not follow: make a Gang for the group "
                             "and give its pods the label tahoma.dev/gang",
                             name, group->unfollowed));
  }
  auto whole = std::make_shared<GangWish>(*wish);
  whole->request.members = *members;
  whole->owner = group->as_owner;
  if (const std::string lacks = TakePriority(*group, facts, *whole); !lacks.empty()) {
    return Waits(GangReason::kWaitingForGang, fmt::format("{} {}", name, lacks));
  }
  if (*members < 1) {
    return Waits(GangReason::kInvalid,
                 name +
                     " asks for no least number of pods, and a pod of a group is not placed "
                     "alone");
  }
  if (const std::string faults = Describe(FaultsOf(whole->request)); !faults.empty()) {
    return Waits(GangReason::kInvalid, fmt::format("the Gang for {}: {}", name, faults));
  }
  wish = std::move(whole);
  return std::nullopt;
}

// Compares the wishes of the gang's pods with each other and with the Gang. Returns why the gang
// cannot be used, or that its Gang must be made; nullopt when there is nothing to say.
std::optional<Readiness> CheckWishes(const GangKey& key, const std::set<std::string>& pods,
                                     const GangFact* gang, const Facts& facts) {
  std::shared_ptr<const PodFact> first;
  for (const std::string& name : pods) {
    auto pod = facts.pods.Find(PodKey{key.ns, name});
    if (pod == nullptr || pod->wish == nullptr || !pod->alive()) continue;
    if (first == nullptr) first = pod;
    if (pod->wish->IsLike(*first->wish)) continue;
    return Waits(
        GangReason::kInvalid,
        fmt::format("pods {} and {} of one group wish different Gangs: {}, and {}", first->key.name,
                    name, first->wish->ToString(), pod->wish->ToString()));
  }
  if (first == nullptr) return std::nullopt;
  std::shared_ptr<const GangWish> wish = first->wish;
  if (wish->group.api != GroupApi::kNone) {
    if (auto waits = CompleteByGroup(key, facts, wish)) return waits;
  }
  if (gang == nullptr) {
    Readiness waits = Waits(GangReason::kWaitingForGang, "its Gang is being made");
    waits.wish = wish;
    return waits;
  }
  if (!gang->made) {
    return Waits(GangReason::kInvalid,
                 fmt::format("pod {} wishes a Gang {} by its {}, and a Gang of that name was made "
                             "by somebody else: rename it, or give the pods the label "
                             "tahoma.dev/gang and no other mark",
                             first->key.name, key.name,
                             wish->group.api == GroupApi::kNone ? "annotations" : "PodGroup"));
  }
  GangWish of_gang = *wish;  // only sizes are compared: users may change the rest of a Gang
  of_gang.request.members = gang->members;
  of_gang.request.shape = gang->shape;
  of_gang.request.chips = gang->chips;
  of_gang.request.slices = gang->slices;
  if (wish->IsLike(of_gang)) return std::nullopt;
  return Waits(GangReason::kInvalid,
               fmt::format("pod {} wishes a Gang of {}, and Gang {} has {}", first->key.name,
                           wish->ToString(), key.name, of_gang.ToString()));
}

}  // namespace

// Pods are in the order of their indexes where each has one, else of their names.
RankOrder SortByRank(std::vector<std::shared_ptr<const PodFact>>& pods) {
  std::vector<std::pair<std::optional<MemberIndex>, std::shared_ptr<const PodFact>>> keyed;
  keyed.reserve(pods.size());
  for (const auto& pod : pods) keyed.emplace_back(IndexOf(pod->labels, pod->key.name), pod);
  const bool indexed =
      std::ranges::all_of(keyed, [](const auto& at) { return at.first.has_value(); });
  std::ranges::sort(keyed, [&](const auto& a, const auto& b) {
    if (indexed && *a.first != *b.first) return *a.first < *b.first;
    return NaturalLess(a.second->key.name, b.second->key.name);
  });
  for (std::size_t i = 0; i < keyed.size(); ++i) pods[i] = std::move(keyed[i].second);
  if (!indexed) return {};
  const auto twice =
      std::ranges::adjacent_find(keyed, {}, [](const auto& at) { return *at.first; });
  if (twice == keyed.end()) return {.indexed = true, .twice = ""};
  const auto first = static_cast<std::size_t>(twice - keyed.begin());
  return {.indexed = true,
          .twice = fmt::format("pods {} and {} both have {}", pods[first]->key.name,
                               pods[first + 1]->key.name, Describe(*twice->first))};
}

GangRef GangOf(const PodFact& pod) {
  if (pod.gang.empty()) return {{pod.key.ns, pod.key.name}, true};
  return {{pod.key.ns, pod.gang}, false};
}

std::string Describe(const GangRef& ref) {
  return (ref.single ? "pod " : "gang ") + ToString(ref.key);
}

void GangMembership::OnPod(const PodFact& pod) {
  if (!pod.gang.empty()) pods_of_gang_[{pod.key.ns, pod.gang}].insert(pod.key.name);
  for (const PodClaim& claim : pod.claims) {
    if (!claim.claim.empty()) pods_of_claim_[{pod.key.ns, claim.claim}].insert(pod.key);
  }
  for (const std::string& name : pod.templates) {
    pods_of_template_[{pod.key.ns, name}].insert(pod.key);
  }
  for (const kube::PodVolume& volume : pod.volumes) {
    pods_of_volume_[{pod.key.ns, volume.claim}].insert(pod.key);
  }
  if (const auto group = GroupOf(pod)) pods_of_group_[*group].insert(pod.key);
}

void GangMembership::OnPodGone(const PodFact& pod) {
  Forget(pods_of_gang_, GangKey{pod.key.ns, pod.gang}, pod.key.name);
  for (const PodClaim& claim : pod.claims) {
    Forget(pods_of_claim_, ClaimKey{pod.key.ns, claim.claim}, pod.key);
  }
  for (const std::string& name : pod.templates) {
    Forget(pods_of_template_, ClaimTemplateKey{pod.key.ns, name}, pod.key);
  }
  for (const kube::PodVolume& volume : pod.volumes) {
    Forget(pods_of_volume_, VolumeClaimKey{pod.key.ns, volume.claim}, pod.key);
  }
  if (const auto group = GroupOf(pod)) Forget(pods_of_group_, *group, pod.key);
}

const std::set<std::string>& GangMembership::PodsOf(const GangKey& gang) const {
  return FindSet(pods_of_gang_, gang);
}

const std::set<PodKey>& GangMembership::PodsUsing(const ClaimKey& claim) const {
  return FindSet(pods_of_claim_, claim);
}

const std::set<PodKey>& GangMembership::PodsOfTemplate(const ClaimTemplateKey& name) const {
  return FindSet(pods_of_template_, name);
}

const std::set<PodKey>& GangMembership::PodsMounting(const VolumeClaimKey& claim) const {
  return FindSet(pods_of_volume_, claim);
}

const std::set<PodKey>& GangMembership::PodsJoining(const PodGroupKey& group) const {
  return FindSet(pods_of_group_, group);
}

Readiness GangMembership::AssessNext(const PodFact& pod, const Facts& facts,
                                     const ClaimBusy& busy) const {
  auto spec = std::make_shared<GangSpec>();
  if (auto waits = AddMember(pod, facts, busy, *spec)) return *std::move(waits);
  Readiness ready;
  ready.spec = std::move(spec);
  return ready;
}

Readiness GangMembership::AssessPlaced(const GangDecision& decision, const Facts& facts) {
  const auto gang = facts.gangs.Find(decision.key);
  if (decision.single || gang == nullptr || gang->uid != decision.uid || gang->deleting) {
    return Waits(GangReason::kWaitingForGang, "its Gang does not exist");
  }
  const std::shared_ptr<GangSpec> spec = SpecOf(*gang);
  spec->queue = decision.queue;
  spec->priority = decision.priority;
  spec->preemptible = decision.preemptible;
  std::vector<const DecidedPod*> pods;
  for (const DecidedPod& pod : decision.pods) pods.push_back(&pod);
  std::ranges::sort(pods, {}, &DecidedPod::rank);
  const auto not_busy = [](const ClaimKey&) { return std::string(); };
  for (const DecidedPod* decided : pods) {
    const auto pod = facts.pods.Find(PodKey{decision.key.ns, decided->name});
    if (pod == nullptr || pod->uid != decided->uid || !pod->alive()) {
      return Waits(GangReason::kWaitingForPods, fmt::format("pod {} has ended", decided->name));
    }
    if (auto waits = AddMember(*pod, facts, not_busy, *spec)) return *std::move(waits);
  }
  if (static_cast<std::int32_t>(pods.size()) != gang->members) {
    return Waits(GangReason::kWaitingForPods,
                 fmt::format("{} of {} pods run", pods.size(), gang->members));
  }
  for (MemberSpec& member : spec->members) {
    for (ClaimSpec& claim : member.claims) {
      const auto decided = std::ranges::find(decision.claims, claim.uid, &DecidedClaim::uid);
      const bool own = decided != decision.claims.end() && !decided->allocated_before;
      if (own) claim.allocated_node.reset();
    }
  }
  Readiness ready;
  ready.spec = spec;
  return ready;
}

std::string QueueOf(const GangFact* gang, std::span<const std::shared_ptr<const PodFact>> pods) {
  if (gang != nullptr && gang->queue != kDefaultQueue) return gang->queue;
  for (const auto& pod : pods) {
    for (const std::string_view label : kQueueLabels) {
      const auto found = std::ranges::find(pod->labels, label, &kube::Labels::value_type::first);
      if (found != pod->labels.end() && !found->second.empty()) return found->second;
    }
  }
  return kDefaultQueue;
}

std::int32_t PriorityOf(const GangFact& gang,
                        std::span<const std::shared_ptr<const PodFact>> pods) {
  if (gang.priority || pods.empty()) return gang.priority.value_or(0);
  return std::ranges::max(pods, {}, [](const auto& pod) { return pod->priority; })->priority;
}

Readiness GangMembership::Assess(const GangRef& ref, const Facts& facts,
                                 const ClaimBusy& busy) const {
  if (ref.single) return AssessPod(ref, facts, busy);
  const auto gang = facts.gangs.Find(ref.key);
  if (auto waits = CheckWishes(ref.key, PodsOf(ref.key), gang.get(), facts))
    return *std::move(waits);
  if (gang == nullptr || gang->deleting) {
    return Waits(GangReason::kWaitingForGang,
                 fmt::format("Gang {} {}", ref.key.name,
                             gang == nullptr ? "does not exist" : "is being deleted"));
  }
  if (!gang->spec_error.empty()) return Waits(GangReason::kInvalid, gang->spec_error);
  if (!gang->failed.empty()) {
    Readiness ended = Waits(GangReason::kMemberLost, gang->failed);
    ended.finished = true;
    return ended;
  }
  std::vector<std::shared_ptr<const PodFact>> members;
  std::int32_t finished = 0;
  std::int32_t succeeded = 0;
  for (const std::string& name : PodsOf(ref.key)) {
    auto pod = facts.pods.Find(PodKey{ref.key.ns, name});
    if (pod == nullptr || pod->deleting) continue;
    finished += pod->finished ? 1 : 0;
    succeeded += pod->succeeded ? 1 : 0;
    if (!pod->finished) members.push_back(std::move(pod));
  }
  const auto count = static_cast<std::int32_t>(members.size());
  const std::int32_t least = gang->least_members();
  if (count >= least) {
    if (RankOrder order = SortByRank(members); !order.twice.empty()) {
      return Waits(GangReason::kIndexTwice, std::move(order.twice));
    }
  }
  if (count < least || count > gang->members) {
    Readiness waits = Waits(
        count < least ? GangReason::kWaitingForPods : GangReason::kTooManyPods,
        fmt::format("{} of {} pods exist{}", count, gang->members,
                    least == gang->members ? "" : fmt::format(", and minMembers is {}", least)));
    const bool enough = gang->changes_size() && succeeded >= least;
    waits.finished = count == 0 && (finished >= gang->members || enough);
    waits.succeeded = waits.finished && (succeeded == finished || enough);
    return waits;
  }
  const std::shared_ptr<GangSpec> spec = SpecOf(*gang);
  spec->queue = QueueOf(gang.get(), members);
  spec->priority = PriorityOf(*gang, members);
  spec->preempts = gang->preempts.value_or(
      std::ranges::all_of(members, [](const auto& pod) { return pod->preempts; }));
  std::int32_t not_ready = 0;
  for (const auto& pod : members) {
    std::optional<Readiness> waits = AddUnbound(*pod, facts, busy, *spec);
    // A pod that is not ready joins later, if the gang may begin without the pod.
    if (waits && ++not_ready > count - least) return *std::move(waits);
  }
  Readiness ready;
  ready.spec = spec;
  return ready;
}

}  // namespace tahoma::controller
