#include "lib/kube/client.h"

#include <absl/strings/cord.h>

#include <algorithm>
#include <charconv>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;

constexpr const char* kPayload = "tahoma.dev/kube.ApiError";
constexpr auto kLongestRetryAfter = std::chrono::seconds(60);

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

std::string TextAt(const json& object, const char* key) {
  const json* found = FindMember(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void AddCauses(const json& details, ApiError& error) {
  const auto causes = details.find("causes");
  if (causes == details.end() || !causes->is_array()) return;
  for (const json& cause : *causes) {
    error.causes.push_back({.reason = TextAt(cause, "reason"),
                            .message = TextAt(cause, "message"),
                            .field = TextAt(cause, "field")});
  }
}

// Refused before anything was done, so that even a Create may be repeated.
bool WasRefused(const absl::Status& status) {
  const std::optional<ApiError> error = ApiErrorOf(status);
  return error && (error->code == 429 || error->code == 503);
}

bool IsPassing(const absl::Status& status) {
  const std::optional<ApiError> error = ApiErrorOf(status);
  if (error) return error->code >= 500 && error->code != 501;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<ObjectKey> KeyFor(const json& object) {
  ObjectKey key = KeyOf(object);
  if (key.name.empty()) return InvalidArgument("metadata.name: Required value");
  return key;
}

}  // namespace

std::string Resource::CollectionPath(std::string_view ns) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !ns.empty()) path += "/namespaces/" + PercentEncode(ns);
  return path + "/" + plural;
}

