#include "sim-node/serve/socket_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SocketFoldersTest : public ::testing::Test {
 protected:
  static unsigned ModeOf(const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777U;
  }
  testing::TempDir dir_;
};

TEST_F(SocketFoldersTest, FoldersGetTheirModesWhateverTheUmask) {
  for (const mode_t mask : {mode_t{0}, mode_t{0077}}) {
    const mode_t former = umask(mask);
    const std::string folder = dir_.path() + "/" + std::to_string(mask);
    EXPECT_TRUE(MakePrivateFolder(folder + "/own/s").ok());
    EXPECT_TRUE(MakeWorkloadFolder(folder + "/pods/s").ok());
    umask(former);
    EXPECT_EQ(ModeOf(folder + "/own"), 0700U);
    EXPECT_EQ(ModeOf(folder + "/pods"), 0755U);
  }
}

TEST_F(SocketFoldersTest, AFolderOpenToOtherUsersIsRefusedAndNotChanged) {
  fs::permissions(dir_.path(), fs::perms(0750));
  EXPECT_THAT(std::string(Message(MakePrivateFolder(dir_.path() + "/s"))),
              HasSubstr("is open to other users (mode 0750), and whoever reaches"));
  EXPECT_EQ(ModeOf(dir_.path()), 0750U);
  fs::permissions(dir_.path(), fs::perms(0700));
  EXPECT_TRUE(MakePrivateFolder(dir_.path() + "/s").ok());
}

TEST_F(SocketFoldersTest, WhatContainersGetHoldsTheSocketAlone) {
  const std::string socket = dir_.path() + "/pods/s";
  ASSERT_TRUE(MakeWorkloadFolder(socket).ok());
  std::ofstream(socket) << "of a former run";
  EXPECT_TRUE(MakeWorkloadFolder(socket).ok());
  std::ofstream(dir_.path() + "/pods/node.sock") << "x";
  EXPECT_THAT(std::string(Message(MakeWorkloadFolder(socket))),
              HasSubstr("is given to containers, and holds node.sock too"));
  fs::remove(dir_.path() + "/pods/node.sock");
  fs::permissions(dir_.path() + "/pods", fs::perms(0777));
  EXPECT_THAT(std::string(Message(MakeWorkloadFolder(socket))),
              HasSubstr("can be written by other users (mode 0777)"));
}

}  // namespace
}  // namespace tahoma::sim
