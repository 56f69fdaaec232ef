// Deployments: a ReplicaSet for each template, of which the newest takes over from the others.
//
// A decision that changes the Deployment itself (its revision) writes nothing else: the writes of a
// decision are independent, and the status would be of an older version.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kHash[] = "pod-template-hash";
constexpr char kRevision[] = "deployment.kubernetes.io/revision";
constexpr char kRevisionHistory[] = "deployment.kubernetes.io/revision-history";
constexpr char kDesired[] = "deployment.kubernetes.io/desired-replicas";
constexpr char kMaxReplicas[] = "deployment.kubernetes.io/max-replicas";

std::int64_t NumberIn(const Json& object, const char* annotation) {
  std::int64_t number = 0;
  if (const auto text = kube::AnnotationOf(object, annotation)) {
    std::from_chars(text->data(), text->data() + text->size(), number);
  }
  return number;
}

// Returns the template without the label that the controller adds.
Json PlainTemplate(const Json& object) {
  Json plain = ValueAt(object, {"spec", "template"});
  if (!kube::StringAt(plain, {"metadata", "labels", kHash}).empty()) {
    plain["metadata"]["labels"].erase(kHash);
  }
  return plain;
}

std::int64_t SizeOf(const Json& set) { return IntOr(PartOf(set, "spec"), "replicas", 1); }
std::int64_t CountIn(const Json& set, const char* field) {
  return IntOr(PartOf(set, "status"), field, 0);
}

class DeploymentSync {
 public:
  DeploymentSync(const Json& deployment, WallTime now)
      : deployment_(deployment),
        spec_(PartOf(deployment, "spec")),
        now_(now),
        replicas_(IntOr(spec_, "replicas", 1)),
        is_paused_(kube::BoolAt(spec_, {"paused"})),
        recreates_(TextAt(spec_, {"strategy", "type"}) == "Recreate") {
    const Json& rolling = ValueAt(spec_, {"strategy", "rollingUpdate"});
    if (recreates_) {
      unavailable_max_ = replicas_;
      return;
    }
    const auto limit = [&](const char* field, bool round_up) {
      const Json& value = ValueAt(rolling, {field});
      return Scaled(value.is_null() ? Json("25%") : value, replicas_, round_up);
    };
    surge_ = limit("maxSurge", true);
    unavailable_max_ = std::min(limit("maxUnavailable", false), replicas_);
    if (surge_ == 0 && unavailable_max_ == 0 && replicas_ > 0) unavailable_max_ = 1;
  }

  Decision Run(const Bodies& children, const Bodies& pods) {
    sets_ = Claimed(deployment_, "apps/v1", "Deployment", ValueAt(spec_, {"selector"}), children,
                    kReplicaSets, decision_.writes);
    std::ranges::sort(sets_, [](const auto& a, const auto& b) {
      return std::pair(kube::StringAt(*a, {"metadata", "creationTimestamp"}), kube::NameOf(*a)) <
             std::pair(kube::StringAt(*b, {"metadata", "creationTimestamp"}), kube::NameOf(*b));
    });
    const Json plain = PlainTemplate(deployment_);
    for (const auto& set : sets_) {
      if (newest_ == nullptr && PlainTemplate(*set) == plain) newest_ = set.get();
    }
    for (const auto& set : sets_) {
      if (set.get() != newest_) old_.push_back(set);
    }
    if (!kube::IsBeingDeleted(deployment_)) {
      if (NotesPause()) return std::move(decision_);
      if (!is_paused_ && !ReadyForNewest(pods)) return Finished();
      if (IsRescaled()) {
        Rescale();
      } else if (!is_paused_) {
        if (recreates_) {
          Resize(*newest_, replicas_);
        } else {
          Roll();
        }
      }
      Forget();
    }
    return Finished();
  }

 private:
  Decision Finished() {
    if (!is_annotated_) WriteStatus(kDeployments, deployment_, Status(), decision_);
    return std::move(decision_);
  }

