#include "controller/apiserver/discovery/openapi.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <cmath>

#include "lib/base/digest.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

using Type = Schema::Type;

constexpr char kRefPrefix[] = "#/components/schemas/";

// Collects named schemas as components while references to them are written.
class Components {
 public:
  Json Reference(const Schema& schema) {
    Add(schema.definition ? *schema.definition : schema);
    return {{"$ref", kRefPrefix + schema.name}};
  }

  void Add(const Schema& schema) {
    if (components_.contains(schema.name)) return;
    components_[schema.name] = Json::object();  // before its fields: they may name it again
    Json body = Body(schema);
    components_[schema.name] = std::move(body);
  }

  Json& operator[](const std::string& name) { return components_[name]; }
  Json Finish() { return std::move(components_); }

 private:
  // A use of a schema: a reference with the use's own description, or the schema itself.
  Json Use(const Schema& schema) {
    if (schema.name.empty()) return Body(schema);
    Json use = {{"allOf", Json::array({Reference(schema)})}, {"description", schema.description}};
    if (schema.default_value) use["default"] = *schema.default_value;
    return use;
  }

  static void WriteType(const Schema& schema, Json& body) {
    switch (schema.type) {
      case Type::kAny:
        break;
      case Type::kObject:
        body["type"] = "object";
        break;
      case Type::kArray:
        body["type"] = "array";
        break;
      case Type::kInteger:
        body["type"] = "integer";
        break;
      case Type::kNumber:
        body["type"] = "number";
        break;
      case Type::kBoolean:
        body["type"] = "boolean";
        break;
      case Type::kString:
        body["type"] = "string";
        break;
      case Type::kIntOrString:
        body["x-kubernetes-int-or-string"] = true;
        body["format"] = "int-or-string";
        body["oneOf"] = {{{"type", "integer"}}, {{"type", "string"}}};
        break;
      case Type::kQuantity:
        body["oneOf"] = {{{"type", "string"}}, {{"type", "number"}}};
        break;
    }
  }

  static void WriteListType(const Schema& schema, Json& body) {
    if (schema.type == Type::kArray) {
      const bool map = schema.list_type == Schema::ListType::kMap;
      const bool set = schema.list_type == Schema::ListType::kSet;
      body["x-kubernetes-list-type"] = map ? "map" : set ? "set" : "atomic";
      if (map) body["x-kubernetes-list-map-keys"] = schema.list_map_keys;
    }
    if (schema.type == Type::kObject && schema.atomic) body["x-kubernetes-map-type"] = "atomic";
    if (schema.patch_strategy == Schema::PatchStrategy::kReplaceObject) {
      body["x-kubernetes-patch-strategy"] = "replace";
    }
    if (schema.patch_strategy == Schema::PatchStrategy::kMerge) {
      body["x-kubernetes-patch-strategy"] = schema.retain_keys ? "merge,retainKeys" : "merge";
      if (!schema.merge_key.empty()) body["x-kubernetes-patch-merge-key"] = schema.merge_key;
    }
    if (schema.preserve_unknown) body["x-kubernetes-preserve-unknown-fields"] = true;
    if (schema.embedded_resource) body["x-kubernetes-embedded-resource"] = true;
  }

  static void WriteIf(const std::optional<std::int64_t>& value, const char* name, Json& body) {
    if (value) body[name] = *value;
  }
  // 1, not 1.0: Go's strict readers of integers refuse 1.0.
  static void WriteIf(const std::optional<double>& value, const char* name, Json& body) {
    if (!value) return;
    body[name] = *value;
    if (std::floor(*value) == *value && std::abs(*value) < 1e15) {
      body[name] = static_cast<std::int64_t>(*value);
    }
  }

  static void WriteBounds(const Schema& schema, Json& body) {
    WriteIf(schema.minimum, "minimum", body);
    WriteIf(schema.maximum, "maximum", body);
    WriteIf(schema.multiple_of, "multipleOf", body);
    WriteIf(schema.min_length, "minLength", body);
    WriteIf(schema.max_length, "maxLength", body);
    WriteIf(schema.min_items, "minItems", body);
    WriteIf(schema.max_items, "maxItems", body);
    WriteIf(schema.min_properties, "minProperties", body);
    WriteIf(schema.max_properties, "maxProperties", body);
    if (schema.exclusive_minimum) body["exclusiveMinimum"] = true;
    if (schema.exclusive_maximum) body["exclusiveMaximum"] = true;
    if (!schema.pattern.empty()) body["pattern"] = schema.pattern;
    if (schema.unique_items) body["uniqueItems"] = true;
    if (schema.nullable) body["nullable"] = true;
    if (!schema.enumeration.empty()) body["enum"] = schema.enumeration;
    if (schema.default_value) body["default"] = *schema.default_value;
  }

