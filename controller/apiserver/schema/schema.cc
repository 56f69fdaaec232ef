#include "controller/apiserver/schema/schema.h"

#include <re2/re2.h>

#include <algorithm>

#include "controller/apiserver/schema/field_path.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"

namespace tahoma::controller::apiserver {
namespace {

bool IsObjectMeta(std::string_view field) {
  return field == "apiVersion" || field == "kind" || field == "metadata";
}

void PruneAt(const Schema& schema, Json& value, const FieldPath& path, int depth,
             std::vector<std::string>& unknown, const Parts& parts = {});

void PruneObject(const Schema& schema, Json& object, const FieldPath& path, int depth,
                 std::vector<std::string>& unknown, const Parts& parts) {
  OwnMembers(object);
  for (auto it = object.begin(); it != object.end();) {
    const FieldPath child(path, it.key());
    if (!Has(parts, it.key())) {
      ++it;
      continue;
    }
    const Schema* field = schema.Field(it.key());
    if (field == nullptr && IsUnknown(schema, it.key())) {
      if (unknown.size() < kMaxCauses) unknown.push_back(child.Text());
      it = object.erase(it);
      continue;
    }
    if (field != nullptr) PruneAt(*field, it.value(), child, depth + 1, unknown);
    ++it;
  }
}

void PruneAt(const Schema& schema, Json& value, const FieldPath& path, int depth,
             std::vector<std::string>& unknown, const Parts& parts) {
  ProcessorBudget::Spend();
  if (depth > kMaxDepth || schema.type == Schema::Type::kAny) return;
  if (value.is_object()) return PruneObject(schema, value, path, depth, unknown, parts);
  if (!value.is_array() || !schema.items) return;
  for (std::size_t i = 0; i < value.size(); ++i) {
    PruneAt(*schema.items, value[i], FieldPath(path, i), depth + 1, unknown);
  }
}

// A null where the schema wants a value stands for the default, or for nothing.
bool IsDropped(const Schema& schema, const std::string& name, const Json& value) {
  if (!value.is_null()) return false;
  const Schema* field = schema.Field(name);
  return field != nullptr && !field->nullable && field->type != Schema::Type::kAny;
}

// Whether DefaultAt would change the value.
bool LacksDefault(const Schema& schema, const Json& value, int depth, const Parts& parts = {}) {
  ProcessorBudget::Spend(1 + schema.defaulted.size() / ProcessorBudget::kComparisonsOfStep);
  if (depth > kMaxDepth) return false;
  if (value.is_array() && schema.items) {
    for (const Json& item : value) {
      if (LacksDefault(*schema.items, item, depth + 1)) return true;
    }
    return false;
  }
  if (!value.is_object()) return false;
  for (const std::string& name : schema.defaulted) {
    if (!value.contains(name)) return true;
  }
  for (const auto& [name, member] : MembersOf(value)) {
    if (IsDropped(schema, name, member)) return true;
    if (!member.is_structured() || !Has(parts, name)) continue;
    const Schema* field = schema.Field(name);
    if (field != nullptr && LacksDefault(*field, member, depth + 1)) return true;
  }
  return false;
}

void DefaultAt(const Schema& schema, Json& value, int depth, const Parts& parts = {}) {
  ProcessorBudget::Spend(1 + schema.defaulted.size());
  if (depth > kMaxDepth) return;
  if (value.is_array() && schema.items) {
    for (Json& item : value) DefaultAt(*schema.items, item, depth + 1);
    return;
  }
  if (!value.is_object()) return;
  if (SharesMembers(value) && !LacksDefault(schema, value, depth, parts)) return;
  OwnMembers(value);
  for (auto it = value.begin(); it != value.end();) {
    it = IsDropped(schema, it.key(), *it) ? value.erase(it) : std::next(it);
  }
  for (const std::string& name : schema.defaulted) {
    if (!value.contains(name)) value[name] = *schema.Field(name)->default_value;
  }
  for (auto& [name, member] : value.get_ref<Json::object_t&>()) {
    if (!member.is_structured() || !Has(parts, name)) continue;
    const Schema* field = schema.Field(name);
    if (field != nullptr) DefaultAt(*field, member, depth + 1);
  }
}

}  // namespace

Schema::Schema() = default;
Schema::Schema(const Schema&) = default;
Schema::~Schema() = default;

bool Schema::Add(const std::string& property, SchemaPtr schema) {
  if (properties.contains(property)) return false;
  if (schema->default_value != nullptr) defaulted.push_back(property);
  properties[property] = std::move(schema);
  return true;
}

void Schema::Replace(const std::string& property, SchemaPtr schema) {
  properties.erase(property);
  std::erase(defaulted, property);
  Add(property, std::move(schema));
}

const Schema* Schema::Field(std::string_view field) const {
  const auto it = properties.find(field);
  if (it != properties.end()) return it->second.get();
  return additional.get();
}

bool IsUnknown(const Schema& schema, std::string_view field) {
  return schema.Field(field) == nullptr && !schema.preserve_unknown &&
         !(schema.embedded_resource && IsObjectMeta(field));
}

bool Schema::Requires(std::string_view field) const {
  return std::find(required.begin(), required.end(), field) != required.end();
}

std::vector<std::string> Prune(const Schema& schema, Json& object, const Parts& parts) {
  std::vector<std::string> unknown;
  PruneAt(schema, object, FieldPath(), 0, unknown, parts);
  return unknown;
}

void ApplyDefaults(const Schema& schema, Json& object, const Parts& parts) {
  DefaultAt(schema, object, 0, parts);
}

}  // namespace tahoma::controller::apiserver