  // Kubernetes notes a pause as progress: the deadline does not run during a pause.
  bool NotesPause() {
    if (!spec_.contains("progressDeadlineSeconds")) return false;
    const std::string reason = TextAt(ConditionOf(deployment_, "Progressing"), {"reason"});
    if (reason == "ProgressDeadlineExceeded") return false;
    if (is_paused_ == (reason == "DeploymentPaused")) return false;
    if (!is_paused_ && reason != "DeploymentPaused") return false;
    Json status = PartOf(deployment_, "status");
    SetProgress(status, is_paused_ ? "DeploymentPaused" : "DeploymentResumed",
                is_paused_ ? "Deployment is paused" : "Deployment is resumed", "Unknown");
    WriteStatus(kDeployments, deployment_, std::move(status), decision_);
    return true;
  }

  // Returns whether the newest ReplicaSet is there with its revision, and alone where the strategy
  // wants it alone. Writes what lacks.
  bool ReadyForNewest(const Bodies& pods) {
    std::int64_t last = 0;
    for (const auto& set : old_) last = std::max(last, NumberIn(*set, kRevision));
    if (recreates_ && !OldAreGone(pods)) return false;
    if (newest_ == nullptr) {
      CreateNewest(last + 1);
      return false;
    }
    const std::int64_t revision = std::max(NumberIn(*newest_, kRevision), last + 1);
    if (NumberIn(*newest_, kRevision) < revision) {
      Json set = *newest_;
      if (const auto before = kube::AnnotationOf(*newest_, kRevision)) {
        const auto history = kube::AnnotationOf(*newest_, kRevisionHistory);
        set["metadata"]["annotations"][kRevisionHistory] =
            history && !history->empty() ? fmt::format("{},{}", *history, *before)
                                         : std::string(*before);
      }
      CopyAnnotations(set);
      set["metadata"]["annotations"][kRevision] = fmt::format("{}", revision);
      Update(kReplicaSets, std::move(set));
      return false;
    }
    if (NumberIn(deployment_, kRevision) == revision) return true;
    Json deployment = deployment_;
    deployment["metadata"]["annotations"][kRevision] = fmt::format("{}", revision);
    Update(kDeployments, std::move(deployment));
    is_annotated_ = true;
    return false;
  }

  void Update(const kube::Resource& resource, Json object) {
    decision_.writes.push_back(
        {.verb = Write::Verb::kUpdate, .resource = resource, .object = Shared(std::move(object))});
  }

  bool OldAreGone(const Bodies& pods) {
    bool gone = true;
    for (const auto& set : old_) {
      if (SizeOf(*set) > 0) gone = false;
      Resize(*set, 0);
    }
    for (const auto& pod : pods) {
      const auto controller = kube::ControllerOf(*pod);
      const bool is_new =
          newest_ != nullptr && controller && controller->uid == kube::UidOf(*newest_);
      gone &= is_new || HasPhase(*pod, "Succeeded") || HasPhase(*pod, "Failed");
    }
    return gone;
  }

  void CopyAnnotations(Json& set) const {
    for (const auto& [key, value] : ValueAt(deployment_, {"metadata", "annotations"}).items()) {
      if (key == "kubectl.kubernetes.io/last-applied-configuration" || key == kRevision ||
          key == kRevisionHistory || key == kDesired || key == kMaxReplicas) {
        continue;
      }
      set["metadata"]["annotations"][key] = value;
    }
  }

  void NoteSize(Json& set) const {
    set["metadata"]["annotations"][kDesired] = fmt::format("{}", replicas_);
    set["metadata"]["annotations"][kMaxReplicas] = fmt::format("{}", replicas_ + surge_);
  }

