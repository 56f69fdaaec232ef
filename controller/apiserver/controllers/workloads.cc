// Carries out the decisions of workloads/: an event queues objects, a look reads an object and its
// dependents from the store and sends the writes.

#include "controller/apiserver/controllers/workloads/workloads.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

// A Service and a budget get a single look for the changes of many pods.
constexpr std::chrono::milliseconds kPodsTogether{100};

// Returns whether objects of the resource follow pods of other controllers.
bool FollowsPods(const ResourceName& resource) {
  return resource == kServiceResource || resource == kBudgetResource;
}

const Json& LabelsOf(const Json& object) { return ValueAt(object, {"metadata", "labels"}); }

kube::Request RequestFor(const Write& write) {
  const kube::ObjectKey key = kube::KeyOf(*write.object);
  switch (write.verb) {
    case Write::Verb::kCreate:
      return kube::CreateRequest(write.resource, key.ns, *write.object);
    case Write::Verb::kUpdate:
      return kube::UpdateRequest(write.resource, key, *write.object);
    case Write::Verb::kUpdateStatus:
      return kube::UpdateRequest(write.resource, key, *write.object, {.subresource = "status"});
    case Write::Verb::kDelete:
      break;
  }
  return kube::DeleteRequest(
      write.resource, key,
      {.uid = std::string(kube::UidOf(*write.object)), .propagation_policy = write.propagation});
}

const char* ComponentOf(const std::string& kind) {
  if (kind == "Job") return "job-controller";
  if (kind == "ReplicaSet") return "replicaset-controller";
  if (kind == "Deployment") return "deployment-controller";
  if (kind == "StatefulSet") return "statefulset-controller";
  if (kind == "DaemonSet") return "daemonset-controller";
  if (kind.starts_with("PersistentVolume")) return "persistentvolume-controller";
  return "controllermanager";
}

}  // namespace

bool IsWorkload(const ResourceName& resource) {
  return resource == kJobResource || resource == kReplicaSetResource ||
         resource == kDeploymentResource || resource == kStatefulSetResource ||
         resource == kDaemonSetResource || FollowsPods(resource);
}

std::optional<ObjectId> Controllers::ControllerId(const Json& object) const {
  const auto controller = kube::ControllerOf(object);
  if (!controller) return std::nullopt;
  const auto kinds = kinds_();
  const Kind* kind = kinds->FindKind(controller->api_version, controller->kind);
  if (kind == nullptr) return std::nullopt;
  return ObjectId{{kind->group, kind->plural},
                  ObjectKey(kube::NamespaceOf(object), controller->name)};
}

void Controllers::QueueController(const ObjectId& id, const Json& object, WallTime now) {
  const auto owner = ControllerId(object);
  if (owner && IsWorkload(owner->resource)) {
    queue_.Add({Task::kWorkload, WorkKey(*owner)}, now);
    // A Deployment that is recreated waits for the pods of its old ReplicaSets.
    if (id.resource == kPodResource && owner->resource == kReplicaSetResource) {
      const ObjectPtr set = objects_.Get(owner->resource, owner->key);
      if (set != nullptr) QueueController(*owner, *set->body, now);
    }
  }
  for (const ObjectId& one : index_.SelectorsOf(kube::NamespaceOf(object), LabelsOf(object))) {
    if (FollowsPods(one.resource)) {
      if (id.resource != kPodResource) continue;
      queue_.Add({Task::kWorkload, WorkKey(one)}, now + kPodsTogether);
    } else if (!owner) {
      queue_.Add({Task::kWorkload, WorkKey(one)}, now);
    }
  }
}

