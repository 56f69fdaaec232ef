#include "controller/apiserver/controllers/controllers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/answer.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::size_t kEventsAtOnce = 4096;

ObjectId IdOf(const std::string& work_key) {
  const auto slash = work_key.find('/');
  const auto bar = work_key.find('|');
  return {{work_key.substr(0, slash), work_key.substr(slash + 1, bar - slash - 1)},
          work_key.substr(bar + 1)};
}

// Returns whether the resource is Events, of core or of events.k8s.io.
bool IsEvents(const ResourceName& resource) {
  return resource.plural == "events" &&
         (resource.group.empty() || resource.group == "events.k8s.io");
}

// Returns when the object was last written. A client may choose its managers' times: times in the
// future are ignored, and cannot keep an object.
WallTime WrittenAt(const Json& object, WallTime now) {
  WallTime last = ParseTime(TextAt(object, {"metadata", "creationTimestamp"})).value_or(now);
  for (const Json& entry : ValueAt(object, {"metadata", "managedFields"})) {
    const auto time = ParseTime(TextAt(entry, {"time"}));
    if (time.ok() && *time <= now) last = std::max(last, *time);
  }
  return last;
}

}  // namespace

std::string WorkKey(const ObjectId& id) {
  return fmt::format("{}/{}|{}", id.resource.group, id.resource.plural, id.key);
}

bool IsFinished(const Json& pod) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

