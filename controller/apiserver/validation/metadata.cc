// metadata, with the texts of k8s.io/apimachinery pkg/api/validation/objectmeta.go.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::size_t kAnnotationsMax = 256 * 1024;  // bytes of all names and values

// Namespaces and StatefulSets are DNS labels; the kinds of other names are subdomains.
std::string CheckName(const Kind& kind, std::string_view name) {
  const bool is_label =
      kind.built_in && (kind.resource() == "namespaces" || kind.resource() == "statefulsets.apps");
  if (is_label) return CheckDnsLabel(name);
  return CheckDnsSubdomain(name);
}

void CheckNames(const Kind& kind, const Json& metadata, Causes& causes) {
  const std::string name = TextAt(metadata, {"name"});
  std::string prefix = TextAt(metadata, {"generateName"});
  if (prefix.ends_with('-')) prefix.back() = 'a';  // something will follow it
  if (!prefix.empty()) {
    AddInvalid("metadata.generateName", TextAt(metadata, {"generateName"}), CheckName(kind, prefix),
               causes);
  }
  if (name.empty()) {
    causes.push_back(Required("metadata.name", "name or generateName is required"));
  } else {
    AddInvalid("metadata.name", name, CheckName(kind, name), causes);
  }
  const std::string space = TextAt(metadata, {"namespace"});
  if (kind.namespaced && space.empty()) causes.push_back(Required("metadata.namespace"));
  if (kind.namespaced && !space.empty()) {
    AddInvalid("metadata.namespace", space, CheckDnsLabel(space), causes);
  }
  if (!kind.namespaced && !space.empty()) {
    causes.push_back(Forbidden("metadata.namespace", "not allowed on this type"));
  }
}

void CheckLabels(const Json& metadata, Causes& causes) {
  for (const auto& [name, value] : ValueAt(metadata, {"labels"}).items()) {
    AddInvalid("metadata.labels", name, CheckQualifiedName(name), causes);
    if (!value.is_string()) continue;
    AddInvalid("metadata.labels", value.get_ref<const std::string&>(),
               CheckLabelValue(value.get_ref<const std::string&>()), causes);
  }
  std::size_t total = 0;
  for (const auto& [name, value] : ValueAt(metadata, {"annotations"}).items()) {
    std::string lower = name;  // the prefix may be written in capitals
    for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    AddInvalid("metadata.annotations", name, CheckQualifiedName(lower), causes);
    total += name.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  if (total > kAnnotationsMax) causes.push_back(TooLong("metadata.annotations", kAnnotationsMax));
}

void CheckOwners(const Json& metadata, Causes& causes) {
  const Json& owners = ValueAt(metadata, {"ownerReferences"});
  std::string controller;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (!TextAt(owners[i], {field}).empty()) continue;
      const bool version = field == std::string_view("apiVersion");
      causes.push_back(Invalid(fmt::format("metadata.ownerReferences.{}", field), "",
                               version ? "version must not be empty" : "must not be empty"));
    }
    if (TextAt(owners[i], {"kind"}) == "Event" && TextAt(owners[i], {"apiVersion"}) == "v1") {
      causes.push_back(Invalid("metadata.ownerReferences", owners[i],
                               "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (ValueAt(owners[i], {"controller"}) != true) continue;
    const std::string name =
        fmt::format("{}/{}", TextAt(owners[i], {"kind"}), TextAt(owners[i], {"name"}));
    if (!controller.empty()) {
      causes.push_back(
          Invalid("metadata.ownerReferences", owners,
                  fmt::format("Only one reference can have Controller set to true. Found \"true\" "
                              "in references for {} and {}",
                              controller, name)));
      return;
    }
    controller = name;
  }
}

void CheckFinalizers(const Json& metadata, bool built_in, Causes& causes) {
  bool orphan = false;
  bool foreground = false;
  const Json& finalizers = ValueAt(metadata, {"finalizers"});
  for (std::size_t i = 0; i < finalizers.size(); ++i) {
    const Json& one = finalizers[i];
    if (!one.is_string()) continue;
    const auto& name = one.get_ref<const std::string&>();
    AddInvalid("metadata.finalizers", name, CheckQualifiedName(name), causes);
    const bool standard = name == "kubernetes" || name == "orphan" || name == "foregroundDeletion";
    if (built_in && !standard && name.find('/') == std::string::npos) {
      causes.push_back(
          Invalid(fmt::format("metadata.finalizers[{}]", i), name,
                  "name is neither a standard finalizer name nor is it fully qualified"));
    }
    orphan |= name == "orphan";
    foreground |= name == "foregroundDeletion";
  }
  if (orphan && foreground) {
    causes.push_back(Invalid("metadata.finalizers", ValueAt(metadata, {"finalizers"}),
                             "finalizer orphan and foregroundDeletion cannot be both set"));
  }
}

}  // namespace

void CheckImmutable(std::string field, const Json& old_value, const Json& new_value,
                    Causes& causes) {
  if (old_value != new_value) {
    causes.push_back(Invalid(std::move(field), new_value, "field is immutable"));
  }
}

void CheckMetadata(const Kind& kind, const Json& object, Causes& causes) {
  const Json& metadata = ValueAt(object, {"metadata"});
  CheckNames(kind, metadata, causes);
  CheckLabels(metadata, causes);
  CheckOwners(metadata, causes);
  CheckFinalizers(metadata, kind.built_in, causes);
}

void CheckMetadataUpdate(const Json& old_object, const Json& new_object, Causes& causes) {
  for (const char* field : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"}) {
    const Json& before = ValueAt(old_object, {"metadata", field});
    const Json& after = ValueAt(new_object, {"metadata", field});
    if (before != after) CheckImmutable(fmt::format("metadata.{}", field), before, after, causes);
  }
  if (!ValueAt(old_object, {"metadata", "deletionTimestamp"}).is_string()) return;
  const Json& old_list = ValueAt(old_object, {"metadata", "finalizers"});
  const std::set<Json> before(old_list.begin(), old_list.end());
  std::set<std::string> added;
  for (const Json& one : ValueAt(new_object, {"metadata", "finalizers"})) {
    if (one.is_string() && !before.contains(one)) added.insert(one.get<std::string>());
  }
  if (added.empty()) return;
  std::string list;
  for (const std::string& one : added) list += (list.empty() ? "" : ", ") + Json(one).dump();
  causes.push_back(
      Forbidden("metadata.finalizers",
                fmt::format("no new finalizers can be added if the object is being deleted, found "
                            "new finalizers []string{{{}}}",
                            list)));
}

}  // namespace tahoma::controller::apiserver
