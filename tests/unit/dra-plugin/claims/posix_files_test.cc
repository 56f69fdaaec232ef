#include "dra-plugin/claims/posix_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

class PosixFilesTest : public testing::Test {
 protected:
  PosixFilesTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "files-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    files_ = *PosixFiles::Open(folder_ / "a/b");
  }
  ~PosixFilesTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
  std::unique_ptr<PosixFiles> files_;
};

TEST_F(PosixFilesTest, WhatIsWrittenIsRead) {
  EXPECT_EQ(*files_->Read("f"), std::nullopt);
  ASSERT_TRUE(files_->Write("f", "one").ok());
  ASSERT_TRUE(files_->Write("f", "two").ok());
  EXPECT_EQ(*files_->Read("f"), "two");
  EXPECT_EQ(*files_->List(), std::vector<std::string>{"f"}) << "no temporary file is left";
}

TEST_F(PosixFilesTest, RemovingTwiceIsFine) {
  ASSERT_TRUE(files_->Write("f", "one").ok());
  EXPECT_TRUE(files_->Remove("f").ok());
  EXPECT_TRUE(files_->Remove("f").ok());
  EXPECT_EQ(*files_->Read("f"), std::nullopt);
}

TEST_F(PosixFilesTest, TokensAreNotForEveryone) {
  ASSERT_TRUE(files_->Write("f", "secret").ok());
  struct stat found = {};
  ASSERT_EQ(stat(files_->PathOf("f").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600u);
}

TEST_F(PosixFilesTest, AFailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(files_->Write("f", "old").ok());
  std::filesystem::create_directory(folder_ / "a/b/.f.tmp");  // the temporary file cannot be made
  const absl::Status status = files_->Write("f", "new");
  EXPECT_NE(Message(status).find("/.f.tmp: cannot be created"), std::string::npos) << status;
  EXPECT_EQ(*files_->Read("f"), "old");
}

TEST_F(PosixFilesTest, AFolderThatCannotBeIsNamed) {
  ASSERT_TRUE(files_->Write("f", "one").ok());
  const auto opened = PosixFiles::Open(folder_ / "a/b/f/g");
  EXPECT_TRUE(absl::IsFailedPrecondition(opened.status()));
  EXPECT_NE(Message(opened.status()).find("/f/g: cannot make the folder"), std::string::npos);
}

TEST_F(PosixFilesTest, ATooLargeFileIsRefused) {
  ASSERT_TRUE(files_->Write("f", std::string((std::size_t{16} << 20U) + 1, 'x')).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Read("f").status()));
}

}  // namespace
}  // namespace tahoma::dra