void Controllers::QueueForWorkloads(const ObjectId& id, const Json* previous, const Json* object,
                                    WallTime now) {
  if (IsWorkload(id.resource)) queue_.Add({Task::kWorkload, WorkKey(id)}, now);
  if (id.resource == kPodResource || id.resource == kReplicaSetResource ||
      id.resource == kRevisionResource) {
    for (const Json* one : {previous, object}) {
      if (one != nullptr) QueueController(id, *one, now);
    }
  }
  QueueForTracked(id, previous, object, now);
  QueueForVolumes(id, previous, object, now);
  if (id.resource == kEndpointsResource && object == nullptr) {
    queue_.Add({Task::kWorkload, WorkKey({kServiceResource, id.key})}, now);
  }
  if (id.resource != kNodeResource) return;
  const auto same = [&](std::initializer_list<std::string_view> path) {
    return previous != nullptr && object != nullptr &&
           ValueAt(*previous, path) == ValueAt(*object, path);
  };
  if (same({"spec"}) && same({"metadata", "labels"})) return;
  for (const ObjectPtr& set : objects_.List(kDaemonSetResource, "").objects) {
    queue_.Add({Task::kWorkload, WorkKey({kDaemonSetResource, set->key})}, now);
  }
}

// Nobody counts a pod after its Job is gone.
void Controllers::QueueForTracked(const ObjectId& id, const Json* previous, const Json* object,
                                  WallTime now) {
  if (id.resource == kJobResource && object == nullptr && previous != nullptr) {
    for (const ObjectId& pod : index_.DependentsOf(std::string(kube::UidOf(*previous)))) {
      if (pod.resource == kPodResource) queue_.Add({Task::kWorkload, WorkKey(pod)}, now);
    }
  }
  if (id.resource == kPodResource && object != nullptr && HasFinalizer(*object, kJobTracking)) {
    const auto job = ControllerId(*object);
    if (!job || objects_.Get(job->resource, job->key) == nullptr) {
      queue_.Add({Task::kWorkload, WorkKey(id)}, now);
    }
  }
}

Outcome Controllers::ReleaseTracked(const ObjectId& id, const Json& pod) {
  const auto job = ControllerId(pod);
  const ObjectPtr owner = job ? objects_.Get(job->resource, job->key) : nullptr;
  if (owner != nullptr && kube::UidOf(*owner->body) == kube::ControllerOf(pod)->uid) {
    return Outcome::kDone;
  }
  if (!HasFinalizer(pod, kJobTracking)) return Outcome::kDone;
  Json released = pod;
  DropFinalizer(released, kJobTracking);
  return Send(Update(id, std::move(released)));
}

Bodies Controllers::ChildrenOf(const Json& owner, const ResourceName& resource) const {
  std::set<std::string> keys;
  for (const ObjectId& id : index_.DependentsOf(std::string(kube::UidOf(owner)))) {
    if (id.resource == resource) keys.insert(id.key);
  }
  for (std::string& key : index_.Candidates(resource, kube::NamespaceOf(owner),
                                            ValueAt(owner, {"spec", "selector"}))) {
    keys.insert(std::move(key));
  }
  Bodies children;
  for (const std::string& key : keys) {
    const ObjectPtr child = objects_.Get(resource, key);
    if (child == nullptr) continue;
    const auto controller = kube::ControllerOf(*child->body);
    if (!controller || controller->uid == kube::UidOf(owner)) children.push_back(child->body);
  }
  return children;
}

Bodies Controllers::PodsOf(const Bodies& sets) const {
  Bodies pods;
  for (const auto& set : sets) {
    for (const ObjectId& id : index_.DependentsOf(std::string(kube::UidOf(*set)))) {
      if (id.resource != kPodResource) continue;
      const ObjectPtr pod = objects_.Get(id.resource, id.key);
      if (pod != nullptr) pods.push_back(pod->body);
    }
  }
  return pods;
}

Bodies Controllers::SelectedPods(const Json& owner, const Json& selector) const {
  Bodies pods;
  for (const std::string& key :
       index_.Candidates(kPodResource, kube::NamespaceOf(owner), selector)) {
    const ObjectPtr pod = objects_.Get(kPodResource, key);
    if (pod != nullptr) pods.push_back(pod->body);
  }
  return pods;
}