  Json Body(const Schema& schema) {
    Json body = Json::object();
    if (!schema.description.empty()) body["description"] = schema.description;
    if (!schema.format.empty()) body["format"] = schema.format;
    WriteType(schema, body);
    WriteListType(schema, body);
    WriteBounds(schema, body);
    for (const auto& [name, field] : schema.properties) body["properties"][name] = Use(*field);
    if (!schema.required.empty()) body["required"] = schema.required;
    if (schema.additional) body["additionalProperties"] = Use(*schema.additional);
    if (schema.items) body["items"] = Use(*schema.items);
    return body;
  }

  Json components_ = Json::object();
};

Json QueryParameter(const char* name, const char* type, const char* description) {
  return {{"name", name},
          {"in", "query"},
          {"description", description},
          {"schema", {{"type", type}, {"uniqueItems", true}}}};
}

Json PathParameter(const char* name, const char* description) {
  return {{"name", name},
          {"in", "path"},
          {"required", true},
          {"description", description},
          {"schema", {{"type", "string"}, {"uniqueItems", true}}}};
}

Json WriteParameters(bool patch) {
  Json parameters = {
      QueryParameter("dryRun", "string", "All: do everything but store."),
      QueryParameter("fieldManager", "string", "Who owns the fields that change."),
      QueryParameter("fieldValidation", "string",
                     "Ignore, Warn or Strict: what becomes of unknown and duplicate fields.")};
  if (patch) {
    parameters.push_back(
        QueryParameter("force", "boolean", "Take fields of other managers; apply only."));
  }
  return parameters;
}

Json ListParameters() {
  return {QueryParameter("allowWatchBookmarks", "boolean", "Send bookmarks in a watch."),
          QueryParameter("continue", "string", "Where the next page begins."),
          QueryParameter("fieldSelector", "string", "Which objects, by fields."),
          QueryParameter("labelSelector", "string", "Which objects, by labels."),
          QueryParameter("limit", "integer", "How many objects a page has."),
          QueryParameter("resourceVersion", "string", "Not older than this version."),
          QueryParameter("resourceVersionMatch", "string", "NotOlderThan or Exact."),
          QueryParameter("sendInitialEvents", "boolean", "Begin a watch with all objects."),
          QueryParameter("timeoutSeconds", "integer", "When the request ends."),
          QueryParameter("watch", "boolean", "Follow changes.")};
}

// Writes the operations of a kind's paths.
class PathWriter {
 public:
  PathWriter(const Kind& kind, Json object, Json list, Json status)
      : kind_(kind),
        object_(std::move(object)),
        list_(std::move(list)),
        status_(std::move(status)) {}

  void Write(Json& paths) const {
    const std::string root = kind_.group.empty()
                                 ? "/api/" + kind_.version
                                 : fmt::format("/apis/{}/{}", kind_.group, kind_.version);
    if (!kind_.namespaced) {
      WriteCollection(paths[fmt::format("{}/{}", root, kind_.plural)], true);
      return WriteNamed(paths, fmt::format("{}/{}/{{name}}", root, kind_.plural));
    }
    WriteCollection(paths[fmt::format("{}/{}", root, kind_.plural)], false);
    const std::string in = fmt::format("{}/namespaces/{{namespace}}/{}", root, kind_.plural);
    WriteCollection(paths[in], true);
    paths[in]["parameters"].push_back(PathParameter("namespace", "The namespace."));
    WriteNamed(paths, in + "/{name}");
  }

 private:
  Json Operation(const char* action, const Json& answer, const Json& parameters) const {
    return {
        {"operationId", fmt::format("{}{}{}{}", action, kind_.group, kind_.version, kind_.kind)},
        {"x-kubernetes-action", action},
        {"x-kubernetes-group-version-kind",
         {{"group", kind_.group}, {"version", kind_.version}, {"kind", kind_.kind}}},
        {"parameters", parameters},
        {"responses",
         {{"200",
           {{"description", "OK"}, {"content", {{"application/json", {{"schema", answer}}}}}}}}}};
  }

  Json WithBody(Json operation) const {
    operation["requestBody"] = {{"required", true},
                                {"content", {{"application/json", {{"schema", object_}}}}}};
    return operation;
  }

  Json Patch() const {
    Json operation = Operation("patch", object_, WriteParameters(true));
    std::vector<std::string> types = {"application/apply-patch+yaml", "application/json-patch+json",
                                      "application/merge-patch+json"};
    // kubectl apply sends a strategic merge patch when the document lists the type; custom kinds
    // have no patch keys.
    if (kind_.built_in) types.emplace_back("application/strategic-merge-patch+json");
    for (const std::string& type : types) {
      operation["requestBody"]["content"][type] = {{"schema", Json::object()}};
    }
    return operation;
  }

  void WriteCollection(Json& path, bool writable) const {
    path["get"] = Operation("list", list_, ListParameters());
    if (!writable) return;
    path["post"] = WithBody(Operation("post", object_, WriteParameters(false)));
    if (kind_.Allows("deletecollection")) {
      path["delete"] = Operation("deletecollection", status_, ListParameters());
    }
  }

