// The audit file on a disk that fills up, recovers, and is rotated.

#include "controller/access/audit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "lib/base/files.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AuditFileTest : public ::testing::Test {
 protected:
  void Open() {
    auto file = AuditFile::Open(
        path_, metrics_, [this](const std::string& line) { log_.push_back(line); },
        [this](int fd, const char* bytes, std::size_t size) -> long {
          if (room_ == 0) {
            errno = ENOSPC;
            return -1;
          }
          const long put = ::write(fd, bytes, std::min(size, room_));
          room_ -= static_cast<std::size_t>(put);
          return put;
        });
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
  }
  std::string Text(const std::string& path) const { return ReadFile(path).value_or("?"); }

  testing::TempDir dir_;
  const std::string path_ = dir_.path() + "/audit.log";
  rest::Metrics metrics_;
  std::vector<std::string> log_;
  std::size_t room_ = 1 << 30;
  std::unique_ptr<AuditFile> file_;
};

TEST_F(AuditFileTest, LinesAreAppendedForItsOwnerOnly) {
  Open();
  file_->Append("one");
  file_.reset();
  Open();
  file_->Append("two");
  EXPECT_EQ(Text(path_), "one\ntwo\n");
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
  EXPECT_TRUE(file_->Writable());
}

TEST_F(AuditFileTest, AFullDiskCutsNoLineAndIsToldOnce) {
  Open();
  room_ = 6;
  file_->Append("first");
  file_->Append("second");
  file_->Append("third");
  EXPECT_FALSE(file_->Writable());
  EXPECT_EQ(Text(path_), "first\n");
  EXPECT_THAT(log_, ElementsAre(HasSubstr("cannot be written: No space left on device")));
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_audit_write_failures_total"));
  room_ = 3;
  file_->Poll();
  EXPECT_EQ(Text(path_), "first\nsec") << "half a line, for now";
  room_ = 1 << 20;
  file_->Poll();
  EXPECT_EQ(Text(path_), "first\nsecond\nthird\n");
  EXPECT_TRUE(file_->Writable());
  EXPECT_THAT(log_, ElementsAre(HasSubstr("cannot be written"), HasSubstr("is written again")));
}

TEST_F(AuditFileTest, LinesThatFitNeitherTheDiskNorMemoryAreCounted) {
  Open();
  room_ = 0;
  const std::string line(100'000, 'x');
  for (int i = 0; i < 12; ++i) file_->Append(line);
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_audit_lines_lost_total 2"));
  room_ = 1 << 30;
  file_->Poll();
  EXPECT_EQ(Text(path_).size(), 10 * (line.size() + 1));
}

TEST_F(AuditFileTest, ARotationIsFollowedAndLosesNothing) {
  Open();
  file_->Append("one");
  std::filesystem::rename(path_, path_ + ".1");
  file_->Append("two");
  file_->Poll();
  file_->Append("three");
  EXPECT_EQ(Text(path_ + ".1"), "one\ntwo\n");
  EXPECT_EQ(Text(path_), "three\n");
  std::filesystem::remove(path_);
  file_->Poll();
  file_->Append("four");
  EXPECT_EQ(Text(path_), "four\n");
}

TEST_F(AuditFileTest, APathThatIsNoPlainFileIsRefused) {
  const auto open = [&](const std::string& path) {
    return AuditFile::Open(path, metrics_, [](const std::string&) {});
  };
  EXPECT_FALSE(open(dir_.path()).ok());
  EXPECT_FALSE(open(dir_.path() + "/none/audit.log").ok());
  ASSERT_EQ(::mkfifo((dir_.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(open(dir_.path() + "/fifo").ok());
  ASSERT_TRUE(WriteAtomically(path_, "", 0600).ok());
  ASSERT_EQ(::symlink(path_.c_str(), (dir_.path() + "/link").c_str()), 0);
  EXPECT_FALSE(open(dir_.path() + "/link").ok()) << "a link could lead anywhere";
}

}  // namespace
}  // namespace tahoma::controller