// Returns how many pods the controllers of the pods want; nullopt when a pod has no controller with
// a size.
std::optional<std::int64_t> Controllers::WantedPods(const Bodies& pods) const {
  std::set<ObjectId> counted;
  std::int64_t wanted = 0;
  for (const auto& pod : pods) {
    auto id = ControllerId(*pod);
    ObjectPtr owner = id ? objects_.Get(id->resource, id->key) : nullptr;
    if (owner != nullptr && id->resource == kReplicaSetResource) {
      if (const auto above = ControllerId(*owner->body)) {
        id = above;
        owner = objects_.Get(above->resource, above->key);
      }
    }
    if (owner == nullptr || !ValueAt(*owner->body, {"spec", "replicas"}).is_number_integer()) {
      return std::nullopt;
    }
    if (counted.insert(*id).second) wanted += kube::IntAt(*owner->body, {"spec", "replicas"});
  }
  return wanted;
}

Decision Controllers::Decide(const ObjectId& id, const Json& object, WallTime now) const {
  const ResourceName& resource = id.resource;
  const Json& selector = ValueAt(object, {"spec", "selector"});
  if (resource == kServiceResource) {
    const ObjectPtr endpoints = objects_.Get(kEndpointsResource, id.key);
    return SyncEndpoints(object, endpoints ? endpoints->body.get() : nullptr,
                         SelectedPods(object, selector));
  }
  if (resource == kBudgetResource) {
    const Bodies pods = SelectedPods(object, selector);
    return SyncBudget(object, pods, WantedPods(pods), now);
  }
  if (resource == kVolumeClaimResource || resource == kVolumeResource) {
    return DecideVolume(id, object);
  }
  if (resource == kDeploymentResource) {
    const Bodies sets = ChildrenOf(object, kReplicaSetResource);
    return SyncDeployment(object, sets, PodsOf(sets), now);
  }
  const Bodies pods = ChildrenOf(object, kPodResource);
  if (resource == kJobResource) return SyncJob(object, pods, now);
  if (resource == kReplicaSetResource) return SyncReplicaSet(object, pods, now);
  const Bodies revisions = ChildrenOf(object, kRevisionResource);
  if (resource == kDaemonSetResource) {
    Bodies nodes;
    for (const ObjectPtr& node : objects_.List(kNodeResource, "").objects) {
      nodes.push_back(node->body);
    }
    return SyncDaemonSet(object, pods, revisions, nodes, now);
  }
  return SyncStatefulSet(
      object, pods, revisions,
      [&](const std::string& name) -> std::shared_ptr<const Json> {
        const ObjectPtr claim =
            objects_.Get(kVolumeClaimResource, ObjectKey(kube::NamespaceOf(object), name));
        return claim == nullptr ? nullptr : claim->body;
      },
      now);
}

// The Endpoints go with their Service, unless somebody else keeps them.
Outcome Controllers::DropEndpoints(const std::string& key) {
  const ObjectPtr endpoints = objects_.Get(kEndpointsResource, key);
  if (endpoints == nullptr ||
      !kube::LabelOf(*endpoints->body, "endpoints.kubernetes.io/managed-by")) {
    return Outcome::kDone;
  }
  return Delete({kEndpointsResource, key}, *endpoints->body, "Background");
}

Outcome Controllers::SyncWorkload(const ObjectId& id, WallTime now) {
  const ObjectPtr current = objects_.Get(id.resource, id.key);
  if (current == nullptr) {
    return id.resource == kServiceResource ? DropEndpoints(id.key) : Outcome::kDone;
  }
  const Json& object = *current->body;
  if (id.resource == kPodResource) {
    const Outcome made = Carry(object, DecideVolume(id, object), now);
    const Outcome released = ReleaseTracked(id, object);
    return released == Outcome::kDone ? made : released;
  }
  const Decision decision = Decide(id, object, now);
  if (decision.again) queue_.Add({Task::kWorkload, WorkKey(id)}, *decision.again);
  return Carry(object, decision, now);
}

