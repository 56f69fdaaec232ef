// Claims: made from templates, and released when their pods are gone.
// Source: Kubernetes' pkg/controller/resourceclaim/controller.go (behaviour).

#include <algorithm>
#include <iterator>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/controllers/fields.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/limits.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/objects/claim.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kPodClaimName[] = "resource.kubernetes.io/pod-claim-name";

using kube::kClaimFinalizer;
using kube::UidOf;

std::string NamespaceOf(const Json& object) { return std::string(kube::NamespaceOf(object)); }

// Returns whether any of `references` is to the pod.
bool HasReferenceTo(const Json& pod, const Json& references) {
  return std::any_of(references.begin(), references.end(), [&](const Json& reference) {
    return kube::StringAt(reference, {"uid"}) == UidOf(pod);
  });
}

bool IsOwnedBy(const Json& claim, const Json& pod) {
  return HasReferenceTo(pod, ValueAt(claim, {"metadata", "ownerReferences"}));
}

bool IsReservedFor(const Json& claim, const Json& pod) {
  return HasReferenceTo(pod, ValueAt(claim, {"status", "reservedFor"}));
}

// Returns the status of an entry of the pod's spec.resourceClaims; null without a status.
const Json& ClaimStatusOf(const Json& pod, const std::string& entry) {
  static const Json kNone;
  for (const Json& status : ValueAt(pod, {"status", "resourceClaimStatuses"})) {
    if (TextAt(status, {"name"}) == entry) return status;
  }
  return kNone;
}

// Returns the claim of an entry of the pod's spec.resourceClaims; "" without a claim.
std::string ClaimNameOf(const Json& pod, const Json& entry) {
  const std::string given = TextAt(entry, {"resourceClaimName"});
  if (!given.empty()) return given;
  return TextAt(ClaimStatusOf(pod, TextAt(entry, {"name"})), {"resourceClaimName"});
}

Json ClaimFor(const Json& pod, const Json& entry, const Json& claim_template) {
  const std::string pod_name = TextAt(pod, {"metadata", "name"});
  const std::string name = TextAt(entry, {"name"});
  Json metadata = Json::object();
  for (const char* field : {"labels", "annotations"}) {
    const Json& given = ValueAt(claim_template, {"spec", "metadata", field});
    if (given.is_object()) metadata[field] = given;
  }
  metadata["generateName"] = fmt::format("{}-{}-", pod_name, name);
  metadata["annotations"][kPodClaimName] = name;
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                              {"kind", "Pod"},
                                              {"name", pod_name},
                                              {"uid", UidOf(pod)},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", std::move(metadata)},
          {"spec", ValueAt(claim_template, {"spec", "spec"})}};
}

}  // namespace

std::optional<std::string> Controllers::ExistingClaim(const Json& pod,
                                                      const std::string& name) const {
  for (const auto& key : index_.ClaimsOf(std::string(UidOf(pod)))) {
    const ObjectPtr claim = objects_.Get(kClaimResource, key);
    if (claim == nullptr || IsBeingDeleted(*claim->body)) continue;
    if (TextAt(*claim->body, {"metadata", "annotations", kPodClaimName}) != name) continue;
    if (IsOwnedBy(*claim->body, pod)) return TextAt(*claim->body, {"metadata", "name"});
  }
  return std::nullopt;
}

// Returns whether the pod's status names a claim for the entry, and the claim still exists.
bool Controllers::HasItsClaim(const Json& pod, const std::string& name) const {
  const Json& status = ClaimStatusOf(pod, name);
  if (status.is_null()) return false;
  const std::string claim_name = TextAt(status, {"resourceClaimName"});
  if (claim_name.empty()) return true;  // the entry needs no claim
  const ObjectPtr claim = objects_.Get(kClaimResource, ObjectKey(NamespaceOf(pod), claim_name));
  return claim != nullptr && IsOwnedBy(*claim->body, pod);
}

// A pod that lacks claims, and the result for the pod.
struct Controllers::PodClaims {
  ObjectPtr pod;
  std::vector<std::string> entries = {};     // of spec.resourceClaims, whose claims are missing
  std::vector<kube::Request> requests = {};  // to make the claims
  Json statuses = Json::array();             // for the pod's status
  std::vector<const Json*> missing = {};     // entries whose template does not exist
  Outcome outcome = Outcome::kDone;
};

