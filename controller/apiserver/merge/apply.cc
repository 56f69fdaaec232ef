#include "controller/apiserver/merge/apply.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "controller/apiserver/merge/apply_fields.h"
#include "controller/apiserver/merge/field_text.h"
#include "controller/apiserver/schema/fields.h"
#include "controller/apiserver/schema/json_text.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";
// Further Update entries are folded into one (apimachinery capmanagers.go).
constexpr std::size_t kMaxUpdateManagers = 10;
constexpr char kAncient[] = "ancient-changes";

// The key of an entry of managedFields: manager, operation, version and subresource.
struct ManagerKey {
  bool is_update = false;
  std::string manager;
  std::string api_version;  // of Update entries; an applier is the same in every version
  std::string subresource;

  friend auto operator<=>(const ManagerKey&, const ManagerKey&) = default;
};

struct ManagerEntry {
  FieldSet fields;
  std::string api_version;
  std::string time;
};

using Managers = std::map<ManagerKey, ManagerEntry>;

// The key of an entry that stays in place.
struct ManagerView {
  bool is_update = false;
  std::string_view manager;
  std::string_view api_version;
  std::string_view subresource;

  friend auto operator<=>(const ManagerView&, const ManagerView&) = default;
};

ManagerView ViewOf(const Json& entry) {
  const bool is_update = kube::StringAt(entry, {"operation"}) != "Apply";
  return {is_update, kube::StringAt(entry, {"manager"}),
          is_update ? kube::StringAt(entry, {"apiVersion"}) : std::string_view(),
          kube::StringAt(entry, {"subresource"})};
}

ManagerKey KeyOf(const Json& entry) {
  const ManagerView view = ViewOf(entry);
  return {view.is_update, std::string(view.manager), std::string(view.api_version),
          std::string(view.subresource)};
}

Managers Decode(const Json& list) {
  Managers managers;
  if (!list.is_array()) return managers;
  for (const Json& one : list) {
    ManagerEntry entry{.fields = FieldsIn(ValueAt(one, {"fieldsV1"})),
                       .api_version = TextAt(one, "apiVersion"),
                       .time = TextAt(one, "time")};
    if (!entry.fields.empty()) managers[KeyOf(one)] = std::move(entry);
  }
  return managers;
}

// Apply before Update, then by time (sortEncodedManagedFields).
void SortManagers(Json& list) {
  using Order = std::tuple<bool, std::string_view, ManagerView>;
  std::vector<std::pair<Order, std::size_t>> order;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ManagerView view = ViewOf(list[i]);
    order.emplace_back(Order(view.is_update, kube::StringAt(list[i], {"time"}), view), i);
  }
  if (std::is_sorted(order.begin(), order.end())) return;
  std::sort(order.begin(), order.end());
  Json sorted = Json::array();
  for (const auto& [key, at] : order) sorted.push_back(list[at]);
  list = std::move(sorted);
}

// Returns a manager in its stored form.
Json EntryOf(const ManagerKey& key, Json fields, const std::string& api_version,
             const std::string& time) {
  Json one = Json::object();
  one["apiVersion"] = api_version;
  one["fieldsType"] = "FieldsV1";
  one["fieldsV1"] = std::move(fields);
  one["manager"] = key.manager;
  one["operation"] = key.is_update ? "Update" : "Apply";
  if (!key.subresource.empty()) one["subresource"] = key.subresource;
  if (!time.empty()) one["time"] = time;
  return one;
}

// Adds the managers to a list in its stored form and order.
void EncodeInto(const Managers& managers, Json& list) {
  for (const auto& [key, entry] : managers) {
    if (entry.fields.empty()) continue;
    list.push_back(EntryOf(key, FieldText(entry.fields), entry.api_version, entry.time));
  }
  SortManagers(list);
}

Json Encode(const Managers& managers) {
  Json list = Json::array();
  EncodeInto(managers, list);
  return list;
}

FieldSet MetadataFields(std::initializer_list<const char*> names) {
  FieldSet set;
  for (const char* name : names) {
    set.children["f:metadata"].children[std::string("f:") + name].member = true;
  }
  return set;
}

// The fields that a comparison ignores: the server's own counters, and the list of owners itself.
const FieldSet& Uncompared() {
  static const auto* const fields =
      new FieldSet(MetadataFields({"managedFields", "resourceVersion", "generation"}));
  return *fields;
}

