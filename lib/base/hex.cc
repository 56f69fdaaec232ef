#include "lib/base/hex.h"

#include <cstddef>

namespace tahoma {

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits(2 * bytes.size(), '0');
  char* next = digits.data();
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    *next++ = kDigits[byte >> 4U];
    *next++ = kDigits[byte & 15U];
  }
  return digits;
}

std::optional<std::string> Unhex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = HexDigit(digits[i]);
    const int low = HexDigit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace tahoma
