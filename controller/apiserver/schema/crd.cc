#include "controller/apiserver/schema/crd.h"

#include <absl/strings/ascii.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/rules.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/name.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

using Type = Schema::Type;

// ".spec.members" as {"spec", "members"}. Only plain field names, as the scale and selectable
// paths of a CRD must be.
absl::StatusOr<std::vector<std::string>> FieldsOfPath(std::string_view path,
                                                      std::string_view where) {
  std::vector<std::string> fields;
  if (!path.starts_with('.'))
    return InvalidArgument("{}: \"{}\" must begin with a dot", where, path);
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('.'), path.size());
    if (end == 0 || path.substr(0, end).find('[') != std::string_view::npos) {
      return InvalidArgument("{}: must be a path of field names such as .spec.members", where);
    }
    fields.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return fields;
}

absl::Status ReadType(const Json& from, std::string_view path, Schema& to) {
  if (kube::BoolAt(from, {"x-kubernetes-int-or-string"})) {
    to.type = Type::kIntOrString;
    return absl::OkStatus();
  }
  static constexpr std::array<std::pair<std::string_view, Type>, 6> kTypes = {
      {{"object", Type::kObject},
       {"array", Type::kArray},
       {"string", Type::kString},
       {"integer", Type::kInteger},
       {"number", Type::kNumber},
       {"boolean", Type::kBoolean}}};
  const std::string type = TextAt(from, "type");
  for (const auto& [word, value] : kTypes) {
    if (word == type) {
      to.type = value;
      return absl::OkStatus();
    }
  }
  if (type.empty() && to.preserve_unknown) return absl::OkStatus();
  if (type.empty()) return InvalidArgument("{}.type: Required value: must not be empty", path);
  return InvalidArgument("{}.type: Unsupported value: \"{}\"", path, type);
}

template <typename Number>
void ReadNumber(const Json& from, std::string_view name, std::optional<Number>& to) {
  if (ValueAt(from, {name}).is_number()) to = ValueAt(from, {name}).get<Number>();
}

// Instructions of a compiled pattern: with more, a text of a few kilobytes takes too long to match.
constexpr int kPatternProgramMax = 50'000;

absl::Status ReadPattern(const Json& from, std::string_view path, Schema& to) {
  to.pattern = TextAt(from, "pattern");
  if (to.pattern.empty()) return absl::OkStatus();
  ProcessorBudget::Spend(to.pattern.size());
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_shared<RE2>(to.pattern, options);
  if (!compiled->ok()) {
    return InvalidArgument("{}.pattern: Invalid value: \"{}\": {}", path, to.pattern,
                           compiled->error());
  }
  if (compiled->ProgramSize() > kPatternProgramMax) {
    return InvalidArgument(
        "{}.pattern: Invalid value: \"{}\": too large: it is compiled to {} instructions, which "
        "may "
        "be at most {}; use fewer or smaller counted repetitions",
        path, to.pattern, compiled->ProgramSize(), kPatternProgramMax);
  }
  to.compiled_pattern = std::move(compiled);
  return absl::OkStatus();
}

absl::Status ReadBounds(const Json& from, std::string_view path, Schema& to) {
  ReadNumber(from, "minimum", to.minimum);
  ReadNumber(from, "maximum", to.maximum);
  ReadNumber(from, "multipleOf", to.multiple_of);
  ReadNumber(from, "minLength", to.min_length);
  ReadNumber(from, "maxLength", to.max_length);
  ReadNumber(from, "minItems", to.min_items);
  ReadNumber(from, "maxItems", to.max_items);
  ReadNumber(from, "minProperties", to.min_properties);
  ReadNumber(from, "maxProperties", to.max_properties);
  to.exclusive_minimum = kube::BoolAt(from, {"exclusiveMinimum"});
  to.exclusive_maximum = kube::BoolAt(from, {"exclusiveMaximum"});
  return ReadPattern(from, path, to);
}

