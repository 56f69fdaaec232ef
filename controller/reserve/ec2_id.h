// The form of EC2's ids: a prefix, and hexadecimal digits in small letters.
//
//   IsEc2Id("cr-0123456789abcdef0", "cr-");                    // true
//   return MalformedId(kReservationMalformed, id, "cr-");      // Invalid id: "CR-01" (expecting …
//
// Scope: the form. Whether there is such an object is for others to say.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string_view>

#include "controller/reserve/refusal.h"

namespace tahoma::controller {

// EC2's ids have 8 digits, or 17 since 2016.
inline constexpr std::size_t kShortIdDigits = 8;
inline constexpr std::size_t kIdDigits = 17;

// Returns whether the text is the prefix with 8 digits, or with 17 to `most`.
bool IsEc2Id(std::string_view text, std::string_view prefix, std::size_t most = kIdDigits);

// Refuses a text that is none, in EC2's words.
absl::Status MalformedId(const Ec2Code& code, std::string_view text, std::string_view prefix);

}  // namespace tahoma::controller
