#include "controller/apiserver/verbs/volume_admission.h"

#include <string>

#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kIsDefault[] = "storageclass.kubernetes.io/is-default-class";
constexpr char kBetaClass[] = "volume.beta.kubernetes.io/storage-class";

// Returns the name of the class that was made last of those marked as default; empty without one.
std::string DefaultStorageClass(const ApiContext& context) {
  ObjectPtr newest;
  const auto made = [](const Object& one) {
    return TextAt(MetadataOf(*one.body), "creationTimestamp");
  };
  for (const ObjectPtr& one :
       context.objects.List({"storage.k8s.io", "storageclasses"}, "").objects) {
    if (kube::AnnotationOf(*one->body, kIsDefault) != "true") continue;
    if (newest == nullptr || made(*one) > made(*newest)) newest = one;
  }
  return newest == nullptr ? "" : std::string(kube::NameOf(*newest->body));
}

void Protect(Json& object, const char* finalizer) {
  if (kube::HasFinalizer(object, finalizer)) return;
  Json& metadata = object["metadata"];
  if (!metadata["finalizers"].is_array()) metadata["finalizers"] = Json::array();
  metadata["finalizers"].push_back(finalizer);
}

}  // namespace

void AdmitVolumes(const ApiContext& context, const Kind& kind, Json& object) {
  if (!kind.group.empty()) return;
  if (kind.plural == "persistentvolumes") Protect(object, "kubernetes.io/pv-protection");
  if (kind.plural != "persistentvolumeclaims") return;
  Protect(object, "kubernetes.io/pvc-protection");
  if (!ValueAt(object, {"spec"}).is_object() || object["spec"].contains("storageClassName") ||
      kube::AnnotationOf(object, kBetaClass)) {
    return;
  }
  if (std::string name = DefaultStorageClass(context); !name.empty()) {
    object["spec"]["storageClassName"] = std::move(name);
  }
}

}  // namespace tahoma::controller::apiserver
