#include "lib/base/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "lib/base/rng.h"

namespace tahoma {
namespace {

// A code point in as many bytes as are asked for, whether it needs them or not.
std::string Encoded(std::uint32_t code, int bytes) {
  if (bytes == 1) return {static_cast<char>(code)};
  std::string text;
  for (int i = 1; i < bytes; ++i) {
    text.insert(text.begin(), static_cast<char>(0x80U | (code & 0x3FU)));
    code >>= 6;
  }
  const std::uint32_t lead = 0xF00U >> static_cast<unsigned>(bytes);
  text.insert(text.begin(), static_cast<char>((lead & 0xFFU) | code));
  return text;
}

int BytesNeeded(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

TEST(Utf8Test, EveryCodePointIsSoInItsShortestFormOnly) {
  for (std::uint32_t code = 0; code < 0x200000; code += code < 0x3000 ? 1 : 7) {
    const bool exists = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    for (int bytes = BytesNeeded(code); bytes <= 4; ++bytes) {
      const bool shortest = bytes == BytesNeeded(code);
      ASSERT_EQ(IsUtf8("abc" + Encoded(code, bytes) + "z"), exists && shortest)
          << code << " in " << bytes;
    }
  }
}

TEST(Utf8Test, BytesThatAreNoCharacterAreFoundWhereverTheyStand) {
  for (const std::string wrong : {"\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3\xC3"}) {
    for (std::size_t at = 0; at < 40; ++at) {
      EXPECT_FALSE(IsUtf8(std::string(at, 'a') + wrong + "tail"));
      EXPECT_FALSE(IsUtf8(std::string(at, 'a') + wrong));
    }
  }
  EXPECT_TRUE(IsUtf8(""));
}

TEST(Utf8Test, ACutTextIsTheLongestPrefixOfWholeCharacters) {
  Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    std::string expected;
    const std::size_t most = rng.Below(20);
    bool fits = true;
    for (std::uint64_t left = rng.Below(12); left > 0; --left) {
      const std::uint32_t code = std::array{0x41U, 0xE9U, 0x20ACU, 0x1F600U}[rng.Below(4)];
      text += Encoded(code, BytesNeeded(code));
      fits = fits && text.size() <= most;
      if (fits) expected = text;
    }
    EXPECT_EQ(CutUtf8(text, most), expected);
  }
}

}  // namespace
}  // namespace tahoma
