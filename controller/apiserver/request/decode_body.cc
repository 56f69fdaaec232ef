#include "controller/apiserver/request/decode_body.h"

#include <algorithm>
#include <utility>

#include "controller/apiserver/merge/field_text.h"
#include "controller/apiserver/protobuf/protobuf.h"
#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/json_text.h"
#include "lib/base/ascii.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/yaml.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::string_view kAccepted =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

absl::StatusOr<JsonRead> Read(std::string_view text) {
  absl::StatusOr<JsonRead> read = ReadJson(text);
  if (read.ok()) return read;
  if (absl::IsResourceExhausted(read.status())) {
    return BadRequestError(fmt::format("the body is {}", Message(read.status())));
  }
  return BadRequestError(
      fmt::format("couldn't get version/kind; json parse error: {}", Message(read.status())));
}

absl::StatusOr<json> ReadProtobuf(std::string_view bytes) {
  absl::StatusOr<json> read = DecodeProtobuf(bytes);
  if (read.ok()) return read;
  if (absl::IsUnimplemented(read.status())) {
    return UnsupportedMediaTypeError("application/json, application/yaml");
  }
  return BadRequestError(
      fmt::format("the protobuf body cannot be read: {}", Message(read.status())));
}

// Refuses a value that is wider than JSON text may be. For YAML, whose reader has other bounds.
absl::Status CheckWidth(const json& value) {
  if (value.is_array()) {
    if (value.size() > kItemsMax) {
      return BadRequestError(fmt::format("the body is wider than {} items of one list", kItemsMax));
    }
    for (const json& item : value) TAHOMA_RETURN_IF_ERROR(CheckWidth(item));
  } else if (value.is_object()) {
    if (value.size() > kMembersMax) {
      return BadRequestError(
          fmt::format("the body is wider than {} members of one object", kMembersMax));
    }
    for (const auto& [name, member] : MembersOf(value)) TAHOMA_RETURN_IF_ERROR(CheckWidth(member));
  }
  return absl::OkStatus();
}

}  // namespace

std::size_t DecodedBytes(const rest::Request& request) {
  constexpr std::size_t kBytesOfValue = 64;
  const std::string_view body = request.body;
  const std::string type = MediaType(request.header("Content-Type"));
  std::size_t values = 0;
  if (type == kProtobufType) {
    values = body.size() / 2;  // the smallest field
  } else if (type.ends_with("yaml") && body.find('*') != std::string_view::npos &&
             body.find('&') != std::string_view::npos) {
    values = kValuesMax;  // aliases repeat what is large
  } else {
    values = static_cast<std::size_t>(std::ranges::count_if(
        body, [](char c) { return c == ',' || c == ':' || c == '[' || c == '{' || c == '\n'; }));
  }
  return body.size() + kBytesOfValue * std::min(values, kValuesMax);
}

std::string MediaType(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::ranges::transform(type, type.begin(), AsciiLower);
  return type;
}

absl::StatusOr<json> ParseJsonText(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(JsonRead read, Read(text));
  return std::move(*read.value);
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
  TAHOMA_RETURN_IF_ERROR(CheckWidth(*parsed));
  return parsed;
}

absl::StatusOr<std::shared_ptr<const json>> DecodePatch(const rest::Request& request) {
  if (request.parsed) return request.parsed;
  TAHOMA_ASSIGN_OR_RETURN(json patch, ParseJsonText(request.body));
  return std::make_shared<const json>(std::move(patch));
}

std::vector<std::string> DuplicatesInPatch(const rest::Request& request) {
  if (request.parsed) return {};
  absl::StatusOr<JsonRead> read = ReadJson(request.body);
  return read.ok() ? std::move(read->duplicates) : std::vector<std::string>();
}

std::string BodyText(const rest::Request& request) {
  return request.parsed ? kube::JsonText(*request.parsed) : request.body;
}

absl::StatusOr<DecodedBody> DecodeBody(const rest::Request& request) {
  if (request.body.size() > kBodyBytesMax) return TooLargeError(kBodyBytesMax);
  const std::string type = MediaType(request.header("Content-Type"));
  DecodedBody body;
  if (request.parsed) {
    body.object = std::make_shared<json>(*request.parsed);
    ExpandFields(*body.object);  // it may be an object as we have given it out
    return body;
  }
  absl::StatusOr<json> parsed = json();
  if (type.empty() || type == "application/json" || type == "*/*") {
    TAHOMA_ASSIGN_OR_RETURN(JsonRead read, Read(request.body));
    parsed = std::move(*read.value);
    body.duplicates = std::move(read.duplicates);
  } else if (type == "application/yaml") {
    parsed = ParseYamlText(request.body);
  } else if (type == kProtobufType) {
    parsed = ReadProtobuf(request.body);
  } else {
    return UnsupportedMediaTypeError(kAccepted);
  }
  if (!parsed.ok()) return parsed.status();
  if (!parsed->is_object()) return BadRequestError("the body must be an object");
  body.object = std::make_shared<json>(*std::move(parsed));
  return body;
}

}  // namespace tahoma::controller::apiserver
