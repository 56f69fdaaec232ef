// The holder of the lease is the same after a restart on the same folder, and nobody else.

#include "controller/run/identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "controller/store/store.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

// As a controller that opens the folder, takes its name and is killed.
std::string IdentityOf(const std::string& dir) {
  const auto store = Store::Open({.dir = dir});
  EXPECT_TRUE(store.ok()) << store.status();
  return LeaseIdentity(dir);
}

TEST(LeaseIdentityTest, IsTheSameAfterARestart) {
  const testing::TempDir folder;
  const std::string first = IdentityOf(folder.path() + "/data");
  EXPECT_EQ(IdentityOf(folder.path() + "/data"), first);
}

TEST(LeaseIdentityTest, ACopyOfTheFolderHasAnother) {
  const testing::TempDir folder;
  const std::string first = IdentityOf(folder.path() + "/data");
  std::filesystem::copy(folder.path() + "/data", folder.path() + "/copy",
                        std::filesystem::copy_options::recursive);
  EXPECT_NE(IdentityOf(folder.path() + "/copy"), first);
  EXPECT_NE(IdentityOf(folder.path() + "/other"), first);
}

TEST(LeaseIdentityTest, TwoProcessesWithOneAreImpossibleWhileTheStoreIsOpen) {
  const testing::TempDir folder;
  const auto store = Store::Open({.dir = folder.path() + "/data"});
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE(Store::Open({.dir = folder.path() + "/data"}).ok());
}

TEST(LeaseIdentityTest, WithoutALockFileItIsUnique) {
  EXPECT_NE(LeaseIdentity("/nowhere"), LeaseIdentity("/nowhere"));
}

}  // namespace
}  // namespace tahoma::controller
