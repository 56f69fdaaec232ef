// The parts that every Kubernetes object has.
//
//   KeyOf(pod);                       // {"training", "worker-0"}
//   if (IsBeingDeleted(pod)) …
//   if (std::optional<OwnerReference> owner = ControllerOf(claim)) Find(owner->uid);
//
// Scope: JSON that may be wrong: a missing member, or a member of another type, reads as empty;
// with field.h it is an error. The views live as long as the object.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::kube {

// Identifies an object within a kind.
struct ObjectKey {
  std::string ns;  // empty for cluster-scoped kinds
  std::string name;

  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ObjectKey& key) {
    return H::combine(std::move(h), key.ns, key.name);
  }
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool block_owner_deletion = false;

  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

// Returns the string at object[a][b]…; empty when a step is missing or has another type.
std::string_view StringAt(const Json& object, std::initializer_list<std::string_view> path);
// Returns the value at the path; nullptr when a step is missing.
const Json* ValueAt(const Json& object, std::initializer_list<std::string_view> path);
// Return 0, false or an empty list when a step is missing or has another type. Items other than
// strings are left out.
std::int64_t IntAt(const Json& object, std::initializer_list<std::string_view> path);
bool BoolAt(const Json& object, std::initializer_list<std::string_view> path);
std::vector<std::string> StringsAt(const Json& object,
                                   std::initializer_list<std::string_view> path);
// Returns the list at the path; an empty list when a step is missing or has another type.
const Json& ListAt(const Json& object, std::initializer_list<std::string_view> path);

std::string_view NameOf(const Json& object);
std::string_view NamespaceOf(const Json& object);
std::string_view UidOf(const Json& object);
std::string_view ResourceVersionOf(const Json& object);
std::string_view KindOf(const Json& object);
std::string_view ApiVersionOf(const Json& object);
std::int64_t GenerationOf(const Json& object);
ObjectKey KeyOf(const Json& object);
bool IsBeingDeleted(const Json& object);

std::optional<std::string_view> LabelOf(const Json& object, std::string_view key);
std::optional<std::string_view> AnnotationOf(const Json& object, std::string_view key);
std::map<std::string, std::string> LabelsOf(const Json& object);
std::map<std::string, std::string> AnnotationsOf(const Json& object);
std::vector<std::string> FinalizersOf(const Json& object);
bool HasFinalizer(const Json& object, std::string_view finalizer);

std::vector<OwnerReference> OwnersOf(const Json& object);
// Returns the owner with a true `controller`.
std::optional<OwnerReference> ControllerOf(const Json& object);

// Splits "apps/v1" into {"apps", "v1"}, and "v1" into {"", "v1"}.
std::pair<std::string_view, std::string_view> SplitApiVersion(std::string_view api_version);

}  // namespace tahoma::kube
