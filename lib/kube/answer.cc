#include "lib/kube/answer.h"

#include <absl/strings/cord.h>

#include <algorithm>
#include <charconv>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/object.h"

namespace tahoma::kube {
namespace {

using json = Json;

constexpr const char* kPayload = "tahoma.dev/kube.ApiError";
constexpr std::chrono::seconds kLongestRetryAfter{60};

std::string TextAt(const json& object, std::string_view key) {
  return std::string(StringAt(object, {key}));
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

// Makes the error of a Status. `retry_after` is the header's text; `body` is shown where there is
// no message.
absl::Status MakeError(int code, const json& status, std::string_view retry_after,
                       std::string_view body) {
  const json* at = FindMember(status, "details");
  const json details = at != nullptr && at->is_object() ? *at : json::object();
  json payload{{"code", code}, {"reason", TextAt(status, "reason")}};
  if (details.contains("causes")) payload["causes"] = details["causes"];
  std::int64_t seconds = -1;
  std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), seconds);
  if (seconds < 0 && details.contains("retryAfterSeconds") &&
      details["retryAfterSeconds"].is_number_integer()) {
    seconds = details["retryAfterSeconds"].get<std::int64_t>();
  }
  if (seconds >= 0) payload["retryAfter"] = std::min<std::int64_t>(seconds, 3600);
  std::string message = TextAt(status, "message");
  if (message.empty()) message = fmt::format("HTTP {} {}", code, CutUtf8(body, 200));
  absl::Status error(StatusCodeOf(code, TextAt(status, "reason")), message);
  error.SetPayload(kPayload, absl::Cord(JsonText(payload)));
  return error;
}

}  // namespace

std::optional<ApiError> ApiErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const json stored = TryParseJson(std::string(*payload));
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
  if (reason == "Expired" || reason == "Gone") return absl::StatusCode::kOutOfRange;
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
  return MakeError(response.status, *response.Json(), response.header("Retry-After"),
                   response.body);
}

absl::Status ErrorOf(const json& status) {
  const json* code = FindMember(status, "code");
  const bool is_code = code != nullptr && code->is_number_integer();
  return MakeError(is_code ? code->get<int>() : 0, status, "", "");
}

absl::Status StatusOf(const absl::StatusOr<Response>& answer) {
  if (!answer.ok()) return answer.status();
  return answer->status >= 200 && answer->status < 300 ? absl::OkStatus() : ToStatus(*answer);
}

absl::StatusOr<std::shared_ptr<const json>> ObjectOf(const absl::StatusOr<Response>& answer) {
  TAHOMA_RETURN_IF_ERROR(StatusOf(answer));
  std::shared_ptr<const json> object = answer->Json();
  if (object->is_discarded()) return Unavailable("the answer is not JSON");
  return object;
}

Outcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return Outcome::kDone;
    case absl::StatusCode::kNotFound:
      return Outcome::kNotFound;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return Outcome::kConflict;
    case absl::StatusCode::kOutOfRange:
      return Outcome::kExpired;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
      return Outcome::kRefused;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return Outcome::kRetryLater;
    default: {
      const std::optional<ApiError> error = ApiErrorOf(status);
      return error && error->code < 500 ? Outcome::kRefused : Outcome::kRetryLater;
    }
  }
}

bool IsPlaceLost(const absl::Status& status) {
  if (absl::IsOutOfRange(status)) return true;
  const std::optional<ApiError> error = ApiErrorOf(status);
  return error && std::ranges::any_of(error->causes, [](const ApiError::Cause& cause) {
           return cause.reason == "ResourceVersionTooLarge";
         });
}

std::chrono::nanoseconds RetryAfterOf(const absl::Status& status) {
  const std::optional<ApiError> error = ApiErrorOf(status);
  const std::chrono::seconds none{0};
  return error ? std::min(error->retry_after.value_or(none), kLongestRetryAfter) : none;
}

}  // namespace tahoma::kube
