// A pod's programs about its cores, on a sim-node: counts of programs that ran, and a fault.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/ultraserver_nodes.h"
#include "tests/support/child_program.h"

namespace tahoma {
namespace {

using ::testing::AllOf;
using testing::Bin;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kSoon{60};

class CoreToolsTest : public ::testing::Test {
 protected:
  // Starts a program of the pod, with the file `job` as its log.
  std::unique_ptr<testing::ChildProgram> Start(const std::string& job,
                                               const std::vector<std::string>& command) {
    return nodes_.RunRank(0, token_, job, command, 1);
  }
  std::unique_ptr<testing::ChildProgram> RunMatmul(const std::string& job) {
    return Start(job, {Bin("trn-run"), "examples/kernels/matmul.trn", "--no-data"});
  }

  testing::UltraServerNodes nodes_;
  const std::string token_ = nodes_.Claim(0);
};

TEST_F(CoreToolsTest, ProgramsAndFaultsShowInTheToolsOfAPod) {
  const std::string config = nodes_.Path("monitor", 0);
  std::ofstream(config) << R"({"period":"100ms","neuron_runtimes":[{"metrics":[
    {"type":"execution_stats"},{"type":"neuroncore_counters"}]}]})";
  const auto monitor = Start("monitored", {Bin("neuron-monitor"), "-c", config});
  const auto first = [&] { return monitor->log().find('\n') != std::string::npos; };
  ASSERT_TRUE(monitor->WaitUntil(first, kSoon)) << monitor->log();

  const auto good = RunMatmul("good");
  ASSERT_EQ(good->Wait(), 0) << good->log();
  const auto counted = [&] {
    return monitor->log().find(R"("completed":1,)") != std::string::npos;
  };
  EXPECT_TRUE(monitor->WaitUntil(counted, kSoon)) << monitor->log();

  ASSERT_THAT(
      nodes_.Admin(0, "POST", "/v1/chips/0/break", R"({"reason":"HBM_UNCORRECTABLE_ERROR"})"),
      HasSubstr("hbm-uncorrectable"));
  const auto bad = RunMatmul("bad");
  EXPECT_EQ(bad->Wait(), 1);
  EXPECT_EQ(bad->log(),
            "trn-run: NRT_EXEC_HW_ERR_HBM_UE (1201): chip 0 is broken: hbm-uncorrectable\n");
  const auto failed = [&] { return monitor->log().find(R"("hardware":1,)") != std::string::npos; };
  EXPECT_TRUE(monitor->WaitUntil(failed, kSoon)) << monitor->log();
  EXPECT_THAT(
      nodes_.Admin(0, "GET", "/metrics"),
      AllOf(
          HasSubstr(R"(tahoma_core_programs_total{chip="0",core="0",result="completed"} 1)"),
          HasSubstr(R"(tahoma_core_programs_total{chip="0",core="0",result="hardware_error"} 1)")));

  const auto top = Start("top", {Bin("neuron-top")});
  EXPECT_EQ(top->Wait(), 0);
  EXPECT_THAT(top->log(), AllOf(HasSubstr("trn2u.48xlarge, LNC 2"), HasSubstr("util(%)")));
}

}  // namespace
}  // namespace tahoma
