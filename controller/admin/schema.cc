#include "controller/admin/schema.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "controller/reserve/refusal.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

Schema Written(const ordered_json& schema) { return schema.dump(); }

ordered_json Begin(std::string_view type, std::string_view about) {
  ordered_json schema = {{"type", type}};
  if (!about.empty()) schema["description"] = about;
  return schema;
}

ordered_json Object(const std::vector<Field>& fields, std::string_view about) {
  ordered_json schema = Begin("object", about);
  ordered_json required = ordered_json::array();
  schema["properties"] = ordered_json::object();
  for (const auto& [name, of_field] : fields) {
    const bool optional = name.ends_with('?');
    const std::string plain = optional ? name.substr(0, name.size() - 1) : name;
    schema["properties"][plain] = ordered_json::parse(of_field);
    if (!optional) required.push_back(plain);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

// A value as messages show it: short, and never what is inside of it, which may be deep.
std::string Shown(const Json& value) {
  constexpr std::size_t kShownMost = 64;
  if (value.is_object()) return "{…}";
  if (value.is_array()) return "[…]";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const std::string_view shown = CutUtf8(text, kShownMost);
  return shown.size() == text.size() ? text : std::string(shown) + "…";
}

std::uint64_t CharactersOf(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

std::optional<std::int64_t> WholeNumber(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kExactMost = 9007199254740992;  // 2^53
  if (std::trunc(number) != number || std::abs(number) > kExactMost) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

absl::Status Check(const Json& schema, const std::string& where, const Json& value);

absl::Status CheckText(const Json& schema, const std::string& where, const Json& value) {
  if (!value.is_string()) {
    return Refuse(kInvalidParameterValue, "{} {}: must be text", where, Shown(value));
  }
  const auto& text = value.get_ref<const std::string&>();
  if (const Json* words = FindMember(schema, "enum")) {
    std::string known;
    for (const Json& word : *words) {
      if (word == value) return absl::OkStatus();
      known += (known.empty() ? "" : ", ") + word.get<std::string>();
    }
    return Refuse(kInvalidParameterValue, "{} {}: must be one of {}", where, Shown(value), known);
  }
  const Json* longest = FindMember(schema, "maxLength");
  if (longest != nullptr && CharactersOf(text) > longest->get<std::uint64_t>()) {
    return Refuse(kInvalidParameterValue, "{} {}: must have at most {} characters", where,
                  Shown(value), longest->get<std::uint64_t>());
  }
  const Json* expression = FindMember(schema, "pattern");
  if (expression != nullptr && !RE2::FullMatch(text, expression->get<std::string>())) {
    return Refuse(kInvalidParameterValue, "{} {}: must be {}", where, Shown(value),
                  schema.at("description").get<std::string>());
  }
  if (const Json* format = FindMember(schema, "format"); format != nullptr) {
    if (const auto time = ParseTime(text); !time.ok()) {
      return Refuse(kInvalidParameterValue, "{} {}: must be a time in UTC, such as {}", where,
                    Shown(value), "2026-12-01T11:30:00Z");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInteger(const Json& schema, const std::string& where, const Json& value) {
  const auto least = schema.at("minimum").get<std::int64_t>();
  const auto most = schema.at("maximum").get<std::int64_t>();
  const auto number = WholeNumber(value);
  if (!number || *number < least || *number > most) {
    return Refuse(kInvalidParameterValue, "{} {}: must be a whole number, {} to {}", where,
                  Shown(value), least, most);
  }
  return absl::OkStatus();
}

absl::Status CheckList(const Json& schema, const std::string& where, const Json& value) {
  if (!value.is_array()) {
    return Refuse(kInvalidParameterValue, "{} {}: must be a list", where, Shown(value));
  }
  const Json* most = FindMember(schema, "maxItems");
  if (most != nullptr && value.size() > most->get<std::uint64_t>()) {
    return Refuse(kInvalidParameterValue, "{}: must have at most {} items, not {}", where,
                  most->get<std::uint64_t>(), value.size());
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    TAHOMA_RETURN_IF_ERROR(Check(schema.at("items"), fmt::format("{}[{}]", where, i), value.at(i)));
  }
  return absl::OkStatus();
}

absl::Status CheckObject(const Json& schema, const std::string& where, const Json& value) {
  const std::string prefix = where.empty() ? "" : where + ".";
  if (!value.is_object()) {
    return Refuse(kInvalidParameterValue, "{} {}: must be a JSON object",
                  where.empty() ? "the body" : where, Shown(value));
  }
  const Json* most = FindMember(schema, "maxProperties");
  if (most != nullptr && value.size() > most->get<std::uint64_t>()) {
    return Refuse(kInvalidParameterValue, "{}: must have at most {} members, not {}", where,
                  most->get<std::uint64_t>(), value.size());
  }
  if (const Json* required = FindMember(schema, "required")) {
    for (const Json& name : *required) {
      if (FindMember(value, name.get_ref<const std::string&>()) != nullptr) continue;
      return Refuse(kMissingParameter, "{}{} is missing", prefix, name.get<std::string>());
    }
  }
  const Json* properties = FindMember(schema, "properties");
  const Json* others = FindMember(schema, "additionalProperties");
  for (const auto& [name, member] : MembersOf(value)) {
    const Json* known = properties == nullptr ? nullptr : FindMember(*properties, name);
    if (known == nullptr && others != nullptr && others->is_object()) known = others;
    if (known == nullptr) {
      return Refuse(kInvalidParameterValue, "{}{}: there is no such field", prefix, Shown(name));
    }
    TAHOMA_RETURN_IF_ERROR(Check(*known, prefix + Shown(name), member));
  }
  return absl::OkStatus();
}

absl::Status Check(const Json& schema, const std::string& where, const Json& value) {
  const auto& type = schema.at("type").get_ref<const std::string&>();
  if (type == "string") return CheckText(schema, where, value);
  if (type == "integer") return CheckInteger(schema, where, value);
  if (type == "array") return CheckList(schema, where, value);
  if (type == "object") return CheckObject(schema, where, value);
  TAHOMA_CHECK(type == "boolean");
  if (value.is_boolean()) return absl::OkStatus();
  return Refuse(kInvalidParameterValue, "{} {}: must be true or false", where, Shown(value));
}

}  // namespace

Schema Text(std::string_view about, std::int64_t longest) {
  ordered_json schema = Begin("string", about);
  schema["maxLength"] = longest;
  return Written(schema);
}

Schema TextLike(std::string_view expression, std::string_view must_be, std::int64_t longest) {
  ordered_json schema = Begin("string", must_be);
  schema["pattern"] = fmt::format("^({})$", expression);
  schema["maxLength"] = longest;
  return Written(schema);
}

Schema Word(const std::vector<std::string>& words, std::string_view about) {
  ordered_json schema = Begin("string", about);
  schema["enum"] = words;
  return Written(schema);
}

Schema Integer(std::int64_t least, std::int64_t most, std::string_view about) {
  ordered_json schema = Begin("integer", about);
  schema["minimum"] = least;
  schema["maximum"] = most;
  return Written(schema);
}

Schema Flag(std::string_view about) { return Written(Begin("boolean", about)); }

Schema Time(std::string_view about) {
  ordered_json schema = Begin("string", about);
  schema["format"] = "date-time";
  return Written(schema);
}

Schema ListOf(const Schema& items, std::string_view about, std::int64_t most) {
  ordered_json schema = Begin("array", about);
  schema["items"] = ordered_json::parse(items);
  if (most > 0) schema["maxItems"] = most;
  return Written(schema);
}

Schema MapOf(const Schema& values, std::string_view about, std::int64_t most) {
  ordered_json schema = Begin("object", about);
  schema["additionalProperties"] = ordered_json::parse(values);
  schema["maxProperties"] = most;
  return Written(schema);
}

Schema ObjectOf(const std::vector<Field>& fields, std::string_view about) {
  return Written(Object(fields, about));
}

Schema BodyOf(const std::vector<Field>& fields) {
  ordered_json schema = Object(fields, "");
  schema["additionalProperties"] = false;
  return Written(schema);
}

Schema Named(std::string_view name) {
  return Written({{"$ref", fmt::format("#/components/schemas/{}", name)}});
}

absl::Status CheckBody(const Schema& schema, const Json& value) {
  return Check(ParseJson(schema), "", value);
}

absl::Status CheckParameter(const Schema& schema, std::string_view name, const std::string& text) {
  const Json form = ParseJson(schema);
  const auto& type = form.at("type").get_ref<const std::string&>();
  Json value = text;
  if (type == "integer") {
    if (const auto number = ParseInteger(text)) value = *number;
  }
  if (type == "boolean" && (text == "true" || text == "false")) value = text == "true";
  return Check(form, std::string(name), value);
}

std::optional<std::int64_t> IntegerOf(const Json& body, std::string_view name) {
  const Json* value = FindMember(body, name);
  return value == nullptr ? std::nullopt : WholeNumber(*value);
}

std::string TextOf(const Json& body, std::string_view name) {
  const Json* value = FindMember(body, name);
  return value == nullptr || !value->is_string() ? "" : value->get<std::string>();
}

bool FlagOf(const Json& body, std::string_view name) {
  const Json* value = FindMember(body, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace tahoma::controller
