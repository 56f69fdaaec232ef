#include "controller/apiserver/schema.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/apiserver/field_path.h"

namespace tahoma::controller {
namespace {

using Json = nlohmann::json;

bool IsObjectMeta(std::string_view field) {
  return field == "apiVersion" || field == "kind" || field == "metadata";
}

void PruneAt(const Schema& schema, Json& value, const FieldPath& path, int depth,
             std::vector<std::string>& unknown, const Parts& parts = {});

void PruneObject(const Schema& schema, Json& object, const FieldPath& path, int depth,
                 std::vector<std::string>& unknown, const Parts& parts) {
  for (auto it = object.begin(); it != object.end();) {
    const FieldPath child(path, it.key());
    const Schema* field = schema.Field(it.key());
    const bool stays = !Has(parts, it.key()) || field != nullptr || schema.preserve_unknown ||
                       (schema.embedded_resource && IsObjectMeta(it.key()));
    if (!stays) {
      unknown.push_back(child.Text());
      it = object.erase(it);
      continue;
    }
    if (field != nullptr && Has(parts, it.key())) {
      PruneAt(*field, it.value(), child, depth + 1, unknown);
    }
    ++it;
  }
}

void PruneAt(const Schema& schema, Json& value, const FieldPath& path, int depth,
             std::vector<std::string>& unknown, const Parts& parts) {
  if (depth > kMaxDepth || schema.type == Schema::Type::kAny) return;
  if (value.is_object()) return PruneObject(schema, value, path, depth, unknown, parts);
  if (!value.is_array() || !schema.items) return;
  for (std::size_t i = 0; i < value.size(); ++i) {
    PruneAt(*schema.items, value[i], FieldPath(path, i), depth + 1, unknown);
  }
}

void DefaultAt(const Schema& schema, Json& value, int depth, const Parts& parts = {}) {
  if (depth > kMaxDepth) return;
  if (value.is_array() && schema.items) {
    for (Json& item : value) DefaultAt(*schema.items, item, depth + 1);
    return;
  }
  if (!value.is_object()) return;
  for (auto it = value.begin(); it != value.end();) {
    const Schema* field = it->is_null() ? schema.Field(it.key()) : nullptr;
    const bool drop = field != nullptr && !field->nullable && field->type != Schema::Type::kAny;
    it = drop ? value.erase(it) : std::next(it);
  }
  for (const auto& [name, field] : schema.properties) {
    if (field->default_value && !value.contains(name)) value[name] = *field->default_value;
  }
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (!it->is_structured() || !Has(parts, it.key())) continue;
    const Schema* field = schema.Field(it.key());
    if (field != nullptr) DefaultAt(*field, *it, depth + 1);
  }
}

}  // namespace

Schema::Schema() = default;
Schema::Schema(const Schema&) = default;
Schema::~Schema() = default;

const Schema* Schema::Field(std::string_view field) const {
  const auto it = properties.find(field);
  if (it != properties.end()) return it->second.get();
  return additional.get();
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

}  // namespace tahoma::controller
