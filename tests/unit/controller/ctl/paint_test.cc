// Colours mark words and leave the text as it was.

#include "controller/ctl/paint.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace tahoma::controller {
namespace {

TEST(PaintTest, StatesAreColouredAndHeadersBold) {
  EXPECT_EQ(Painted("NAME   PHASE\ntrain  Running\n"),
            "\x1b[1mNAME   PHASE\x1b[0m\ntrain  \x1b[32mRunning\x1b[0m\n");
  EXPECT_EQ(Painted("Gang a: Pending, NeverFits\n"),
            "Gang a: \x1b[33mPending\x1b[0m, \x1b[31mNeverFits\x1b[0m\n");
  EXPECT_EQ(Painted("  A A . !"), "  A A . \x1b[31m!\x1b[0m");
}

TEST(PaintTest, PartsOfWordsAreLeftAlone) {
  for (const char* text : {"Running-late", "train  xRunning", "", "\n\n", "A A A A   . . . ."}) {
    const std::string painted = Painted(text);
    EXPECT_EQ(std::regex_replace(painted, std::regex("\x1b\\[[0-9]+m"), ""), text);
    EXPECT_EQ(painted.find("\x1b[32m"), std::string::npos) << text;
  }
}

TEST(PaintTest, WithoutTheColoursTheTextIsAsBefore) {
  const std::string text = "NAME   PHASE\n\nx (Failed): !,,Pending \t Running\n  ! ~ .\nend";
  EXPECT_EQ(std::regex_replace(Painted(text), std::regex("\x1b\\[[0-9]+m"), ""), text);
}

}  // namespace
}  // namespace tahoma::controller
