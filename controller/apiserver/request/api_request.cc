#include "controller/apiserver/request/api_request.h"

#include <absl/strings/match.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/schema/causes.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/url.h"

namespace tahoma::controller::apiserver {
namespace {

// The longest paths are /apis/g/v/namespaces/n/r/n/s.
constexpr std::size_t kSegmentsMax = 9;
constexpr std::size_t kManagerMax = 128;  // bytes of a manager's name

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

absl::StatusOr<std::vector<std::string>> Segments(std::string_view path) {
  absl::StatusOr<std::vector<std::string>> segments = kube::SplitPath(path);
  if (!segments.ok()) return BadRequestError(Message(segments.status()));
  if (!std::ranges::all_of(*segments, IsUtf8)) return BadRequestError("the path is not UTF-8");
  if (segments->size() > kSegmentsMax) return NoSuchPathError();
  return segments;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string, std::less<>>> ParseQuery(std::string_view query) {
  std::map<std::string, std::string, std::less<>> values;
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const auto key = rest::PercentDecode(pair.substr(0, equals), true);
    const auto value = rest::PercentDecode(
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!key || !value) return BadRequestError(fmt::format("invalid query '{}'", pair));
    if (!IsUtf8(*key) || !IsUtf8(*value)) {
      return BadRequestError(fmt::format("the query '{}' is not UTF-8", pair));
    }
    values.emplace(*key, *value);
  }
  return values;
}

bool ResourcePath::Is(std::string_view path) {
  const auto slashes = std::count(path.begin(), path.end(), '/');
  // Resources begin at /api/v1/<r> and /apis/<g>/<v>/<r>.
  return path.starts_with("/api/") ? slashes >= 3 : path.starts_with("/apis/") && slashes >= 4;
}

absl::StatusOr<ResourcePath> ResourcePath::Parse(std::string_view path) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::string> parts, Segments(path));
  ResourcePath found;
  std::size_t at = 0;
  const auto next = [&] { return at < parts.size() ? parts[at++] : std::string(); };
  const std::string root = next();
  found.group = root == "apis" ? next() : std::string();
  found.version = next();
  if ((root != "api" && root != "apis") || (root == "apis") == found.group.empty() ||
      found.version.empty()) {
    return NoSuchPathError();
  }
  found.resource = next();
  if (found.resource == "watch") {
    found.watch = true;
    found.resource = next();
  }
  // /namespaces/<name> and its own subresources are objects of the resource "namespaces".
  const bool own_subresource =
      at + 1 < parts.size() && (parts[at + 1] == "status" || parts[at + 1] == "finalize");
  if (found.resource == "namespaces" && at + 1 < parts.size() && !own_subresource) {
    found.name_space = next();
    found.resource = next();
    if (found.name_space.empty()) return NoSuchPathError();
  }
  found.name = next();
  found.subresource = next();
  if (at < parts.size()) return NoSuchPathError();
  return found;
}

absl::StatusOr<ApiRequest> ApiRequest::Parse(const rest::Request& http,
                                             std::shared_ptr<const KindTable> kinds) {
  ApiRequest request;
  request.http = &http;
  request.kinds = std::move(kinds);
  TAHOMA_ASSIGN_OR_RETURN(request.query, ParseQuery(http.query));
  TAHOMA_ASSIGN_OR_RETURN(ResourcePath path, ResourcePath::Parse(http.path));
  request.kind = request.kinds->Find(path.group, path.version, path.resource);
  if (request.kind == nullptr) return NoSuchPathError();
  request.watch_path = path.watch;
  request.name_space = std::move(path.name_space);
  request.name = std::move(path.name);
  request.subresource = std::move(path.subresource);
  const bool named_without_namespace = !request.name.empty() && request.name_space.empty();
  if (request.kind->namespaced ? named_without_namespace : !request.name_space.empty()) {
    return NoSuchPathError();
  }
  return request;
}

std::string_view ApiRequest::parameter(std::string_view wanted) const {
  const auto found = query.find(wanted);
  return found == query.end() ? std::string_view() : std::string_view(found->second);
}

bool ApiRequest::flag(std::string_view wanted) const {
  const auto found = query.find(wanted);
  return found != query.end() && found->second != "0" &&
         !absl::EqualsIgnoreCase(found->second, "false");
}

absl::StatusOr<std::optional<std::int64_t>> ApiRequest::number(std::string_view wanted) const {
  const std::string_view text = parameter(wanted);
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    return BadRequestError(
        fmt::format("strconv.ParseInt: parsing \"{}\": value out of range", text));
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadRequestError(fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", text));
  }
  return value;
}

absl::StatusOr<bool> ApiRequest::dry_run() const {
  const auto found = query.find("dryRun");
  if (found == query.end()) return false;
  if (found->second == "All") return true;
  return InvalidError("meta.k8s.io", options_kind(), "",
                      {NotSupported("dryRun", Json::array({found->second}), {"All"})});
}

absl::StatusOr<FieldValidation> ApiRequest::field_validation() const {
  const std::string_view value = parameter("fieldValidation");
  if (value.empty() || value == "Warn") return FieldValidation::kWarn;
  if (value == "Strict") return FieldValidation::kStrict;
  if (value == "Ignore") return FieldValidation::kIgnore;
  return InvalidError(
      "meta.k8s.io", options_kind(), "",
      {NotSupported("fieldValidation", std::string(value), {"", "Ignore", "Strict", "Warn"})});
}

absl::Status ApiRequest::CheckManager() const {
  constexpr const char* kField = "fieldManager";
  const std::string_view manager = parameter(kField);
  std::vector<Cause> causes;
  const bool apply = http->header("Content-Type").starts_with("application/apply-patch");
  if (http->method == "PATCH" && !apply && query.contains("force")) {
    causes.push_back(Forbidden("force", "may not be specified for non-apply patch"));
  }
  if (manager.size() > kManagerMax) causes.push_back(TooLong(kField, kManagerMax));
  for (std::size_t i = 0; i < manager.size(); ++i) {
    if (!IsControl(manager[i])) continue;
    causes.push_back(Invalid(kField, std::string(manager),
                             fmt::format("invalid character U+{:04X} (at position {})",
                                         static_cast<int>(manager[i]), i)));
  }
  if (causes.empty()) return absl::OkStatus();
  return InvalidError("meta.k8s.io", options_kind(), "", causes);
}

std::string_view ApiRequest::options_kind() const {
  if (http->method == "POST") return "CreateOptions";
  if (http->method == "PATCH") return "PatchOptions";
  return http->method == "DELETE" ? "DeleteOptions" : "UpdateOptions";
}

std::string ApiRequest::field_manager() const {
  if (const std::string_view given = parameter("fieldManager"); !given.empty()) {
    return std::string(given);
  }
  // Characters that cannot be printed are left out, as by Kubernetes.
  const std::string_view agent = http->header("User-Agent");
  std::string first(agent.substr(0, agent.find('/')));
  if (!IsUtf8(first)) std::erase_if(first, [](char c) { return (c & 0x80) != 0; });
  std::erase_if(first, [](char c) { return IsControl(c); });
  first = CutUtf8(first, kManagerMax);
  return first.empty() ? "unknown" : first;
}

}  // namespace tahoma::controller::apiserver
