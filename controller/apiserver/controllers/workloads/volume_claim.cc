// PersistentVolumeClaims and PersistentVolumes, as kube-controller-manager binds them: first the
// volume names its claim, then the claim names its volume, then the status of both says Bound. A
// look takes a step, and a step is refused if its object has changed meanwhile; so a claim never
// has two volumes, nor a volume two claims.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/volume.h"
#include "lib/kube/quantity.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kProvisionedBy[] = "pv.kubernetes.io/provisioned-by";
constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";
constexpr char kStorageProvisioner[] = "volume.kubernetes.io/storage-provisioner";
constexpr char kBetaStorageProvisioner[] = "volume.beta.kubernetes.io/storage-provisioner";
constexpr char kClaimProtection[] = "kubernetes.io/pvc-protection";
constexpr char kVolumeProtection[] = "kubernetes.io/pv-protection";

Json ReferenceTo(const Json& claim) {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"namespace", kube::NamespaceOf(claim)},
          {"name", kube::NameOf(claim)},
          {"uid", kube::UidOf(claim)},
          {"resourceVersion", kube::ResourceVersionOf(claim)}};
}

// The volume of a claim has a single possible name and folder, and so cannot be made twice.
std::string FolderOf(std::string_view volume, const std::string& folder) {
  return fmt::format("{}/{}", folder, volume);
}

// Returns whether the volume is a folder that was made here. Anybody who may write volumes can
// write the annotation, so the folder must have the volume's name.
bool IsOurs(const Json& volume, const std::string& folder) {
  return !folder.empty() && kube::AnnotationOf(volume, kProvisionedBy) == kHostPathProvisioner &&
         TextAt(volume, {"spec", "hostPath", "path"}) == FolderOf(kube::NameOf(volume), folder);
}

void Unprotect(Json& object, std::string_view finalizer) {
  Json kept = Json::array();
  for (const Json& other : kube::ListAt(object, {"metadata", "finalizers"})) {
    if (other != finalizer) kept.push_back(other);
  }
  object["metadata"]["finalizers"] = std::move(kept);
}

bool IsFree(const Json& volume) { return !ValueAt(volume, {"spec", "claimRef"}).is_object(); }

// Returns whether the volume's reference names the claim, by the uid if the reference has a uid.
bool IsFor(const Json& volume, const Json& claim) {
  const Json& reference = ValueAt(volume, {"spec", "claimRef"});
  const std::string uid = TextAt(reference, {"uid"});
  return TextAt(reference, {"name"}) == kube::NameOf(claim) &&
         TextAt(reference, {"namespace"}) == kube::NamespaceOf(claim) &&
         (uid.empty() || uid == kube::UidOf(claim));
}

kube::Quantity SizeOf(const Json& size) {
  if (size.is_number_integer()) return kube::Quantity::Of(size.get<std::int64_t>());
  if (!size.is_string()) return {};
  return kube::Quantity::Parse(size.get_ref<const std::string&>()).value_or(kube::Quantity());
}
kube::Quantity SizeOfVolume(const Json& volume) {
  return SizeOf(ValueAt(volume, {"spec", "capacity", "storage"}));
}

bool HasModes(const Json& volume, const Json& claim) {
  const Json& has = kube::ListAt(volume, {"spec", "accessModes"});
  const Json& wanted = kube::ListAt(claim, {"spec", "accessModes"});
  return std::ranges::all_of(
      wanted, [&](const Json& mode) { return std::ranges::find(has, mode) != has.end(); });
}

// Returns why the volume cannot be the claim's, in kube-controller-manager's words; empty: it can.
std::string WhyUnfit(const Json& volume, const Json& claim) {
  const auto mode = [](const Json& one) {
    return TextOr(one, {"spec", "volumeMode"}, "Filesystem");
  };
  if (SizeOfVolume(volume) < SizeOf(ValueAt(claim, {"spec", "resources", "requests", "storage"}))) {
    return "requested PV is too small";
  }
  if (TextAt(volume, {"spec", "storageClassName"}) != TextAt(claim, {"spec", "storageClassName"})) {
    return "storageClassName does not match";
  }
  if (mode(volume) != mode(claim)) return "incompatible volumeMode";
  if (!HasModes(volume, claim)) return "incompatible accessMode";
  return "";
}

