// Structural schemas: the fields of a kind's objects, and their types.
//
//   std::vector<std::string> unknown = Prune(*kind.schema, object);   // {"spec.foo"}; removed
//   ApplyDefaults(*kind.schema, object);
//   std::vector<Cause> causes = ValidateSchema(*kind.schema, object); // empty: fits
//
// A Schema comes from a type table (schema_table.h, built-in kinds) or from the openAPIV3Schema of
// a CustomResourceDefinition (crd.h). Both kinds of source end in this one form, and validation,
// pruning, defaults, strategic merge patch, server-side apply and OpenAPI are read off it.
//
// Scope: structure. The meaning of a field is in validation.h, CEL rules (x-kubernetes-validations)
// are in rules.h. The value checks inside allOf/anyOf/oneOf/not are not evaluated.
//
// Thread safety: a Schema is immutable once built; the functions are pure but for the object they
// are given.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/base/shared_map.h"

namespace re2 {
class RE2;
}

namespace tahoma::controller::apiserver {

struct Schema;
struct SchemaRule;
using SchemaPtr = std::shared_ptr<const Schema>;

// One entry of a Status' details.causes. `message` is without the field's path, as in Kubernetes:
// {"FieldValueRequired", "Required value", "spec.members"}.
struct Cause {
  std::string reason;
  std::string message;
  std::string field;

  friend bool operator==(const Cause&, const Cause&) = default;
};

struct Schema {
  // kQuantity and kIntOrString accept numbers and strings; kAny accepts everything and keeps it.
  enum class Type : std::uint8_t {
    kAny,
    kObject,
    kArray,
    kString,
    kInteger,
    kNumber,
    kBoolean,
    kIntOrString,
    kQuantity
  };
  // How lists merge (x-kubernetes-list-type). kMap lists are keyed by list_map_keys.
  enum class ListType : std::uint8_t { kAtomic, kSet, kMap };
  // How a strategic merge patch changes a list; kMerge by merge_key, or by value when empty.
  // kReplaceObject is for objects, which are merged otherwise.
  enum class PatchStrategy : std::uint8_t { kReplace, kMerge, kReplaceObject };

  Type type = Type::kAny;
  // Full name of a shared type, "io.k8s.api.core.v1.PodSpec"; empty for an anonymous one. Named
  // types become components of the OpenAPI document.
  std::string name;
  // The shared type itself, in a field that uses it with its own description, default and list
  // type. Null for the type and for anonymous schemas.
  SchemaPtr definition;
  std::string description;
  std::string format;

  SharedMap<std::string, SchemaPtr> properties;
  std::vector<std::string> defaulted;  // the properties that have a default
  std::vector<std::string> required;
  SchemaPtr additional;  // of map values
  SchemaPtr items;
  bool preserve_unknown = false;
  bool nullable = false;
  bool embedded_resource = false;  // apiVersion, kind and metadata are meaningful inside
  bool atomic = false;             // a map or struct that has one owner (x-kubernetes-map-type)
  bool typed_by_message = false;  // of kAny: what fits is known by the kind's protobuf message only

  ListType list_type = ListType::kAtomic;
  std::vector<std::string> list_map_keys;
  PatchStrategy patch_strategy = PatchStrategy::kReplace;
  std::string merge_key;
  bool retain_keys = false;

  std::shared_ptr<const Json> default_value;  // null: no default
  std::vector<Json> enumeration;              // empty: any value
  std::string pattern;
  std::shared_ptr<const re2::RE2> compiled_pattern;
  std::optional<double> minimum, maximum;
  bool exclusive_minimum = false, exclusive_maximum = false;
  std::optional<double> multiple_of;
  std::optional<std::int64_t> min_length, max_length, min_items, max_items, min_properties,
      max_properties;
  bool unique_items = false;

  std::vector<std::shared_ptr<const SchemaRule>> rules;  // x-kubernetes-validations, see rules.h
  bool has_rules = false;                                // here or below

  Schema();
  Schema(const Schema&);
  ~Schema();

  // Adds a property. False when there is one of that name.
  bool Add(const std::string& property, SchemaPtr schema);
  // Adds it in the place of one that may be there.
  void Replace(const std::string& property, SchemaPtr schema);
  // The schema of one field of an object or map; nullptr when it has none.
  const Schema* Field(std::string_view field) const;
  bool Requires(std::string_view field) const;
};

// Most errors that one validation reports, and the deepest object it looks into.
inline constexpr std::size_t kMaxCauses = 100;
inline constexpr int kMaxDepth = 128;

// The top-level fields of an object to check, when the others were checked before and have not
// changed. None given: all.
using Parts = std::optional<std::set<std::string, std::less<>>>;
inline bool Has(const Parts& parts, std::string_view field) {
  return !parts || parts->contains(field);
}

// Whether the schema of an object does not have the field, and does not keep such.
bool IsUnknown(const Schema& schema, std::string_view field);

// Removes the fields that the schema does not know and returns their paths ("spec.foo",
// "spec.containers[0].imag"), in the order of the object. apiVersion, kind and metadata at the top
// (and inside an embedded resource) are always kept; an unknown field inside metadata is reported.
std::vector<std::string> Prune(const Schema& schema, Json& object, const Parts& parts = {});

// Fills absent fields that have a default, parents before children; idempotent. A null in a field
// that is not nullable and has a default becomes the default; other such nulls are dropped.
void ApplyDefaults(const Schema& schema, Json& object, const Parts& parts = {});

// Returns all violations of the schema: types, required, enum, pattern, bounds, list types. Texts
// are those of a real API server's custom resources. `path` is put before every field.
std::vector<Cause> ValidateSchema(const Schema& schema, const Json& object,
                                  std::string_view path = "", const Parts& parts = {});

// Whether Prune and, with `decodes`, DecodeError have nothing to say, and no value is there that is
// typed by the message: one look at what is right.
bool IsClean(const Schema& schema, const Json& object, bool decodes, const Parts& parts = {});

// Returns the text after "cannot be handled as a Pod: ", or nullopt when all types fit. For
// built-in kinds a real API server refuses a wrong type while it decodes: 400 instead of 422.
std::optional<std::string> DecodeError(const Schema& schema, const Json& object,
                                       const Parts& parts = {});

}  // namespace tahoma::controller::apiserver