void Controllers::FindClaims(PodClaims& of) const {
  const Json& pod = *of.pod->body;
  const std::string space = NamespaceOf(pod);
  for (const Json& entry : ValueAt(pod, {"spec", "resourceClaims"})) {
    const std::string name = TextAt(entry, {"name"});
    if (!entry.contains("resourceClaimTemplateName") || HasItsClaim(pod, name)) continue;
    if (const auto existing = ExistingClaim(pod, name)) {
      of.statuses.push_back({{"name", name}, {"resourceClaimName", *existing}});
      continue;
    }
    const ObjectPtr claim_template = objects_.Get(
        kTemplateResource, ObjectKey(space, TextAt(entry, {"resourceClaimTemplateName"})));
    // A later template wakes the pod.
    if (claim_template == nullptr) {
      of.missing.push_back(&entry);
      continue;
    }
    of.entries.push_back(name);
    Json claim = ClaimFor(pod, entry, *claim_template->body);
    if (options_.protect_claims) {
      claim["metadata"]["finalizers"] = Json::array({kClaimFinalizer});
    }
    of.requests.push_back(kube::CreateRequest(kube::kResourceClaims, space, std::move(claim)));
  }
}

void Controllers::CreateClaims(std::vector<PodClaims>& pods) {
  std::vector<kube::Request> requests;
  for (PodClaims& of : pods) {
    std::move(of.requests.begin(), of.requests.end(), std::back_inserter(requests));
  }
  const auto answers = api_.SendAll(requests);
  auto answer = answers.begin();
  for (PodClaims& of : pods) {
    for (const std::string& entry : of.entries) {
      const auto made = kube::ObjectOf(*answer++);
      if (!made.ok()) {
        of.outcome = Outcome::kRetry;
        continue;
      }
      // Noted at once: the next look at the pod must not make a second claim before the first
      // claim's event is taken in.
      const std::string name = TextAt(**made, {"metadata", "name"});
      index_.Apply(kClaimResource, ObjectKey(NamespaceOf(*of.pod->body), name), nullptr,
                   made->get(), {});
      of.statuses.push_back({{"name", entry}, {"resourceClaimName", name}});
    }
  }
}

void Controllers::TellPods(std::vector<PodClaims>& pods) {
  std::vector<kube::Request> requests;
  std::vector<PodClaims*> told;
  for (PodClaims& of : pods) {
    if (of.statuses.empty()) continue;
    Json patch = {{"metadata", {{"uid", UidOf(*of.pod->body)}}},
                  {"status", {{"resourceClaimStatuses", std::move(of.statuses)}}}};
    requests.push_back(kube::PatchRequest(
        kube::kPods, NamesOf(of.pod->key), kube::PatchType::kStrategicMerge, std::move(patch),
        {.field_manager = "ResourceClaimController", .subresource = "status"}));
    told.push_back(&of);
  }
  const auto answers = api_.SendAll(requests);
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (OutcomeOf(answers[i]) == Outcome::kRetry) told[i]->outcome = Outcome::kRetry;
  }
}

std::vector<Outcome> Controllers::MakeClaims(const std::vector<std::string>& pod_keys,
                                             WallTime now) {
  std::vector<Outcome> outcomes(pod_keys.size(), Outcome::kDone);
  std::vector<PodClaims> pods;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < pod_keys.size(); ++i) {
    const ObjectPtr pod = objects_.Get(kPodResource, pod_keys[i]);
    if (pod == nullptr || IsFinished(*pod->body) || IsBeingDeleted(*pod->body)) continue;
    FindClaims(pods.emplace_back(PodClaims{.pod = pod}));
    places.push_back(i);
  }
  CreateClaims(pods);
  TellPods(pods);
  for (const PodClaims& of : pods) {
    for (const Json* entry : of.missing) WarnOfTemplate(*of.pod->body, *entry, now);
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const bool reserved = ReserveFor(*pods[i].pod->body) == Outcome::kDone;
    outcomes[places[i]] = reserved ? pods[i].outcome : Outcome::kRetry;
  }
  return outcomes;
}

