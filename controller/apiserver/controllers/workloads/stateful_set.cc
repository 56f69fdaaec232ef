// StatefulSets: pods with numbers, each with its own name and volumes.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/controllers/workloads/revisions.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kRevisionLabel[] = "controller-revision-hash";

std::string RevisionOf(const Json& pod) {
  return std::string(kube::LabelOf(pod, kRevisionLabel).value_or(""));
}

class StatefulSetSync {
 public:
  StatefulSetSync(const Json& set, const ClaimLookup& claims, WallTime now)
      : set_(set),
        spec_(PartOf(set, "spec")),
        claims_(claims),
        now_(now),
        name_(kube::NameOf(set)),
        start_(kube::IntAt(spec_, {"ordinals", "start"})),
        replicas_(IntOr(spec_, "replicas", 1)),
        one_by_one_(TextAt(spec_, {"podManagementPolicy"}) != "Parallel") {
    created_ = fmt::format("create Pod {{}} in StatefulSet {} successful", name_);
    deleted_ = fmt::format("delete Pod {{}} in StatefulSet {} successful", name_);
  }

  Decision Run(const Bodies& children, const Bodies& revisions) {
    const Bodies pods = Claimed(set_, "apps/v1", "StatefulSet", ValueAt(spec_, {"selector"}),
                                children, kube::kPods, decision_.writes);
    for (const auto& pod : pods) {
      if (const auto ordinal = OrdinalOf(*pod)) pods_[*ordinal] = pod;
    }
    const History history(set_, "StatefulSet", revisions, decision_);
    current_ = TextAt(set_, {"status", "currentRevision"});
    if (!history.Has(current_)) current_ = history.newest();
    if (!kube::IsBeingDeleted(set_)) {
      if (Fill(history) && Shrink()) Roll(history.newest());
    }
    WriteStatus(kStatefulSets, set_, Status(history.newest()), decision_);
    std::set<std::string> used = {current_};
    for (const auto& [ordinal, pod] : pods_) used.insert(RevisionOf(*pod));
    history.Forget(used, decision_);
    return std::move(decision_);
  }

 private:
  std::optional<std::int64_t> OrdinalOf(const Json& pod) const {
    const std::string_view name = kube::NameOf(pod);
    const std::string prefix = name_ + "-";
    if (!name.starts_with(prefix)) return std::nullopt;
    const std::string_view digits = name.substr(prefix.size());
    std::int64_t ordinal = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return ordinal;
  }

  bool IsAvailable(const Json& pod) {
    const auto since = AvailableAt(pod, kube::IntAt(spec_, {"minReadySeconds"}), now_);
    if (since && *since > now_) Wake(decision_, *since);
    return since && *since <= now_;
  }

  // Makes the pods that lack. Returns whether the next step may be taken.
  bool Fill(const History& history) {
    for (std::int64_t ordinal = start_; ordinal < start_ + replicas_; ++ordinal) {
      if (decision_.writes.size() >= kBurst) return false;
      const auto at = pods_.find(ordinal);
      if (at == pods_.end()) {
        Create(ordinal, history);
        if (one_by_one_) return false;
        continue;
      }
      const Json& pod = *at->second;
      if (kube::IsBeingDeleted(pod)) {
        if (one_by_one_) return false;
        continue;
      }
      if (HasPhase(pod, "Failed") || HasPhase(pod, "Succeeded")) {
        DeletePod(pod, decision_, deleted_.c_str());
        if (one_by_one_) return false;
        continue;
      }
      MakeClaims(ordinal);
      if (one_by_one_ && !IsAvailable(pod)) return false;
    }
    return true;
  }

  // Deletes pods beyond the wanted ones, the highest first.
  bool Shrink() {
    for (auto at = pods_.rbegin(); at != pods_.rend(); ++at) {
      const auto& [ordinal, pod] = *at;
      if (ordinal >= start_ && ordinal < start_ + replicas_) continue;
      if (!kube::IsBeingDeleted(*pod) && GivesUpClaims(ordinal, *pod)) {
        DeletePod(*pod, decision_, deleted_.c_str());
      }
      if (one_by_one_) return false;
    }
    return true;
  }