// Fields that nobody owns because the server owns them, and the other subresource's fields.
const FieldSet& Unowned(const Kind& kind, const std::string& subresource) {
  static const auto make = [](bool status) {
    FieldSet set = MetadataFields({"name", "namespace", "creationTimestamp", "selfLink", "uid",
                                   "generation", "managedFields", "resourceVersion"});
    set.children["f:metadata"].member = true;
    for (const char* type : {"f:apiVersion", "f:kind"}) set.children[type].member = true;
    if (status) set.children["f:status"].member = true;
    return new FieldSet(std::move(set));
  };
  static const FieldSet* const always = make(false);
  static const FieldSet* const and_status = make(true);
  return kind.has_status && subresource.empty() ? *and_status : *always;
}

// Removes the members of `fields` and everything below them.
void Strip(const FieldSet& fields, FieldSet& set) {
  set.member = set.member && !fields.member;
  for (const auto& [edge, below] : fields.children) {  // few, and known to us
    if (!set.children.contains(edge)) continue;
    if (below.member && edge != "f:metadata") {
      set.children.erase(edge);
      continue;
    }
    FieldSet& child = set.children[edge];
    Strip(below, child);
    if (child.empty()) set.children.erase(edge);
  }
}

// Returns an object without the fields that a comparison ignores.
Json Comparable(const Json& object) {
  Json copy = object.is_object() ? object : Json::object();
  if (copy.contains("metadata") && copy["metadata"].is_object()) {
    for (const char* name : {"managedFields", "resourceVersion", "generation"}) {
      copy["metadata"].erase(name);
    }
  }
  return copy;
}

// A new object of a built-in kind starts as Go's empty struct: its parts exist already and are not
// "added".
Json EmptyObject(const Kind& kind) {
  Json empty = {{"metadata", Json::object()}};
  if (!kind.built_in) return empty;
  for (const char* part : {"spec", "status"}) {
    const Schema* schema = kind.schema->Field(part);
    if (schema == nullptr) continue;
    empty[part] = Json::object();
    for (const std::string& name : schema->required) {
      if (schema->Field(name)->type == Schema::Type::kArray) empty[part][name] = Json::array();
    }
  }
  return empty;
}

struct Conflict {
  ManagerKey manager;
  FieldSet fields;
};

// Takes written and removed fields away from every manager but `self`.
std::vector<Conflict> RemoveFromOthers(const FieldSet& written, const FieldSet& removed,
                                       const ManagerKey* self, Managers& managers) {
  std::vector<Conflict> conflicts;
  for (auto& [key, entry] : managers) {
    if (self != nullptr && key == *self) continue;
    FieldSet lost = entry.fields.Intersection(written);
    entry.fields.Remove(lost);
    entry.fields.Remove(removed);
    if (!lost.empty()) conflicts.push_back({key, std::move(lost)});
  }
  return conflicts;
}

std::string Printed(const ManagerKey& key) {
  std::string text = kube::JsonText(key.manager);
  if (!key.subresource.empty()) {
    text += fmt::format(" with subresource {}", kube::JsonText(key.subresource));
  }
  if (key.is_update) text += fmt::format(" using {}", key.api_version);
  return text;
}

std::vector<Cause> CausesOf(const std::vector<Conflict>& conflicts) {
  std::vector<Cause> causes;
  for (const Conflict& conflict : conflicts) {
    for (const std::string& path : conflict.fields.Paths()) {
      if (causes.size() >= kMaxCauses) return causes;
      causes.push_back({"FieldManagerConflict",
                        fmt::format("conflict with {}", Printed(conflict.manager)), path});
    }
  }
  return causes;
}

// Returns the fields that kubectl's client-side apply set last and that nobody changed since:
// kubectl may take them over without a conflict when it moves to server-side apply.
FieldSet LastAppliedFields(const Kind& kind, const Json& live) {
  const std::string text = TextAt(live, {"metadata", "annotations", kLastApplied});
  const absl::StatusOr<JsonRead> read = ReadJson(text);
  if (!read.ok() || !read->value->is_object()) return {};
  const Json& last = *read->value;
  return FieldsOf(*kind.schema, last)
      .Difference(Compare(*kind.schema, last, Comparable(live)).modified);
}

absl::Status CheckKeys(const Schema& schema, const Json& value, const std::string& path,
                       int depth) {
  ProcessorBudget::Spend();
  if (depth > kMaxDepth) return InvalidArgument("nested deeper than {}", kMaxDepth);
  if (value.is_object()) {
    for (const auto& [name, child] : value.items()) {
      if (const Schema* field = schema.Field(name)) {
        TAHOMA_RETURN_IF_ERROR(
            CheckKeys(*field, child, fmt::format("{}.{}", path, name), depth + 1));
      }
    }
    return absl::OkStatus();
  }
  if (!value.is_array() || !schema.items) return absl::OkStatus();
  std::map<std::string, int> seen;
  for (const Json& item : value) {
    TAHOMA_RETURN_IF_ERROR(CheckKeys(*schema.items, item, fmt::format("{}[]", path), depth + 1));
    if (schema.list_type == Schema::ListType::kAtomic) continue;
    const bool keyed = schema.list_type == Schema::ListType::kMap;
    const std::string edge = ItemEdge(schema, item);
    if (keyed && edge == "k:{}") {
      return InvalidArgument(
          "{}: element 0: associative list with keys has an element that omits "
          "key field \"{}\"",
          path, schema.list_map_keys.front());
    }
    if (++seen[edge] > 1)
      return InvalidArgument("{}: duplicate entries for key {}", path, edge.substr(2));
  }
  return absl::OkStatus();
}