bool Suits(const Json& volume, const Json& claim) {
  if (!IsFree(volume) || kube::IsBeingDeleted(volume) || !WhyUnfit(volume, claim).empty()) {
    return false;
  }
  const Json& selector = ValueAt(claim, {"spec", "selector"});
  return selector.is_null() || Selects(selector, volume);
}

void Update(const kube::Resource& resource, Json object, Decision& decision) {
  decision.writes.push_back(
      {.verb = Write::Verb::kUpdate, .resource = resource, .object = Shared(std::move(object))});
}

class ClaimSync {
 public:
  ClaimSync(const Json& claim, const ClaimSurroundings& around)
      : claim_(claim),
        around_(around),
        wanted_(TextAt(claim, {"spec", "volumeName"})),
        class_(TextAt(claim, {"spec", "storageClassName"})) {}

  Decision Run() {
    if (kube::IsBeingDeleted(claim_)) {
      if (kube::HasFinalizer(claim_, kClaimProtection) && !around_.in_use) {
        Json freed = claim_;
        Unprotect(freed, kClaimProtection);
        Update(kube::kVolumeClaims, std::move(freed), decision_);
      }
      return std::move(decision_);
    }
    const bool was_bound = kube::AnnotationOf(claim_, kBindCompleted).has_value();
    const Json* volume = wanted_.empty() ? Choose() : Named();
    if (was_bound) {
      CheckBound(volume);
    } else if (volume == nullptr) {
      if (wanted_.empty()) Make();
      SetPhase("Pending");
    } else if (const std::string why = WhyRefused(*volume); why.empty()) {
      Bind(*volume);
    } else {
      SetPhase("Pending");
    }
    return std::move(decision_);
  }

 private:
  const Json* Named() const {
    for (const auto& volume : around_.volumes) {
      if (kube::NameOf(*volume) == wanted_) return volume.get();
    }
    return nullptr;
  }

  // Returns a volume whose reference names the claim, or else the smallest suitable volume.
  const Json* Choose() const {
    const Json* best = nullptr;
    for (const auto& volume : around_.volumes) {
      if (IsFor(*volume, claim_) && !kube::IsBeingDeleted(*volume)) {
        if (!TextAt(*volume, {"spec", "claimRef", "uid"}).empty() ||
            WhyUnfit(*volume, claim_) != "requested PV is too small") {
          return volume.get();
        }
      }
      if (Waits() || !Suits(*volume, claim_)) continue;
      if (best == nullptr || SizeOfVolume(*volume) < SizeOfVolume(*best)) best = volume.get();
    }
    return best;
  }

