#include "controller/apiserver/request/status_error.h"

#include <absl/strings/cord.h>

#include <utility>

#include "controller/apiserver/schema/causes.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr char kNoSuchPath[] = "the server could not find the requested resource";
constexpr char kPayload[] = "tahoma.dev/kubernetes-status";

json Envelope(int code, std::string_view reason, std::string_view message, json details) {
  json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object()},
                 {"status", "Failure"}, {"message", message}, {"reason", reason},
                 {"details", nullptr},  {"code", code}};
  if (reason.empty()) status.erase("reason");
  if (details.is_null()) {
    status.erase("details");
  } else {
    status["details"] = std::move(details);
  }
  return status;
}

absl::Status Failure(int code, std::string_view reason, std::string_view message,
                     json details = nullptr) {
  absl::Status status(kube::StatusCodeOf(code, reason), {message.data(), message.size()});
  status.SetPayload(
      kPayload, absl::Cord(kube::JsonText(Envelope(code, reason, message, std::move(details)))));
  return status;
}

json Details(std::string_view name, std::string_view group, std::string_view kind) {
  json details = json::object();
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  if (!kind.empty()) details["kind"] = kind;
  return details;
}

void AddCauses(json& details, const std::vector<Cause>& causes) {
  for (const Cause& cause : causes) {
    json entry = {{"reason", cause.reason}, {"message", cause.message}};
    if (!cause.field.empty()) entry["field"] = cause.field;
    details["causes"].push_back(std::move(entry));
  }
}

}  // namespace

absl::Status BadRequestError(std::string_view message) {
  return Failure(400, "BadRequest", message);
}

absl::Status UnauthorizedError() { return Failure(401, "Unauthorized", "Unauthorized"); }

absl::Status NotFoundError(const Kind& kind, std::string_view name) {
  return Failure(404, "NotFound", fmt::format("{} \"{}\" not found", kind.resource(), name),
                 Details(name, kind.group, kind.plural));
}

absl::Status AlreadyExistsError(const Kind& kind, std::string_view name) {
  return Failure(409, "AlreadyExists",
                 fmt::format("{} \"{}\" already exists", kind.resource(), name),
                 Details(name, kind.group, kind.plural));
}

absl::Status ConflictError(const Kind& kind, std::string_view name, std::string_view why,
                           const std::vector<Cause>& causes) {
  json details = Details(name, kind.group, kind.plural);
  AddCauses(details, causes);
  return Failure(
      409, "Conflict",
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", kind.resource(), name, why),
      std::move(details));
}

absl::Status ApplyConflictError(std::string_view message, const std::vector<Cause>& causes) {
  json details = json::object();
  AddCauses(details, causes);
  return Failure(409, "Conflict", message, std::move(details));
}

absl::Status TooManyRequestsError(std::string_view message, const std::vector<Cause>& causes,
                                  int again_in) {
  json details = json::object();
  AddCauses(details, causes);
  if (again_in > 0) details["retryAfterSeconds"] = again_in;
  return Failure(429, "TooManyRequests", message, std::move(details));
}

absl::Status ForbiddenError(const Kind& kind, std::string_view name, std::string_view why,
                            const std::vector<Cause>& causes) {
  json details = Details(name, kind.group, kind.plural);
  AddCauses(details, causes);
  return Failure(403, "Forbidden",
                 fmt::format("{} \"{}\" is forbidden: {}", kind.resource(), name, why),
                 std::move(details));
}

absl::Status AccessDeniedError(std::string_view group, std::string_view resource,
                               std::string_view name, std::string_view why) {
  std::string subject(resource);
  if (!group.empty()) subject += fmt::format(".{}", group);
  if (!name.empty()) subject += fmt::format(" \"{}\"", name);
  const std::string message = resource.empty() ? fmt::format("forbidden: {}", why)
                                               : fmt::format("{} is forbidden: {}", subject, why);
  return Failure(403, "Forbidden", message, Details(name, group, resource));
}

absl::Status InvalidError(std::string_view group, std::string_view kind, std::string_view name,
                          const std::vector<Cause>& causes) {
  json details = Details(name, group, kind);
  AddCauses(details, causes);
  const std::string full = group.empty() ? std::string(kind) : fmt::format("{}.{}", kind, group);
  return Failure(422, "Invalid", InvalidMessage(full, name, causes), std::move(details));
}

