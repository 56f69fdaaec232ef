// The command line and the table with a node made up for the purpose; then the whole way over a
// socket to communicators that really reduce.

#include "sim-node/workload/nccom_test.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "lib/base/status.h"
#include "lib/wire/server.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/workload/nccom_node.h"

namespace tahoma::sim {
namespace {

// Takes 1 ms for everything.
class FixedNode final : public NccomNode {
 public:
  absl::StatusOr<NccomJoined> Join(const NccomPlace&, int cores) override {
    asked_cores = cores;
    return NccomJoined{.ranks = 16, .chips = 4};
  }
  absl::StatusOr<NccomRun> Run(const NccomPlace&, const NccomOptions&,
                               std::uint64_t bytes) override {
    if (bytes == fail_at) return Aborted("rank 2 is gone");
    return NccomRun{.algorithm = "ring", .time_ps = 1'000'000'000, .wrong_elements = wrong};
  }
  void Leave(const NccomPlace&) override { left = true; }

  int asked_cores = -1;
  std::uint64_t fail_at = 0;
  std::uint64_t wrong = 0;
  bool left = false;
};

class NccomTestTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments, const NccomPlace& place = {"c", 0, 1}) {
    const auto options = ParseNccomArguments(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    return RunNccomTest(*options, place, node_, out_, err_);
  }
  FixedNode node_;
  std::ostringstream out_, err_;
};

TEST_F(NccomTestTest, PrintsTheTableWithBandwidthsInGibibytes) {
  EXPECT_EQ(Run({"allr", "-b", "1K", "-e", "1G", "-f", "1024", "-d", "fp32", "--show-algorithm"}),
            0);
  EXPECT_EQ(
      out_.str(),
      "         size(B)    count(elems)     type    time:avg(us)    algbw(GB/s)    busbw(GB/s)"
      "    algorithm\n"
      "            1024             256     fp32         1000.00           0.00           0.00"
      "         ring\n"
      "         1048576          262144     fp32         1000.00           0.98           1.83"
      "         ring\n"
      "      1073741824       268435456     fp32         1000.00        1000.00        1875.00"
      "         ring\n"
      "Avg bus bandwidth:      625.6109GB/s\n");
  EXPECT_TRUE(node_.left);
}

TEST_F(NccomTestTest, TheAlgorithmIsShownOnlyWhenAsked) {
  EXPECT_EQ(Run({"allr", "-b", "1K", "-e", "1K", "-d", "fp32", "--non-interactive"}), 0);
  EXPECT_EQ(
      out_.str(),
      "         size(B)    count(elems)     type    time:avg(us)    algbw(GB/s)    busbw(GB/s)\n"
      "            1024             256     fp32         1000.00           0.00           0.00\n"
      "Avg bus bandwidth:      0.0018GB/s\n");
}

TEST_F(NccomTestTest, EachStatisticHasAColumnInTheOrderAsked) {
  EXPECT_EQ(Run({"-t", "avg", "p50", "p99", "allr", "-b", "1K", "-e", "1K"}), 0);
  EXPECT_TRUE(out_.str().starts_with(
      "         size(B)    count(elems)     type    time:avg(us)    time:p50(us)    time:p99(us)"
      "    algbw(GB/s)    busbw(GB/s)\n"
      "            1024            1024    uint8         1000.00         1000.00         1000.00"))
      << out_.str();
  EXPECT_EQ(ParseNccomArguments({"allr", "--stats=p25,avg"})->stats,
            (std::vector<std::string>{"p25", "avg"}));
}

// The sizes of AWS's sample: 32 ranks gather 1,024 bytes of 32 each.
TEST_F(NccomTestTest, InputAndOutputSizesAreThoseOfARank) {
  struct Case {
    const char* operation;
    const char* sizes;
  };
  for (const Case& one :
       {Case{"allg", "                     64                    1024    uint8"},
        Case{"redsct", "                   1024                      64    uint8"},
        Case{"allr", "                   1024                    1024    uint8"}}) {
    out_.str("");
    EXPECT_EQ(Run({one.operation, "-b", "1K", "-e", "1K", "--show-input-output-size"}), 0);
    EXPECT_THAT(out_.str(), ::testing::HasSubstr(
                                "count(elems)    total_input_size(B)    total_output_size(B)"));
    EXPECT_THAT(out_.str(), ::testing::HasSubstr(one.sizes)) << one.operation;
  }
}

TEST_F(NccomTestTest, OtherRanksPrintOneLine) {
  EXPECT_EQ(Run({"allg"}, {"c", 1, 2}), 0);
  EXPECT_EQ(out_.str(),
            "rank 1 of 2: 1 sizes over 16 workers on 4 chips; rank 0 prints the table\n");
}

TEST_F(NccomTestTest, AllGatherCountsHalfTheBusTrafficOfAllReduce) {
  EXPECT_EQ(Run({"all_gather", "-b", "1G", "-e", "1G"}), 0);
  EXPECT_NE(out_.str().find("937.50"), std::string::npos) << out_.str();
}

TEST_F(NccomTestTest, OperationsThatPassWholeBuffersOnCountEveryByteOnce) {
  for (const std::string operation : {"sendrecv", "permute", "broadcast"}) {
    out_.str("");
    EXPECT_EQ(Run({operation, "-b", "1G", "-e", "1G"}), 0);
    EXPECT_THAT(out_.str(), ::testing::HasSubstr("Avg bus bandwidth:      1000.0000GB/s"));
  }
  out_.str("");
  EXPECT_EQ(Run({"alltoall", "-b", "1G", "-e", "1G"}), 0);
  EXPECT_THAT(out_.str(), ::testing::HasSubstr("Avg bus bandwidth:      937.5000GB/s"));
}

TEST_F(NccomTestTest, AnElementOfFp8HasOneByte) {
  EXPECT_EQ(Run({"allr", "-b", "1K", "-e", "1K", "-d", "fp8_e4m3"}), 0);
  EXPECT_THAT(out_.str(), ::testing::HasSubstr("            1024            1024 fp8_e4m3"));
}

TEST_F(NccomTestTest, AWrongElementOrAnErrorEndsWithStatusOne) {
  node_.wrong = 3;
  EXPECT_EQ(Run({"allr", "-c"}), 1);
  EXPECT_NE(out_.str().find("3 elements are wrong\n"), std::string::npos);
  EXPECT_EQ(err_.str(), "nccom-test: the check failed\n");
  node_.fail_at = 32 << 20;
  err_.str("");
  EXPECT_EQ(Run({"allr"}), 1);
  EXPECT_EQ(err_.str(), "nccom-test: rank 0: allr of 33554432 bytes: rank 2 is gone\n");
  EXPECT_TRUE(node_.left);
}

TEST_F(NccomTestTest, WorkersAreDividedOverThePods) {
  EXPECT_EQ(Run({"-r", "16", "-N", "2", "allr"}, {"c", 0, 2}), 0);
  EXPECT_EQ(node_.asked_cores, 8);
  EXPECT_EQ(Run({"-r", "3", "allr"}, {"c", 0, 2}), 1);
  EXPECT_EQ(Run({"-N", "4", "allr"}, {"c", 0, 2}), 1);
  EXPECT_EQ(err_.str(),
            "nccom-test: rank 0: --nworkers is 3; expected a multiple of the 2 pods\n"
            "nccom-test: rank 0: --nnodes is 4, but the gang has 2 pods\n");
}

TEST_F(NccomTestTest, TheReportHasTheColumnsAsKeys) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-nccom-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::string file = folder / "report.json";
  EXPECT_EQ(Run({"allr", "-b", "8", "-e", "32", "-f", "2", "--stats", "avg", "p90",
                 "--show-algorithm", "--report-to-json-file", file}),
            0);
  std::ifstream stream(file);
  const auto report = nlohmann::json::parse(stream);
  ASSERT_EQ(report["results"].size(), 3u);
  EXPECT_EQ(report["results"][2]["size(B)"], 32);
  EXPECT_EQ(report["results"][2]["time:avg(us)"], 1000.0);
  EXPECT_EQ(report["results"][2]["time:p90(us)"], 1000.0);
  EXPECT_EQ(report["results"][2]["algorithm"], "ring");
  EXPECT_EQ(report["results"][2]["wrong_elements"], 0);
  EXPECT_FALSE(report["results"][2].contains("total_input_size(B)"));
  EXPECT_EQ(Run({"allr", "--report-to-json-file", folder / "none" / "x"}), 1);
  std::filesystem::remove_all(folder);
}

TEST(NccomArgumentsTest, DefaultsAreThoseOfTheTool) {
  const auto options = ParseNccomArguments({"allr"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->min_bytes, 32u << 20);
  EXPECT_EQ(options->iterations, 20);
  EXPECT_EQ(options->warmup, 5);
  EXPECT_EQ(options->type, "uint8");
  EXPECT_FALSE(options->check);
}

TEST(NccomArgumentsTest, OptionsMayStandBeforeOrAfterTheOperation) {
  const auto options = ParseNccomArguments(
      {"-r", "64", "--minbytes", "8", "allr", "--maxbytes=1GB", "-n", "50", "--redop", "max"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->operation, "allr");
  EXPECT_EQ(options->workers, 64);
  EXPECT_EQ(options->max_bytes, 1u << 30);
  EXPECT_EQ(options->iterations, 50);
  EXPECT_EQ(options->redop, "max");
}

TEST(NccomArgumentsTest, WrongOptionsAreNamed) {
  const auto message = [](const std::vector<std::string>& arguments) {
    const auto options = ParseNccomArguments(arguments);
    return std::string(Message(options.status()));
  };
  EXPECT_EQ(message({"allr", "--frob"}), "unknown option --frob; see --help");
  EXPECT_EQ(message({"allr", "-b"}), "-b needs a value");
  EXPECT_EQ(message({}), "expected one operation (allr, allg, redsct, ...), got 0; see --help");
  EXPECT_EQ(message({"a", "b"}),
            "expected one operation (allr, allg, redsct, ...), got 2; see --help");
  EXPECT_EQ(message({"allr", "-n", "0"}), "--iters is \"0\"; expected 1 to 1000000");
  EXPECT_EQ(message({"allr", "-b", "12q"}),
            "--minbytes: \"12q\" is no size; expected for example 8, 1K, 64MB or 1G");
  EXPECT_EQ(message({"allr", "--stats=p50,max"}),
            "--stats is \"max\"; expected avg or percentiles, p0 to p100");
  EXPECT_EQ(message({"allr", "-t", "p101"}),
            "--stats is \"p101\"; expected avg or percentiles, p0 to p100");
  EXPECT_EQ(message({"allr", "--seed", "-1"}), "--seed is \"-1\"; expected 0 to 2147483647");
  EXPECT_TRUE(ParseNccomArguments({"--help"})->help);
}

TEST(NccomArgumentsTest, SizesAreReadInBinaryUnits) {
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"8", 8}, {"2kb", 2048}, {"2K", 2048}, {"1MB", 1 << 20}, {"3g", 3ull << 30}}) {
    EXPECT_EQ(*ParseBytes(text), bytes) << text;
  }
  for (const char* text : {"", "0", "-1", "1.5M", "99999999999G", "K", "1T"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(NccomArgumentsTest, SizesFollowTheStepsAndAreWholeElements) {
  const auto sizes = [](const std::vector<std::string>& arguments) {
    return NccomSizes(*ParseNccomArguments(arguments));
  };
  EXPECT_EQ(*sizes({"allr", "-b", "8", "-e", "16", "-i", "4"}),
            (std::vector<std::uint64_t>{8, 12, 16}));
  EXPECT_EQ(*sizes({"allr", "-b", "1", "-e", "9", "-f", "3", "-d", "fp32"}),
            (std::vector<std::uint64_t>{4, 8}));
  EXPECT_FALSE(sizes({"allr", "-b", "2", "-e", "1"}).ok());
  EXPECT_FALSE(sizes({"allr", "-b", "1", "-e", "1M", "-i", "1"}).ok());
  EXPECT_FALSE(sizes({"allr", "-f", "1"}).ok());
}

TEST(NccomNodeTest, TwoPodsMeasureARealCollectiveOverTheSocket) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-nccom-XXXXXX").string();
  const std::string folder = mkdtemp(pattern.data());
  Communicators communicators(
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)});
  CommunicatorCalls calls(communicators);
  auto server =
      wire::Server::Start("unix:" + folder + "/node.sock", {},
                          [&](const wire::Request& request) -> absl::StatusOr<wire::Reply> {
                            // The token says which half of the instance the claim holds.
                            const auto params = nlohmann::json::parse(request.params);
                            std::vector<Member> cores;
                            for (int chip = 0; chip < 8; ++chip) {
                              const int first = params["token"] == "left" ? 0 : 8;
                              cores.push_back({.chip = torus::ChipIndex(first + chip), .ranks = 4});
                            }
                            return calls.Call(request, params["token"], cores);
                          });
  ASSERT_TRUE(server.ok()) << server.status();
  const auto options = ParseNccomArguments(
      {"allr", "-b", "1K", "-e", "256K", "-f", "16", "-d", "fp32", "-c", "-r", "64"});
  std::ostringstream out[2], err;
  int status[2] = {-1, -1};
  {
    std::vector<std::jthread> pods;
    for (const std::size_t rank : {0u, 1u}) {
      pods.emplace_back([&, rank] {
        SocketNode node("unix:" + folder + "/node.sock", rank == 0 ? "left" : "right");
        std::ostringstream errors;
        status[rank] =
            RunNccomTest(*options, {"job", static_cast<int>(rank), 2}, node, out[rank], errors);
        EXPECT_EQ(errors.str(), "");
      });
    }
  }
  EXPECT_EQ(status[0], 0);
  EXPECT_EQ(status[1], 0);
  EXPECT_NE(out[0].str().find("262144           65536     fp32"), std::string::npos)
      << out[0].str();
  EXPECT_NE(out[1].str().find("3 sizes over 64 workers on 16 chips"), std::string::npos);
  (*server)->Stop();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tahoma::sim