// Returns the part of the configuration that this request may set, without meaningless nulls.
Json Configuration(const Kind& kind, const Json& applied, const ApplyOptions& options) {
  Json config = applied;
  if (config.contains("metadata") && config["metadata"].is_object()) {
    for (const char* name : {"creationTimestamp", "resourceVersion", "uid", "generation",
                             "selfLink", "managedFields"}) {
      config["metadata"].erase(name);
    }
  }
  if (options.subresource.empty() && kind.has_status) config.erase("status");
  if (options.subresource == "status") {
    Json only = {{"apiVersion", kind.api_version()}, {"kind", kind.kind}};
    if (config.contains("metadata")) only["metadata"]["name"] = TextAt(config["metadata"], "name");
    if (config.contains("status")) only["status"] = config["status"];
    config = std::move(only);
  }
  return config;
}

void FoldOldUpdates(const Kind& kind, Managers& managers) {
  std::vector<std::pair<std::string, ManagerKey>> updates;
  for (const auto& [key, entry] : managers) {
    if (key.is_update) updates.emplace_back(entry.time, key);
  }
  if (updates.size() <= kMaxUpdateManagers) return;
  std::sort(updates.begin(), updates.end());
  ManagerEntry ancient{.fields = {}, .api_version = kind.api_version(), .time = {}};
  for (std::size_t i = 0; i + kMaxUpdateManagers <= updates.size(); ++i) {
    auto node = managers.extract(updates[i].second);
    ancient.fields.Add(node.mapped().fields);
    ancient.time = std::max(ancient.time, node.mapped().time);
  }
  managers[{true, kAncient, kind.api_version(), {}}] = std::move(ancient);
}

// Returns the owners that an update starts from. The request may replace the list, or reset it by
// `[]` or `[{}]`; a request without a list keeps the live object's. Takes the list out of
// `new_object`.
Json OwnersForUpdate(const Json& old_object, Json& new_object, const ApplyOptions& options) {
  const Json& of_old = ValueAt(old_object, {"metadata", "managedFields"});
  CompactFields(new_object);
  Json of_new = std::move(new_object["metadata"]["managedFields"]);
  if (of_new.is_array() && of_new == of_old) return of_new;
  if (of_new.is_array() && options.subresource.empty()) {
    if (of_new.empty() || (of_new.size() == 1 && of_new[0].empty())) return Json::array();
    Json given = Encode(Decode(of_new));
    if (!given.empty()) return given;
  }
  if (!of_old.is_array()) return Json::array();
  return of_old;
}

// Makes the writer of a new object the owner of all of it; false when only sets can say of which
// fields.
bool TrackCreate(const Kind& kind, const ManagerKey& self, const std::string& time, Json& object) {
  Json fields = AddedText(*kind.schema, EmptyObject(kind), object, Unowned(kind, self.subresource));
  if (!fields.is_binary()) return false;
  object["metadata"]["managedFields"] =
      Json::array({EntryOf(self, std::move(fields), kind.api_version(), time)});
  return true;
}

// Removes fields that this manager applied before and nobody wants now.
Json PruneUnwanted(const Kind& kind, const Json& merged, const FieldSet& last,
                   const Managers& managers) {
  FieldSet wanted;
  for (const auto& [key, entry] : managers) wanted.Add(entry.fields);
  return WithoutFields(*kind.schema, merged,
                       last.WithNamedParents().Difference(wanted.WithNamedParents()));
}

}  // namespace

