// Pods leave devices that are tainted NoExecute, unless the allocation tolerates the taint. Source:
// Kubernetes' pkg/controller/devicetainteviction (behaviour), on by default from 1.36.

#include <algorithm>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kEvicts[] = "NoExecute";
// Later times would leave the range of the clock.
constexpr std::chrono::seconds kForEver = std::chrono::hours(100 * 365 * 24);

// A scheduler takes a toleration without effect for every effect; eviction needs NoExecute by name.
bool Tolerates(const Json& toleration, const Json& taint) {
  if (TextAt(toleration, {"effect"}) != kEvicts) return false;
  const std::string key = TextAt(toleration, {"key"});
  if (!key.empty() && key != TextAt(taint, {"key"})) return false;
  if (TextAt(toleration, {"operator"}) == "Exists") return true;
  return !key.empty() && TextAt(toleration, {"value"}) == TextAt(taint, {"value"});
}

// Returns how long pods may stay on the device; nullopt: for ever. With several tolerations, any
// without seconds wins, else the shortest.
std::optional<std::chrono::seconds> Tolerated(const Json& result, const Json& taint) {
  std::optional<std::chrono::seconds> shortest;
  for (const Json& toleration : ValueAt(result, {"tolerations"})) {
    if (!Tolerates(toleration, taint)) continue;
    const Json& seconds = ValueAt(toleration, {"tolerationSeconds"});
    if (!seconds.is_number_integer()) return std::nullopt;
    const std::chrono::seconds given(
        std::clamp<std::int64_t>(seconds.get<std::int64_t>(), 0, kForEver.count()));
    shortest = shortest ? std::min(*shortest, given) : given;
  }
  return shortest.value_or(std::chrono::seconds(0));
}

}  // namespace

void Controllers::QueueForTaints(const ResourceName& resource, const std::string& key,
                                 const Json* previous, const Json* object, WallTime now) {
  if (object == nullptr && previous == nullptr) return;
  const bool any_evicts = index_.AnyPoolEvicts();
  if (resource == kSliceResource) {
    // Runs after a repair, too: the old taint must not count for the next taint.
    const Json& slice = object != nullptr ? *object : *previous;
    if (!any_evicts && (previous == nullptr || !HasEvictingDevice(*previous))) return;
    const std::string pool =
        PoolKey(TextAt(slice, {"spec", "driver"}), TextAt(slice, {"spec", "pool", "name"}));
    for (const auto& claim : index_.ClaimsOnPool(pool)) queue_.Add({Task::kTaints, claim}, now);
    return;
  }
  if (!any_evicts) return;
  if (resource == kClaimResource) queue_.Add({Task::kTaints, key}, now);
  if (resource != kPodResource || object == nullptr) return;
  const std::string node = TextAt(*object, {"spec", "nodeName"});
  if (node.empty() || (previous != nullptr && TextAt(*previous, {"spec", "nodeName"}) == node))
    return;
  for (const auto& claim : index_.ClaimsOf(TextAt(*object, {"metadata", "uid"}))) {
    queue_.Add({Task::kTaints, claim}, now);
  }
}

// Looks again at every claim with remembered taints: the end of a taint may have been missed.
void Controllers::QueueTainted(WallTime now) {
  const MutexLock lock(taints_mutex_);
  for (const auto& [claim, since] : tainted_since_) queue_.Add({Task::kTaints, claim}, now);
}

// Returns the NoExecute taints of an allocated device, from the newest generation of its pool.
Json Controllers::TaintsOf(const Json& result) const {
  Json taints = Json::array();
  std::int64_t newest = -1;
  for (const auto& key :
       index_.SlicesOfPool(PoolKey(TextAt(result, {"driver"}), TextAt(result, {"pool"})))) {
    const ObjectPtr slice = objects_.Get(kSliceResource, key);
    if (slice == nullptr) continue;
    const Json& number = ValueAt(*slice->body, {"spec", "pool", "generation"});
    const std::int64_t generation = number.is_number_integer() ? number.get<std::int64_t>() : 0;
    if (generation < newest) continue;
    if (generation > newest) taints = Json::array();
    newest = generation;
    for (const Json& device : ValueAt(*slice->body, {"spec", "devices"})) {
      if (TextAt(device, {"name"}) != TextAt(result, {"device"})) continue;
      for (const Json& taint : ValueAt(device, {"taints"})) {
        if (TextAt(taint, {"effect"}) == kEvicts) taints.push_back(taint);
      }
    }
  }
  return taints;
}

