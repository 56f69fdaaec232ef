#include "controller/ec2/error.h"

#include <absl/strings/cord.h>

#include <array>
#include <optional>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

struct Row {
  ErrorCode code;
  std::string_view name;
  int http_status;
  absl::StatusCode status;
};

using S = absl::StatusCode;

// In the order of the enumeration. 503 for exceeded rates, since the SDKs retry
// RequestLimitExceeded with that status only.
constexpr std::array kRows = {
    Row{ErrorCode::kMissingAction, "MissingAction", 400, S::kInvalidArgument},
    Row{ErrorCode::kInvalidAction, "InvalidAction", 400, S::kInvalidArgument},
    Row{ErrorCode::kNoSuchVersion, "NoSuchVersion", 400, S::kInvalidArgument},
    Row{ErrorCode::kMalformedQueryString, "MalformedQueryString", 400, S::kInvalidArgument},
    Row{ErrorCode::kUnknownParameter, "UnknownParameter", 400, S::kInvalidArgument},
    Row{ErrorCode::kMissingParameter, "MissingParameter", 400, S::kInvalidArgument},
    Row{ErrorCode::kInvalidParameterValue, "InvalidParameterValue", 400, S::kInvalidArgument},
    Row{ErrorCode::kInvalidParameterCombination, "InvalidParameterCombination", 400,
        S::kInvalidArgument},
    Row{ErrorCode::kInvalidPaginationToken, "InvalidPaginationToken", 400, S::kInvalidArgument},
    Row{ErrorCode::kFilterLimitExceeded, "FilterLimitExceeded", 400, S::kInvalidArgument},
    Row{ErrorCode::kTagLimitExceeded, "TagLimitExceeded", 400, S::kInvalidArgument},
    Row{ErrorCode::kIdempotentParameterMismatch, "IdempotentParameterMismatch", 400,
        S::kInvalidArgument},
    Row{ErrorCode::kDryRunOperation, "DryRunOperation", 412, S::kFailedPrecondition},
    Row{ErrorCode::kMissingAuthenticationToken, "MissingAuthenticationToken", 403,
        S::kUnauthenticated},
    Row{ErrorCode::kIncompleteSignature, "IncompleteSignature", 400, S::kUnauthenticated},
    Row{ErrorCode::kAuthFailure, "AuthFailure", 401, S::kUnauthenticated},
    Row{ErrorCode::kSignatureDoesNotMatch, "SignatureDoesNotMatch", 403, S::kUnauthenticated},
    Row{ErrorCode::kRequestExpired, "RequestExpired", 400, S::kUnauthenticated},
    Row{ErrorCode::kUnauthorizedOperation, "UnauthorizedOperation", 403, S::kPermissionDenied},
    Row{ErrorCode::kInvalidOfferingIdExpired, "InvalidCapacityBlockOfferingIdExpired", 400,
        S::kFailedPrecondition},
    Row{ErrorCode::kInvalidOfferingIdMalformed, "InvalidCapacityBlockOfferingIdMalformed", 400,
        S::kInvalidArgument},
    Row{ErrorCode::kInvalidOfferingIdNotFound, "InvalidCapacityBlockOfferingIdNotFound", 400,
        S::kNotFound},
    Row{ErrorCode::kInvalidExtensionOfferingIdExpired,
        "InvalidCapacityBlockExtensionOfferingIdExpired", 400, S::kFailedPrecondition},
    Row{ErrorCode::kInvalidExtensionOfferingIdMalformed,
        "InvalidCapacityBlockExtensionOfferingIdMalformed", 400, S::kInvalidArgument},
    Row{ErrorCode::kInvalidExtensionOfferingIdNotFound,
        "InvalidCapacityBlockExtensionOfferingIdNotFound", 400, S::kNotFound},
    Row{ErrorCode::kInvalidBlockIdMalformed, "InvalidCapacityBlockId.Malformed", 400,
        S::kInvalidArgument},
    Row{ErrorCode::kInvalidBlockIdNotFound, "InvalidCapacityBlockId.NotFound", 400, S::kNotFound},
    Row{ErrorCode::kInvalidReservationIdMalformed, "InvalidCapacityReservationId.Malformed", 400,
        S::kInvalidArgument},
    Row{ErrorCode::kInvalidReservationIdNotFound, "InvalidCapacityReservationId.NotFound", 400,
        S::kNotFound},
    Row{ErrorCode::kInvalidReservationState, "InvalidCapacityReservationState", 400,
        S::kFailedPrecondition},
    Row{ErrorCode::kInvalidReservationStatePendingActivation,
        "InvalidCapacityReservationState.PendingActivation", 400, S::kFailedPrecondition},
    Row{ErrorCode::kInvalidInstanceIdMalformed, "InvalidInstanceID.Malformed", 400,
        S::kInvalidArgument},
    Row{ErrorCode::kInvalidInstanceIdNotFound, "InvalidInstanceID.NotFound", 400, S::kNotFound},
    Row{ErrorCode::kInstanceLimitExceeded, "InstanceLimitExceeded", 400, S::kResourceExhausted},
    Row{ErrorCode::kReservationCapacityExceeded, "ReservationCapacityExceeded", 400,
        S::kResourceExhausted},
    Row{ErrorCode::kUnsupported, "Unsupported", 400, S::kInvalidArgument},
    Row{ErrorCode::kInsufficientInstanceCapacity, "InsufficientInstanceCapacity", 500,
        S::kResourceExhausted},
    Row{ErrorCode::kBlockDescribeLimitExceeded, "CapacityBlockDescribeLimitExceeded", 503,
        S::kResourceExhausted},
    Row{ErrorCode::kRequestLimitExceeded, "RequestLimitExceeded", 503, S::kResourceExhausted},
    Row{ErrorCode::kUnavailable, "Unavailable", 503, S::kUnavailable},
    Row{ErrorCode::kInternalError, "InternalError", 500, S::kInternal},
};

