// The kinds that the standalone API server serves, built-in and from CustomResourceDefinitions.
//
//   KindRegistry registry;                                   // the built-in kinds
//   TAHOMA_RETURN_IF_ERROR(registry.ApplyCrd(crd));          // one CRD object
//   std::shared_ptr<const KindTable> kinds = registry.Snapshot();
//   const Kind* pods = kinds->Find("", "v1", "pods");        // nullptr: 404
//
// A request takes one snapshot at its start and uses it to its end; CRDs that come and go replace
// the table as a whole and never change one that somebody reads.
//
// Scope: names, capabilities and schemas. Objects live in the store; requests are the pipeline
// (request.h); the semantics of single kinds are in validation.h and defaults.h.
//
// Thread safety: Kind and KindTable are immutable; KindRegistry may be used from any thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

// The name of a kind in responseKind and in apiVersion/kind.
struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  friend auto operator<=>(const GroupVersionKind&, const GroupVersionKind&) = default;
};

// One column of a Table. Columns of built-in kinds are computed by table.cc and have no path.
struct Column {
  std::string name = {};
  std::string type = {};    // string, integer, number, boolean, date
  std::string format = {};  // "name" for the first one
  std::string description = {};
  std::int32_t priority = 0;   // > 0: only with -o wide
  std::string json_path = {};  // ".spec.members", of a CRD
};

// A field selector: label as users write it and where the value is, "spec.nodeName" for both.
struct SelectableField {
  std::string label;
  std::vector<std::string> path;
  std::string absent = {};  // the value of an absent field
};

// A path below an object other than status and scale: pods/binding, pods/log, namespaces/finalize.
struct Subresource {
  std::string name;
  GroupVersionKind response;
  std::vector<std::string> verbs;
};

// The paths of the scale subresource's three values, as field names.
struct ScalePaths {
  std::vector<std::string> spec_replicas;
  std::vector<std::string> status_replicas;
  std::vector<std::string> selector;  // a text or a label selector; empty: none
};

struct Kind {
  std::string group;  // "" is core
  std::string version;
  std::string kind;
  std::string list_kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool built_in = false;        // strategic merge patch and protobuf bodies exist only for these
  bool has_status = false;      // status subresource
  bool has_generation = false;  // metadata.generation counts changes outside metadata and status
  bool served = true;           // false: a CRD version that is stored or kept but not served
  bool storage = true;          // the version in which objects are stored
  bool computed = false;        // ComponentStatus: made when it is read, stored nowhere
  std::vector<std::string> verbs;
  std::optional<ScalePaths> scale;
  std::vector<Subresource> subresources;  // besides status and scale
  std::vector<Column> columns;
  std::vector<SelectableField> selectable;  // besides metadata.name and metadata.namespace
  SchemaPtr schema;                         // of the whole object
  std::vector<Cause> rule_faults;           // of a CRD: why rules of the schema cannot be used

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  GroupVersionKind gvk() const { return {group, version, kind}; }
  // "gangs.tahoma.dev", "pods": what error texts call the resource.
  std::string resource() const { return group.empty() ? plural : plural + "." + group; }
  bool Allows(std::string_view verb) const;
  // Whether objects of this kind are CustomResourceDefinitions.
  bool IsCrd() const {
    return group == "apiextensions.k8s.io" && plural == "customresourcedefinitions";
  }
};

// Returns the top-level fields in which `after` differs from `before`, which is stored: the others
// have been checked already. For a custom kind, whose schema may have changed since, all fields.
Parts PartsToCheck(const Kind& kind, const Json& before, const Json& after);

// An immutable set of kinds.
class KindTable {
 public:
  explicit KindTable(std::vector<std::shared_ptr<const Kind>> kinds);

  // nullptr when there is none. O(1).
  const Kind* Find(std::string_view group, std::string_view version, std::string_view plural) const;
  // Finds a kind by "tahoma.dev/v1alpha1" and "Gang", for bodies. O(1).
  const Kind* FindKind(std::string_view api_version, std::string_view kind) const;
  // The stored version of a resource, for owners and storage keys. O(1).
  const Kind* FindStorage(std::string_view group, std::string_view plural) const;

  // Sorted by group ("" first), version, plural.
  const std::vector<std::shared_ptr<const Kind>>& kinds() const { return kinds_; }
  // Counts up with each replacement; caches of discovery and OpenAPI compare it.
  std::uint64_t generation() const { return generation_; }

 private:
  friend class KindRegistry;
  std::vector<std::shared_ptr<const Kind>> kinds_;
  // The names are those of the kinds.
  using Name = std::string_view;
  absl::flat_hash_map<std::tuple<Name, Name, Name>, const Kind*> by_resource_;
  absl::flat_hash_map<std::string, const Kind*> by_kind_;
  absl::flat_hash_map<std::pair<Name, Name>, const Kind*> by_storage_;
  std::uint64_t generation_ = 0;
};

class KindRegistry {
 public:
  // Starts with the built-in kinds. Aborts if our own type tables are wrong.
  KindRegistry();

  std::shared_ptr<const KindTable> Snapshot() const;

  // Adds or replaces the kinds of one apiextensions.k8s.io/v1 CustomResourceDefinition object.
  // kInvalidArgument with the field's path when its schema is not one we can serve;
  // kAlreadyExists when a built-in kind or another CRD has the resource or the kind. Nothing has
  // changed then.
  absl::Status ApplyCrd(const Json& crd);

  // Removes the kinds of the CRD of that name ("gangs.tahoma.dev"); no such CRD is no error.
  void RemoveCrd(std::string_view name);

 private:
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  const std::vector<std::shared_ptr<const Kind>> built_in_;
  std::map<std::string, std::vector<std::shared_ptr<const Kind>>, std::less<>> by_crd_
      ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const KindTable> snapshot_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The built-in kinds, schemas included. The same objects at every call.
const std::vector<std::shared_ptr<const Kind>>& BuiltInKinds();

// A type of the tables in controller/apiserver/schema/types by its full name,
// "io.k8s.api.core.v1.Binding"; aborts when there is none.
const Schema& BuiltInType(std::string_view name);

// The kinds that are answered and never stored (access_review.h): discovery has them, no table.
// They have no schema. The same objects at every call.
const std::vector<std::shared_ptr<const Kind>>& ReviewKinds();

}  // namespace tahoma::controller::apiserver
