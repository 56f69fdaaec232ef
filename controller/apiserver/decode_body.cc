#include "controller/apiserver/decode_body.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/apiserver/schema.h"
#include "controller/apiserver/status_error.h"
#include "lib/base/status.h"
#include "lib/kube/yaml.h"

namespace tahoma::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kAccepted =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kNestingMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::string MediaType(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type;
}

absl::StatusOr<json> ParseJsonText(std::string_view text) {
  if (TooDeep(text)) {
    return BadRequestError(fmt::format("the body is nested deeper than {} levels", kNestingMax));
  }
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    return BadRequestError(
        fmt::format("couldn't get version/kind; json parse error: {}", error.what()));
  }
}

absl::StatusOr<json> ParseYamlText(std::string_view text) {
  // kubectl and other clients send JSON under YAML's name; the JSON parser is faster.
  if (text.starts_with('{')) {
    absl::StatusOr<json> parsed = ParseJsonText(text);
    if (parsed.ok()) return parsed;
  }
  absl::StatusOr<json> parsed = kube::YamlToJson(text);
  if (!parsed.ok()) {
    return BadRequestError(fmt::format("error parsing YAML: {}", Message(parsed.status())));
  }
  return parsed;
}

absl::StatusOr<DecodedBody> DecodeBody(const rest::Request& request) {
  if (request.body.size() > kBodyBytesMax) return TooLargeError(kBodyBytesMax);
  const std::string type = MediaType(request.header("Content-Type"));
  DecodedBody body;
  absl::StatusOr<json> parsed = json();
  if (type.empty() || type == "application/json" || type == "*/*") {
    parsed = ParseJsonText(request.body);
    if (parsed.ok()) {
      TAHOMA_ASSIGN_OR_RETURN(body.duplicates, DuplicateFields(request.body));
    }
  } else if (type == "application/yaml") {
    parsed = ParseYamlText(request.body);
  } else if (type == "application/vnd.kubernetes.protobuf") {
    parsed = DecodeProtobuf(request.body);
  } else {
    return UnsupportedMediaTypeError(kAccepted);
  }
  if (!parsed.ok()) return parsed.status();
  if (!parsed->is_object()) return BadRequestError("the body must be an object");
  body.object = std::make_shared<json>(*std::move(parsed));
  return body;
}

}  // namespace tahoma::controller
