// EC2's error codes, carried by an absl::Status, and the HTTP status of each.
//
//   absl::Status Check(int count) {
//     if (count <= 64) return absl::OkStatus();
//     return Refused(ErrorCode::kInvalidParameterValue, "count is {}; at most 64 is legal", count);
//   }
//   void Show() { fmt::print("{}", RefusalOf(Check(65)).code); }   // "InvalidParameterValue"
//
// Scope: codes. The callee states the reason and says what would be legal; nobody adds to it, for
// the code would be lost (Annotate of lib/base/status.h makes a new status).
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tahoma::controller::ec2 {

enum class ErrorCode : std::uint8_t {
  // Form of the request.
  kMissingAction,
  kInvalidAction,
  kNoSuchVersion,
  kMalformedQueryString,
  kUnknownParameter,
  kMissingParameter,
  kInvalidParameterValue,
  kInvalidParameterCombination,
  kInvalidPaginationToken,
  kFilterLimitExceeded,
  kTagLimitExceeded,
  kIdempotentParameterMismatch,
  kDryRunOperation,
  // Who calls.
  kMissingAuthenticationToken,
  kIncompleteSignature,
  kAuthFailure,
  kSignatureDoesNotMatch,
  kRequestExpired,
  kUnauthorizedOperation,
  // Objects that are asked for.
  kInvalidOfferingIdExpired,
  kInvalidOfferingIdMalformed,
  kInvalidOfferingIdNotFound,
  kInvalidExtensionOfferingIdExpired,
  kInvalidExtensionOfferingIdMalformed,
  kInvalidExtensionOfferingIdNotFound,
  kInvalidBlockIdMalformed,
  kInvalidBlockIdNotFound,
  kInvalidReservationIdMalformed,
  kInvalidReservationIdNotFound,
  kInvalidReservationState,
  kInvalidReservationStatePendingActivation,
  kInvalidInstanceIdMalformed,
  kInvalidInstanceIdNotFound,
  kInstanceLimitExceeded,
  kReservationCapacityExceeded,
  kUnsupported,
  // The server's own state.
  kInsufficientInstanceCapacity,
  kBlockDescribeLimitExceeded,
  kRequestLimitExceeded,
  kUnavailable,
  kInternalError,
};

// A refusal with that code.
absl::Status Refuse(ErrorCode code, std::string message);

template <typename... Args>
absl::Status Refused(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Refuse(code, fmt::format(format, std::forward<Args>(args)...));
}

struct Refusal {
  std::string_view code;  // as EC2 writes it: "InvalidCapacityReservationId.NotFound"
  int http_status = 400;
  std::string message;
};

// How a failure is answered. One without a code of EC2's gets the nearest: kInvalidArgument is
// InvalidParameterValue, kUnavailable is Unavailable, and what nobody foresaw is InternalError,
// whose message stays here.
Refusal RefusalOf(const absl::Status& status);

}  // namespace tahoma::controller::ec2
