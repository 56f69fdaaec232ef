#include "controller/app/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  testing::TempDir dir_;
};

TEST_F(FilesTest, AFileIsReadWholeAndBytesAreKept) {
  const std::string bytes = std::string("a\0b\r\n\xff", 6) + std::string(200'000, 'x');
  EXPECT_EQ(*ReadFile(Make("f", bytes)), bytes);
  EXPECT_EQ(*ReadFile(Make("empty", "")), "");
}

TEST_F(FilesTest, WhatCannotBeReadIsNamedWithTheSystemsReason) {
  const auto missing = ReadFile(dir_.path() + "/none");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_EQ(Message(missing.status()),
            dir_.path() + "/none: cannot be opened: No such file or directory");
  EXPECT_EQ(Message(ReadFile(dir_.path()).status()),
            dir_.path() + ": cannot be read: Is a directory");
  const std::string large = Make("large", std::string((4U << 20U) + 1, 'x'));
  EXPECT_EQ(Message(ReadFile(large).status()), large + " is larger than 4194304 bytes");
}

TEST_F(FilesTest, ATokenIsWithoutTheSpaceAroundIt) {
  EXPECT_EQ(*ReadToken(Make("t", " \tsecret word\r\n\n")), "secret word");
  for (const std::string text : {"", " \n\t"}) {
    const std::string path = Make("empty", text);
    const auto token = ReadToken(path);
    EXPECT_TRUE(absl::IsInvalidArgument(token.status()));
    EXPECT_EQ(Message(token.status()), path + " holds no token");
  }
  EXPECT_TRUE(absl::IsNotFound(ReadToken(dir_.path() + "/none").status()));
}

TEST_F(FilesTest, AWrittenFileReplacesTheOldOneAndIsTheOwnersAlone) {
  const std::string path = Make("f", "old and longer");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_TRUE(WriteFile(path, "new").ok());
  EXPECT_EQ(*ReadFile(path), "new");
  struct stat made = {};
  ASSERT_EQ(::stat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(FilesTest, WhatCannotBeWrittenIsNamedAndTheOldFileStays) {
  const std::string path = dir_.path() + "/none/f";
  EXPECT_EQ(Message(WriteFile(path, "x")),
            path + ".new: cannot be created: No such file or directory");
  const std::string folder = dir_.path() + "/folder";
  std::filesystem::create_directories(folder + "/inside");
  EXPECT_FALSE(WriteFile(folder, "x").ok());
  EXPECT_TRUE(std::filesystem::exists(folder + "/inside"));
}

}  // namespace
}  // namespace tahoma::controller