  // Replaces pods of other revisions, the highest first; waits for each.
  void Roll(const std::string& newest) {
    if (TextAt(spec_, {"updateStrategy", "type"}) == "OnDelete") return;
    for (auto at = pods_.rbegin(); at != pods_.rend(); ++at) {
      const auto& [ordinal, pod] = *at;
      if (ordinal < start_ + Partition()) return;
      if (RevisionOf(*pod) != newest && !kube::IsBeingDeleted(*pod)) {
        DeletePod(*pod, decision_, deleted_.c_str());
        return;
      }
      if (!IsAvailable(*pod)) return;
    }
  }

  std::int64_t Partition() const {
    return kube::IntAt(spec_, {"updateStrategy", "rollingUpdate", "partition"});
  }

  std::string ClaimName(const Json& claim, std::int64_t ordinal) const {
    return fmt::format("{}-{}-{}", TextAt(claim, {"metadata", "name"}), name_, ordinal);
  }

  void Create(std::int64_t ordinal, const History& history) {
    const bool is_old = ordinal < start_ + Partition() && current_ != history.newest();
    Json pod_template = is_old ? history.TemplateOf(current_) : ValueAt(spec_, {"template"});
    Json pod = PodOf(set_, "apps/v1", "StatefulSet", pod_template);
    const std::string name = fmt::format("{}-{}", name_, ordinal);
    Json& metadata = pod["metadata"];
    metadata["name"] = name;
    metadata["labels"]["statefulset.kubernetes.io/pod-name"] = name;
    metadata["labels"]["apps.kubernetes.io/pod-index"] = fmt::format("{}", ordinal);
    metadata["labels"][kRevisionLabel] = is_old ? current_ : history.newest();
    pod["spec"]["hostname"] = name;
    if (const std::string service = TextAt(spec_, {"serviceName"}); !service.empty()) {
      pod["spec"]["subdomain"] = service;
    }
    AddVolumes(pod, ordinal);
    MakeClaims(ordinal);
    CreatePod(std::move(pod), decision_, created_.c_str());
  }

  void AddVolumes(Json& pod, std::int64_t ordinal) const {
    const Json& claims = kube::ListAt(spec_, {"volumeClaimTemplates"});
    if (claims.empty()) return;
    Json volumes = Json::array();
    std::set<std::string> names;
    for (const Json& claim : claims) {
      names.insert(TextAt(claim, {"metadata", "name"}));
      volumes.push_back({{"name", TextAt(claim, {"metadata", "name"})},
                         {"persistentVolumeClaim", {{"claimName", ClaimName(claim, ordinal)}}}});
    }
    for (const Json& volume : kube::ListAt(pod, {"spec", "volumes"})) {
      if (!names.contains(TextAt(volume, {"name"}))) volumes.push_back(volume);
    }
    pod["spec"]["volumes"] = std::move(volumes);
  }

  void MakeClaims(std::int64_t ordinal) {
    for (const Json& given : kube::ListAt(spec_, {"volumeClaimTemplates"})) {
      const std::string name = ClaimName(given, ordinal);
      if (claims_(name) != nullptr) continue;
      Json claim = given;
      claim.erase("status");
      claim["apiVersion"] = "v1";
      claim["kind"] = "PersistentVolumeClaim";
      claim["metadata"]["name"] = name;
      claim["metadata"]["namespace"] = kube::NamespaceOf(set_);
      for (const auto& [key, value] : ValueAt(spec_, {"selector", "matchLabels"}).items()) {
        claim["metadata"]["labels"][key] = value;
      }
      if (RetentionOf("whenDeleted") == "Delete") {
        claim["metadata"]["ownerReferences"] =
            Json::array({OwnerReferenceTo(set_, "apps/v1", "StatefulSet")});
      }
      decision_.writes.push_back({.verb = Write::Verb::kCreate,
                                  .resource = kube::kVolumeClaims,
                                  .object = Shared(std::move(claim))});
      decision_.notes.push_back(
          {.reason = "SuccessfulCreate",
           .message = fmt::format("create Claim {} Pod {}-{} in StatefulSet {} success", name,
                                  name_, ordinal, kube::NameOf(set_))});
    }
  }