  // Returns whether the claim's class gives volumes only for the node of a pod, and none is known.
  bool Waits() const {
    return around_.storage_class != nullptr &&
           TextAt(*around_.storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer" &&
           !kube::AnnotationOf(claim_, kube::kSelectedNode);
  }

  std::string WhyRefused(const Json& volume) {
    const std::string name(kube::NameOf(volume));
    if (!IsFree(volume) && !IsFor(volume, claim_)) {
      Warn("FailedBinding", fmt::format("volume \"{}\" already bound to a different claim.", name));
      return "taken";
    }
    if (kube::IsBeingDeleted(volume)) return "leaving";
    if (!IsFree(volume) || wanted_.empty()) return "";
    std::string why = WhyUnfit(volume, claim_);
    if (!why.empty()) {
      Warn("VolumeMismatch", fmt::format("Cannot bind to requested volume \"{}\": {}", name, why));
    }
    return why;
  }

  void Bind(const Json& volume) {
    if (TextAt(volume, {"spec", "claimRef", "uid"}).empty()) {
      Json taken = volume;
      if (IsFree(volume)) taken["metadata"]["annotations"][kBoundByController] = "yes";
      taken["spec"]["claimRef"] = ReferenceTo(claim_);
      Update(kube::kVolumes, std::move(taken), decision_);
      return;
    }
    if (wanted_.empty() || !kube::AnnotationOf(claim_, kBindCompleted)) {
      Json bound = claim_;
      if (wanted_.empty()) bound["metadata"]["annotations"][kBoundByController] = "yes";
      bound["metadata"]["annotations"][kBindCompleted] = "yes";
      bound["spec"]["volumeName"] = kube::NameOf(volume);
      Update(kube::kVolumeClaims, std::move(bound), decision_);
      return;
    }
    Json status = PartOf(claim_, "status");
    if (TextAt(status, {"phase"}) == "Bound") return;
    status["phase"] = "Bound";
    status["accessModes"] = ValueAt(volume, {"spec", "accessModes"});
    status["capacity"] = ValueAt(volume, {"spec", "capacity"});
    WriteStatus(kube::kVolumeClaims, claim_, std::move(status), decision_);
  }

  void CheckBound(const Json* volume) {
    if (volume == nullptr) {
      SetPhase("Lost");
      Warn("ClaimLost", wanted_.empty()
                            ? "Bound claim has lost reference to PersistentVolume. Data on the "
                              "volume is lost!"
                            : "Bound claim has lost its PersistentVolume. Data on the volume is "
                              "lost!");
    } else if (!IsFree(*volume) && !IsFor(*volume, claim_)) {
      SetPhase("Lost");
      Warn("ClaimMisbound",
           "Two claims are bound to the same volume, this one is bound incorrectly");
    } else {
      Bind(*volume);
    }
  }

  void Make() {
    if (class_.empty()) {
      Tell("FailedBinding",
           "no persistent volumes available for this claim and no storage class is set");
    } else if (around_.storage_class == nullptr) {
      Warn("ProvisioningFailed",
           fmt::format("storageclass.storage.k8s.io \"{}\" not found", class_));
    } else if (Waits()) {
      Tell("WaitForFirstConsumer", "waiting for first consumer to be created before binding");
    } else if (const std::string maker = TextAt(*around_.storage_class, {"provisioner"});
               maker == kHostPathProvisioner) {
      MakeFolder();
    } else if (maker != "kubernetes.io/no-provisioner") {
      AskMaker(maker);
    }
  }

  void AskMaker(const std::string& maker) {
    if (kube::AnnotationOf(claim_, kStorageProvisioner) != maker) {
      Json asked = claim_;
      asked["metadata"]["annotations"][kStorageProvisioner] = maker;
      asked["metadata"]["annotations"][kBetaStorageProvisioner] = maker;
      Update(kube::kVolumeClaims, std::move(asked), decision_);
    }
    Tell("ExternalProvisioning",
         fmt::format("Waiting for a volume to be created either by the external provisioner '{}' "
                     "or manually by the system administrator. If volume creation is delayed, "
                     "please verify that the provisioner is running and correctly registered.",
                     maker));
  }

  void MakeFolder() {
    if (around_.folder.empty()) return;
    if (TextAt(claim_, {"spec", "volumeMode"}) == "Block") {
      Warn("ProvisioningFailed", fmt::format("{} makes no block volumes", kHostPathProvisioner));
      return;
    }
    const std::string name = fmt::format("pvc-{}", kube::UidOf(claim_));
    Json spec = {
        {"capacity", {{"storage", ValueAt(claim_, {"spec", "resources", "requests", "storage"})}}},
        {"accessModes", ValueAt(claim_, {"spec", "accessModes"})},
        {"persistentVolumeReclaimPolicy",
         TextOr(*around_.storage_class, {"reclaimPolicy"}, "Delete")},
        {"storageClassName", class_},
        {"claimRef", ReferenceTo(claim_)},
        {"hostPath", {{"path", FolderOf(name, around_.folder)}, {"type", "DirectoryOrCreate"}}}};
    decision_.writes.push_back(
        {.verb = Write::Verb::kCreate,
         .resource = kube::kVolumes,
         .object =
             Shared({{"apiVersion", "v1"},
                     {"kind", "PersistentVolume"},
                     {"metadata",
                      {{"name", name}, {"annotations", {{kProvisionedBy, kHostPathProvisioner}}}}},
                     {"spec", std::move(spec)}})});
    Tell("ProvisioningSucceeded", fmt::format("Successfully provisioned volume {}", name));
  }

  void SetPhase(const char* phase) {
    Json status = PartOf(claim_, "status");
    if (TextAt(status, {"phase"}) == phase) return;
    status = {{"phase", phase}};
    WriteStatus(kube::kVolumeClaims, claim_, std::move(status), decision_);
  }
  void Tell(const char* reason, std::string message) {
    decision_.notes.push_back({.reason = reason, .message = std::move(message), .once = true});
  }
  void Warn(const char* reason, std::string message) {
    decision_.notes.push_back(
        {.type = "Warning", .reason = reason, .message = std::move(message), .once = true});
  }

  const Json& claim_;
  const ClaimSurroundings& around_;
  const std::string wanted_;
  const std::string class_;
  Decision decision_;
};

// Removes the volume, with its folder if the folder was made here.
void Reclaim(const Json& volume, const std::string& folder, Decision& decision) {
  if (IsOurs(volume, folder)) {
    decision.remove_folder = TextAt(volume, {"spec", "hostPath", "path"});
    decision.writes.push_back(
        {.verb = Write::Verb::kDelete, .resource = kube::kVolumes, .object = Shared(volume)});
    return;
  }
  Json status = PartOf(volume, "status");
  status["phase"] = "Released";
  // Volumes of a CSI driver are removed by its provisioner.
  if (ValueAt(volume, {"spec", "hostPath"}).is_object()) {
    status["phase"] = "Failed";
    status["message"] = fmt::format(
        "only folders that {} made here are removed; remove the folder and the PersistentVolume",
        kHostPathProvisioner);
  }
  WriteStatus(kube::kVolumes, volume, std::move(status), decision);
}

// The claim has another volume.
void LetGo(const Json& volume, Decision& decision) {
  Json freed = volume;
  if (kube::AnnotationOf(volume, kBoundByController)) {
    freed["metadata"]["annotations"].erase(kBoundByController);
    freed["spec"].erase("claimRef");
  } else {
    freed["spec"]["claimRef"].erase("uid");
    freed["spec"]["claimRef"].erase("resourceVersion");
  }
  Update(kube::kVolumes, std::move(freed), decision);
}

}  // namespace