std::string Resource::ObjectPath(const ObjectKey& key, std::string_view subresource) const {
  std::string path = CollectionPath(key.ns) + "/" + PercentEncode(key.name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

std::optional<ApiError> ApiErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const json stored = json::parse(std::string(*payload), nullptr, false);
  if (!stored.is_object()) return std::nullopt;
  ApiError error{.code = stored.value("code", 0),
                 .reason = TextAt(stored, "reason"),
                 .message = std::string(Message(status)),
                 .causes = {},
                 .retry_after = std::nullopt};
  AddCauses(stored, error);
  if (stored.contains("retryAfter")) {
    error.retry_after = std::chrono::seconds(stored["retryAfter"].get<std::int64_t>());
  }
  return error;
}

absl::StatusCode StatusCodeOf(int http, std::string_view reason) {
  if (reason == "AlreadyExists") return absl::StatusCode::kAlreadyExists;
  if (reason == "Timeout" || reason == "ServerTimeout") return absl::StatusCode::kDeadlineExceeded;
  switch (http) {
    case 400:
    case 413:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 406:
    case 415:
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 408:
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 409:
      return absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 502:
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ToStatus(const Response& response) {
  const json body = json::parse(response.body, nullptr, false);
  const json details = body.is_object() && body.contains("details") && body["details"].is_object()
                           ? body["details"]
                           : json::object();
  json payload{{"code", response.status}, {"reason", TextAt(body, "reason")}};
  if (details.contains("causes")) payload["causes"] = details["causes"];
  std::int64_t seconds = -1;
  const std::string_view after = response.header("Retry-After");
  std::from_chars(after.data(), after.data() + after.size(), seconds);
  if (seconds < 0 && details.contains("retryAfterSeconds") &&
      details["retryAfterSeconds"].is_number_integer()) {
    seconds = details["retryAfterSeconds"].get<std::int64_t>();
  }
  if (seconds >= 0) payload["retryAfter"] = std::min<std::int64_t>(seconds, 3600);
  std::string message = TextAt(body, "message");
  if (message.empty())
    message = fmt::format("HTTP {} {}", response.status, response.body.substr(0, 200));
  absl::Status status(StatusCodeOf(response.status, TextAt(body, "reason")), message);
  status.SetPayload(kPayload, absl::Cord(Dump(payload)));
  return status;
}

std::chrono::nanoseconds Backoff(const RetryOptions& options, int attempt, Rng& rng) {
  std::chrono::nanoseconds pause = options.first;
  for (int i = 1; i < attempt && pause < options.longest; ++i) pause *= 2;
  pause = std::min<std::chrono::nanoseconds>(pause, options.longest);
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return pause - std::chrono::nanoseconds(static_cast<std::int64_t>(rng.Below(half + 1)));
}

Client::Client(Transport& transport, Sleeper& sleeper, Rng rng, RetryOptions retry)
    : transport_(transport), sleeper_(sleeper), retry_(retry), rng_(rng) {}

bool Client::Wait(int attempt, const absl::Status& error) {
  std::chrono::nanoseconds pause{};
  {
    const std::lock_guard lock(mutex_);
    pause = Backoff(retry_, attempt, rng_);
  }
  const std::optional<ApiError> api_error = ApiErrorOf(error);
  if (api_error && api_error->retry_after) {
    pause = std::max<std::chrono::nanoseconds>(
        pause, std::min<std::chrono::nanoseconds>(*api_error->retry_after, kLongestRetryAfter));
  }
  return sleeper_.Sleep(pause);
}

absl::StatusOr<json> Client::Call(const Request& request, Repeat repeat) {
  for (int attempt = 1;; ++attempt) {
    const absl::StatusOr<Response> response = transport_.Send(request);
    absl::Status error = response.status();
    if (response.ok() && response->status < 300) {
      json body = response->body.empty() ? json() : json::parse(response->body, nullptr, false);
      if (!body.is_discarded()) return body;
      error = Unavailable("{} {}: the answer is not JSON", request.method, request.target);
    } else if (response.ok()) {
      error = ToStatus(*response);
    }
    const bool again = WasRefused(error) || (repeat == Repeat::kMay && IsPassing(error));
    if (!again || attempt >= retry_.attempts || !Wait(attempt, error)) return error;
  }
}

absl::StatusOr<json> Client::Get(const Resource& resource, const ObjectKey& key) {
  return Call({.method = "GET",
               .target = resource.ObjectPath(key),
               .headers = {{"Accept", "application/json"}}},
              Repeat::kMay);
}

absl::StatusOr<json> Client::List(const Resource& resource, const ListOptions& options) {
  Query query;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) query.emplace_back(key, value);
  };
  add("labelSelector", options.label_selector);
  add("fieldSelector", options.field_selector);
  add("continue", options.continue_token);
  if (options.continue_token.empty()) add("resourceVersion", options.resource_version);
  if (options.limit > 0) query.emplace_back("limit", std::to_string(options.limit));
  std::string target = resource.CollectionPath(options.ns);
  if (!query.empty()) target += "?" + EncodeQuery(query);
  return Call(
      {.method = "GET", .target = std::move(target), .headers = {{"Accept", "application/json"}}},
      Repeat::kMay);
}

absl::Status Client::ForEach(const Resource& resource, ListOptions options,
                             const std::function<absl::Status(const json& item)>& each) {
  bool may_start_anew = true;
  for (;;) {
    const absl::StatusOr<json> page = List(resource, options);
    if (absl::IsOutOfRange(page.status()) && may_start_anew && !options.continue_token.empty()) {
      may_start_anew = false;
      options.continue_token.clear();
      options.limit = 0;
      continue;
    }
    TAHOMA_RETURN_IF_ERROR(page.status());
    const json* items = ValueAt(*page, {"items"});
    // Go servers write an empty list as null.
    if (items == nullptr || !(items->is_array() || items->is_null())) {
      return Unavailable("{}: the answer is not a list", resource.CollectionPath(options.ns));
    }
    for (const json& item : *items) TAHOMA_RETURN_IF_ERROR(each(item));
    options.continue_token = std::string(StringAt(*page, {"metadata", "continue"}));
    if (options.continue_token.empty()) return absl::OkStatus();
  }
}

absl::StatusOr<json> Client::Write(std::string_view method, std::string path,
                                   std::string_view content_type, const json& body,
                                   const WriteOptions& options, Repeat repeat) {
  Query query;
  if (!options.field_manager.empty()) query.emplace_back("fieldManager", options.field_manager);
  if (options.dry_run) query.emplace_back("dryRun", "All");
  if (options.force) query.emplace_back("force", "true");
  if (!query.empty()) path += "?" + EncodeQuery(query);
  return Call(
      {.method = std::string(method),
       .target = std::move(path),
       .headers = {{"Accept", "application/json"}, {"Content-Type", std::string(content_type)}},
       .body = Dump(body)},
      repeat);
}

absl::StatusOr<json> Client::Create(const Resource& resource, std::string_view ns,
                                    const json& object, const WriteOptions& options) {
  return Write("POST", resource.CollectionPath(ns), "application/json", object, options,
               Repeat::kMustNot);
}

absl::StatusOr<json> Client::Update(const Resource& resource, const json& object,
                                    const WriteOptions& options) {
  TAHOMA_ASSIGN_OR_RETURN(const ObjectKey key, KeyFor(object));
  return Write("PUT", resource.ObjectPath(key, options.subresource), "application/json", object,
               options, Repeat::kMay);
}

absl::StatusOr<json> Client::UpdateStatus(const Resource& resource, const json& object,
                                          WriteOptions options) {
  options.subresource = "status";
  return Update(resource, object, options);
}

absl::StatusOr<json> Client::Patch(const Resource& resource, const ObjectKey& key, PatchType type,
                                   const json& patch, const WriteOptions& options) {
  return Write("PATCH", resource.ObjectPath(key, options.subresource), ContentType(type), patch,
               options, type == PatchType::kJson ? Repeat::kMustNot : Repeat::kMay);
}

absl::StatusOr<json> Client::Delete(const Resource& resource, const ObjectKey& key,
                                    const DeleteOptions& options) {
  json body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.propagation_policy.empty()) body["propagationPolicy"] = options.propagation_policy;
  return Write("DELETE", resource.ObjectPath(key), "application/json", body, {}, Repeat::kMay);
}

absl::Status Client::Bind(const ObjectKey& pod, std::string_view uid, std::string_view node,
                          const json& annotations) {
  json binding{{"apiVersion", "v1"},
               {"kind", "Binding"},
               {"metadata", {{"name", pod.name}, {"namespace", pod.ns}}},
               {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  if (!uid.empty()) binding["metadata"]["uid"] = uid;
  if (annotations.is_object() && !annotations.empty()) {
    binding["metadata"]["annotations"] = annotations;
  }
  const Resource pods{.group = "", .version = "v1", .plural = "pods", .namespaced = true};
  return Write("POST", pods.ObjectPath(pod, "binding"), "application/json", binding, {},
               Repeat::kMustNot)
      .status();
}

}  // namespace tahoma::kube
