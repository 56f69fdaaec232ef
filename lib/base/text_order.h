// The order of texts by their bytes, as std::less<> has it, for maps with short keys.
//
// Compares eight bytes at once where a library call would take longer than the comparison.

#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tahoma {

struct TextLess {
  using is_transparent = void;

  bool operator()(std::string_view a, std::string_view b) const {
    const std::uint64_t first = FirstBytes(a);
    const std::uint64_t second = FirstBytes(b);
    if (first != second) return first < second;
    constexpr std::size_t kBytes = sizeof(std::uint64_t);
    if (a.size() <= kBytes || b.size() <= kBytes) return a.size() < b.size();
    return a.substr(kBytes) < b.substr(kBytes);
  }

  // The first eight bytes as a number, the first on top; zeros where there are fewer.
  static std::uint64_t FirstBytes(std::string_view text) {
    const auto load = [&]<typename Word>(Word word, std::size_t at) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if constexpr (sizeof word == 8) return __builtin_bswap64(word);
      if constexpr (sizeof word == 4) return __builtin_bswap32(word);
    };
    const std::size_t size = text.size();
    if (size >= 8) return load(std::uint64_t{}, 0);
    if (size >= 4) {  // two words that may overlap
      const std::uint64_t low = load(std::uint32_t{}, size - 4);
      return std::uint64_t{load(std::uint32_t{}, 0)} << 32U | low << (8 * (8 - size));
    }
    std::uint64_t bytes = 0;
    for (const char c : text) bytes = bytes << 8U | static_cast<unsigned char>(c);
    return size == 0 ? 0 : bytes << (8 * (8 - size));
  }
};

}  // namespace tahoma