Decision SyncVolumeClaim(const Json& claim, const ClaimSurroundings& around) {
  return ClaimSync(claim, around).Run();
}

Decision SyncVolume(const Json& volume, const Json* claim, const std::string& folder) {
  Decision decision;
  const std::string uid = TextAt(volume, {"spec", "claimRef", "uid"});
  const bool is_gone = !uid.empty() && (claim == nullptr || kube::UidOf(*claim) != uid);
  const std::string named =
      uid.empty() || is_gone ? std::string() : TextAt(*claim, {"spec", "volumeName"});
  const bool is_elsewhere = !named.empty() && named != kube::NameOf(volume);
  const bool deletes = TextAt(volume, {"spec", "persistentVolumeReclaimPolicy"}) == "Delete";
  if (kube::IsBeingDeleted(volume)) {
    const bool is_kept = !uid.empty() && !is_gone && !is_elsewhere;
    if (is_kept || !kube::HasFinalizer(volume, kVolumeProtection)) return {};
    if (deletes && IsOurs(volume, folder)) {
      decision.remove_folder = TextAt(volume, {"spec", "hostPath", "path"});
    }
    Json freed = volume;
    Unprotect(freed, kVolumeProtection);
    Update(kube::kVolumes, std::move(freed), decision);
    return decision;
  }
  if (is_elsewhere && !(deletes && IsOurs(volume, folder))) {
    LetGo(volume, decision);
    return decision;
  }
  if ((is_gone || is_elsewhere) && deletes) {
    Reclaim(volume, folder, decision);
    return decision;
  }
  Json status = PartOf(volume, "status");
  status["phase"] = is_gone ? "Released" : named.empty() ? "Available" : "Bound";
  WriteStatus(kube::kVolumes, volume, std::move(status), decision);
  return decision;
}

}  // namespace tahoma::controller::apiserver
