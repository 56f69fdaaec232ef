// trn-run, with a sim-node in this process.

#include "sim-node/workload/trn_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/isa/binary.h"
#include "sim-node/workload/npy.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kCopy = R"(
tensor a fp32 [2, 2] in
tensor c fp32 [2, 2] out
sbuf   t fp32 [2, 2]
dma_copy t <- a
dma_copy c <- t
)";

// A claim of two chips, 2 and 7, with three cores on each. An output is what was stored before it
// on its chip.
class FakeNode final : public CoreNode {
 public:
  absl::StatusOr<CoreReading> Counters() override {
    CoreReading claim;
    for (const int chip : {2, 7}) {
      claim.chips.push_back({.chip = chip, .capacity_bytes = kCapacity});
      for (const int core : {0, 1, 3}) claim.cores.push_back({.chip = chip, .core = core});
    }
    return claim;
  }
  absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) override {
    stored.emplace(std::pair(chip, address), bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Load(int chip, std::uint64_t address, std::uint64_t bytes) override {
    return std::prev(stored.lower_bound({chip, address}))->second.substr(0, bytes);
  }
  absl::StatusOr<CoreReport> Run(const TrnRunOptions&, const std::vector<RankPlace>& ranks,
                                 const std::string& program) override {
    ran.push_back(program);
    places = ranks;
    TAHOMA_RETURN_IF_ERROR(failure);
    CoreReport report{.profile = "p", .instructions = 2, .time_ps = 5'000'000, .timeline = "{}"};
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto more = static_cast<std::int64_t>(rank) * 1'000'000;
      report.ranks.push_back({.chip = 7,
                              .core = 3,
                              .time_ps = 5'000'000 - more,
                              .bound_ps = 1'250'000 + more,
                              .bound = "sync queue",
                              .left_out = more,
                              .resources = {{"sync queue", 1'250'000, 2}}});
    }
    return report;
  }

  static constexpr std::int64_t kCapacity = 1'000'000;
  std::map<std::pair<int, std::uint64_t>, std::string> stored;
  std::vector<std::string> ran;
  std::vector<RankPlace> places;
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
  const auto& [place, bytes] = *node_.stored.begin();
  EXPECT_EQ(place.first, 1);
  EXPECT_EQ(bytes, "0123456789abcdef");
  const auto program = isa::Decode(node_.ran.at(0));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*program->buffers.at(0).address, static_cast<std::int64_t>(place.second));
  EXPECT_EQ(*ReadFile(Path("c.npy")), *ReadFile(Path("a.npy")));
  EXPECT_EQ(*ReadFile(Path("t.json")), "{}");
  EXPECT_EQ(out_.str(),
            "copy: 2 instructions on core 3 of chip 7, profile p\n"
            "time  5.000 us\n"
            "bound 1.250 us (25.0 % of the time): sync queue\n"
            "resource              busy(us)   busy(%)   instructions\n"
            "sync queue               1.250      25.0              2\n");
}

