#include "lib/base/hex.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace tahoma {
namespace {

std::string EveryByte() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

TEST(HexTest, DigitsAreThoseOfPrintf) {
  std::string expected;
  for (int byte = 0; byte < 256; ++byte) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    expected += digits;
  }
  EXPECT_EQ(Hex(EveryByte()), expected);
}

TEST(HexTest, WhatWasWrittenIsReadInEitherCase) {
  EXPECT_EQ(Unhex(Hex(EveryByte())), EveryByte());
  EXPECT_EQ(Unhex("0Fa9"), Unhex("0fA9"));
  EXPECT_EQ(Unhex(""), "");
}

TEST(HexTest, HalfAByteAndOtherCharactersAreRefused) {
  for (const char* wrong : {"0", "abc", "0g", "+1", " 1", "1 ", "0x"}) {
    EXPECT_EQ(Unhex(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace tahoma
