// Bytes as hexadecimal digits, and back.
//
//   Hex("\x0f!");      // "0f21"
//   Unhex("0F21");     // "\x0f!"
//
// Scope: text. (absl's functions take Abseil's own string_view on Debian, and HexStringToBytes does
// not say when its input is no hexadecimal.)

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tahoma {

// The value of a digit, in either case; -1 when `c` is none.
constexpr int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Two lower-case digits for each byte.
std::string Hex(std::string_view bytes);

// Decodes hexadecimal digits; nothing when their number is odd, or one of them is no digit.
std::optional<std::string> Unhex(std::string_view digits);

}  // namespace tahoma