absl::Status UndecodableError(std::string_view kind, std::string_view version,
                              std::string_view why) {
  return BadRequestError(
      fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", kind, version, kind, why));
}

absl::Status UnprocessableError() {
  return Failure(422, "Invalid", "the server rejected our request due to an error in our request",
                 json::object());
}

absl::Status MethodNotAllowedError() {
  return Failure(405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource", json::object());
}

absl::Status NoSuchPathError() { return Failure(404, "NotFound", kNoSuchPath, json::object()); }

bool IsNoSuchPath(const absl::Status& status) {
  return absl::IsNotFound(status) && status.message() == kNoSuchPath;
}

absl::Status ExpiredError(std::string_view message) { return Failure(410, "Expired", message); }

absl::Status TooLargeVersionError(std::int64_t requested, std::int64_t current) {
  json details = json::object();
  AddCauses(details, {{"ResourceVersionTooLarge", "Too large resource version", ""}});
  details["retryAfterSeconds"] = 1;
  return Failure(504, "Timeout",
                 fmt::format("Too large resource version: {}, current: {}", requested, current),
                 std::move(details));
}

absl::Status UnsupportedMediaTypeError(std::string_view accepted) {
  return Failure(415, "UnsupportedMediaType",
                 fmt::format("the body of the request was in an unknown format - accepted media "
                             "types include: {}",
                             accepted));
}

absl::Status UnsupportedPatchTypeError() {
  return Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", json::object());
}

absl::Status NotAcceptableError(std::string_view accepted) {
  return Failure(406, "NotAcceptable",
                 fmt::format("406: Not Acceptable\n\nAvailable representations: {}", accepted),
                 json::object());
}

absl::Status TooLargeError(std::size_t limit_bytes) {
  return Failure(413, "RequestEntityTooLarge",
                 fmt::format("Request entity too large: limit is {}", limit_bytes), json::object());
}

absl::Status TooCostlyError(std::chrono::nanoseconds limit) {
  const double seconds = std::chrono::duration<double>(limit).count();
  return Failure(413, "RequestEntityTooLarge",
                 fmt::format("the request takes more than {} s of the processor; nothing is "
                             "changed: ask for less, or change less, at once",
                             seconds));
}

absl::Status WebhookDeniedError(int code, std::string_view reason, std::string_view message,
                                const json& details) {
  return Failure(code, reason, message, details.is_object() ? details : json());
}

absl::Status GenericError(int code, std::string_view reason, std::string_view message) {
  return Failure(code, reason, message);
}

json StatusObject(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kPayload)) {
    return ParseJson(std::string(*payload));
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return Envelope(400, "BadRequest", Message(status), nullptr);
    case absl::StatusCode::kResourceExhausted:
      return Envelope(429, "TooManyRequests", Message(status), {{"retryAfterSeconds", 1}});
    case absl::StatusCode::kUnavailable:
      return Envelope(503, "ServiceUnavailable", Message(status), nullptr);
    case absl::StatusCode::kOutOfRange:
      return Envelope(410, "Expired", Message(status), nullptr);
    default:
      return Envelope(500, "InternalError",
                      fmt::format("Internal error occurred: {}", Message(status)),
                      {{"causes", {{{"message", Message(status)}}}}});
  }
}

rest::Response ResponseOf(const absl::Status& status) {
  const json object = StatusObject(status);
  rest::Response response =
      rest::Response::Json(object.at("code").get<int>(), kube::JsonText(object));
  if (const auto details = object.find("details");
      details != object.end() && details->contains("retryAfterSeconds")) {
    response.headers.emplace_back("Retry-After",
                                  std::to_string(details->at("retryAfterSeconds").get<int>()));
  }
  return response;
}

json DeletedStatus(const Kind& kind, std::string_view name, std::string_view uid) {
  json details = Details(name, kind.group, kind.plural);
  details["uid"] = uid;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::object()},
          {"status", "Success"},
          {"details", std::move(details)}};
}

}  // namespace tahoma::controller::apiserver
