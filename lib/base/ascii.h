// Compares text as the protocols of the web do: ASCII, without regard to case.
//
//   if (EqualsIgnoringCase(name, "Content-Length")) …
//
// Scope: ASCII only, whatever the locale of the process says. (absl::EqualsIgnoreCase does the
// same, but Debian's Abseil has a string_view of its own, to which std::string_view does not
// convert.)

#pragma once

#include <algorithm>
#include <string_view>

namespace tahoma {

constexpr char AsciiLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, AsciiLower, AsciiLower);
}

}  // namespace tahoma