// Returns when the claim's pods must leave; nullopt: no taint makes them leave. A taint counts from
// its timeAdded. A slice stored by another server may have no timeAdded: then from when the taint
// was first seen here.
std::optional<WallTime> Controllers::EvictionTime(const std::string& claim_key, const Json& claim,
                                                  WallTime now) {
  std::map<std::string, WallTime> since;
  std::optional<WallTime> earliest;
  const MutexLock lock(taints_mutex_);
  const auto before = tainted_since_.find(claim_key);
  for (const Json& result : ValueAt(claim, {"status", "allocation", "devices", "results"})) {
    for (const Json& taint : TaintsOf(result)) {
      const std::string name =
          fmt::format("{}/{}/{} {}={}", TextAt(result, {"driver"}), TextAt(result, {"pool"}),
                      TextAt(result, {"device"}), TextAt(taint, {"key"}), TextAt(taint, {"value"}));
      WallTime added = now;
      if (const auto told = ParseTime(TextAt(taint, {"timeAdded"})); told.ok()) {
        added = std::min(*told, now + kForEver);
      } else if (before != tainted_since_.end() && before->second.contains(name)) {
        added = before->second.at(name);
      }
      since.emplace(name, added);
      const auto tolerated = Tolerated(result, taint);
      if (tolerated && (!earliest || added + *tolerated < *earliest)) earliest = added + *tolerated;
    }
  }
  if (since.empty()) {
    tainted_since_.erase(claim_key);
  } else {
    tainted_since_[claim_key] = std::move(since);
  }
  return earliest;
}

Outcome Controllers::EvictFromTainted(const std::string& claim_key, WallTime now) {
  const ObjectPtr current = objects_.Get(kClaimResource, claim_key);
  const Json gone = Json::object();
  const Json& claim = current == nullptr ? gone : *current->body;
  const auto when = EvictionTime(claim_key, claim, now);
  if (!when) return Outcome::kDone;
  if (*when > now) {
    queue_.Add({Task::kTaints, claim_key}, *when);
    return Outcome::kDone;
  }
  bool failed = false;
  for (const Json& user : ValueAt(claim, {"status", "reservedFor"})) {
    if (TextAt(user, {"resource"}) != "pods") continue;
    const ObjectPtr pod = objects_.Get(
        kPodResource, ObjectKey(TextAt(claim, {"metadata", "namespace"}), TextAt(user, {"name"})));
    if (pod == nullptr || TextAt(*pod->body, {"metadata", "uid"}) != TextAt(user, {"uid"}))
      continue;
    // The scheduler decides about a pod that is not bound yet.
    if (IsFinished(*pod->body) || IsBeingDeleted(*pod->body) ||
        TextAt(*pod->body, {"spec", "nodeName"}).empty()) {
      continue;
    }
    failed |= Evict(*pod->body, now) == Outcome::kRetry;
  }
  return failed ? Outcome::kRetry : Outcome::kDone;
}

void Controllers::TellEvicted(const Json& pod, const char* cause) const {
  if (!options_.evicted) return;
  options_.evicted(
      {.pod = ObjectKey(TextAt(pod, {"metadata", "namespace"}), TextAt(pod, {"metadata", "name"})),
       .node = TextAt(pod, {"spec", "nodeName"}),
       .cause = cause});
}

// Condition, then deletion, then the event: with the names and texts of Kubernetes.
Outcome Controllers::Evict(const Json& pod, WallTime now) {
  const std::string space = TextAt(pod, {"metadata", "namespace"});
  const std::string name = TextAt(pod, {"metadata", "name"});
  const std::string uid = TextAt(pod, {"metadata", "uid"});
  const std::string key = ObjectKey(space, name);
  const Json condition = {{"type", "DisruptionTarget"},
                          {"status", "True"},
                          {"reason", "DeletionByDeviceTaintManager"},
                          {"message", "Device Taint manager: deleting due to NoExecute taint"},
                          {"lastTransitionTime", FormatTime(now)}};
  const Outcome told = Send(kube::PatchRequest(
      kube::kPods, {space, name}, kube::PatchType::kStrategicMerge,
      {{"metadata", {{"uid", uid}}}, {"status", {{"conditions", Json::array({condition})}}}},
      {.subresource = "status"}));
  if (told == Outcome::kRetry ||
      Delete({kPodResource, key}, pod, "Background") == Outcome::kRetry) {
    return Outcome::kRetry;
  }
  TellEvicted(pod, kEvictionCauses[0]);
  const Json event = {
      {"metadata", {{"generateName", name + "-"}, {"namespace", space}}},
      {"involvedObject",
       {{"apiVersion", "v1"}, {"kind", "Pod"}, {"namespace", space}, {"name", name}, {"uid", uid}}},
      {"type", "Normal"},
      {"reason", "DeviceTaintManagerEviction"},
      {"message", "Marking for deletion"},
      {"source", {{"component", "device-taint-eviction"}}},
      {"firstTimestamp", FormatTime(now)},
      {"lastTimestamp", FormatTime(now)},
      {"count", 1}};
  // A lost event is no reason to evict again.
  (void)Send(kube::CreateRequest(kube::kEvents, space, event));
  return Outcome::kDone;
}

}  // namespace tahoma::controller::apiserver