kube::ObjectKey NamesOf(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

bool WaitsForDependents(const Json& object) {
  return IsBeingDeleted(object) && HasFinalizer(object, kForegroundFinalizer);
}

void DropFinalizer(Json& object, std::string_view finalizer) {
  Json kept = Json::array();
  for (const Json& one : ValueAt(object, {"metadata", "finalizers"})) {
    if (!one.is_string() || one.get_ref<const std::string&>() != finalizer) kept.push_back(one);
  }
  if (kept.empty()) {
    object["metadata"].erase("finalizers");
  } else {
    object["metadata"]["finalizers"] = std::move(kept);
  }
}

// An owner that is being deleted is released only when all dependents made before its deletion are
// known, of every kind: orphans must not be forgotten. All kinds are therefore read once more after
// the deletion was seen.
void Controllers::Observe(WallTime now) {
  do {
    const std::vector<ObjectId> ripe = std::exchange(releases_, {});
    ObserveOnce(now);
    for (const ObjectId& owner : ripe) queue_.Add({Task::kRelease, WorkKey(owner)}, now);
  } while (!releases_.empty());
}

void Controllers::ObserveOnce(WallTime now) {
  const auto kinds = kinds_();
  for (const auto& kind : kinds->kinds()) {
    if (!kind->storage) continue;
    const ResourceName resource{kind->group, kind->plural};
    const auto seen = seen_.find(resource);
    if (seen == seen_.end()) {
      ObserveAll(*kind, now);
      continue;
    }
    while (true) {
      const auto batch = objects_.Next(resource, seen->second, kEventsAtOnce, {});
      if (!batch.ok()) {
        ObserveEverything(*kinds, now);
        return;
      }
      for (const EventPtr& event : batch->events) {
        const bool deleted = event->type == Event::Type::kDeleted;
        TryObserveOne(resource, event->object->key,
                      event->previous ? event->previous->body.get() : nullptr,
                      deleted ? nullptr : event->object->body.get(), now);
      }
      seen->second = batch->version;
      if (batch->events.size() < kEventsAtOnce) break;
    }
  }
}

// The log has dropped events, deletions among them: dependents of deleted objects are found by a
// look at every object of every kind. Work is safe to repeat.
void Controllers::ObserveEverything(const KindTable& kinds, WallTime now) {
  std::vector<std::pair<ResourceName, ObjectList>> lists;
  ClusterIndex fresh;  // filled before it is shown: concurrent work must miss no link
  for (const auto& kind : kinds.kinds()) {
    if (!kind->storage) continue;
    const ResourceName resource{kind->group, kind->plural};
    lists.emplace_back(resource, objects_.List(resource, ""));
    for (const ObjectPtr& object : lists.back().second.objects) {
      fresh.Apply(resource, object->key, nullptr, object->body.get(), now);
    }
  }
  index_.AdoptLinks(fresh);
  for (const auto& [resource, list] : lists) {
    for (const ObjectPtr& object : list.objects) {
      TryObserveOne(resource, object->key, nullptr, object->body.get(), now);
    }
    seen_[resource] = list.version;
  }
  QueueTainted(now);
}

void Controllers::ObserveAll(const Kind& kind, WallTime now) {
  const ResourceName resource{kind.group, kind.plural};
  const ObjectList list = objects_.List(resource, "");
  for (const ObjectPtr& object : list.objects) {
    TryObserveOne(resource, object->key, nullptr, object->body.get(), now);
  }
  seen_[resource] = list.version;
}

void Controllers::ObserveOne(const ResourceName& resource, const std::string& key,
                             const Json* previous, const Json* object, WallTime now) {
  index_.Apply(resource, key, previous, object, now);
  QueueForOwners({resource, key}, previous, object, now);
  QueueForWorkloads({resource, key}, previous, object, now);
  if (resource == kPodResource) QueueForPod(key, previous, object, now);
  QueueForTaints(resource, key, previous, object, now);
  QueueForAccounts(resource, key, previous, object, now);
  if (resource == kClaimResource && object != nullptr) {
    queue_.Add({Task::kReservations, key}, now);
  }
  if (resource == kClaimResource && object == nullptr && previous != nullptr) {
    // Deleted by mistake, if its pod still exists.
    for (const Json& owner : ValueAt(*previous, {"metadata", "ownerReferences"})) {
      if (TextAt(owner, {"kind"}) != "Pod") continue;
      const std::string space = TextAt(*previous, {"metadata", "namespace"});
      queue_.Add({Task::kClaims, ObjectKey(space, TextAt(owner, {"name"}))}, now);
    }
  }
  if (resource == kTemplateResource && object != nullptr && previous == nullptr) {
    for (const auto& pod : index_.PodsUsingTemplate(key)) queue_.Add({Task::kClaims, pod}, now);
  }
  // An Event that is written again is looked at when it would have expired.
  if (IsEvents(resource) && object != nullptr) {
    const WallTime written = previous == nullptr ? WrittenAt(*object, now) : now;
    queue_.Add({Task::kExpire, WorkKey({resource, key})}, written + kEventLife);
  }
  if (resource == kNamespaceResource && object != nullptr && IsBeingDeleted(*object)) {
    queue_.Add({Task::kNamespace, TextAt(*object, {"metadata", "name"})}, now);
  }
  if (resource != kNodeResource) return;
  const std::string node = key.substr(key.find('/') + 1);
  if (object != nullptr && previous == nullptr) {
    queue_.Add({Task::kNode, node}, now + kNodeGracePeriod);
  }
  if (object != nullptr) return;
  for (const auto& pod : index_.PodsOn(node)) {
    queue_.Add({Task::kLostPod, pod}, now + kLostPodDelay);
  }
}

void Controllers::QueueForPod(const std::string& key, const Json* previous, const Json* pod,
                              WallTime now) {
  const std::string node = pod == nullptr ? "" : TextAt(*pod, {"spec", "nodeName"});
  const bool newly_bound =
      !node.empty() && (previous == nullptr || TextAt(*previous, {"spec", "nodeName"}) != node);
  if (newly_bound && objects_.Get(kNodeResource, ObjectKey("", node)) == nullptr) {
    queue_.Add({Task::kLostPod, key}, now + kLostPodDelay);
  }
  if (pod == nullptr || IsFinished(*pod) || IsBeingDeleted(*pod)) {
    const Json* last = pod != nullptr ? pod : previous;
    if (last == nullptr) return;
    for (const auto& claim : index_.ClaimsOf(TextAt(*last, {"metadata", "uid"}))) {
      queue_.Add({Task::kReservations, claim}, now);
    }
    return;
  }
  if (previous == nullptr && IsOfOtherScheduler(*pod)) queue_.Add({Task::kOtherPod, key}, now);
  const std::size_t claims = SizeAt(*pod, {"spec", "resourceClaims"});
  if (claims == 0) return;
  bool templates = false;
  for (const Json& entry : ValueAt(*pod, {"spec", "resourceClaims"})) {
    templates |= entry.contains("resourceClaimTemplateName");
  }
  const bool lacks = templates && SizeAt(*pod, {"status", "resourceClaimStatuses"}) < claims;
  if (lacks || newly_bound || previous == nullptr) queue_.Add({Task::kClaims, key}, now);
}

void Controllers::QueueForOwners(const ObjectId& id, const Json* previous, const Json* object,
                                 WallTime now) {
  static const Json kNone;
  const Json& before = previous ? ValueAt(*previous, {"metadata", "ownerReferences"}) : kNone;
  const Json& after = object ? ValueAt(*object, {"metadata", "ownerReferences"}) : kNone;
  if (before != after) {
    if (!after.empty()) queue_.Add({Task::kCollect, WorkKey(id)}, now);
    for (const Json& reference : before) {
      const std::optional<ObjectId> owner = OwnerId(reference, id.key);
      if (owner && StateOf(reference, id.key) == OwnerState::kWaits) releases_.push_back(*owner);
    }
  }
  if (object == nullptr) {
    if (previous == nullptr) return;
    for (const ObjectId& dependent : index_.DependentsOf(TextAt(*previous, {"metadata", "uid"}))) {
      queue_.Add({Task::kCollect, WorkKey(dependent)}, now);
    }
    return;
  }
  if (IsBeingDeleted(*object) &&
      (HasFinalizer(*object, kOrphanFinalizer) || HasFinalizer(*object, kForegroundFinalizer))) {
    releases_.push_back(id);
  }
}

void Controllers::Tell(const std::string& about, const std::exception& error) const {
  if (options_.log) options_.log(fmt::format("controllers: {} failed: {}", about, error.what()));
}

void Controllers::TryObserveOne(const ResourceName& resource, const std::string& key,
                                const Json* previous, const Json* object, WallTime now) {
  try {
    ObserveOne(resource, key, previous, object, now);
  } catch (const std::exception& error) {
    Tell(fmt::format("a look at {}", WorkKey({resource, key})), error);
  }
}

Outcome Controllers::TryDo(const Work& work, WallTime now) {
  try {
    return Do(work, now);
  } catch (const std::exception& error) {
    Tell(fmt::format("work on {}", work.key), error);
    return Outcome::kRetry;
  }
}

std::vector<Outcome> Controllers::TryMakeClaims(const std::vector<std::string>& pod_keys,
                                                WallTime now) {
  try {
    return MakeClaims(pod_keys, now);
  } catch (const std::exception& error) {
    if (pod_keys.size() == 1) {
      Tell(fmt::format("the claims of pod {}", pod_keys[0]), error);
      return {Outcome::kRetry};
    }
  }
  // Finds the pod at fault.
  std::vector<Outcome> outcomes;
  for (const std::string& key : pod_keys) outcomes.push_back(TryMakeClaims({key}, now).front());
  return outcomes;
}

Outcome Controllers::Do(const Work& work, WallTime now) {
  switch (work.task) {
    case Task::kClaims:
      break;  // DoSome makes the claims of many pods together
    case Task::kReservations:
      return KeepReservations(work.key);
    case Task::kCollect:
      return Collect(IdOf(work.key));
    case Task::kRelease:
      return Release(IdOf(work.key));
    case Task::kNamespace:
      return EmptyNamespace(work.key, now);
    case Task::kNode:
      return WatchNode(work.key, now);
    case Task::kOtherPod:
      return TellOtherPod(work.key, now);
    case Task::kLostPod:
      return RemoveLostPod(work.key, now);
    case Task::kWorkload:
      return SyncWorkload(IdOf(work.key), now);
    case Task::kTaints:
      return EvictFromTainted(work.key, now);
    case Task::kAccount:
      return KeepAccount(work.key);
    case Task::kExpire:
      return Expire(IdOf(work.key), now);
  }
  return Outcome::kDone;
}

Outcome Controllers::Expire(const ObjectId& id, WallTime now) {
  const ObjectPtr event = objects_.Get(id.resource, id.key);
  if (event == nullptr) return Outcome::kDone;
  const WallTime due = WrittenAt(*event->body, now) + kEventLife;
  if (due <= now) return Delete(id, *event->body, "Background");
  queue_.Add({Task::kExpire, WorkKey(id)}, due);
  return Outcome::kDone;
}

int Controllers::DoSome(WallTime now, int limit) {
  std::vector<Work> claims;
  std::vector<std::string> pods;
  int taken = 0;
  for (; taken < limit; ++taken) {
    const std::optional<Work> work = queue_.PopDue(now);
    if (!work) break;
    if (work->task == Task::kClaims) {
      claims.push_back(*work);
      pods.push_back(work->key);
    } else {
      queue_.Done(*work, TryDo(*work, now), now);
    }
  }
  const std::vector<Outcome> outcomes = TryMakeClaims(pods, now);
  for (std::size_t i = 0; i < claims.size(); ++i) queue_.Done(claims[i], outcomes[i], now);
  return taken;
}

int Controllers::Step(WallTime now, int limit) {
  int done = 0;
  while (done < limit) {
    Observe(now);
    if (DoSome(now, 1) == 0) break;
    ++done;
  }
  return done;
}

kube::Resource Controllers::Served(const ResourceName& resource) const {
  const auto kinds = kinds_();
  const Kind* kind = kinds->FindStorage(resource.group, resource.plural);
  if (kind == nullptr) return {.group = resource.group, .version = "", .plural = resource.plural};
  return {.group = kind->group,
          .version = kind->version,
          .plural = kind->plural,
          .namespaced = kind->namespaced};
}

kube::Request Controllers::Update(const ObjectId& id, Json object, const char* subresource) const {
  return kube::UpdateRequest(Served(id.resource), NamesOf(id.key), std::move(object),
                             {.subresource = subresource});
}

Outcome Controllers::OutcomeOf(const absl::StatusOr<kube::Response>& answer) {
  const kube::Outcome outcome = kube::OutcomeOf(kube::StatusOf(answer));
  const bool is_done = outcome == kube::Outcome::kDone || outcome == kube::Outcome::kNotFound;
  return is_done ? Outcome::kDone : Outcome::kRetry;
}

Outcome Controllers::Delete(const ObjectId& id, const Json& object, const char* propagation,
                            std::optional<int> grace) {
  return Send(kube::DeleteRequest(Served(id.resource), NamesOf(id.key),
                                  {.uid = std::string(kube::UidOf(object)),
                                   .grace_period_seconds = grace,
                                   .propagation_policy = propagation}));
}

}  // namespace tahoma::controller::apiserver
