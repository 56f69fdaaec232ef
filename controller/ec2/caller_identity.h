// Who the caller is: GetCallerIdentity of AWS's Security Token Service (STS), which many clients
// ask before EC2, and the form of STS's answers, which is not EC2's.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "controller/ec2/actions.h"
#include "controller/ec2/error.h"

namespace tahoma::controller::ec2 {

inline constexpr std::string_view kStsVersion = "2011-06-15";

absl::StatusOr<std::string> GetCallerIdentity(const Call& call);

// Returns a refusal as STS words it.
std::string StsErrorAnswer(const Refusal& refusal, std::string_view request_id);

}  // namespace tahoma::controller::ec2