absl::Status ReadListType(const Json& from, std::string_view path, Schema& to) {
  const Json& given = ValueAt(from, {"x-kubernetes-list-type"});
  const std::string type = given.is_string() ? given.get<std::string>() : "atomic";
  to.list_map_keys = kube::StringsAt(from, {"x-kubernetes-list-map-keys"});
  if (type == "set") {
    to.list_type = Schema::ListType::kSet;
  } else if (type == "map") {
    to.list_type = Schema::ListType::kMap;
    if (to.list_map_keys.empty()) {
      return InvalidArgument(
          "{}.x-kubernetes-list-map-keys: Required value: must not be empty if "
          "x-kubernetes-list-type is map",
          path);
    }
  } else if (type != "atomic") {
    return InvalidArgument(
        "{}.x-kubernetes-list-type: Unsupported value: \"{}\": supported values: \"atomic\", "
        "\"map\", \"set\"",
        path, type);
  }
  to.atomic = TextAt(from, "x-kubernetes-map-type") == "atomic";
  return absl::OkStatus();
}

// Where a part of a schema stands.
struct Place {
  std::string path;
  int depth = 0;
  std::string uncorrelatable = {};  // of RulePlace

  Place Below(std::string_view name) const {
    return {.path = fmt::format("{}.{}", path, name),
            .depth = depth + 1,
            .uncorrelatable = uncorrelatable};
  }
};

// `faults` are those of its rules.
absl::StatusOr<std::shared_ptr<Schema>> Convert(const Json& from, const Place& place,
                                                Causes& faults);