  void CreateNewest(std::int64_t revision) {
    const std::int64_t collisions = CountIn(deployment_, "collisionCount");
    const std::string hash = HashName(ValueAt(spec_, {"template"}), collisions);
    const std::string name = fmt::format("{}-{}", TextAt(deployment_, {"metadata", "name"}), hash);
    for (const auto& set : sets_) {
      if (kube::NameOf(*set) == name) collides_ = true;
    }
    if (collides_) return;
    Json pod_template = ValueAt(spec_, {"template"});
    pod_template["metadata"]["labels"][kHash] = hash;
    Json selector = ValueAt(spec_, {"selector"});
    selector["matchLabels"][kHash] = hash;
    Json metadata = {
        {"name", name},
        {"namespace", kube::NamespaceOf(deployment_)},
        {"labels", ValueAt(pod_template, {"metadata", "labels"})},
        {"ownerReferences", Json::array({OwnerReferenceTo(deployment_, "apps/v1", "Deployment")})}};
    std::int64_t size = replicas_;
    if (!recreates_) size = std::clamp<std::int64_t>(replicas_ + surge_ - Held(), 0, replicas_);
    Json set = {{"apiVersion", "apps/v1"},
                {"kind", "ReplicaSet"},
                {"metadata", std::move(metadata)},
                {"spec",
                 {{"replicas", size},
                  {"minReadySeconds", kube::IntAt(spec_, {"minReadySeconds"})},
                  {"selector", std::move(selector)},
                  {"template", std::move(pod_template)}}}};
    CopyAnnotations(set);
    NoteSize(set);
    set["metadata"]["annotations"][kRevision] = fmt::format("{}", revision);
    decision_.writes.push_back(
        {.verb = Write::Verb::kCreate, .resource = kReplicaSets, .object = Shared(std::move(set))});
    NoteScaling(name, 0, size);
    created_ = name;
  }

  void NoteScaling(std::string_view name, std::int64_t from, std::int64_t to) {
    if (from == to) return;
    decision_.notes.push_back({.reason = "ScalingReplicaSet",
                               .message = fmt::format("Scaled {} replica set {} from {} to {}",
                                                      to > from ? "up" : "down", name, from, to)});
  }

  // Returns whether the size differs. Also notes the Deployment's size in the set's annotations.
  bool Resize(const Json& set, std::int64_t size) {
    const std::int64_t before = SizeOf(set);
    if (before == size && NumberIn(set, kDesired) == replicas_ &&
        NumberIn(set, kMaxReplicas) == replicas_ + surge_) {
      return false;
    }
    Json resized = set;
    resized["spec"]["replicas"] = size;
    NoteSize(resized);
    Update(kReplicaSets, std::move(resized));
    NoteScaling(kube::NameOf(set), before, size);
    return before != size;
  }

  std::int64_t Total() const {
    std::int64_t total = 0;
    for (const auto& set : sets_) total += SizeOf(*set);
    return total;
  }

  // As Total, but a set that has not shrunk to its size yet counts with its pods.
  std::int64_t Held() const {
    std::int64_t held = 0;
    for (const auto& set : sets_) held += std::max(SizeOf(*set), CountIn(*set, "replicas"));
    return held;
  }

  // Returns whether the Deployment's size was changed since its sets were sized.
  bool IsRescaled() const {
    return std::ranges::any_of(sets_, [&](const auto& set) {
      return SizeOf(*set) > 0 && kube::AnnotationOf(*set, kDesired) &&
             NumberIn(*set, kDesired) != replicas_;
    });
  }

  // During a roll-out (or a pause of one) all sets grow or shrink in proportion.
  void Rescale() {
    std::vector<const Json*> active;
    for (const auto& set : sets_) {
      if (SizeOf(*set) > 0) active.push_back(set.get());
    }
    if (active.size() == 1) {
      Resize(*active.front(), replicas_);
      return;
    }
    const bool is_saturated = newest_ != nullptr && SizeOf(*newest_) == replicas_ &&
                              CountIn(*newest_, "availableReplicas") == replicas_;
    if (is_saturated || recreates_) {
      for (const auto& set : old_) Resize(*set, 0);
      if (newest_ != nullptr) Resize(*newest_, replicas_);
      return;
    }
    const std::int64_t allowed = replicas_ > 0 ? replicas_ + surge_ : 0;
    std::int64_t left = allowed - Total();
    std::ranges::sort(active, [](const Json* a, const Json* b) { return SizeOf(*a) > SizeOf(*b); });
    std::vector<std::int64_t> sizes;
    for (const Json* set : active) {
      const std::int64_t before = std::max<std::int64_t>(NumberIn(*set, kMaxReplicas), 1);
      const std::int64_t ideal = (2 * SizeOf(*set) * allowed + before) / (2 * before);
      std::int64_t change = ideal - SizeOf(*set);
      change = left > 0 ? std::clamp<std::int64_t>(change, 0, left)
                        : std::clamp<std::int64_t>(change, left, 0);
      left -= change;
      sizes.push_back(SizeOf(*set) + change);
    }
    sizes.front() = std::max<std::int64_t>(sizes.front() + left, 0);
    for (std::size_t i = 0; i < active.size(); ++i) Resize(*active[i], sizes[i]);
  }