absl::StatusOr<ApplyOutcome> Apply(const Kind& kind, const Json& live, const Json& applied,
                                   const ApplyOptions& options) {
  if (ValueAt(applied, {"metadata", "managedFields"}).is_array()) {
    return InvalidArgument("metadata.managedFields must be nil");
  }
  TAHOMA_RETURN_IF_ERROR(CheckKeys(*kind.schema, applied, "", 0));
  const Json config = Configuration(kind, applied, options);
  const Json base = Comparable(live);
  Managers managers = Decode(ValueAt(live, {"metadata", "managedFields"}));
  if (live.is_object() && managers.empty()) {
    managers[{true, "before-first-apply", kind.api_version(), {}}] = {
        FieldsOf(*kind.schema, base), kind.api_version(), options.time};
    Strip(Unowned(kind, {}), managers.begin()->second.fields);
  }
  const ManagerKey self{false, options.field_manager, {}, options.subresource};
  const FieldSet last = managers.contains(self) ? managers[self].fields : FieldSet();
  const std::string last_time = managers.contains(self) ? managers[self].time : "";
  managers[self] = {FieldsOf(*kind.schema, config), kind.api_version(), options.time};
  Json object = PruneUnwanted(kind, MergeFields(*kind.schema, base, config), last, managers);
  Comparison changed = Compare(*kind.schema, base, object);
  changed.modified.Add(changed.added);
  const auto conflicts = RemoveFromOthers(changed.modified, changed.removed, &self, managers);
  if (!conflicts.empty() && !options.force) {
    std::vector<Conflict> left = conflicts;
    if (options.field_manager == "kubectl") {
      const FieldSet allowed = LastAppliedFields(kind, live);
      for (Conflict& one : left) one.fields = one.fields.Difference(allowed);
      std::erase_if(left, [](const Conflict& one) { return one.fields.empty(); });
    }
    if (!left.empty()) return ApplyOutcome{std::make_shared<Json>(live), CausesOf(left)};
  }
  ManagerEntry& mine = managers[self];
  Strip(Unowned(kind, options.subresource), mine.fields);
  if (live.is_object() && object == base && mine.fields == last) {
    return ApplyOutcome{std::make_shared<Json>(live), {}};
  }
  if (object == base && mine.fields == last) mine.time = last_time;
  for (const char* name : {"resourceVersion", "generation"}) {
    if (const Json& value = ValueAt(live, {"metadata", name}); !value.is_null()) {
      object["metadata"][name] = value;
    }
  }
  object["metadata"].erase("managedFields");
  if (Json owners = Encode(managers); !owners.empty()) {
    object["metadata"]["managedFields"] = std::move(owners);
  }
  return ApplyOutcome{std::make_shared<Json>(std::move(object)), {}};
}

std::string ConflictMessage(const std::vector<Cause>& conflicts) {
  if (conflicts.size() == 1) {
    return fmt::format("Apply failed with 1 conflict: {}: {}", conflicts[0].message,
                       conflicts[0].field);
  }
  std::map<std::string, std::string> by_manager;
  for (const Cause& conflict : conflicts) {
    by_manager[conflict.message] += fmt::format("\n- {}", conflict.field);
  }
  std::string text;
  for (const auto& [message, fields] : by_manager) {
    // "conflict with …" in a cause is "conflicts with …:" at the head of a list.
    text += fmt::format("{}conflicts{}:{}", text.empty() ? "" : "\n",
                        message.substr(std::string_view("conflict").size()), fields);
  }
  return fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), text);
}

void TrackUpdate(const Kind& kind, const Json& old_object, Json& new_object,
                 const ApplyOptions& options) {
  Json list = OwnersForUpdate(old_object, new_object, options);
  const ManagerKey self{true, options.field_manager, kind.api_version(), options.subresource};
  const bool is_new = !old_object.is_object();
  if (is_new && list.empty() && TrackCreate(kind, self, options.time, new_object)) return;
  Comparison changed =
      Compare(*kind.schema, is_new ? EmptyObject(kind) : old_object, new_object, Uncompared());
  // Metadata that every write may change belongs to its writer; status only where the write
  // includes it.
  FieldSet written = std::move(changed.added);
  written.Add(changed.modified);
  // Most entries stay unchanged; only the writer's entry and entries that lose fields are decoded.
  const ManagerView writer{true, self.manager, self.api_version, self.subresource};
  Json touched = Json::array();
  for (auto at = list.begin(); at != list.end();) {
    const Json& fields = ValueAt(*at, {"fieldsV1"});
    const bool stays = list.size() + touched.size() < kMaxUpdateManagers &&
                       !HasAnyOf(fields, written) && !HasAnyOf(fields, changed.removed) &&
                       ViewOf(*at) != writer;
    if (!stays) touched.push_back(std::move(*at));
    at = stays ? std::next(at) : list.erase(at);
  }
  Managers managers = Decode(touched);
  RemoveFromOthers(written, changed.removed, nullptr, managers);
  Strip(Unowned(kind, options.subresource), written);
  if (!written.empty()) {
    ManagerEntry& entry = managers[self];
    entry.fields.Add(written);
    entry.api_version = kind.api_version();
    entry.time = options.time;
  }
  FoldOldUpdates(kind, managers);
  EncodeInto(managers, list);
  if (list.empty()) {
    new_object["metadata"].erase("managedFields");
  } else {
    new_object["metadata"]["managedFields"] = std::move(list);
  }
}

}  // namespace tahoma::controller::apiserver