absl::Status ReadChildren(const Json& from, const Place& place, Schema& to, Causes& faults) {
  if (ValueAt(from, {"properties"}).is_object()) {
    for (const auto& [name, child] : ValueAt(from, {"properties"}).items()) {
      TAHOMA_ASSIGN_OR_RETURN(
          SchemaPtr schema,
          Convert(child, place.Below(fmt::format("properties[{}]", name)), faults));
      to.Add(name, std::move(schema));
    }
  }
  const Json& additional = ValueAt(from, {"additionalProperties"});
  if (additional.is_object()) {
    TAHOMA_ASSIGN_OR_RETURN(to.additional,
                            Convert(additional, place.Below("additionalProperties"), faults));
  } else if (additional.is_boolean() && additional.get<bool>()) {
    to.preserve_unknown = true;
  }
  if (ValueAt(from, {"items"}).is_object()) {
    Place items = place.Below("items");
    // Only the keys of a map list tell which item was which before a change.
    if (items.uncorrelatable.empty() && to.list_type != Schema::ListType::kMap) {
      items.uncorrelatable = place.path;
    }
    TAHOMA_ASSIGN_OR_RETURN(to.items, Convert(ValueAt(from, {"items"}), items, faults));
  } else if (to.type == Type::kArray) {
    return InvalidArgument("{}.items: Required value: must be specified", place.path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Schema>> Convert(const Json& from, const Place& place,
                                                Causes& faults) {
  const std::string& path = place.path;
  ProcessorBudget::Spend();
  if (place.depth > kMaxDepth) return InvalidArgument("{}: nested deeper than {}", path, kMaxDepth);
  if (!from.is_object()) return InvalidArgument("{}: must be an object", path);
  if (from.contains("$ref"))
    return InvalidArgument("{}.$ref: Forbidden: $ref is not supported", path);
  auto to = std::make_shared<Schema>();
  to->preserve_unknown = kube::BoolAt(from, {"x-kubernetes-preserve-unknown-fields"});
  TAHOMA_RETURN_IF_ERROR(ReadType(from, path, *to));
  to->description = TextAt(from, "description");
  to->format = TextAt(from, "format");
  to->required = kube::StringsAt(from, {"required"});
  to->nullable = kube::BoolAt(from, {"nullable"});
  to->unique_items = kube::BoolAt(from, {"uniqueItems"});
  to->embedded_resource = kube::BoolAt(from, {"x-kubernetes-embedded-resource"});
  TAHOMA_RETURN_IF_ERROR(ReadBounds(from, path, *to));
  TAHOMA_RETURN_IF_ERROR(ReadListType(from, path, *to));
  TAHOMA_RETURN_IF_ERROR(ReadChildren(from, place, *to, faults));
  if (ValueAt(from, {"enum"}).is_array()) {
    to->enumeration.assign(ValueAt(from, {"enum"}).begin(), ValueAt(from, {"enum"}).end());
  }
  if (from.contains("default")) {
    Json value = from["default"];
    const std::vector<Cause> wrong = ValidateSchema(*to, value, path + ".default");
    if (!wrong.empty()) return InvalidArgument("{}: {}", wrong[0].field, wrong[0].message);
    to->default_value = std::make_shared<const Json>(std::move(value));
  }
  ReadRules(from,
            {.path = path,
             .is_resource = place.depth == 0 || to->embedded_resource,
             .uncorrelatable = place.uncorrelatable},
            *to, faults);
  return to;
}

// The three fields every object has, whatever the CRD says about them.
void AddObjectFields(Schema& object) {
  const Schema& pod = *BuiltInKinds().front()->schema;
  for (const char* field : {"apiVersion", "kind", "metadata"}) {
    object.Replace(field, pod.properties.find(field)->second);
  }
}

absl::Status ReadSubresources(const Json& version, const std::string& path, Kind& kind) {
  const Json& subresources = ValueAt(version, {"subresources"});
  kind.has_status = ValueAt(subresources, {"status"}).is_object();
  const Json& scale = ValueAt(subresources, {"scale"});
  if (!scale.is_object()) return absl::OkStatus();
  const std::string at = path + ".subresources.scale.";
  ScalePaths paths;
  TAHOMA_ASSIGN_OR_RETURN(paths.spec_replicas,
                          FieldsOfPath(TextAt(scale, "specReplicasPath"), at + "specReplicasPath"));
  TAHOMA_ASSIGN_OR_RETURN(paths.status_replicas, FieldsOfPath(TextAt(scale, "statusReplicasPath"),
                                                              at + "statusReplicasPath"));
  if (!TextAt(scale, "labelSelectorPath").empty()) {
    TAHOMA_ASSIGN_OR_RETURN(
        paths.selector, FieldsOfPath(TextAt(scale, "labelSelectorPath"), at + "labelSelectorPath"));
  }
  kind.scale = std::move(paths);
  return absl::OkStatus();
}

// Said by the server where the CRD says nothing.
std::string ColumnDescription(const Json& column) {
  const std::string text = TextAt(column, "description");
  if (!text.empty()) return text;
  return fmt::format("Custom resource definition column (in JSONPath format): {}",
                     TextAt(column, "jsonPath"));
}

// Longer ones are read by nobody, and each object of a table would be searched by them.
constexpr std::size_t kColumnPathMax = 1024;
constexpr std::size_t kColumnsMax = 128;

absl::Status ReadColumns(const Json& version, const std::string& path, Kind& kind) {
  if (ValueAt(version, {"additionalPrinterColumns"}).size() > kColumnsMax) {
    return InvalidArgument("{}.additionalPrinterColumns: Too many: must have at most {} items",
                           path, kColumnsMax);
  }
  kind.columns.push_back(
      {.name = "Name", .type = "string", .format = "name", .description = "The name."});
  for (const Json& column : ValueAt(version, {"additionalPrinterColumns"})) {
    if (TextAt(column, "jsonPath").size() > kColumnPathMax) {
      return InvalidArgument(
          "{}.additionalPrinterColumns.jsonPath: Too long: may not be more than {} bytes", path,
          kColumnPathMax);
    }
    Column made{.name = TextAt(column, "name"),
                .type = TextOr(column, {"type"}, "string"),
                .format = TextAt(column, "format"),
                .description = ColumnDescription(column),
                .json_path = TextAt(column, "jsonPath")};
    if (ValueAt(column, {"priority"}).is_number_integer()) {
      made.priority = ValueAt(column, {"priority"}).get<std::int32_t>();
    }
    kind.columns.push_back(std::move(made));
  }
  if (kind.columns.size() == 1) {
    kind.columns.push_back({.name = "Age",
                            .type = "date",
                            .description = "Time since the object was created.",
                            .json_path = ".metadata.creationTimestamp"});
  }
  for (const Json& field : ValueAt(version, {"selectableFields"})) {
    const std::string label = TextAt(field, "jsonPath");
    TAHOMA_ASSIGN_OR_RETURN(auto fields, FieldsOfPath(label, path + ".selectableFields"));
    kind.selectable.push_back({label.substr(1), std::move(fields)});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Kind>> KindOfVersion(const Json& spec, const Json& version,
                                                          const std::string& path) {
  const Json& names = ValueAt(spec, {"names"});
  Kind kind;
  kind.group = TextAt(spec, "group");
  kind.version = TextAt(version, "name");
  kind.kind = TextAt(names, "kind");
  kind.list_kind = TextOr(names, {"listKind"}, kind.kind + "List");
  kind.plural = TextAt(names, "plural");
  std::string lower = kind.kind;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  kind.singular = TextOr(names, {"singular"}, lower);
  kind.short_names = kube::StringsAt(names, {"shortNames"});
  kind.categories = kube::StringsAt(names, {"categories"});
  kind.namespaced = TextAt(spec, "scope") == "Namespaced";
  kind.has_generation = true;
  kind.served = kube::BoolAt(version, {"served"});
  kind.storage = kube::BoolAt(version, {"storage"});
  kind.verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
  TAHOMA_RETURN_IF_ERROR(ReadSubresources(version, path, kind));
  TAHOMA_RETURN_IF_ERROR(ReadColumns(version, path, kind));
  const Json& open_api = ValueAt(version, {"schema", "openAPIV3Schema"});
  if (!open_api.is_object()) {
    return InvalidArgument("{}.schema.openAPIV3Schema: Required value", path);
  }
  TAHOMA_ASSIGN_OR_RETURN(
      auto schema, Convert(open_api, {.path = path + ".schema.openAPIV3Schema"}, kind.rule_faults));
  AddObjectFields(*schema);
  std::string reversed;
  for (std::string_view rest = kind.group; !rest.empty();) {
    const auto dot = rest.rfind('.');
    const auto start = dot == std::string_view::npos ? 0 : dot + 1;
    reversed += fmt::format("{}{}", reversed.empty() ? "" : ".", rest.substr(start));
    rest = rest.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  schema->name = fmt::format("{}.{}.{}", reversed, kind.version, kind.kind);
  kind.schema = std::move(schema);
  return std::make_shared<const Kind>(std::move(kind));
}

// A name that is in paths, discovery and keys of the store. Source: apiextensions-apiserver
// pkg/apis/apiextensions/validation, ValidateCustomResourceDefinitionNames.
absl::Status CheckLabel(const std::string& field, const std::string& name) {
  if (const auto wrong = kube::WrongDns1035Label(name)) {
    return InvalidArgument("{}: Invalid value: \"{}\": {}", field, name, *wrong);
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Json& names) {
  for (const char* field : {"plural", "kind"}) {
    if (TextAt(names, field).empty()) {
      return InvalidArgument("spec.names.{}: Required value", field);
    }
  }
  for (const char* field : {"kind", "listKind"}) {
    const std::string name = TextAt(names, field);
    const auto wrong = kube::WrongDns1035Label(absl::AsciiStrToLower(name));
    if (name.empty() || !wrong) continue;
    return InvalidArgument(
        "spec.names.{}: Invalid value: \"{}\": may have mixed case, but should otherwise match: {}",
        field, name, *wrong);
  }
  if (TextAt(names, "kind") == TextAt(names, "listKind")) {
    return InvalidArgument(
        "spec.names.listKind: Invalid value: \"{}\": kind and listKind may not be the same",
        TextAt(names, "kind"));
  }
  for (const char* field : {"plural", "singular"}) {
    if (TextAt(names, field).empty()) continue;  // it follows the kind, which was looked at
    TAHOMA_RETURN_IF_ERROR(CheckLabel(fmt::format("spec.names.{}", field), TextAt(names, field)));
  }
  for (const char* field : {"shortNames", "categories"}) {
    const std::vector<std::string> all = kube::StringsAt(names, {field});
    for (std::size_t i = 0; i < all.size(); ++i) {
      TAHOMA_RETURN_IF_ERROR(CheckLabel(fmt::format("spec.names.{}[{}]", field, i), all[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVersionNames(const Json& versions) {
  if (!versions.is_array() || versions.empty()) {
    return InvalidArgument("spec.versions: Required value: must have at least one version");
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string name = TextAt(versions[i], "name");
    TAHOMA_RETURN_IF_ERROR(CheckLabel(fmt::format("spec.versions[{}].name", i), name));
    if (seen.insert(name).second) continue;
    return InvalidArgument(
        "spec.versions: Invalid value: must contain unique version names, has \"{}\" twice", name);
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const Json& crd, const Json& spec) {
  for (const char* field : {"group", "scope"}) {
    if (TextAt(spec, field).empty()) return InvalidArgument("spec.{}: Required value", field);
  }
  TAHOMA_RETURN_IF_ERROR(CheckNames(ValueAt(spec, {"names"})));
  const std::string group = TextAt(spec, "group");
  if (const std::string why = CheckDnsSubdomain(group); !why.empty()) {
    return InvalidArgument("spec.group: Invalid value: \"{}\": {}", group, why);
  }
  if (group.find('.') == std::string::npos) {
    return InvalidArgument(
        "spec.group: Invalid value: \"{}\": should be a domain with at least one dot", group);
  }
  std::vector<std::shared_ptr<const Kind>> taken = BuiltInKinds();
  taken.insert(taken.end(), ReviewKinds().begin(), ReviewKinds().end());
  for (const auto& kind : taken) {
    for (const auto& [field, used] : {std::pair("plural", kind->plural), {"kind", kind->kind}}) {
      const std::string wanted = TextAt(ValueAt(spec, {"names"}), field);
      if (kind->group != group || wanted != used) continue;
      return InvalidArgument("spec.names.{}: Invalid value: \"{}\": is already in use by {}", field,
                             wanted, kind->resource());
    }
  }
  const std::string name = fmt::format("{}.{}", TextAt(ValueAt(spec, {"names"}), "plural"), group);
  if (TextAt(ValueAt(crd, {"metadata"}), "name") != name) {
    return InvalidArgument(
        "metadata.name: Invalid value: \"{}\": must be spec.names.plural+\".\"+spec.group",
        TextAt(ValueAt(crd, {"metadata"}), "name"));
  }
  if (TextOr(ValueAt(spec, {"conversion"}), {"strategy"}, "None") != "None") {
    return InvalidArgument("spec.conversion.strategy: Unsupported value: only \"None\" is served");
  }
  return CheckVersionNames(ValueAt(spec, {"versions"}));
}

}  // namespace

absl::StatusOr<SchemaPtr> SchemaOfOpenApi(const Json& open_api, std::string_view path) {
  Causes faults;
  TAHOMA_ASSIGN_OR_RETURN(SchemaPtr schema, Convert(open_api, {.path = std::string(path)}, faults));
  return schema;
}

absl::StatusOr<std::vector<std::shared_ptr<const Kind>>> KindsOfCrd(const Json& crd) {
  const Json& spec = ValueAt(crd, {"spec"});
  TAHOMA_RETURN_IF_ERROR(CheckSpec(crd, spec));
  std::vector<std::shared_ptr<const Kind>> kinds;
  int stored = 0;
  const Json& versions = ValueAt(spec, {"versions"});
  for (std::size_t i = 0; i < versions.size(); ++i) {
    TAHOMA_ASSIGN_OR_RETURN(auto kind,
                            KindOfVersion(spec, versions[i], fmt::format("spec.versions[{}]", i)));
    stored += kind->storage ? 1 : 0;
    kinds.push_back(std::move(kind));
  }
  if (stored != 1) {
    return InvalidArgument(
        "spec.versions: Invalid value: must have exactly one version marked as storage version, "
        "has {}",
        stored);
  }
  return kinds;
}

Json EstablishedStatus(const Json& crd, std::string_view now) {
  const Json& spec = ValueAt(crd, {"spec"});
  Json names = ValueAt(spec, {"names"});
  const std::string kind = TextAt(names, "kind");
  if (!names.contains("listKind")) names["listKind"] = kind + "List";
  Json stored = ValueAt(crd, {"status", "storedVersions"});
  if (!stored.is_array()) stored = Json::array();
  for (const Json& version : ValueAt(spec, {"versions"})) {
    const Json name = TextAt(version, "name");
    const bool is_new = std::find(stored.begin(), stored.end(), name) == stored.end();
    if (kube::BoolAt(version, {"storage"}) && is_new) stored.push_back(name);
  }
  const auto condition = [&](const char* type, const char* reason, const char* message) {
    return Json{{"type", type},
                {"status", "True"},
                {"lastTransitionTime", now},
                {"reason", reason},
                {"message", message}};
  };
  return {
      {"acceptedNames", names},
      {"storedVersions", stored},
      {"conditions",
       {condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted")}}};
}

}  // namespace tahoma::controller::apiserver
