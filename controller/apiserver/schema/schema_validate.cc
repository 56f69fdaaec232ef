// Texts as in k8s.io/apiextensions-apiserver's validation of custom resources, which go through
// go-openapi: "<path> in body should be greater than or equal to 1".

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/field_path.h"
#include "controller/apiserver/schema/schema.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"

namespace tahoma::controller::apiserver {
namespace {

using Type = Schema::Type;

// RE2 looks, at worst, at every instruction of a pattern for every byte of the text, some
// nanoseconds each: together about two seconds.
constexpr std::size_t kMatchWorkMax = 400'000'000;
constexpr std::size_t kMatchWorkOfStep = 64;

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kObject:
      return "object";
    case Type::kArray:
      return "array";
    case Type::kString:
      return "string";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kBoolean:
      return "boolean";
    case Type::kAny:
    case Type::kIntOrString:
    case Type::kQuantity:
      break;
  }
  return "integer,string";
}

std::string_view JsonTypeName(const Json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  return value.is_number_integer() ? "integer" : "number";
}

// 3.0 is an integer, as in JSON schema.
bool IsInteger(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::floor(value.get<double>()) == value.get<double>();
}

bool Fits(const Schema& schema, const Json& value) {
  if (value.is_null() && schema.nullable) return true;
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
      return IsInteger(value);
    case Type::kNumber:
      return value.is_number();
    case Type::kBoolean:
      return value.is_boolean();
    case Type::kIntOrString:
      return IsInteger(value) || value.is_string();
    case Type::kQuantity:
      return value.is_number() || value.is_string();
  }
  return false;
}

class Validator {
 public:
  explicit Validator(const Parts& parts) : parts_(parts) {}
  std::vector<Cause> DrainCauses() { return std::move(causes_); }

  void Check(const Schema& schema, const Json& value, const FieldPath& path, int depth) {
    if (causes_.size() >= kMaxCauses) return;
    ProcessorBudget::Spend();
    if (depth > kMaxDepth) return Add(Invalid(path.Text(), nullptr, "nested too deeply"));
    if (!Fits(schema, value)) return AddTypeError(schema, value, path);
    if (value.is_null()) return;
    CheckEnum(schema, value, path);
    if (value.is_string()) CheckString(schema, value, path);
    if (value.is_number()) CheckNumber(schema, value, path);
    if (value.is_array() && schema.type == Type::kArray) CheckArray(schema, value, path, depth);
    if (value.is_object()) CheckObject(schema, value, path, depth);
  }

 private:
  void Add(Cause cause) {
    if (causes_.size() < kMaxCauses) causes_.push_back(std::move(cause));
  }

  void AddInBody(const FieldPath& path, const Json& value, std::string_view rest) {
    const std::string text = path.Text();
    Add(Invalid(text, value, fmt::format("{} in body {}", text, rest)));
  }

  void AddTypeError(const Schema& schema, const Json& value, const FieldPath& path) {
    const std::string_view found = JsonTypeName(value);
    const std::string detail = fmt::format("{} in body must be of type {}: \"{}\"", path.Text(),
                                           TypeName(schema.type), found);
    Add({"FieldValueTypeInvalid", fmt::format("Invalid value: \"{}\": {}", found, detail),
         path.Text()});
  }

