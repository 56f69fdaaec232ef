#include "lib/wire/fields.h"

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

constexpr int kMaxDepth = 32;

const Json& EmptyArray() {
  static const Json empty = Json::array();
  return empty;
}

const Json& EmptyObject() {
  static const Json empty = Json::object();
  return empty;
}

}  // namespace

absl::StatusOr<Json> ReadJson(std::string_view text, std::string_view where) {
  bool too_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  Json parsed = Json::parse(text, watch_depth, /*allow_exceptions=*/false);
  if (too_deep) {
    return InvalidArgument("{} is nested deeper than {} levels", where, kMaxDepth);
  }
  if (parsed.is_discarded()) return InvalidArgument("{} is not valid JSON", where);
  return parsed;
}

Fields::Fields(const Json& object, std::string where)
    : object_(object.is_object() ? object : EmptyObject()), where_(std::move(where)) {
  if (!object.is_object()) {
    Fail(InvalidArgument("{} is of type {}; expected an object", where_, object.type_name()));
  }
}

std::string Fields::Path(std::string_view key) const { return fmt::format("{}.{}", where_, key); }

void Fields::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

const Json* Fields::Find(std::string_view key, bool required) {
  asked_.emplace(key);
  const auto found = object_.find(key);
  if (found != object_.end() && !found->is_null()) return &*found;
  if (required) Fail(InvalidArgument("{} is missing", Path(key)));
  return nullptr;
}

std::string Fields::String(std::string_view key, std::size_t min_bytes, std::size_t max_bytes) {
  const Json* value = Find(key, /*required=*/true);
  if (value == nullptr) return "";
  if (!value->is_string()) {
    Fail(InvalidArgument("{} is of type {}; expected a string", Path(key), value->type_name()));
    return "";
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() < min_bytes || text.size() > max_bytes) {
    Fail(InvalidArgument("{} has {} bytes; expected {} to {}", Path(key), text.size(), min_bytes,
                         max_bytes));
    return "";
  }
  return text;
}

std::int64_t Fields::Int(std::string_view key, std::int64_t min, std::int64_t max) {
  const Json* value = Find(key, /*required=*/true);
  if (value == nullptr) return min;
  if (!value->is_number_integer()) {
    Fail(InvalidArgument("{} is {}; expected a whole number from {} to {}", Path(key),
                         value->is_number() ? value->dump() : value->type_name(), min, max));
    return min;
  }
  const bool too_large = value->is_number_unsigned() &&
                         value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (too_large || value->get<std::int64_t>() < min || value->get<std::int64_t>() > max) {
    Fail(InvalidArgument("{} is {}; expected {} to {}", Path(key), value->dump(), min, max));
    return min;
  }
  return value->get<std::int64_t>();
}

bool Fields::Bool(std::string_view key) {
  const Json* value = Find(key, /*required=*/true);
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    Fail(
        InvalidArgument("{} is of type {}; expected true or false", Path(key), value->type_name()));
    return false;
  }
  return value->get<bool>();
}

std::string Fields::StringOr(std::string_view key, std::size_t max_bytes, std::string fallback) {
  return Find(key, /*required=*/false) == nullptr ? std::move(fallback) : String(key, 0, max_bytes);
}

std::int64_t Fields::IntOr(std::string_view key, std::int64_t min, std::int64_t max,
                           std::int64_t fallback) {
  return Find(key, /*required=*/false) == nullptr ? fallback : Int(key, min, max);
}

bool Fields::BoolOr(std::string_view key, bool fallback) {
  return Find(key, /*required=*/false) == nullptr ? fallback : Bool(key);
}

const Json& Fields::Array(std::string_view key, std::size_t max) {
  const Json* value = Find(key, /*required=*/false);
  if (value == nullptr) return EmptyArray();
  if (!value->is_array()) {
    Fail(InvalidArgument("{} is of type {}; expected an array", Path(key), value->type_name()));
    return EmptyArray();
  }
  if (value->size() > max) {
    Fail(InvalidArgument("{} has {} elements; expected at most {}", Path(key), value->size(), max));
    return EmptyArray();
  }
  return *value;
}

const Json* Fields::Object(std::string_view key) {
  const Json* value = Find(key, /*required=*/false);
  if (value != nullptr && !value->is_object()) {
    Fail(InvalidArgument("{} is of type {}; expected an object", Path(key), value->type_name()));
    return nullptr;
  }
  return value;
}

void Fields::OnlyKnown() {
  for (const auto& [key, value] : object_.items()) {
    if (!asked_.contains(key)) {
      Fail(InvalidArgument("{} is unknown", Path(key.substr(0, 64))));
      return;
    }
  }
}

}  // namespace tahoma::wire
