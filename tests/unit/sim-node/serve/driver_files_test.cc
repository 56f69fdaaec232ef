// AWS's driver's files in /sys: their text, and the folder that is kept up to date for containers.

#include "sim-node/serve/driver_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

using ::testing::IsEmpty;

Instance InstanceOf(const std::string& type) {
  absl::StatusOr<Instance> instance =
      Instance::Create({.type = hw::FindInstanceType(type), .name = "node-0"}, [] {
        return std::array<std::uint64_t, 2>{1, 2};
      });
  return *std::move(instance);
}

// The column of docs/reference's device table, read from aws-neuron-driver v3/neuron_dhal_v3.c.
TEST(DriverFilesTest, NeighboursAreInTheDriversOrder) {
  const std::vector<std::string> expected = {
      "12, 1, 3, 4",  "0, 13, 5, 2",  "14, 3, 1, 6",   "2, 15, 7, 0",
      "8, 5, 7, 0",   "4, 9, 1, 6",   "10, 7, 5, 2",   "6, 11, 3, 4",
      "4, 9, 11, 12", "8, 5, 13, 10", "6, 11, 9, 14",  "10, 7, 15, 8",
      "0, 13, 15, 8", "12, 1, 9, 14", "2, 15, 13, 10", "14, 3, 11, 12"};
  const Instance instance = InstanceOf("trn2.48xlarge");
  for (int chip = 0; chip < 16; ++chip) {
    EXPECT_EQ(ConnectedDevicesInSysfs(instance, chip),
              expected[static_cast<std::size_t>(chip)] + "\n");
  }
  EXPECT_EQ(ConnectedDevicesInSysfs(InstanceOf("trn2.3xlarge"), 0), "\n");
}

TEST(DriverFilesTest, AChipShowsItsUncorrectableErrors) {
  Instance instance = InstanceOf("trn2.48xlarge");
  EXPECT_EQ(ChipFilesOf(instance, 3).at("stats/hardware/mem_ecc_uncorrected"), "0\n");
  EXPECT_EQ(ChipFilesOf(instance, 3).at("core_count"), "8");
  ASSERT_TRUE(instance.BreakChip(3, ChipFault::kHbmUncorrectable).ok());
  EXPECT_EQ(ChipFilesOf(instance, 3).at("stats/hardware/mem_ecc_uncorrected"), "1\n");
  EXPECT_EQ(ChipFilesOf(instance, 3).at("stats/hardware/sram_ecc_uncorrected"), "0\n");
}

TEST(DriverFilesTest, ACoreCountsHowItsProgramsEnded) {
  CoreCounts counts;
  counts.ended = {5, 2, 1};
  counts.in_use = std::chrono::microseconds(77);
  counts.flops = 1000;
  const DriverFiles files = CoreFilesOf(counts, ChipFault::kDma);
  EXPECT_EQ(files.at("stats/status/success/total"), "5\n");
  EXPECT_EQ(files.at("stats/status/generic_error/total"), "2\n");
  EXPECT_EQ(files.at("stats/status/hw_dma_abort_error/total"), "1\n");
  EXPECT_EQ(files.at("stats/status/hw_nc_ue_error/total"), "0\n");
  EXPECT_EQ(files.at("stats/other_info/nc_time_in_use"), "77\n");
  EXPECT_EQ(files.at("stats/other_info/flop_count"), "1000\n");
}

class DriverFolderTest : public ::testing::Test {
 protected:
  std::string Text(const std::string& path) const {
    std::ifstream in(dir_.path() + "/" + path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  tahoma::testing::TempDir dir_;
  ManualClock clock_;
  CoreCounters counters_{clock_};
  LiveInstance live_{InstanceOf("trn2u.48xlarge")};
  std::vector<std::string> warnings_;
  DriverFolder folder_{dir_.path(), live_, counters_,
                       [this](const std::string& line) { warnings_.push_back(line); }};
};

TEST_F(DriverFolderTest, ACoreIsShownIdleUntilItsFirstProgramEnds) {
  folder_.ShowAll();
  EXPECT_EQ(Text("devices/neuron15/connected_devices"), "14, 3, 11, 12\n");
  EXPECT_EQ(Text("class/node_id_4"), "-1\n");
  const std::string core = "devices/neuron2/neuron_core1/";
  EXPECT_EQ(Text(core + "stats/status/success/total"), "0\n");

  const PhysicalCore ran{.chip = torus::ChipIndex(2), .core = 1};
  counters_.Begin(ran, 1);
  counters_.End(ran, 1, InvalidArgument("a bad program"));
  folder_.ShowChip(2);
  EXPECT_EQ(Text(core + "stats/status/generic_error/total"), "1\n");
  EXPECT_EQ(Text("devices/neuron2/neuron_core0/stats/status/generic_error/total"), "0\n");
  EXPECT_THAT(warnings_, IsEmpty());
}

// The defect: under a umask of 077, as `make up` has, pods with users of their own read nothing.
TEST_F(DriverFolderTest, AnyUserMayReadWhateverTheUmask) {
  const mode_t before = umask(0777);
  folder_.ShowAll();
  umask(before);
  using enum std::filesystem::perms;
  int looked_at = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
    if (entry.is_symlink()) continue;
    const auto needed = others_read | (entry.is_directory() ? others_exec : none);
    EXPECT_EQ(entry.status().permissions() & needed, needed) << entry.path();
    ++looked_at;
  }
  EXPECT_GT(looked_at, 200);
}

TEST_F(DriverFolderTest, AFileThatCannotBeWrittenIsToldAndWrittenLater) {
  std::ofstream(dir_.path() + "/devices") << "no folder";
  folder_.ShowChip(0);
  EXPECT_FALSE(warnings_.empty());
  std::filesystem::remove(dir_.path() + "/devices");
  folder_.ShowChip(0);
  EXPECT_EQ(Text("devices/neuron0/core_count"), "8");
}

TEST_F(DriverFolderTest, OnceShownOnlyWhatChangesIsWritten) {
  folder_.ShowAll();
  const auto before = std::filesystem::last_write_time(dir_.path() + "/devices/neuron1/core_count");
  std::filesystem::remove(dir_.path() + "/devices/neuron0/core_count");
  ASSERT_TRUE(live_
                  .Change([](Instance& instance) {
                    return instance.BreakChip(1, ChipFault::kSramUncorrectable);
                  })
                  .ok());
  folder_.ShowAll();
  EXPECT_EQ(Text("devices/neuron1/stats/hardware/sram_ecc_uncorrected"), "1\n");
  EXPECT_EQ(std::filesystem::last_write_time(dir_.path() + "/devices/neuron1/core_count"), before);
  EXPECT_EQ(Text("devices/neuron0/core_count"), "");  // not written again
}

}  // namespace
}  // namespace tahoma::sim