  void WriteNamed(Json& paths, const std::string& path) const {
    Json& named = paths[path];
    named["get"] = Operation("get", object_, Json::array());
    named["put"] = WithBody(Operation("put", object_, WriteParameters(false)));
    named["patch"] = Patch();
    named["delete"] = Operation("delete", status_, WriteParameters(false));
    Json parameters = Json::array();
    parameters.push_back(PathParameter("name", "The name."));
    if (kind_.namespaced) parameters.push_back(PathParameter("namespace", "The namespace."));
    named["parameters"] = parameters;
    if (!kind_.has_status) return;
    Json& status = paths[path + "/status"];
    status["get"] = Operation("get", object_, Json::array());
    status["put"] = WithBody(Operation("put", object_, WriteParameters(false)));
    status["patch"] = Patch();
    status["parameters"] = parameters;
  }

  const Kind& kind_;
  Json object_;
  Json list_;
  Json status_;
};

Json PlainObject(std::string description) {
  return {{"type", "object"}, {"description", std::move(description)}};
}

// Upper case, as kube-apiserver's.
std::string HashOf(const std::string& body) {
  std::string hex = Sha256Hex(body);
  absl::AsciiStrToUpper(&hex);
  return hex;
}

std::string DocumentPath(const Kind& kind) {
  return kind.group.empty() ? "api/" + kind.version
                            : fmt::format("apis/{}/{}", kind.group, kind.version);
}

// Adds a kind: its component with the GVK for kubectl explain, its list, its paths.
void AddKind(const Kind& kind, Components& components, Json& paths) {
  components.Add(*kind.schema);
  const Json gvk =
      Json::array({{{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}}});
  Json& object = components[kind.schema->name];
  object["x-kubernetes-group-version-kind"] = gvk;
  const std::string list = kind.schema->name + "List";
  const std::string list_meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
  const std::string status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
  components[list_meta] = PlainObject("What every list has.");
  components[status] = PlainObject("How a request ended.");
  components[list] = {
      {"type", "object"},
      {"description", fmt::format("A list of {} objects.", kind.kind)},
      {"required", {"items"}},
      {"properties",
       {{"apiVersion", {{"type", "string"}}},
        {"kind", {{"type", "string"}}},
        {"metadata", {{"$ref", kRefPrefix + list_meta}}},
        {"items", {{"type", "array"}, {"items", {{"$ref", kRefPrefix + kind.schema->name}}}}}}},
      {"x-kubernetes-group-version-kind",
       Json::array(
           {{{"group", kind.group}, {"version", kind.version}, {"kind", kind.list_kind}}})}};
  const auto reference = [](const std::string& name) { return Json{{"$ref", kRefPrefix + name}}; };
  PathWriter(kind, reference(kind.schema->name), reference(list), reference(status)).Write(paths);
}

}  // namespace

Json OpenApiOf(const KindTable& kinds, std::string_view group, std::string_view version) {
  Components components;
  Json paths = Json::object();
  for (const auto& kind : kinds.kinds()) {
    if (kind->served && kind->group == group && kind->version == version) {
      AddKind(*kind, components, paths);
    }
  }
  return {{"openapi", "3.0.0"},
          {"info", {{"title", "Tahoma"}, {"version", "v1.36.0"}}},
          {"paths", std::move(paths)},
          {"components", {{"schemas", components.Finish()}}}};
}

const OpenApiCache::Documents& OpenApiCache::Fresh(const KindTable& kinds) {
  if (built_ && generation_ == kinds.generation()) return documents_;
  documents_.clear();
  for (const auto& kind : kinds.kinds()) {
    const std::string path = DocumentPath(*kind);
    if (!kind->served || documents_.contains(path)) continue;
    auto document = std::make_shared<OpenApiDocument>();
    document->body = OpenApiOf(kinds, kind->group, kind->version).dump();
    document->hash = HashOf(document->body);
    documents_[path] = std::move(document);
  }
  generation_ = kinds.generation();
  built_ = true;
  return documents_;
}

std::string OpenApiCache::Index(const KindTable& kinds) {
  const MutexLock lock(mutex_);
  Json paths = Json::object();
  for (const auto& [path, document] : Fresh(kinds)) {
    paths[path] = {
        {"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, document->hash)}};
  }
  return Json{{"paths", std::move(paths)}}.dump();
}

std::shared_ptr<const OpenApiDocument> OpenApiCache::Document(const KindTable& kinds,
                                                              std::string_view path) {
  const MutexLock lock(mutex_);
  const Documents& documents = Fresh(kinds);
  const auto it = documents.find(path);
  return it == documents.end() ? nullptr : it->second;
}

}  // namespace tahoma::controller::apiserver
