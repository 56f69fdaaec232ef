// trn-run, with a sim-node in this process.

#include "sim-node/workload/trn_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/isa/binary.h"
#include "sim-node/workload/npy.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kCopy = R"(
tensor a fp32 [2, 2] in
tensor c fp32 [2, 2] out
sbuf   t fp32 [2, 2]
dma_copy t <- a
dma_copy c <- t
)";

// Gives what was stored, whatever the program.
class FakeNode final : public CoreNode {
 public:
  absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) override {
    stored.emplace_back(chip, address, bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Load(int, std::uint64_t, std::uint64_t bytes) override {
    return std::get<2>(stored.at(0)).substr(0, bytes);
  }
  absl::StatusOr<CoreReport> Run(const TrnRunOptions&, const std::string& program) override {
    ran.push_back(program);
    TAHOMA_RETURN_IF_ERROR(failure);
    return CoreReport{.profile = "p",
                      .chip = 7,
                      .core = 3,
                      .instructions = 2,
                      .time_ps = 5'000'000,
                      .bound_ps = 1'250'000,
                      .bound = "sync queue",
                      .resources = {{"sync queue", 1'250'000, 2}},
                      .timeline = "{}"};
  }

  std::vector<std::tuple<int, std::uint64_t, std::string>> stored;
  std::vector<std::string> ran;
  absl::Status failure;
};

class TrnRunTest : public ::testing::Test {
 protected:
  TrnRunTest() {
    Write("copy.trn", kCopy);
    Write("a.npy", MakeNpy({.name = "a", .type = ElementType::kFp32, .shape = {2, 2}},
                           std::string("0123456789abcdef")));
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void Write(const std::string& name, std::string_view contents) const {
    std::ofstream(Path(name), std::ios::binary) << contents;
  }
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), Path("copy.trn"));
    const auto options = ParseRunArguments(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    out_.str("");
    err_.str("");
    return RunTrnRun(*options, node_, out_, err_);
  }

  testing::TempDir folder_;
  FakeNode node_;
  std::ostringstream out_, err_;
};

TEST_F(TrnRunTest, InputsGoToTheChipAndOutputsComeBack) {
  EXPECT_EQ(Run({"--in", "a=" + Path("a.npy"), "--out", "c=" + Path("c.npy"), "--chip", "1",
                 "--timeline", Path("t.json")}),
            0)
      << err_.str();
  ASSERT_EQ(node_.stored.size(), 1U);
  EXPECT_EQ(std::get<0>(node_.stored[0]), 1);
  EXPECT_EQ(std::get<2>(node_.stored[0]), "0123456789abcdef");
  const auto program = isa::Decode(node_.ran.at(0));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*program->buffers.at(0).address,
            static_cast<std::int64_t>(std::get<1>(node_.stored[0])));
  EXPECT_EQ(*ReadFile(Path("c.npy")), *ReadFile(Path("a.npy")));
  EXPECT_EQ(*ReadFile(Path("t.json")), "{}");
  EXPECT_EQ(out_.str(),
            "copy: 2 instructions on core 3 of chip 7, profile p\n"
            "time  5.000 us\n"
            "bound 1.250 us (25.0 % of the time): sync queue\n"
            "resource              busy(us)   busy(%)   instructions\n"
            "sync queue               1.250      25.0              2\n");
}

TEST_F(TrnRunTest, ABinaryProgramRunsAsItsText) {
  ASSERT_EQ(Run({"--no-data", "--binary", Path("copy.bin")}), 0) << err_.str();
  const auto options = ParseRunArguments({Path("copy.bin"), "--no-data"});
  ASSERT_EQ(RunTrnRun(*options, node_, out_, err_), 0) << err_.str();
  EXPECT_EQ(node_.ran.at(0), node_.ran.at(1));
  EXPECT_THAT(node_.stored, IsEmpty());
}

TEST_F(TrnRunTest, WhatIsWrongIsSaidBeforeAnythingRuns) {
  const auto complaint = [&](const std::vector<std::string>& arguments) {
    EXPECT_EQ(Run(arguments), 1);
    EXPECT_THAT(node_.ran, IsEmpty());
    return err_.str();
  };
  EXPECT_EQ(complaint({}), "trn-run: input a is missing: --in a=FILE.npy, or --no-data\n");
  EXPECT_EQ(complaint({"--in", "b=" + Path("a.npy")}),
            "trn-run: the program has no input \"b\"; it has a\n");
  EXPECT_EQ(complaint({"--out", "a=x.npy"}),
            "trn-run: the program has no output \"a\"; it has c\n");
  EXPECT_THAT(complaint({"--in", "a=" + Path("none.npy")}), HasSubstr("none.npy"));
  EXPECT_THAT(complaint({"--in", "a=" + Path("copy.trn")}), HasSubstr(".npy files"));
  Write("copy.trn", "dma_copy t <- a\n");
  EXPECT_THAT(complaint({"--no-data"}), HasSubstr("copy.trn"));
}

TEST_F(TrnRunTest, AFailedRunWritesNoOutput) {
  node_.failure = Aborted("NRT_EXEC_HW_ERR_HBM_UE (1201): chip 3 is broken: hbm-uncorrectable");
  EXPECT_EQ(Run({"--in", "a=" + Path("a.npy"), "--out", "c=" + Path("c.npy")}), 1);
  EXPECT_EQ(err_.str(),
            "trn-run: NRT_EXEC_HW_ERR_HBM_UE (1201): chip 3 is broken: hbm-uncorrectable\n");
  EXPECT_EQ(out_.str(), "");
  EXPECT_FALSE(ReadFile(Path("c.npy")).ok());
}

TEST(TrnRunArgumentsTest, AWrongCommandLineIsNamed) {
  const auto complaint = [](const std::vector<std::string>& arguments) {
    const auto options = ParseRunArguments(arguments);
    EXPECT_FALSE(options.ok());
    return std::string(Message(options.status()));
  };
  EXPECT_THAT(complaint({}), HasSubstr("0 programs are named; expected one"));
  EXPECT_THAT(complaint({"p", "q"}), HasSubstr("2 programs"));
  EXPECT_EQ(complaint({"p", "--in", "a"}), "--in is \"a\"; expected TENSOR=FILE.npy");
  EXPECT_EQ(complaint({"p", "--core", "x"}), "--core is \"x\"; expected 0 to 127");
  EXPECT_EQ(complaint({"p", "--fast"}), "unknown option --fast; see --help");
  EXPECT_EQ(complaint({"p", "--timeline"}), "--timeline needs a value");
}

}  // namespace
}  // namespace tahoma::sim