Outcome Controllers::Carry(const Json& object, const Decision& decision, WallTime now) {
  if (!decision.remove_folder.empty() && options_.remove_folder) {
    if (const absl::Status removed = options_.remove_folder(decision.remove_folder);
        !removed.ok()) {
      const Note note{.type = "Warning",
                      .reason = "VolumeFailedDelete",
                      .message = std::string(Message(removed))};
      (void)api_.Send(EventOf(object, note, now));
      return Outcome::kRetry;
    }
  }
  std::vector<kube::Request> requests;
  for (const Write& write : decision.writes) requests.push_back(RequestFor(write));
  const auto answers = api_.SendAll(requests);
  std::vector<kube::Request> events;
  Outcome outcome = Outcome::kDone;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Write& write = decision.writes[i];
    std::string name(kube::NameOf(*write.object));
    const bool creates = write.verb == Write::Verb::kCreate;
    if (creates) {
      const auto made = kube::ObjectOf(answers[i]);
      if (!made.ok()) {
        outcome = Outcome::kRetry;
        if (made.status().code() == absl::StatusCode::kAlreadyExists) continue;
        events.push_back(
            EventOf(object,
                    {.type = "Warning",
                     .reason = "FailedCreate",
                     .message = fmt::format("Error creating: {}", Message(made.status()))},
                    now));
        continue;
      }
      // Noted at once: the next look must not make a second object before the event of the first
      // is taken in.
      name = kube::NameOf(**made);
      index_.Apply({write.resource.group, write.resource.plural},
                   ObjectKey(kube::NamespaceOf(**made), name), nullptr, made->get(), {});
    } else if (OutcomeOf(answers[i]) == Outcome::kRetry) {
      outcome = Outcome::kRetry;
      continue;
    }
    if (write.event.empty()) continue;
    events.push_back(EventOf(object,
                             {.reason = creates ? "SuccessfulCreate" : "SuccessfulDelete",
                              .message = fmt::format(fmt::runtime(write.event), name)},
                             now));
  }
  if (outcome == Outcome::kDone) {
    for (const Note& note : decision.notes) events.push_back(EventOf(object, note, now));
  }
  (void)api_.SendAll(events);  // a lost Event changes nothing else
  return outcome;
}

kube::Request Controllers::EventOf(const Json& object, const Note& note, WallTime now) const {
  // A repeated warning is a single Event.
  const bool repeats = note.once || note.type == std::string_view("Warning");
  const std::string digest = Sha256Hex(fmt::format("{}{}{}{}", kube::UidOf(object), note.reason,
                                                   note.message, repeats ? "" : FormatTime(now)));
  const std::string name = fmt::format("{}.{}", kube::NameOf(object), digest.substr(0, 16));
  return EventRequest(object, note, name, ComponentOf(std::string(kube::KindOf(object))), now);
}

kube::Request Controllers::EventRequest(const Json& about, const Note& note,
                                        const std::string& name, const char* component,
                                        WallTime now) {
  const kube::ObjectKey key = kube::KeyOf(about);
  const std::string time = FormatTime(now);
  const std::string space = key.ns.empty() ? "default" : key.ns;  // of objects without a namespace
  return kube::CreateRequest(kube::kEvents, space,
                             {{"metadata", {{"name", name}, {"namespace", space}}},
                              {"involvedObject",
                               {{"apiVersion", kube::ApiVersionOf(about)},
                                {"kind", kube::KindOf(about)},
                                {"namespace", key.ns},
                                {"name", key.name},
                                {"uid", kube::UidOf(about)}}},
                              {"type", note.type},
                              {"reason", note.reason},
                              {"message", note.message},
                              {"source", {{"component", component}}},
                              {"firstTimestamp", time},
                              {"lastTimestamp", time},
                              {"count", 1}});
}

}  // namespace tahoma::controller::apiserver
