// Small files: every step of a write fails once, and is once the last step of a process.

#include "lib/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::array kSteps = {WriteStep::kCreate,    WriteStep::kSetMode, WriteStep::kWrite,
                               WriteStep::kSync,      WriteStep::kClose,   WriteStep::kRename,
                               WriteStep::kSyncFolder};

class FilesTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  static unsigned ModeOf(const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777U;
  }
  Warn warn() {
    return [this](const std::string& line) { warnings_.push_back(line); };
  }

  testing::TempDir dir_;
  std::vector<std::string> warnings_;
};

// ---- Reading -----------------------------------------------------------------------------------

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
  const std::string large = Make("large", std::string(kFileBytesMost + 1, 'x'));
  EXPECT_EQ(Message(ReadFile(large).status()), large + " is larger than 4194304 bytes");
  EXPECT_EQ(ReadFile(large, kFileBytesMost + 1)->size(), kFileBytesMost + 1);
}

TEST_F(FilesTest, ASecretThatOthersMayReadIsReadWithAWarning) {
  const std::string path = Make("secret", "s");
  for (const auto& [mode, says] : {std::pair(0644U, "others may read it (mode 0644)"),
                                   std::pair(0660U, "others may write it (mode 0660)")}) {
    warnings_.clear();
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(*ReadSecretFile(path, warn()), "s");
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_THAT(warnings_[0], HasSubstr(path + " holds a secret, but "));
    EXPECT_THAT(warnings_[0], HasSubstr(says));
  }
}

TEST_F(FilesTest, ASecretOfTheOwnerAndTheGroupNeedsNoWarning) {
  const std::string path = Make("secret", "s");
  for (const mode_t mode : {0600U, 0400U, 0440U, 0640U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(*ReadSecretFile(path, warn()), "s");
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(FilesTest, ASecretThatEverybodyMayWriteIsRefused) {
  const std::string path = Make("secret", "s");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const auto read = ReadSecretFile(path, warn());
  EXPECT_TRUE(absl::IsPermissionDenied(read.status()));
  EXPECT_EQ(Message(read.status()),
            path +
                " holds a secret, but everybody may write it (mode 0666); its mode should be "
                "0600");
}

TEST_F(FilesTest, ATokenIsWithoutTheSpaceAroundIt) {
  EXPECT_EQ(*ReadTokenFile(Make("t", " \tsecret word\r\n\n"), warn()), "secret word");
  for (const std::string text : {"", " \n\t"}) {
    const std::string path = Make("empty", text);
    const auto token = ReadTokenFile(path, warn());
    EXPECT_TRUE(absl::IsInvalidArgument(token.status()));
    EXPECT_EQ(Message(token.status()), path + " holds no token");
  }
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(dir_.path() + "/none", warn()).status()));
}

// ---- Writing -----------------------------------------------------------------------------------

TEST_F(FilesTest, AWrittenFileReplacesTheOldFileAndHasTheGivenMode) {
  const std::string path = Make("f", "old and longer");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const mode_t before = ::umask(0077);
  for (const mode_t mode : {0600U, 0644U}) {
    ASSERT_TRUE(WriteAtomically(path, "new", mode).ok());
    EXPECT_EQ(*ReadFile(path), "new");
    EXPECT_EQ(ModeOf(path), mode);
  }
  ::umask(before);
  EXPECT_EQ(Names(), std::vector<std::string>{"f"});
}

TEST_F(FilesTest, ABareNameIsWrittenInTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  EXPECT_TRUE(WriteAtomically("f", "new", 0600).ok());
  fs::current_path(before);
  EXPECT_EQ(*ReadFile(dir_.path() + "/f"), "new");
}

TEST_F(FilesTest, TheModeIsSetBeforeThereIsAnyContent) {
  const std::string path = dir_.path() + "/f";
  const std::string fresh = dir_.path() + "/.f.tmp";
  ASSERT_TRUE(WriteAtomically(path, "secret", 0640, [&](WriteStep step) {
                if (step == WriteStep::kSetMode) {
                  EXPECT_EQ(ModeOf(fresh), 0600U);
                } else if (step == WriteStep::kWrite) {
                  EXPECT_EQ(ModeOf(fresh), 0640U);
                  EXPECT_EQ(fs::file_size(fresh), 0U);
                }
                return 0;
              }).ok());
}

TEST_F(FilesTest, WhatCannotBeWrittenIsNamedAndTheOldFileStays) {
  EXPECT_EQ(Message(WriteAtomically(dir_.path() + "/none/f", "x", 0600)),
            dir_.path() + "/none/.f.tmp: cannot be created: No such file or directory");
  const std::string folder = dir_.path() + "/folder";
  fs::create_directories(folder + "/inside");
  EXPECT_EQ(Message(WriteAtomically(folder, "x", 0600)),
            folder + ": cannot be replaced: Is a directory");
  EXPECT_TRUE(fs::exists(folder + "/inside"));
}

TEST_F(FilesTest, AnyStepThatFailsLeavesTheOldContentsAndNothingElse) {
  const std::string path = Make("f", "old");
  for (const WriteStep failing : kSteps) {
    const absl::Status status = WriteAtomically(
        path, "new", 0600, [&](WriteStep step) { return step == failing ? ENOSPC : 0; });
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("No space left on device"));
    // The last step comes after the rename, and readers have seen the rename.
    EXPECT_EQ(*ReadFile(path), failing == WriteStep::kSyncFolder ? "new" : "old");
    EXPECT_EQ(Names(), std::vector<std::string>{"f"});
  }
}

