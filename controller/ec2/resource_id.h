// The form of EC2's ids: a prefix that says what it is, then letters and digits.
//
//   IsIdOf("cr-0a1b2c3d4e5f60718", kReservationPrefix);   // true
//
// Thread safety: pure functions.

#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tahoma::controller::ec2 {

inline constexpr std::string_view kReservationPrefix = "cr-";
inline constexpr std::string_view kBlockPrefix = "cb-";
// Far above any id of an object: those have 17 characters after the prefix.
inline constexpr std::size_t kResourceIdBytesMost = 128;

// Returns whether small letters and digits, at least one, follow the prefix.
inline bool IsIdOf(std::string_view id, std::string_view prefix) {
  return id.starts_with(prefix) && id.size() > prefix.size() && id.size() <= kResourceIdBytesMost &&
         std::ranges::all_of(id.substr(prefix.size()), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
         });
}

}  // namespace tahoma::controller::ec2