  std::string RetentionOf(const char* when) const {
    return TextAt(spec_, {"persistentVolumeClaimRetentionPolicy", when});
  }

  // With whenScaled: Delete the claims go with their pod, which must own them first. Returns
  // whether the pod may go.
  bool GivesUpClaims(std::int64_t ordinal, const Json& pod) {
    if (RetentionOf("whenScaled") != "Delete") return true;
    bool ready = true;
    for (const Json& given : kube::ListAt(spec_, {"volumeClaimTemplates"})) {
      const auto claim = claims_(ClaimName(given, ordinal));
      if (claim == nullptr) continue;
      const auto owners = kube::OwnersOf(*claim);
      if (std::ranges::any_of(owners,
                              [&](const auto& owner) { return owner.uid == kube::UidOf(pod); })) {
        continue;
      }
      Json changed = *claim;
      Json reference = OwnerReferenceTo(pod, "v1", "Pod");
      reference.erase("controller");
      changed["metadata"]["ownerReferences"] = Json::array({std::move(reference)});
      decision_.writes.push_back({.verb = Write::Verb::kUpdate,
                                  .resource = kube::kVolumeClaims,
                                  .object = Shared(std::move(changed))});
      Wake(decision_, now_);
      ready = false;
    }
    return ready;
  }

  Json Status(const std::string& newest) {
    std::int64_t ready = 0;
    std::int64_t available = 0;
    std::int64_t current = 0;
    std::int64_t updated = 0;
    for (const auto& [ordinal, pod] : pods_) {
      const bool is_ready = IsActive(*pod) && IsTrue(*pod, "Ready");
      ready += is_ready ? 1 : 0;
      available += is_ready && IsAvailable(*pod) ? 1 : 0;
      if (!IsActive(*pod)) continue;
      current += RevisionOf(*pod) == current_ ? 1 : 0;
      updated += RevisionOf(*pod) == newest ? 1 : 0;
    }
    const auto all = static_cast<std::int64_t>(pods_.size());
    if (current_ != newest && updated == all && ready == all && all == replicas_) {
      current_ = newest;
      current = updated;
    }
    Json status = PartOf(set_, "status");
    const auto count = [&](const char* field, std::int64_t value) {
      status.erase(field);
      if (value > 0) status[field] = value;
    };
    status["observedGeneration"] = kube::GenerationOf(set_);
    status["replicas"] = all;
    status["availableReplicas"] = available;
    status["collisionCount"] = 0;
    count("readyReplicas", ready);
    count("currentReplicas", current);
    count("updatedReplicas", updated);
    status["currentRevision"] = current_;
    status["updateRevision"] = newest;
    return status;
  }

  const Json& set_;
  const Json& spec_;
  const ClaimLookup& claims_;
  const WallTime now_;
  const std::string name_;
  const std::int64_t start_;
  const std::int64_t replicas_;
  const bool one_by_one_;
  std::string created_;  // texts of Events
  std::string deleted_;
  std::map<std::int64_t, std::shared_ptr<const Json>> pods_;  // by ordinal
  std::string current_;                                       // the revision before the newest
  Decision decision_;
};

}  // namespace

Decision SyncStatefulSet(const Json& set, const Bodies& pods, const Bodies& revisions,
                         const ClaimLookup& claims, WallTime now) {
  return StatefulSetSync(set, claims, now).Run(pods, revisions);
}

}  // namespace tahoma::controller::apiserver