// In a process of its own, because the limit holds for a whole process.
TEST_F(FilesTest, ADiskThatIsFullInTheMiddleOfAWriteLeavesTheOldContents) {
  const std::string path = Make("f", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{.rlim_cur = 1000, .rlim_max = 1000};
    ::setrlimit(RLIMIT_FSIZE, &little);
    const absl::Status status = WriteAtomically(path, std::string(5000, 'x'), 0600);
    ::_exit(absl::IsResourceExhausted(status) ? 0 : 1);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"f"});
}

TEST_F(FilesTest, AKillBeforeAnyStepLeavesTheOldContentsOrTheNewAndTheNextWriteSucceeds) {
  const std::string path = dir_.path() + "/f";
  for (const WriteStep last : kSteps) {
    ASSERT_TRUE(WriteAtomically(path, "old", 0600).ok());
    EXPECT_EQ(Names(), std::vector<std::string>{"f"});
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      (void)WriteAtomically(path, "new", 0600, [&](WriteStep step) {
        if (step == last) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      ::_exit(0);
    }
    int ended = 0;
    ASSERT_EQ(::waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFSIGNALED(ended));
    EXPECT_EQ(*ReadFile(path), last == WriteStep::kSyncFolder ? "new" : "old");
  }
}

TEST_F(FilesTest, ALinkInThePlaceOfTheNewFileIsNotFollowed) {
  const std::string other = Make("other", "precious");
  fs::create_symlink(other, dir_.path() + "/.f.tmp");
  ASSERT_TRUE(WriteAtomically(dir_.path() + "/f", "new", 0600).ok());
  EXPECT_EQ(*ReadFile(other), "precious");
  EXPECT_FALSE(fs::is_symlink(dir_.path() + "/f"));
}

// ---- Removing ----------------------------------------------------------------------------------

TEST_F(FilesTest, ADeviceOrAPipeIsNotReplaced) {
  const std::string pipe = dir_.path() + "/pipe";
  const std::string link = dir_.path() + "/null";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("/dev/null", link);
  for (const std::string& path : {pipe, link}) {
    const absl::Status status = WriteAtomically(path, "text", 0600);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(Message(status),
              path + " is a device, a pipe or a socket; only a file can be replaced");
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("pipe", "null"));
}

TEST_F(FilesTest, AFileIsRemovedOnceAndMissedNever) {
  const std::string path = Make("f", "x");
  EXPECT_EQ(RemoveDurably(path), absl::OkStatus());
  EXPECT_EQ(RemoveDurably(path), absl::OkStatus());
  EXPECT_TRUE(Names().empty());
}

TEST_F(FilesTest, WhatCannotBeRemovedIsNamed) {
  fs::create_directory(dir_.path() + "/folder");
  EXPECT_THAT(Message(RemoveDurably(dir_.path() + "/folder")),
              HasSubstr("/folder: cannot be removed: "));
}

}  // namespace
}  // namespace tahoma
