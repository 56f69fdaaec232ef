// Finds wrong types in the bodies of built-in kinds, and reports them in the words of Go's JSON
// decoder.

#include <algorithm>

#include "controller/apiserver/schema/field_path.h"
#include "controller/apiserver/schema/schema.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/quantity.h"

namespace tahoma::controller::apiserver {
namespace {

using Type = Schema::Type;

// "v1.PodSpec" for io.k8s.api.core.v1.PodSpec, "PodSpec" when `with_package` is false.
std::string GoName(std::string_view name, bool with_package) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::string(name);
  if (!with_package) return std::string(name.substr(dot + 1));
  const auto package = name.rfind('.', dot - 1);
  return std::string(name.substr(package + 1));
}

std::string GoType(const Schema& schema) {
  switch (schema.type) {
    case Type::kString:
    case Type::kQuantity:
    case Type::kIntOrString:
    case Type::kAny:
      return "string";
    case Type::kInteger:
      return schema.format.empty() ? "int64" : schema.format;
    case Type::kNumber:
      return "float64";
    case Type::kBoolean:
      return "bool";
    case Type::kArray:
      return "[]" + (schema.items ? GoType(*schema.items) : "string");
    case Type::kObject:
      break;
  }
  if (schema.additional) return "map[string]" + GoType(*schema.additional);
  return GoName(schema.name, true);
}

std::string Found(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "bool";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return "number";
}

bool FitsInteger(const Schema& schema, const Json& value) {
  if (!value.is_number_integer()) return false;
  const auto number = value.get<std::int64_t>();
  if (value.is_number_unsigned() && number < 0) return false;  // above what 64 bits hold
  if (schema.format != "int32") return true;
  return number >= INT32_MIN && number <= INT32_MAX;
}

// Returns why the type behind a quantity or a time refuses the value; empty when it does not.
std::string TextError(const Schema& schema, const Json& value) {
  if (schema.type == Type::kQuantity && (value.is_string() || value.is_number())) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (kube::Quantity::Parse(text).ok()) return "";
    return "quantities must match the regular expression "
           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
  if (schema.format != "date-time" || !value.is_string()) return "";
  const auto& text = value.get_ref<const std::string&>();
  if (ParseTime(text).ok()) return "";
  return fmt::format("parsing time {} as \"2006-01-02T15:04:05Z07:00\": cannot parse",
                     value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool Decodes(const Schema& schema, const Json& value) {
  if (value.is_null()) return true;  // Go leaves the zero value
  switch (schema.type) {
    case Type::kAny:
      return true;
    case Type::kObject:
      return value.is_object();
    case Type::kArray:
      return value.is_array();
    case Type::kString:
      return value.is_string();
    case Type::kInteger:
      return FitsInteger(schema, value);
    case Type::kNumber:
      return value.is_number();
    case Type::kBoolean:
      return value.is_boolean();
    case Type::kIntOrString:
    case Type::kQuantity:
      return value.is_number() || value.is_string();
  }
  return false;
}

// `owner` is the Go type that `value` is part of; `path` is as Go's decoder tells it: fields of
// maps and indexes are not named.
std::optional<std::string> DecodeAt(const Schema& schema, const Json& value, const Schema& owner,
                                    const FieldPath& path, int depth, const Parts& parts = {}) {
  ProcessorBudget::Spend();
  if (depth > kMaxDepth) return "json: exceeded max depth";
  if (!Decodes(schema, value)) {
    const std::string found = value.is_number() && schema.type == Type::kInteger
                                  ? fmt::format("number {}", value.dump())
                                  : Found(value);
    if (depth == 0) {
      return fmt::format("json: cannot unmarshal {} into Go value of type {}", found,
                         GoType(schema));
    }
    return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", found,
                       GoName(owner.name, false), path.Text(), GoType(schema));
  }
  if (std::string wrong = TextError(schema, value); !wrong.empty()) return wrong;
  if (value.is_array() && schema.items) {
    for (const Json& item : value) {
      if (auto error = DecodeAt(*schema.items, item, owner, path, depth + 1)) return error;
    }
  }
  if (!value.is_object()) return std::nullopt;
  const Schema& inner = schema.name.empty() ? owner : schema;
  for (const auto& [name, member] : MembersOf(value)) {
    const Schema* field = Has(parts, name) ? schema.Field(name) : nullptr;
    if (field == nullptr) continue;
    const FieldPath below = schema.additional ? path : FieldPath(path, name);
    if (auto error = DecodeAt(*field, member, inner, below, depth + 1)) return error;
  }
  return std::nullopt;
}

bool IsCleanAt(const Schema& schema, const Json& value, bool decodes, int depth,
               const Parts& parts = {}) {
  ProcessorBudget::Spend();
  if (depth > kMaxDepth) return false;
  if (decodes && (!Decodes(schema, value) || !TextError(schema, value).empty())) return false;
  if (schema.typed_by_message && !value.is_null()) return false;
  if (value.is_array() && schema.items) {
    for (const Json& item : value) {
      if (!IsCleanAt(*schema.items, item, decodes, depth + 1)) return false;
    }
  }
  if (!value.is_object() || schema.type == Type::kAny) return true;
  for (const auto& [name, member] : MembersOf(value)) {
    if (!Has(parts, name)) continue;
    const Schema* field = schema.Field(name);
    const bool clean =
        field == nullptr ? !IsUnknown(schema, name) : IsCleanAt(*field, member, decodes, depth + 1);
    if (!clean) return false;
  }
  return true;
}

}  // namespace

bool IsClean(const Schema& schema, const Json& object, bool decodes, const Parts& parts) {
  return IsCleanAt(schema, object, decodes, 0, parts);
}

std::optional<std::string> DecodeError(const Schema& schema, const Json& object,
                                       const Parts& parts) {
  return DecodeAt(schema, object, schema, FieldPath(), 0, parts);
}

}  // namespace tahoma::controller::apiserver
