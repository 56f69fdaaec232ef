#include "controller/ec2/error.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::string_view kInternalError = "InternalError";

// The codes whose status is not 400. The SDKs retry 5xx, and RequestLimitExceeded with 503 only.
constexpr std::array<std::pair<std::string_view, int>, 9> kHttpStatuses = {{
    {kAuthFailure.name, 401},
    {kMissingAuthenticationToken.name, 403},
    {kSignatureDoesNotMatch.name, 403},
    {kUnauthorizedOperation.name, 403},
    {kDryRunOperation.name, 412},
    {kInsufficientCapacity.name, 500},
    {kInternalError, 500},
    {"RequestLimitExceeded", 503},
    {"Unavailable", 503},
}};

int HttpStatusOf(std::string_view code) {
  const auto found =
      std::ranges::find(kHttpStatuses, code, &std::pair<std::string_view, int>::first);
  return found == kHttpStatuses.end() ? 400 : found->second;
}

// The code that nobody gave.
std::string_view NearestCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kNotFound:
      return kInvalidParameterValue.name;
    case absl::StatusCode::kPermissionDenied:
      return kUnauthorizedOperation.name;
    case absl::StatusCode::kUnauthenticated:
      return kAuthFailure.name;
    case absl::StatusCode::kFailedPrecondition:
      return kReservationState.name;
    case absl::StatusCode::kResourceExhausted:
      return "RequestLimitExceeded";
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return "Unavailable";
    default:
      return kInternalError;
  }
}

}  // namespace

Refusal RefusalOf(const absl::Status& status) {
  TAHOMA_CHECK(!status.ok());
  std::string code = Ec2CodeOf(status);
  if (code == kInternalError) code = NearestCode(status.code());
  std::string message(Message(status));
  if (code == kInternalError) message = "an internal error occurred; the controller's log has it";
  const int http_status = HttpStatusOf(code);
  return {.code = std::move(code), .http_status = http_status, .message = std::move(message)};
}

}  // namespace tahoma::controller::ec2
