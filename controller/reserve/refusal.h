// Refusals of requests for Capacity Blocks, each with EC2's code.
//
//   return Refuse(kInvalidParameterValue, "capacityDurationHours {}: must be {}", hours, legal);
//   Ec2CodeOf(status);                                  // "InvalidParameterValue"
//
// The status carries the code, and each API shows it: the EC2 API as <Code>, the REST API in its
// problem, Kubernetes as a condition's reason.
//
// Scope: codes (docs/reference/capacity-blocks.md#errors). The message names the legal values.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace tahoma::controller {

// A code of EC2 and the status that fits the code.
struct Ec2Code {
  std::string_view name;
  absl::StatusCode status = absl::StatusCode::kInvalidArgument;
};

inline constexpr Ec2Code kMissingParameter{"MissingParameter"};
inline constexpr Ec2Code kInvalidParameterValue{"InvalidParameterValue"};
inline constexpr Ec2Code kInvalidParameterCombination{"InvalidParameterCombination"};
inline constexpr Ec2Code kUnsupportedInstanceType{"Unsupported"};
inline constexpr Ec2Code kOfferingMalformed{"InvalidCapacityBlockOfferingIdMalformed"};
inline constexpr Ec2Code kOfferingNotFound{"InvalidCapacityBlockOfferingIdNotFound",
                                           absl::StatusCode::kNotFound};
inline constexpr Ec2Code kOfferingExpired{"InvalidCapacityBlockOfferingIdExpired",
                                          absl::StatusCode::kAborted};
inline constexpr Ec2Code kReservationMalformed{"InvalidCapacityReservationId.Malformed"};
inline constexpr Ec2Code kReservationNotFound{"InvalidCapacityReservationId.NotFound",
                                              absl::StatusCode::kNotFound};
inline constexpr Ec2Code kReservationState{"InvalidCapacityReservationState",
                                           absl::StatusCode::kFailedPrecondition};
inline constexpr Ec2Code kInsufficientCapacity{"InsufficientInstanceCapacity",
                                               absl::StatusCode::kResourceExhausted};
inline constexpr Ec2Code kInstanceLimitExceeded{"InstanceLimitExceeded",
                                                absl::StatusCode::kResourceExhausted};
inline constexpr Ec2Code kIdempotentMismatch{"IdempotentParameterMismatch"};

absl::Status RefuseWith(const Ec2Code& code, const std::string& message);

template <typename... Args>
absl::Status Refuse(const Ec2Code& code, fmt::format_string<Args...> format, Args&&... args) {
  return RefuseWith(code, fmt::format(format, std::forward<Args>(args)...));
}

// Returns whether the status carries a code.
bool IsRefusal(const absl::Status& status);
// Returns the name of the status's code; "InternalError" without a code.
std::string Ec2CodeOf(const absl::Status& status);

}  // namespace tahoma::controller
