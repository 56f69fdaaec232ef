#include "controller/apiserver/schema/causes.h"

#include <fmt/format.h>

#include <set>

#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

// A value as Kubernetes prints it in an error: strings quoted, the rest as JSON.
std::string Printed(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string WithDetail(std::string text, std::string_view detail) {
  if (!detail.empty()) text += fmt::format(": {}", detail);
  return text;
}

}  // namespace

Cause Required(std::string field, std::string_view detail) {
  return {"FieldValueRequired", WithDetail("Required value", detail), std::move(field)};
}

Cause Invalid(std::string field, const Json& value, std::string_view detail) {
  return {"FieldValueInvalid", WithDetail(fmt::format("Invalid value: {}", Printed(value)), detail),
          std::move(field)};
}

Cause NotSupported(std::string field, const Json& value,
                   const std::vector<std::string>& supported) {
  std::string list;
  for (const std::string& one : supported) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", Json(one).dump());
  }
  return {"FieldValueNotSupported",
          fmt::format("Unsupported value: {}: supported values: {}", Printed(value), list),
          std::move(field)};
}

Cause Duplicate(std::string field, const Json& value) {
  return {"FieldValueDuplicate", fmt::format("Duplicate value: {}", Printed(value)),
          std::move(field)};
}

Cause Forbidden(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", WithDetail("Forbidden", detail), std::move(field)};
}

Cause TooLong(std::string field, std::size_t limit_bytes) {
  return {"FieldValueTooLong", fmt::format("Too long: may not be more than {} bytes", limit_bytes),
          std::move(field)};
}

Cause TooMany(std::string field, std::size_t actual, std::size_t limit) {
  return {"FieldValueTooMany",
          fmt::format("Too many: {}: must have at most {} {}", actual, limit,
                      limit == 1 ? "item" : "items"),
          std::move(field)};
}

std::string InvalidMessage(std::string_view kind, std::string_view name,
                           const std::vector<Cause>& causes) {
  std::string text;
  std::set<std::string> told;  // a cause that is there twice is told once
  for (const Cause& cause : causes) {
    std::string one =
        cause.field.empty() ? cause.message : fmt::format("{}: {}", cause.field, cause.message);
    if (!told.insert(one).second) continue;
    text += (text.empty() ? "" : ", ") + one;
  }
  if (told.size() != 1) text = fmt::format("[{}]", text);
  return fmt::format("{} \"{}\" is invalid: {}", kind, name, text);
}

void AddInvalid(std::string field, std::string_view value, const std::string& why, Causes& causes) {
  if (!why.empty()) causes.push_back(Invalid(std::move(field), std::string(value), why));
}

}  // namespace tahoma::controller::apiserver
