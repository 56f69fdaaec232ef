// EC2's error codes of requests, and how a failure is answered.
//
// Scope: codes of the protocol; those of Capacity Blocks are in controller/reserve/refusal.h, and
// all travel with an absl::Status as it says. The callee states the reason and what would be legal;
// nobody adds to it, for the code would be lost (Annotate of lib/base/status.h makes a new status).
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <string>

#include "controller/reserve/refusal.h"

namespace tahoma::controller::ec2 {

// The form of a request.
inline constexpr Ec2Code kMissingAction{"MissingAction"};
inline constexpr Ec2Code kInvalidAction{"InvalidAction"};
inline constexpr Ec2Code kNoSuchVersion{"NoSuchVersion"};
inline constexpr Ec2Code kMalformedQueryString{"MalformedQueryString"};
inline constexpr Ec2Code kUnknownParameter{"UnknownParameter"};
inline constexpr Ec2Code kInvalidPaginationToken{"InvalidPaginationToken"};
inline constexpr Ec2Code kFilterLimitExceeded{"FilterLimitExceeded"};
inline constexpr Ec2Code kTagLimitExceeded{"TagLimitExceeded"};
inline constexpr Ec2Code kDryRunOperation{"DryRunOperation", absl::StatusCode::kFailedPrecondition};
// Its caller.
inline constexpr Ec2Code kMissingAuthenticationToken{"MissingAuthenticationToken",
                                                     absl::StatusCode::kUnauthenticated};
inline constexpr Ec2Code kIncompleteSignature{"IncompleteSignature",
                                              absl::StatusCode::kUnauthenticated};
inline constexpr Ec2Code kAuthFailure{"AuthFailure", absl::StatusCode::kUnauthenticated};
inline constexpr Ec2Code kSignatureDoesNotMatch{"SignatureDoesNotMatch",
                                                absl::StatusCode::kUnauthenticated};
inline constexpr Ec2Code kRequestExpired{"RequestExpired", absl::StatusCode::kUnauthenticated};
inline constexpr Ec2Code kUnauthorizedOperation{"UnauthorizedOperation",
                                                absl::StatusCode::kPermissionDenied};
// Its objects.
inline constexpr Ec2Code kBlockMalformed{"InvalidCapacityBlockId.Malformed"};
inline constexpr Ec2Code kBlockNotFound{"InvalidCapacityBlockId.NotFound",
                                        absl::StatusCode::kNotFound};
inline constexpr Ec2Code kOperationNotPermitted{"OperationNotPermitted",
                                                absl::StatusCode::kFailedPrecondition};
inline constexpr Ec2Code kInstanceMalformed{"InvalidInstanceID.Malformed"};
inline constexpr Ec2Code kInstanceNotFound{"InvalidInstanceID.NotFound",
                                           absl::StatusCode::kNotFound};

inline constexpr Ec2Code kInvalidId{"InvalidID"};
inline constexpr Ec2Code kInvalidInstanceType{"InvalidInstanceType"};

struct Refusal {
  std::string code;  // as EC2 writes it: "InvalidCapacityReservationId.NotFound"
  int http_status = 400;
  std::string message;
};

// How a failure is answered. One without a code of EC2's gets the nearest: kInvalidArgument is
// InvalidParameterValue, kUnavailable is Unavailable, and what nobody foresaw is InternalError,
// whose message stays here.
Refusal RefusalOf(const absl::Status& status);

}  // namespace tahoma::controller::ec2
