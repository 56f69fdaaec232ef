// A sim-node and the callers of its cores in trouble: a node that is killed during a run, many
// programs and callers at once, a disk without room for results.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/status.h"
#include "lib/isa/binary.h"
#include "lib/isa/text.h"
#include "sim-node/workload/core_node.h"
#include "tests/integration/ultraserver_nodes.h"
#include "tests/support/child_program.h"
#include "tests/support/patience.h"

namespace tahoma {
namespace {

namespace fs = std::filesystem;
using testing::Bin;
using testing::ChildProgram;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::chrono::seconds kSoon = testing::Patience(60);
constexpr std::string_view kBusy = "runs a program; try again, or use another core";

// A program that computes c of 256 KiB by so many products: 7,000 take seconds, at least.
std::string Products(int count) {
  std::string text =
      "tensor c fp32 [128, 512] out\nsbuf a bf16 [128, 128]\nsbuf b bf16 [128, 512]\n"
      "psum p fp32 [128, 512]\nsbuf s fp32 [128, 512]\nmemset a value=1\nmemset b value=0.5\n";
  for (int i = 0; i < count; ++i) text += "nc_matmul p <- a b\n";
  return text + "tensor_copy s <- p\ndma_copy c <- s\n";
}

class BusyCoresTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return nodes_.Path(name, 0); }
  std::string Program(int products) {
    const std::string path = File(fmt::format("{}.trn", products));
    std::ofstream(path) << Products(products);
    return path;
  }
  // Starts trn-run in a pod, with the file `job` as its log.
  std::unique_ptr<ChildProgram> Start(const std::string& job, const std::string& program,
                                      const std::vector<std::string>& options) const {
    std::vector<std::string> command = {Bin("trn-run"), program};
    command.insert(command.end(), options.begin(), options.end());
    return nodes_.RunRank(0, token_, job, command, 1);
  }
  // Waits until a program that was started runs on core 0 of the chip.
  bool IsRunning(int chip, ChildProgram& program) {
    return program.WaitUntil(
        [&] {
          const auto probe = Start("probe", short_, {"--no-data", "--chip", std::to_string(chip)});
          return probe->Wait() == 1 && probe->log().find(kBusy) != std::string::npos;
        },
        kSoon);
  }

  testing::UltraServerNodes nodes_;
  const std::string token_ = nodes_.Claim(0);
  const std::string long_ = Program(7000);
  const std::string short_ = Program(1);
};

TEST_F(BusyCoresTest, AProgramWhoseCallerHasGoneEndsUnfinished) {
  const auto run = Start("run", long_, {"--out", "c=" + File("c.npy")});
  ASSERT_TRUE(IsRunning(0, *run)) << run->log();
  run->Kill(SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  std::optional<int> status;
  while (status != 0 && std::chrono::steady_clock::now() < deadline) {
    status = Start("probe", short_, {"--no-data"})->Wait();
  }
  EXPECT_EQ(status, 0);
  EXPECT_THAT(
      nodes_.Admin(0, "GET", "/metrics"),
      HasSubstr(R"(tahoma_core_programs_total{chip="0",core="0",result="program_error"} 1)"));
}

TEST_F(BusyCoresTest, ANodeThatIsKilledEndsTheRunAndTheNextNodeServesAtOnce) {
  const auto run = Start("run", long_, {"--out", "c=" + File("c.npy")});
  ASSERT_TRUE(IsRunning(0, *run)) << run->log();
  nodes_[0].Kill(SIGKILL);
  EXPECT_EQ(run->Wait(), 1);
  EXPECT_THAT(run->log(), StartsWith("trn-run: "));
  EXPECT_FALSE(fs::exists(File("c.npy")));

  nodes_.Start(0);
  ASSERT_EQ(nodes_.Claim(0, token_), token_);
  const auto next = Start("next", short_, {"--out", "c=" + File("c.npy")});
  EXPECT_EQ(next->Wait(), 0) << next->log();
  EXPECT_TRUE(fs::exists(File("c.npy")));
}

TEST_F(BusyCoresTest, TenProgramsAndTwoHundredCallersOfABusyCoreLeaveTheNodeAnswering) {
  std::vector<std::unique_ptr<ChildProgram>> runs;
  for (int chip = 0; chip < 10; ++chip) {
    runs.push_back(Start(fmt::format("run-{}-", chip), long_, {"--chip", std::to_string(chip)}));
  }
  for (int chip = 0; chip < 10; ++chip) {
    ASSERT_TRUE(IsRunning(chip, *runs[static_cast<std::size_t>(chip)])) << chip;
  }
  const std::string program = isa::Encode(*isa::ParseText(Products(1), "short"));
  std::atomic<int> answered = 0;
  std::atomic<int> busy = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 200; ++caller) {
      callers.emplace_back([&] {
        sim::SocketCoreNode node("unix:" + File("socket") + ".pods/workload.sock", token_);
        sim::TrnRunOptions options;
        options.data = false;
        const absl::Status status = node.Run(options, {{.chip = 9}}, program).status();
        // A node takes 128 new connections at once, and closes others.
        if (status.ok() || absl::IsUnavailable(status)) ++answered;
        if (Message(status).find(kBusy) != std::string_view::npos) ++busy;
      });
    }
    EXPECT_THAT(nodes_.Admin(0, "GET", "/metrics"), HasSubstr("tahoma_core_programs_total"));
  }
  EXPECT_EQ(answered, 200);
  EXPECT_GT(busy, 0);
  const auto other = Start("other", short_, {"--chip", "12"});
  EXPECT_EQ(other->Wait(), 0) << other->log();
  for (const auto& run : runs) run->Kill(SIGKILL);
}

TEST_F(BusyCoresTest, AFullDiskEndsTrnRunWithAMessageAndNoHalfFile) {
  const std::string folder = File("disk");
  fs::create_directory(folder);
  if (::mount("tahoma", folder.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "only root can mount a small disk";
  }
  const auto expect_refused = [&](const std::string& program,
                                  const std::vector<std::string>& options) {
    const auto run = Start("full", program, options);
    EXPECT_EQ(run->Wait(), 1);
    EXPECT_THAT(run->log(), HasSubstr("trn-run: " + folder));
    EXPECT_THAT(run->log(), HasSubstr("No space left on device"));
    EXPECT_THAT(std::vector<fs::path>(fs::directory_iterator(folder), {}), IsEmpty());
  };
  expect_refused(short_, {"--out", "c=" + folder + "/c.npy"});
  expect_refused(Program(1000), {"--no-data", "--timeline", folder + "/t.json"});
  EXPECT_EQ(::umount2(folder.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace tahoma