  void Roll() {
    if (SizeOf(*newest_) > replicas_) {
      Resize(*newest_, replicas_);
      return;
    }
    const std::int64_t room = std::max<std::int64_t>(replicas_ + surge_ - Held(), 0);
    if (Resize(*newest_, std::min(SizeOf(*newest_) + room, replicas_))) return;
    ShrinkOld();
  }

  // Takes old pods away: first those that are not available, then as many as may be missing.
  void ShrinkOld() {
    const std::int64_t available_min = replicas_ - unavailable_max_;
    std::int64_t available = 0;
    for (const auto& set : sets_) available += CountIn(*set, "availableReplicas");
    std::int64_t may_go =
        Total() - available_min - (SizeOf(*newest_) - CountIn(*newest_, "availableReplicas"));
    std::vector<std::int64_t> sizes;
    for (const auto& set : old_) {
      const std::int64_t unhealthy =
          std::max<std::int64_t>(SizeOf(*set) - CountIn(*set, "availableReplicas"), 0);
      const std::int64_t gone =
          std::clamp<std::int64_t>(unhealthy, 0, std::max<std::int64_t>(may_go, 0));
      may_go -= gone;
      sizes.push_back(SizeOf(*set) - gone);
    }
    may_go = std::min(may_go, available - available_min);
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const std::int64_t gone =
          std::clamp<std::int64_t>(sizes[i], 0, std::max<std::int64_t>(may_go, 0));
      may_go -= gone;
      sizes[i] -= gone;
      if (sizes[i] != SizeOf(*old_[i])) Resize(*old_[i], sizes[i]);
    }
  }

  bool IsComplete() const {
    if (newest_ == nullptr) return false;
    std::int64_t all = 0;
    for (const auto& set : sets_) all += CountIn(*set, "replicas");
    return CountIn(*newest_, "replicas") == replicas_ && all == replicas_ &&
           CountIn(*newest_, "availableReplicas") >= replicas_;
  }

  // Deletes the oldest sets beyond spec.revisionHistoryLimit.
  void Forget() {
    if (!IsComplete() && !is_paused_) return;
    const std::int64_t limit = IntOr(spec_, "revisionHistoryLimit", 10);
    Bodies idle;
    for (const auto& set : old_) {
      if (SizeOf(*set) == 0 && CountIn(*set, "replicas") == 0 && !kube::IsBeingDeleted(*set)) {
        idle.push_back(set);
      }
    }
    std::ranges::stable_sort(idle, {}, [](const auto& set) { return NumberIn(*set, kRevision); });
    for (std::size_t i = 0; i + static_cast<std::size_t>(limit) < idle.size(); ++i) {
      decision_.writes.push_back(
          {.verb = Write::Verb::kDelete, .resource = kReplicaSets, .object = Shared(*idle[i])});
    }
  }

  void SetProgress(Json& status, std::string_view reason, std::string_view message,
                   const char* value) const {
    const std::string before = TextAt(ConditionOf(deployment_, "Progressing"), {"reason"});
    SetCondition(status, "Progressing", value == std::string_view("True"), reason, message, now_);
    for (Json& condition : status["conditions"]) {
      if (TextAt(condition, {"type"}) != "Progressing") continue;
      condition["status"] = value;
      if (!condition.contains("lastUpdateTime") || moves_ || before != reason) {
        condition["lastUpdateTime"] = FormatTime(now_);
      }
    }
  }

  Json Status() {
    Json status = PartOf(deployment_, "status");
    const auto count = [&](const char* field, std::int64_t value) {
      status.erase(field);
      if (value > 0) status[field] = value;
    };
    std::int64_t all = 0;
    std::int64_t ready = 0;
    std::int64_t available = 0;
    for (const auto& set : sets_) {
      all += CountIn(*set, "replicas");
      ready += CountIn(*set, "readyReplicas");
      available += CountIn(*set, "availableReplicas");
    }
    const std::int64_t updated = newest_ == nullptr ? 0 : CountIn(*newest_, "replicas");
    const Json& before = PartOf(deployment_, "status");
    moves_ = updated > IntOr(before, "updatedReplicas", 0) ||
             all - updated < IntOr(before, "replicas", 0) - IntOr(before, "updatedReplicas", 0) ||
             ready > IntOr(before, "readyReplicas", 0) ||
             available > IntOr(before, "availableReplicas", 0);
    status["observedGeneration"] = kube::GenerationOf(deployment_);
    count("replicas", all);
    count("updatedReplicas", updated);
    count("readyReplicas", ready);
    count("availableReplicas", available);
    count("unavailableReplicas", std::max<std::int64_t>(Total() - available, 0));
    if (collides_) status["collisionCount"] = CountIn(deployment_, "collisionCount") + 1;
    const bool is_available = available >= replicas_ - unavailable_max_;
    SetAvailable(status, is_available);
    if (!is_paused_ && spec_.contains("progressDeadlineSeconds")) Progress(status);
    return status;
  }

  void SetAvailable(Json& status, bool is_available) const {
    SetCondition(status, "Available", is_available,
                 is_available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                 is_available ? "Deployment has minimum availability."
                              : "Deployment does not have minimum availability.",
                 now_);
    for (Json& condition : status["conditions"]) {
      if (TextAt(condition, {"type"}) != "Available") continue;
      if (!condition.contains("lastUpdateTime") ||
          IsTrue(deployment_, "Available") != is_available) {
        condition["lastUpdateTime"] = FormatTime(now_);
      }
    }
  }

  void Progress(Json& status) {
    if (!created_.empty()) {
      moves_ = true;
      SetProgress(status, "NewReplicaSetCreated",
                  fmt::format("Created new replica set \"{}\"", created_), "True");
      return;
    }
    if (newest_ == nullptr) return;
    const std::string name(kube::NameOf(*newest_));
    const Json& current = ConditionOf(deployment_, "Progressing");
    const std::string reason = TextAt(current, {"reason"});
    if (current.is_null()) {
      SetProgress(status, "FoundNewReplicaSet", fmt::format("Found new replica set \"{}\"", name),
                  "True");
      return;
    }
    if (IsComplete()) {
      SetProgress(status, "NewReplicaSetAvailable",
                  fmt::format("ReplicaSet \"{}\" has successfully progressed.", name), "True");
      return;
    }
    // A complete roll-out whose pods are lost later does not begin to run against the deadline.
    if (reason == "NewReplicaSetAvailable" && !moves_ && CountIn(*newest_, "replicas") > 0 &&
        GenerationSeen()) {
      return;
    }
    if (moves_ || reason == "NewReplicaSetAvailable") {
      moves_ = true;
      SetProgress(status, "ReplicaSetUpdated",
                  fmt::format("ReplicaSet \"{}\" is progressing.", name), "True");
    }
    const WallTime since = moves_ ? now_ : TimeOf(current, "lastUpdateTime", now_);
    const WallTime due =
        since + std::chrono::seconds(kube::IntAt(spec_, {"progressDeadlineSeconds"}));
    if (due > now_) return Wake(decision_, due);
    SetProgress(status, "ProgressDeadlineExceeded",
                fmt::format("ReplicaSet \"{}\" has timed out progressing.", name), "False");
  }

  bool GenerationSeen() const {
    return CountIn(deployment_, "observedGeneration") == kube::GenerationOf(deployment_);
  }

  const Json& deployment_;
  const Json& spec_;
  const WallTime now_;
  const std::int64_t replicas_;
  const bool is_paused_;
  const bool recreates_;
  std::int64_t surge_ = 0;
  std::int64_t unavailable_max_ = 0;
  Bodies sets_;                   // the oldest first
  const Json* newest_ = nullptr;  // the set of the Deployment's template
  Bodies old_;                    // the others
  std::string created_;           // the set that this decision makes
  bool is_annotated_ = false;     // this decision writes the Deployment itself
  bool collides_ = false;         // the newest set's name belongs to another template
  bool moves_ = false;            // since the stored status
  Decision decision_;
};

}  // namespace

Decision SyncDeployment(const Json& deployment, const Bodies& sets, const Bodies& pods,
                        WallTime now) {
  return DeploymentSync(deployment, now).Run(sets, pods);
}

}  // namespace tahoma::controller::apiserver
