#include "lib/base/ascii.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tahoma {
namespace {

using ::testing::ElementsAre;

TEST(AsciiTest, TrimmedTextHasNoBlanksAtItsEnds) {
  EXPECT_EQ(Trimmed(" \t a b\t "), "a b");
  EXPECT_EQ(Trimmed("a"), "a");
  EXPECT_EQ(Trimmed(" \t "), "");
  EXPECT_EQ(Trimmed(""), "");
  EXPECT_EQ(Trimmed("\ra\n"), "\ra\n");
  EXPECT_EQ(Trimmed("\ra\n", "\r\n"), "a");
}

TEST(AsciiTest, SplitTextHasOnePartMoreThanSeparators) {
  EXPECT_THAT(Split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(Split(",a,,", ','), ElementsAre("", "a", "", ""));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
}

TEST(AsciiTest, DigitsAreAscii) {
  EXPECT_TRUE(IsDigit('0') && IsDigit('9'));
  EXPECT_FALSE(IsDigit('/') || IsDigit(':') || IsDigit('\xb2'));
}

TEST(AsciiTest, CaseDoesNotCount) {
  EXPECT_TRUE(EqualsIgnoringCase("Content-Length", "content-lengTH"));
  EXPECT_FALSE(EqualsIgnoringCase("a", "ab"));
}

}  // namespace
}  // namespace tahoma
