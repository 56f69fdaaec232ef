// Kernels of NKI, and the example, run on the cores of a claim: Python in a pod's place, trn-run,
// a sim-node.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/node_claims.h"
#include "tests/support/child_program.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

using testing::Bin;
using testing::ChildProgram;

constexpr int kChips = 4;

class NkiCoresTest : public ::testing::Test {
 protected:
  NkiCoresTest() {
    std::ofstream(Path("config"))
        << "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n\n"
        << "instanceType: trn2.48xlarge\nnodeSocket: " << Path("node")
        << "\nworkloadSocket: " << Path("work/socket") << "\nstateDir: " << Path("state")
        << "\nportFile: " << Path("ports") << "\n";
    node_ = std::make_unique<ChildProgram>(
        std::vector<std::string>{Bin("sim-node"), "--config", Path("config")}, Path("log"));
    while (!std::filesystem::exists(Path("ports"))) {
      if (node_->WaitEnd(std::chrono::milliseconds(10))) break;
    }
    const auto ask_once = [](const std::function<bool()>& is_given) { return is_given(); };
    token_ = testing::ClaimChips(Path("node"), kChips, {.lnc = 2}, ask_once);
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  // Runs a script of the repository as the pod's program, with trn-run on PATH.
  std::optional<int> Run(const std::string& script, std::string& log) {
    ChildProgram find({".ci/python", "--find"}, Path("python"));
    if (find.Wait() != 0) return 77;
    std::string python = find.log();
    python.erase(python.find_last_not_of('\n') + 1);
    const std::string bin = std::filesystem::path(Bin("trn-run")).parent_path();
    const testing::PodPlace place{.socket = Path("work/socket"), .token = token_, .job = "test"};
    ChildProgram program(
        testing::PodCommand(place, {"/usr/bin/env", "PATH=" + bin + ":" + std::getenv("PATH"),
                                    "PYTHONPATH=sim-node/nki/src", python, script}),
        Path("out"));
    const std::optional<int> status = program.Wait();
    log = program.log();
    return status;
  }

  // Expects that the script prints `says`. A script that lacks Python's packages skips the test.
  void ExpectPasses(const std::string& script, const std::string& says = "") {
    std::string log;
    const auto status = Run(script, log);
    if (status == 77) GTEST_SKIP() << log;
    EXPECT_EQ(status, 0) << log;
    EXPECT_NE(log.find(says), std::string::npos) << log;
  }

  testing::TempDir dir_;
  std::unique_ptr<ChildProgram> node_;
  std::string token_;
};

TEST_F(NkiCoresTest, KernelsGiveNumpysNumbers) { ExpectPasses("tests/integration/nki_test.py"); }

TEST_F(NkiCoresTest, KernelsMoveElementsAsNumpy) {
  ExpectPasses("tests/integration/nki_move_test.py");
}

TEST_F(NkiCoresTest, KernelsOfTheOlderNamespaceGiveNumpysNumbers) {
  ExpectPasses("tests/integration/nki_old_test.py");
}

TEST_F(NkiCoresTest, CopiesByOffsetsFromMemoryGiveNumpysNumbers) {
  ExpectPasses("tests/integration/nki_indirect_test.py");
}

TEST_F(NkiCoresTest, FunctionsAndReductionsOfKernelsGiveNumpysNumbers) {
  ExpectPasses("tests/integration/nki_activation_test.py");
}

TEST_F(NkiCoresTest, InstructionsOfOperatorsGiveNumpysNumbers) {
  ExpectPasses("tests/integration/nki_alu_test.py");
}

TEST_F(NkiCoresTest, CollectivesOfSeveralCoresGiveNumpysNumbers) {
  ExpectPasses("tests/integration/nki_collectives_test.py");
}

TEST_F(NkiCoresTest, KernelsOfAwsGiveNumpysNumbers) {
  ExpectPasses("tests/integration/nki_aws_test.py");
}

TEST_F(NkiCoresTest, TheExampleOfAttentionRuns) {
  ExpectPasses("examples/kernels/attention_nki.py", "4096 x 128, bf16: 350.5 us");
}

TEST_F(NkiCoresTest, TheExampleOfAnMlpOnTwoChipsRuns) {
  ExpectPasses("examples/kernels/mlp_nki.py", "the same as on one core");
}

TEST_F(NkiCoresTest, TheExampleOfTheGuideRuns) {
  ExpectPasses("examples/kernels/matmul_nki.py", "2048 x 2048 x 2048, bf16: 262.0 us");
}

}  // namespace
}  // namespace tahoma