// A pod that was bound by hand, by no scheduler, uses claims without a reservation.
Outcome Controllers::ReserveFor(const Json& pod) {
  if (TextAt(pod, {"spec", "nodeName"}).empty()) return Outcome::kDone;
  for (const Json& entry : ValueAt(pod, {"spec", "resourceClaims"})) {
    const std::string key = ObjectKey(NamespaceOf(pod), ClaimNameOf(pod, entry));
    const ObjectPtr current = objects_.Get(kClaimResource, key);
    if (current == nullptr || !ValueAt(*current->body, {"status", "allocation"}).is_object() ||
        IsReservedFor(*current->body, pod) ||
        SizeAt(*current->body, {"status", "reservedFor"}) >= kReservedForMax) {
      continue;
    }
    if (!entry.contains("resourceClaimName") && !IsOwnedBy(*current->body, pod)) continue;
    Json claim = *current->body;
    claim["status"]["reservedFor"].push_back(
        {{"resource", "pods"}, {"name", TextAt(pod, {"metadata", "name"})}, {"uid", UidOf(pod)}});
    if (Send(Update({kClaimResource, key}, std::move(claim), "status")) == Outcome::kRetry) {
      return Outcome::kRetry;
    }
  }
  return Outcome::kDone;
}

Outcome Controllers::WriteClaim(const std::string& key, Json claim, bool deallocate) {
  if (!deallocate) return Send(Update({kClaimResource, key}, std::move(claim), "status"));
  claim["status"].erase("allocation");
  claim["status"].erase("devices");
  const auto written =
      kube::ObjectOf(api_.Send(Update({kClaimResource, key}, std::move(claim), "status")));
  if (!written.ok() || !(*written)->is_object()) return Outcome::kRetry;
  Json released = **written;
  DropFinalizer(released, kClaimFinalizer);
  return Send(Update({kClaimResource, key}, std::move(released)));
}

Outcome Controllers::KeepReservations(const std::string& claim_key) {
  const ObjectPtr current = objects_.Get(kClaimResource, claim_key);
  if (current == nullptr) return Outcome::kDone;
  const Json& known = *current->body;
  const std::string space = NamespaceOf(known);
  const Json& users = ValueAt(known, {"status", "reservedFor"});
  Json valid = Json::array();
  for (const Json& user : users) {
    if (TextAt(user, {"resource"}) != "pods" || !TextAt(user, {"apiGroup"}).empty()) {
      valid.push_back(user);  // not ours to judge
      continue;
    }
    const ObjectPtr pod = objects_.Get(kPodResource, ObjectKey(space, TextAt(user, {"name"})));
    if (pod == nullptr || UidOf(*pod->body) != TextAt(user, {"uid"})) continue;
    const bool never_ran =
        IsBeingDeleted(*pod->body) && TextAt(*pod->body, {"spec", "nodeName"}).empty();
    if (!IsFinished(*pod->body) && !never_ran) valid.push_back(user);
  }
  const bool removed = valid.size() < users.size();
  const bool is_protected = HasFinalizer(known, kClaimFinalizer);
  if (removed || (valid.empty() && IsBeingDeleted(known) && is_protected)) {
    const bool deallocate = valid.empty() && is_protected;
    Json claim = known;
    // A claim may have a finalizer and no status yet.
    if (!claim["status"].is_object()) claim["status"] = Json::object();
    if (valid.empty()) {
      claim["status"].erase("reservedFor");
    } else {
      claim["status"]["reservedFor"] = valid;
    }
    if (WriteClaim(claim_key, std::move(claim), deallocate) == Outcome::kRetry) {
      return Outcome::kRetry;
    }
  }
  if (!valid.empty() || IsBeingDeleted(known)) return Outcome::kDone;
  // A claim that was made for a pod ends with the pod.
  for (const Json& owner : ValueAt(known, {"metadata", "ownerReferences"})) {
    if (TextAt(owner, {"kind"}) != "Pod" || ValueAt(owner, {"controller"}) != true) continue;
    const ObjectPtr pod = objects_.Get(kPodResource, ObjectKey(space, TextAt(owner, {"name"})));
    if (pod != nullptr && UidOf(*pod->body) == TextAt(owner, {"uid"}) && IsFinished(*pod->body)) {
      return Delete({kClaimResource, claim_key}, known, "Background");
    }
  }
  return Outcome::kDone;
}

}  // namespace tahoma::controller::apiserver
