#include "lib/base/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace tahoma {
namespace {

// Returns a lower bound of the number of ASCII bytes at the front, which are read eight at a time.
std::size_t AsciiPrefix(std::string_view bytes) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::size_t at = 0;
  for (std::uint64_t some = 0; at + sizeof some <= bytes.size(); at += sizeof some) {
    std::memcpy(&some, bytes.data() + at, sizeof some);
    if ((some & kHighBits) != 0) break;
  }
  return at;
}

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

bool IsUtf8(std::string_view bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  // The least code point of each length: a longer form of a lesser one is not UTF-8.
  static constexpr std::array<std::uint32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
  for (std::size_t at = AsciiPrefix(bytes); at < bytes.size();) {
    const unsigned char first = byte(at++);
    if (first < 0x80) continue;
    if (first < 0xC2 || first > 0xF4) return false;
    const std::size_t more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    if (bytes.size() - at < more) return false;
    std::uint32_t code = first & (0x3FU >> more);
    for (std::size_t i = 0; i < more; ++i, ++at) {
      if (!Continues(bytes[at])) return false;
      code = code << 6 | (byte(at) & 0x3FU);
    }
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (code < kLeast[more] || code > 0x10FFFF || surrogate) return false;
  }
  return true;
}

std::string_view CutUtf8(std::string_view text, std::size_t bytes_most) {
  if (text.size() <= bytes_most) return text;
  while (bytes_most > 0 && Continues(text[bytes_most])) --bytes_most;
  return text.substr(0, bytes_most);
}

std::string CutName(std::string_view name) {
  constexpr std::size_t kNameMost = 512;  // above any name that is valid somewhere
  if (name.size() <= kNameMost) return std::string(name);
  return std::string(CutUtf8(name, kNameMost)) + "...";
}

}  // namespace tahoma
