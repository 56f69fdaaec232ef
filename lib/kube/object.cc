#include "lib/kube/object.h"

#include <algorithm>

#include "lib/base/json.h"

namespace tahoma::kube {
namespace {

using json = Json;

std::map<std::string, std::string> TextsOf(const json& object, std::string_view map) {
  std::map<std::string, std::string> strings;
  const json* at = ValueAt(object, {"metadata", map});
  if (at == nullptr || !at->is_object()) return strings;
  for (const auto& [key, value] : at->items()) {
    if (value.is_string()) strings[key] = value.get<std::string>();
  }
  return strings;
}

std::optional<std::string_view> EntryOf(const json& object, std::string_view map,
                                        std::string_view key) {
  const json* at = ValueAt(object, {"metadata", map, key});
  if (at == nullptr || !at->is_string()) return std::nullopt;
  return at->get_ref<const std::string&>();
}

}  // namespace

const json* ValueAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* at = &object;
  for (const std::string_view step : path) {
    at = FindMember(*at, step);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string_view StringAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* at = ValueAt(object, path);
  if (at == nullptr || !at->is_string()) return "";
  return at->get_ref<const std::string&>();
}

std::int64_t IntAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* at = ValueAt(object, path);
  return at != nullptr && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

bool BoolAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* at = ValueAt(object, path);
  return at != nullptr && at->is_boolean() && at->get<bool>();
}

std::vector<std::string> StringsAt(const json& object,
                                   std::initializer_list<std::string_view> path) {
  std::vector<std::string> strings;
  for (const json& item : ListAt(object, path)) {
    if (item.is_string()) strings.push_back(item.get<std::string>());
  }
  return strings;
}

const json& ListAt(const json& object, std::initializer_list<std::string_view> path) {
  static const json kEmpty = json::array();
  const json* at = ValueAt(object, path);
  return at != nullptr && at->is_array() ? *at : kEmpty;
}

std::string_view NameOf(const json& object) { return StringAt(object, {"metadata", "name"}); }
std::string_view NamespaceOf(const json& object) {
  return StringAt(object, {"metadata", "namespace"});
}
std::string_view UidOf(const json& object) { return StringAt(object, {"metadata", "uid"}); }
std::string_view ResourceVersionOf(const json& object) {
  return StringAt(object, {"metadata", "resourceVersion"});
}
std::string_view KindOf(const json& object) { return StringAt(object, {"kind"}); }
std::string_view ApiVersionOf(const json& object) { return StringAt(object, {"apiVersion"}); }

std::int64_t GenerationOf(const json& object) { return IntAt(object, {"metadata", "generation"}); }

ObjectKey KeyOf(const json& object) {
  return {std::string(NamespaceOf(object)), std::string(NameOf(object))};
}

bool IsBeingDeleted(const json& object) {
  return !StringAt(object, {"metadata", "deletionTimestamp"}).empty();
}

std::optional<std::string_view> LabelOf(const json& object, std::string_view key) {
  return EntryOf(object, "labels", key);
}
std::optional<std::string_view> AnnotationOf(const json& object, std::string_view key) {
  return EntryOf(object, "annotations", key);
}
std::map<std::string, std::string> LabelsOf(const json& object) {
  return TextsOf(object, "labels");
}
std::map<std::string, std::string> AnnotationsOf(const json& object) {
  return TextsOf(object, "annotations");
}

std::vector<std::string> FinalizersOf(const json& object) {
  return StringsAt(object, {"metadata", "finalizers"});
}

bool HasFinalizer(const json& object, std::string_view finalizer) {
  return std::ranges::any_of(ListAt(object, {"metadata", "finalizers"}), [&](const json& one) {
    return one.is_string() && one.get_ref<const std::string&>() == finalizer;
  });
}

std::vector<OwnerReference> OwnersOf(const json& object) {
  std::vector<OwnerReference> owners;
  for (const json& owner : ListAt(object, {"metadata", "ownerReferences"})) {
    owners.push_back({.api_version = std::string(StringAt(owner, {"apiVersion"})),
                      .kind = std::string(StringAt(owner, {"kind"})),
                      .name = std::string(StringAt(owner, {"name"})),
                      .uid = std::string(StringAt(owner, {"uid"})),
                      .controller = BoolAt(owner, {"controller"}),
                      .block_owner_deletion = BoolAt(owner, {"blockOwnerDeletion"})});
  }
  return owners;
}

std::optional<OwnerReference> ControllerOf(const json& object) {
  for (OwnerReference& owner : OwnersOf(object)) {
    if (owner.controller) return std::move(owner);
  }
  return std::nullopt;
}

std::pair<std::string_view, std::string_view> SplitApiVersion(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

}  // namespace tahoma::kube