constexpr bool InOrder() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].code != static_cast<ErrorCode>(i)) return false;
  }
  return kRows.back().code == ErrorCode::kInternalError;
}
static_assert(InOrder());

constexpr char kPayload[] = "tahoma.dev/ec2-error";

const Row& RowOf(ErrorCode code) { return kRows[static_cast<std::size_t>(code)]; }

// The code that nobody gave.
ErrorCode NearestCode(absl::StatusCode code) {
  switch (code) {
    case S::kInvalidArgument:
    case S::kOutOfRange:
    case S::kNotFound:
      return ErrorCode::kInvalidParameterValue;
    case S::kPermissionDenied:
      return ErrorCode::kUnauthorizedOperation;
    case S::kUnauthenticated:
      return ErrorCode::kAuthFailure;
    case S::kFailedPrecondition:
      return ErrorCode::kInvalidReservationState;
    case S::kResourceExhausted:
      return ErrorCode::kRequestLimitExceeded;
    case S::kUnavailable:
    case S::kDeadlineExceeded:
    case S::kAborted:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternalError;
  }
}

std::optional<ErrorCode> CodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string name(*payload);
  for (const Row& row : kRows) {
    if (row.name == name) return row.code;
  }
  return std::nullopt;
}

}  // namespace

absl::Status Refuse(ErrorCode code, std::string message) {
  const Row& row = RowOf(code);
  absl::Status status(row.status, message);
  status.SetPayload(kPayload, absl::Cord(std::string(row.name)));
  return status;
}

Refusal RefusalOf(const absl::Status& status) {
  TAHOMA_CHECK(!status.ok());
  const std::optional<ErrorCode> given = CodeOf(status);
  const ErrorCode code = given ? *given : NearestCode(status.code());
  const Row& row = RowOf(code);
  std::string message(Message(status));
  if (!given && code == ErrorCode::kInternalError) {
    message = "an internal error occurred; the controller's log has it";
  }
  return {.code = row.name, .http_status = row.http_status, .message = std::move(message)};
}

}  // namespace tahoma::controller::ec2