  void CheckEnum(const Schema& schema, const Json& value, const FieldPath& path) {
    const auto& allowed = schema.enumeration;
    ProcessorBudget::Spend(allowed.size() / ProcessorBudget::kComparisonsOfStep);
    if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end())
      return;
    std::vector<std::string> texts;
    for (const Json& one : allowed) {
      texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    }
    Add(NotSupported(path.Text(), value, texts));
  }

  void CheckString(const Schema& schema, const Json& value, const FieldPath& path) {
    const auto& text = value.get_ref<const std::string&>();
    if (schema.max_length || schema.min_length) CheckLength(schema, value, path);
    // The only format of our CRDs; other formats are not checked.
    if (schema.format == "date-time" && !ParseTime(text).ok()) {
      const std::string printed = value.dump(-1, ' ', false, Json::error_handler_t::replace);
      Add({"FieldValueTypeInvalid",
           fmt::format("Invalid value: {}: {} in body must be of type date-time: {}", printed,
                       path.Text(), printed),
           path.Text()});
    }
    if (schema.compiled_pattern) CheckPattern(schema, value, path);
  }

  // A search cannot be interrupted: its cost is bounded before it begins.
  void CheckPattern(const Schema& schema, const Json& value, const FieldPath& path) {
    const auto& text = value.get_ref<const std::string&>();
    const auto program = static_cast<std::size_t>(schema.compiled_pattern->ProgramSize());
    if (text.size() > kMatchWorkMax / std::max<std::size_t>(program, 1)) {
      AddInBody(path, value,
                fmt::format("is too long to be matched with '{}': {} bytes; at most {} can be",
                            schema.pattern, text.size(), kMatchWorkMax / program));
      return;
    }
    ProcessorBudget::Spend(1 + program * text.size() / kMatchWorkOfStep);
    if (!RE2::PartialMatch(text, *schema.compiled_pattern)) {
      AddInBody(path, value, fmt::format("should match '{}'", schema.pattern));
    }
  }

  void CheckLength(const Schema& schema, const Json& value, const FieldPath& path) {
    const auto& text = value.get_ref<const std::string&>();
    // Lengths are in characters: bytes that do not continue a UTF-8 sequence.
    const auto length = std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    });
    if (schema.max_length && length > *schema.max_length) {
      Add(TooLong(path.Text(), static_cast<std::size_t>(*schema.max_length)));
    }
    if (schema.min_length && length < *schema.min_length) {
      AddInBody(path, value, fmt::format("should be at least {} chars long", *schema.min_length));
    }
  }

  void CheckNumber(const Schema& schema, const Json& value, const FieldPath& path) {
    const double number = value.get<double>();
    if (schema.minimum) {
      const bool below =
          schema.exclusive_minimum ? number <= *schema.minimum : number < *schema.minimum;
      const char* text = schema.exclusive_minimum ? "greater than" : "greater than or equal to";
      if (below) AddInBody(path, value, fmt::format("should be {} {}", text, *schema.minimum));
    }
    if (schema.maximum) {
      const bool above =
          schema.exclusive_maximum ? number >= *schema.maximum : number > *schema.maximum;
      const char* text = schema.exclusive_maximum ? "less than" : "less than or equal to";
      if (above) AddInBody(path, value, fmt::format("should be {} {}", text, *schema.maximum));
    }
    if (schema.multiple_of && std::fmod(number, *schema.multiple_of) != 0.0) {
      AddInBody(path, value, fmt::format("should be a multiple of {}", *schema.multiple_of));
    }
  }

  void CheckArray(const Schema& schema, const Json& value, const FieldPath& path, int depth) {
    const auto size = static_cast<std::int64_t>(value.size());
    if (schema.max_items && size > *schema.max_items) {
      Add(TooMany(path.Text(), value.size(), static_cast<std::size_t>(*schema.max_items)));
    }
    if (schema.min_items && size < *schema.min_items) {
      AddInBody(path, size, fmt::format("should have at least {} items", *schema.min_items));
    }
    if (schema.items) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        Check(*schema.items, value[i], FieldPath(path, i), depth + 1);
      }
    }
    if (size < 2) return;  // nothing is there twice
    if (schema.list_type == Schema::ListType::kMap) CheckKeys(schema, value, path);
    if (schema.list_type == Schema::ListType::kSet || schema.unique_items) {
      CheckUnique(value, path);
    }
  }

  void CheckKeys(const Schema& schema, const Json& value, const FieldPath& path) {
    std::set<Json> seen;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!value[i].is_object()) continue;
      Json key = Json::object();
      for (const std::string& name : schema.list_map_keys) {
        if (const auto it = value[i].find(name); it != value[i].end()) key[name] = *it;
      }
      if (seen.insert(key).second) continue;
      const std::string at = FieldPath(path, i).Text();
      // Kubernetes checks built-in lists with one key by hand, and names the key's field.
      const bool built_in = schema.items && schema.items->definition && key.size() == 1;
      if (built_in) {
        Add(Duplicate(fmt::format("{}.{}", at, key.begin().key()), key.begin().value()));
      } else {
        Add(Duplicate(at, key));
      }
    }
  }

  void CheckUnique(const Json& value, const FieldPath& path) {
    std::set<Json> seen;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!seen.insert(value[i]).second) Add(Duplicate(FieldPath(path, i).Text(), value[i]));
    }
  }

  void CheckObject(const Schema& schema, const Json& value, const FieldPath& path, int depth) {
    const auto size = static_cast<std::int64_t>(value.size());
    if (schema.max_properties && size > *schema.max_properties) {
      Add(TooMany(path.Text(), value.size(), static_cast<std::size_t>(*schema.max_properties)));
    }
    if (schema.min_properties && size < *schema.min_properties) {
      AddInBody(path, size,
                fmt::format("should have at least {} properties", *schema.min_properties));
    }
    ProcessorBudget::Spend(schema.required.size() / ProcessorBudget::kComparisonsOfStep);
    for (const std::string& name : schema.required) {
      if (!value.contains(name)) Add(Required(FieldPath(path, name).Text()));
    }
    for (const auto& [name, member] : MembersOf(value)) {
      if (depth == 0 && !Has(parts_, name)) continue;
      if (const Schema* field = schema.Field(name)) {
        Check(*field, member, FieldPath(path, name), depth + 1);
      }
    }
  }

  const Parts& parts_;
  std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> ValidateSchema(const Schema& schema, const Json& object, std::string_view path,
                                  const Parts& parts) {
  Validator validator(parts);
  validator.Check(schema, object, FieldPath(path), 0);
  return validator.DrainCauses();
}

}  // namespace tahoma::controller::apiserver