TEST_F(TrnRunTest, EachRankHasItsCoresShareOfTheChipsMemoryAndItsOwnFiles) {
  for (const std::string rank : {"0", "1", "2", "3"}) {
    Write("a" + rank + ".npy", MakeNpy({.name = "a", .type = ElementType::kFp32, .shape = {2, 2}},
                                       "012345678901234" + rank));
  }
  ASSERT_EQ(Run({"--chip", "0-1", "--core", "2,0", "--in", "a=" + Path("a{rank}.npy"), "--out",
                 "c=" + Path("c{rank}-{rank}.npy"), "--timeline", Path("t.json")}),
            0)
      << err_.str();
  // 1,000,000 bytes among three cores, down to a multiple of 65,536: 0, 327,680 and 655,360.
  std::vector<std::tuple<int, int, std::uint64_t>> places;
  for (const RankPlace& rank : node_.places) {
    places.emplace_back(rank.chip, rank.core, rank.address);
  }
  EXPECT_THAT(places, ElementsAre(std::tuple(0, 2, 655'360), std::tuple(0, 0, 0),
                                  std::tuple(1, 2, 655'360), std::tuple(1, 0, 0)));
  for (const std::string rank : {"0", "1", "2", "3"}) {
    EXPECT_EQ(*ReadFile(Path("c" + rank + "-" + rank + ".npy")),
              *ReadFile(Path("a" + rank + ".npy")));
  }
  EXPECT_EQ(out_.str(),
            "copy: 2 instructions on each of 4 ranks, profile p\n"
            "rank  chip  core      time(us)   busy(%)  busiest\n"
            "   0     7     3         5.000      25.0  sync queue\n"
            "   1     7     3         4.000      56.2  sync queue\n"
            "   2     7     3         3.000     108.3  sync queue\n"
            "   3     7     3         2.000     212.5  sync queue\n"
            "time  5.000 us\n"
            "bound 4.250 us (85.0 % of the time): sync queue\n"
            "the timeline lacks its last 6000000 intervals\n");
}

TEST_F(TrnRunTest, AnInputWithoutARankIsForAllRanks) {
  ASSERT_EQ(Run({"--core", "0-2", "--in", "a=" + Path("a.npy")}), 0) << err_.str();
  ASSERT_EQ(node_.stored.size(), 3U);
  for (const auto& [place, bytes] : node_.stored) EXPECT_EQ(bytes, "0123456789abcdef");
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
  EXPECT_EQ(complaint({"--no-data", "--chip", "0,1", "--out", "c=c.npy"}),
            "trn-run: --out c=c.npy: 2 ranks would write one file; expected {rank} in its name\n");
  EXPECT_EQ(complaint({"--no-data", "--chip", "2"}),
            "trn-run: --chip 2; the claim has chips 0 to 1\n");
  EXPECT_EQ(complaint({"--no-data", "--core", "1,3"}),
            "trn-run: --core 3; of chip 0 the claim has cores 0 to 2\n");
  Write("copy.trn", "tensor a fp32 [512, 256]\ntensor b fp32 [1] out\ndma_copy b <- a[0, 0:1]\n");
  EXPECT_EQ(complaint({"--no-data", "--core", "0-1"}),
            "trn-run: the program's tensors have 524292 bytes; each of the 3 cores of chip 0 has "
            "327680 of its memory\n");
  Write("copy.trn", "tensor a fp32 [4]\ntensor b fp32 [8] out\nall_gather b <- a ranks=2\n");
  EXPECT_EQ(complaint({"--no-data", "--core", "0-2"}),
            "trn-run: " + Path("copy.trn") +
                ": line 3: all_gather: groups of 2 ranks, 1 apart, in a run of 3; expected groups "
                "that 3 ranks can be divided into\n");
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

TEST(TrnRunArgumentsTest, TheSeedOfRoundingIsAnOptionsOrTheRuntimes) {
  const auto seed_of = [](std::vector<std::string> arguments, std::string_view enabled,
                          std::string_view seed) {
    arguments.emplace_back("a.trn");
    auto options = ParseRunArguments(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    const absl::Status read = ReadRounding(enabled, seed, *options);
    EXPECT_TRUE(read.ok()) << read;
    return options->rounding_seed;
  };
  EXPECT_EQ(seed_of({}, "", "5"), std::nullopt);
  EXPECT_EQ(seed_of({}, "0", "5"), std::nullopt);
  EXPECT_EQ(seed_of({}, "1", ""), 0);
  EXPECT_EQ(seed_of({}, "1", "5"), 5);
  EXPECT_EQ(seed_of({"--stochastic-rounding", "9"}, "1", "5"), 9);
  TrnRunOptions options;
  EXPECT_FALSE(ReadRounding("yes", "", options).ok());
  EXPECT_FALSE(ReadRounding("1", "-1", options).ok());
  EXPECT_FALSE(ParseRunArguments({"a.trn", "--stochastic-rounding", "x"}).ok());
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
  for (const std::string cores : {"x", "", "1,", "128", "-1", "3-2", "1,0-2", "1-2-3", "0-128"}) {
    EXPECT_EQ(complaint({"p", "--core", cores}),
              "--core is \"" + cores + "\"; expected 0 to 127, or some of them once: 0,2-3");
  }
  EXPECT_EQ(complaint({"p", "--chip", "0-15", "--core", "0-8"}),
            "16 chips of 9 cores are 144 ranks; at most 128");
  EXPECT_EQ(complaint({"p", "--fast"}), "unknown option --fast; see --help");
  EXPECT_EQ(complaint({"p", "--timeline"}), "--timeline needs a value");
}

}  // namespace
}  // namespace tahoma::sim
