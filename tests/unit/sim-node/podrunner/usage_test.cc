// The processor time and memory of containers, by a folder in the place of /proc.

#include "sim-node/podrunner/usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UsageTest : public ::testing::Test {
 protected:
  UsageTest() { SetUpTime(1000); }

  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(dir_.path()) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void SetUpTime(int up_seconds) { Write("uptime", fmt::format("{}.00 0.00\n", up_seconds)); }
  // A process of a container that began 100 s after the machine and has used so many seconds.
  void SetProcess(int pid, const std::string& container, int seconds_used, int pages,
                  const std::string& name = "sh") const {
    const auto ticks = sysconf(_SC_CLK_TCK);
    Write(fmt::format("{}/environ", pid),
          std::string("A=b") + '\0' + "TAHOMA_CONTAINER_ID=" + container + '\0' + "C=d" + '\0');
    Write(fmt::format("{}/stat", pid),
          fmt::format("{} ({}) S 1 1 1 0 -1 4194304 9 9 9 9 {} 0 0 0 20 0 1 0 {} 4096 {} "
                      "18446744073709551615 1 1 0\n",
                      pid, name, seconds_used * ticks, 100 * ticks, pages));
  }

  const testing::TempDir dir_;
  ContainerUsage usage_{dir_.path()};
  MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(UsageTest, TheFirstLookTellsTheMeanSinceTheContainerBegan) {
  SetProcess(7, "u_main_0", 450, 10);
  const auto uses = usage_.Look(now_);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses.at("u_main_0").nano_cores, 500'000'000);
  EXPECT_EQ(uses.at("u_main_0").window, seconds(900));
  EXPECT_EQ(uses.at("u_main_0").memory_bytes, 10 * sysconf(_SC_PAGESIZE));
}

TEST_F(UsageTest, TheNextLookTellsTheRateSinceTheLookBefore) {
  SetProcess(7, "u_main_0", 450, 10);
  usage_.Look(now_);
  SetProcess(7, "u_main_0", 460, 10);
  const auto rate = usage_.Look(now_ + seconds(5)).at("u_main_0");
  EXPECT_EQ(rate.nano_cores, 2'000'000'000);
  EXPECT_EQ(rate.window, seconds(5));
  SetUpTime(2000);
  const auto mean = usage_.Look(now_ + seconds(100)).at("u_main_0");
  EXPECT_EQ(mean.window, seconds(1900)) << "the look before was too long ago";
}

TEST_F(UsageTest, LooksWithinASecondAreOne) {
  SetProcess(7, "u_main_0", 450, 10);
  usage_.Look(now_);
  SetProcess(7, "u_main_0", 451, 99);
  EXPECT_EQ(usage_.Look(now_ + milliseconds(999)).at("u_main_0").nano_cores, 500'000'000);
  EXPECT_EQ(usage_.Look(now_ + milliseconds(1000)).at("u_main_0").nano_cores, 1'000'000'000);
}

TEST_F(UsageTest, AContainerHasTheProcessesWithItsMark) {
  SetProcess(7, "u_main_0", 90, 1);
  SetProcess(8, "u_main_0", 90, 2, ") R 1 2 (");
  SetProcess(9, "u_side_0", 450, 4);
  Write("10/environ", std::string("X_TAHOMA_CONTAINER_ID=u_main_0") + '\0');
  Write("10/stat", "10 (sh) S 1\n");
  Write("11/environ", std::string("TAHOMA_CONTAINER_ID=u_main_0") + '\0');
  Write("11/stat", "11 (sh) S 1\n");
  Write("self/environ", std::string("TAHOMA_CONTAINER_ID=u_main_0") + '\0');
  const auto uses = usage_.Look(now_);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses.at("u_main_0").nano_cores, 200'000'000);
  EXPECT_EQ(uses.at("u_main_0").memory_bytes, 3 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(uses.at("u_side_0").nano_cores, 500'000'000);
}

// A process whose time nobody has waited for takes its time along.
TEST_F(UsageTest, TimeThatWentBackIsNotARate) {
  SetProcess(7, "u_main_0", 450, 1);
  usage_.Look(now_);
  SetProcess(7, "u_main_0", 90, 1);
  const auto use = usage_.Look(now_ + seconds(5)).at("u_main_0");
  EXPECT_EQ(use.nano_cores, 100'000'000);
  EXPECT_EQ(use.window, seconds(900));
}

TEST_F(UsageTest, ALongLifeOfManyCoresOverflowsNothing) {
  SetUpTime(100'000'000);
  SetProcess(7, "u_main_0", 19'000'000, 1);
  EXPECT_EQ(usage_.Look(now_).at("u_main_0").nano_cores, 190'000'190);
}

}  // namespace
}  // namespace tahoma::sim
