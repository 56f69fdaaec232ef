// Small words about ASCII text, whatever the locale of the process says.
//
//   if (EqualsIgnoringCase(name, "Content-Length")) …
//   Trimmed(" a b\t");     // "a b"
//   Split("a,,b", ',');    // "a", "", "b"; of the empty text: ""
//
// Scope: ASCII only, whatever the locale of the process says. (absl::EqualsIgnoreCase does the
// same, but Debian's Abseil has a string_view of its own, to which std::string_view does not
// convert.)

#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace tahoma {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

constexpr char AsciiLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, AsciiLower, AsciiLower);
}

// Returns the text without blanks at its ends.
constexpr std::string_view Trimmed(std::string_view text, std::string_view blanks = " \t") {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace tahoma
