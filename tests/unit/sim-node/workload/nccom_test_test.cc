// Tests the command line and the table with a node made up for the purpose; then the whole path
// over a socket to communicators that really reduce.

#include "sim-node/workload/nccom_test.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/server.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/workload/nccom_node.h"

namespace tahoma::sim {
namespace {

// Takes 1 ms for everything.
class FixedNode final : public NccomNode {
 public:
  absl::StatusOr<CommJoined> Join(const CommPlace&, int cores) override {
    asked_cores = cores;
    return CommJoined{.ranks = 16, .chips = 4};
  }
  absl::StatusOr<NccomRun> Run(const CommPlace&, const NccomOptions&, const NccomDivision& given,
                               std::uint64_t bytes) override {
    division = given;
    if (bytes == fail_at) return Aborted("rank 2 is gone");
    return NccomRun{.algorithm = "ring",
                    .time_ps = 1'000'000'000,
                    .wrong_elements = wrong,
                    .bound_ps = 900'000'000};
  }
  void Leave(const CommPlace&) override { left = true; }

  int asked_cores = -1;
  NccomDivision division{};
  std::uint64_t fail_at = 0;
  std::uint64_t wrong = 0;
  bool left = false;
};

class NccomTestTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments, const CommPlace& place = {"c", 0, 1}) {
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

TEST_F(NccomTestTest, TheBoundIsShownWhenAsked) {
  EXPECT_EQ(Run({"allr", "-b", "1K", "-e", "1K", "-d", "fp32", "--show-bound"}), 0);
  EXPECT_THAT(out_.str(), ::testing::HasSubstr("busbw(GB/s)    bound(us)\n"));
  EXPECT_THAT(out_.str(), ::testing::HasSubstr("0.00       900.00\n"));
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

TEST_F(NccomTestTest, BusBandwidthInGroupsCountsTheRanksOfAGroup) {
  EXPECT_EQ(Run({"allg", "-b", "1G", "-e", "1G", "--data-parallel-dimension", "4"}), 0);
  EXPECT_THAT(out_.str(), ::testing::HasSubstr("Avg bus bandwidth:      750.0000GB/s"));
  EXPECT_EQ(node_.division.groups,
            (RankGroups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(Run({"allg", "--data-parallel-dimension", "5"}), 1);
  EXPECT_EQ(err_.str(),
            "nccom-test: rank 0: --data-parallel-dimension is 5; expected a divisor of the 16 "
            "ranks\n");
  EXPECT_TRUE(node_.left);
}

TEST_F(NccomTestTest, AFileThatIsNotThereOrWrongIsNamedBeforeAnyoneJoins) {
  EXPECT_EQ(Run({"allr", "--custom-replica-groups", "/nowhere/groups.json"}), 1);
  EXPECT_EQ(err_.str(), "nccom-test: rank 0: cannot read /nowhere/groups.json\n");
  EXPECT_EQ(node_.asked_cores, -1);
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
  const Json report = ParseJson(*ReadFile(file));
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

TEST(NccomArgumentsTest, ACheckMaySayWhatItChecksWith) {
  const auto parsed = [](const std::vector<std::string>& arguments) {
    const auto options = ParseNccomArguments(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->operation, "allr");
    EXPECT_TRUE(options->check);
    return options->ones;
  };
  EXPECT_FALSE(parsed({"-c", "allr"}));
  EXPECT_FALSE(parsed({"allr", "--check"}));
  EXPECT_FALSE(parsed({"--check", "random", "allr"}));
  EXPECT_FALSE(parsed({"allr", "-c", "random"}));
  EXPECT_TRUE(parsed({"--check", "all_ones", "allr"}));
  EXPECT_TRUE(parsed({"--check=all_ones", "allr"}));
  EXPECT_TRUE(parsed({"allr", "-c", "all_ones"}));
  EXPECT_EQ(Message(ParseNccomArguments({"allr", "--check=zeros"}).status()),
            "--check is \"zeros\"; expected random or all_ones");
}

// The examples of AWS's guide.
TEST(NccomArgumentsTest, RepeatedRunsCountTheirOperations) {
  const auto once = ParseNccomArguments({"allr", "-n", "15", "-w", "5", "-I", "10"});
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(once->iterations * once->MeasuredRuns(), 150);
  EXPECT_EQ(once->WarmupOperations(), 50);
  const auto warm = ParseNccomArguments({"allr", "-n", "15", "-w", "5", "-I", "10", "-W", "5"});
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ(warm->iterations * warm->MeasuredRuns(), 150);
  EXPECT_EQ(warm->WarmupOperations(), 150);
}

TEST(NccomArgumentsTest, OptionsOfAwsThatChangeNothingHereAreTaken) {
  const auto options = ParseNccomArguments(
      {"allr", "--non-interactive", "--debug", "--unique-buff", "--shared-output-buff",
       "--vcpu-pin-mode", "--data-collector-port", "60006", "--data-collector-host", "h"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->operation, "allr");
}

TEST(NccomArgumentsTest, OptionsOfAwsThatAreNotTakenSayWhy) {
  const auto message = [](const std::vector<std::string>& arguments) {
    return std::string(Message(ParseNccomArguments(arguments).status()));
  };
  EXPECT_EQ(message({"allr", "--hosts", "10.0.0.1", "10.0.0.2"}),
            "--hosts is not taken: the nodes are those of the gang, whose pods each run "
            "nccom-test");
  for (const char* option : {"-s", "-S", "-u", "--slurm-job-id", "--mpi-log-dir"}) {
    EXPECT_THAT(message({"allr", option}), ::testing::HasSubstr("the nodes are those of the gang"))
        << option;
  }
  EXPECT_EQ(message({"allr", "--sb2sb"}),
            "--sb2sb is not taken: buffers lie in HBM; SBUF is not emulated");
  EXPECT_EQ(message({"allr", "--coalesced-cc-size-ratio", "[1,2,1]"}),
            "--coalesced-cc-size-ratio is not taken: an operation has one buffer");
  EXPECT_EQ(message({"allr", "--streams-json", "s.json"}),
            "--streams-json is not taken: operations run one after the other");
  EXPECT_EQ(message({"allgv"}), "allgv is not emulated; expected all_gather or alltoallv");
}

TEST(NccomArgumentsTest, OptionsThatExcludeOneAnotherAreRefused) {
  const auto message = [](const std::vector<std::string>& arguments) {
    return std::string(Message(ParseNccomArguments(arguments).status()));
  };
  EXPECT_EQ(message({"allr", "--variable-size-op-metadata", "f"}),
            "--variable-size-op-metadata is for alltoallv, not for allr");
  EXPECT_EQ(message({"sendrecv", "--custom-src-target-pairs", "f"}),
            "--custom-src-target-pairs is for permute, not for sendrecv");
  EXPECT_EQ(message({"allr", "--custom-replica-groups", "f", "--data-parallel-dimension", "2"}),
            "expected one of --custom-replica-groups, --custom-src-target-pairs and "
            "--data-parallel-dimension, got 2");
  EXPECT_EQ(message({"allr", "-W", "2"}), "--neff_warmup_iters needs --neff_iters");
  EXPECT_EQ(message({"allr", "-I", "100000", "-n", "11"}), "more than 1000000 operations in all");
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
  EXPECT_EQ(
      message({"allr", "-b", "12q"}),
      "--minbytes: \"12q\" is no size from 1 to 1T; expected for example 8, 64K, 64MiB or 1G");
  EXPECT_EQ(message({"allr", "--stats=p50,max"}),
            "--stats is \"max\"; expected avg or percentiles, p0 to p100");
  EXPECT_EQ(message({"allr", "-t", "p101"}),
            "--stats is \"p101\"; expected avg or percentiles, p0 to p100");
  EXPECT_EQ(message({"allr", "--seed", "-1"}), "--seed is \"-1\"; expected 0 to 2147483647");
  EXPECT_TRUE(ParseNccomArguments({"--help"})->help);
}

TEST(NccomArgumentsTest, SizesHaveBinaryUnits) {
  for (const char* text : {"1M", "1m", "1MB", "1MiB", "1024K", "1048576"}) {
    const auto options = ParseNccomArguments({"allr", "-b", text, "-e", text});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->min_bytes, 1u << 20) << text;
    EXPECT_EQ(options->max_bytes, 1u << 20) << text;
  }
}

TEST(NccomArgumentsTest, StatisticsMayBeRepeated) {
  const auto stats = [](const std::vector<std::string>& words) {
    return ParseNccomArguments(words)->stats;
  };
  EXPECT_EQ(stats({"allr"}), std::vector<std::string>{"avg"});
  EXPECT_EQ(stats({"allr", "-t", "p50", "--stats", "avg,p99", "-t", "p1"}),
            (std::vector<std::string>{"p50", "avg", "p99", "p1"}));
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

TEST(NccomFilesTest, AwsOwnExamplesAreRead) {
  EXPECT_EQ(*ParseReplicaGroups(R"({"replica_groups": [[[0, 1, 2], [3, 4, 5]]]})"),
            (RankGroups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(*ParseSourceTargetPairs(R"({"src_target_pairs": [[[0, 1], [1, 0], [4, 4]]]})"),
            (RankPairs{{0, 1}, {1, 0}, {4, 4}}));
  const auto counts = ParseCounts(R"({"metadata": [{"send_counts": [512, 1024],
      "send_displs": [0, 512], "recv_counts": [], "recv_displs": []}]})");
  ASSERT_TRUE(counts.ok()) << counts.status();
  ASSERT_EQ(counts->size(), 1U);
  EXPECT_EQ((*counts)[0].send_counts, (std::vector<std::uint64_t>{512, 1024}));
  EXPECT_EQ((*counts)[0].send_displs, (std::vector<std::uint64_t>{0, 512}));
  EXPECT_TRUE((*counts)[0].recv_counts.empty());
}

TEST(NccomFilesTest, WrongOnesAreRefusedWithThePlace) {
  const auto groups = [](std::string_view text) {
    return std::string(Message(ParseReplicaGroups(text).status()));
  };
  constexpr std::string_view kExpected =
      "replica groups: expected {\"replica_groups\": [[[0, 1], [2, 3]]]}";
  for (const char* text : {"{}", "[]", R"({"replica_groups": []})", R"({"replica_groups": [[]]})",
                           R"({"replica_groups": [[[0]], [[1]]]})"}) {
    EXPECT_EQ(groups(text), kExpected) << text;
  }
  EXPECT_THAT(groups("{"), ::testing::HasSubstr("is not valid JSON"));
  EXPECT_EQ(groups(R"({"replica_groups": [[0, 1]]})"),
            "replica groups: replica_groups[0][0] is not a list of numbers");
  EXPECT_EQ(groups(R"({"replica_groups": [[[0], [1, -1]]]})"),
            "replica groups: replica_groups[0][1][1] is -1; expected a whole number from 0 to "
            "1048575");
  EXPECT_EQ(Message(ParseSourceTargetPairs(R"({"src_target_pairs": [[[0, 1, 2]]]})").status()),
            "source-target pairs: src_target_pairs[0][0] has 3 ranks; expected a source and a "
            "target");
  const auto counts = [](std::string_view text) {
    return std::string(Message(ParseCounts(text).status()));
  };
  EXPECT_EQ(counts(R"({"metadata": []})"),
            "metadata of counts: expected {\"metadata\": [{\"send_counts\": [512, 1024]}]}");
  EXPECT_EQ(counts(R"({"metadata": [{"send_counts": [1]}, {"send_displs": [0]}]})"),
            "metadata of counts.metadata[1].send_counts is missing; expected a number for each "
            "rank");
  EXPECT_EQ(counts(R"({"metadata": [{"send_counts": [1.5]}]})"),
            "metadata of counts.metadata[0].send_counts[0] is 1.5; expected a whole number from 0 "
            "to 1099511627776");
  EXPECT_THAT(counts(R"({"metadata": [{"send_counts": [1], "sned": 3}]})"),
              ::testing::HasSubstr("sned"));
}

// Two pods with 8 chips each, on one instance that serves both over a socket.
class NccomNodeTest : public ::testing::Test {
 protected:
  NccomNodeTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tahoma-nccom-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    auto server =
        wire::Server::Start("unix:" + folder_ + "/node.sock", {},
                            [this](const wire::Request& request) { return Serve(request); });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~NccomNodeTest() override {
    server_->Stop();
    std::filesystem::remove_all(folder_);
  }

  // The token says which half of the instance the claim holds.
  absl::StatusOr<wire::Reply> Serve(const wire::Request& request) {
    const auto params = ParseJson(request.params);
    std::vector<Member> cores;
    for (int chip = 0; chip < 8; ++chip) {
      const int first = params["token"] == "left" ? 0 : 8;
      cores.push_back({.chip = torus::ChipIndex(first + chip), .ranks = 4});
    }
    return calls_.Call(request, params["token"], cores);
  }

  std::string FileOf(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  // Returns the output of the pods, after their exit status: "0:…".
  std::vector<std::string> RunPods(const std::vector<std::string>& arguments) {
    const auto options = ParseNccomArguments(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    std::vector<std::string> printed(2);
    std::vector<std::jthread> pods;
    for (const std::size_t rank : {0U, 1U}) {
      pods.emplace_back([&, rank] {
        SocketNode node("unix:" + folder_ + "/node.sock", rank == 0 ? "left" : "right");
        std::ostringstream out;
        const int status =
            RunNccomTest(*options, {"job", static_cast<int>(rank), 2}, node, out, out);
        printed[rank] = fmt::format("{}:{}", status, out.str());
      });
    }
    pods.clear();
    return printed;
  }

  std::string folder_;
  Communicators communicators_{
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)}};
  CommunicatorCalls calls_{communicators_};
  std::unique_ptr<wire::Server> server_;
};

TEST_F(NccomNodeTest, GroupsOfRanksReduceSideBySideAndEachIsChecked) {
  Json groups = Json::array({Json::array(), Json::array()});
  for (int rank = 0; rank < 64; ++rank) groups[rank % 8 < 4 ? 0 : 1].push_back(rank);
  const std::string file = FileOf("groups.json", Json{{"replica_groups", {groups}}}.dump());
  const auto printed = RunPods(
      {"allr", "-b", "4K", "-e", "4K", "-d", "fp32", "-c", "--custom-replica-groups", file});
  EXPECT_TRUE(printed[0].starts_with("0:")) << printed[0];
  EXPECT_TRUE(printed[1].starts_with("0:")) << printed[1];
}

TEST_F(NccomNodeTest, AnAllToAllVMovesWhatTheCountsSay) {
  Json entries = Json::array();
  for (int rank = 0; rank < 64; ++rank) {
    Json counts = Json::array();
    for (int to = 0; to < 64; ++to) counts.push_back((rank + 2 * to) % 5);
    entries.push_back({{"send_counts", counts}});
  }
  const std::string file = FileOf("counts.json", Json{{"metadata", entries}}.dump());
  const auto printed = RunPods({"alltoallv", "-b", "1K", "-e", "1K", "-d", "bf16", "-c",
                                "--variable-size-op-metadata", file});
  EXPECT_TRUE(printed[0].starts_with("0:")) << printed[0];
  EXPECT_TRUE(RunPods({"alltoallv", "-b", "1K", "-e", "1K", "-c"})[0].starts_with("0:"))
      << "even blocks without a file";
  const auto refused = RunPods(
      {"alltoallv", "-b", "64", "-e", "64", "-d", "bf16", "--variable-size-op-metadata", file});
  EXPECT_THAT(refused[1], ::testing::HasSubstr("its result has 32 elements"));
}

TEST_F(NccomNodeTest, APermuteByPairsAndOnesAreChecked) {
  const std::string file =
      FileOf("pairs.json", R"({"src_target_pairs": [[[0, 63], [63, 0], [5, 40]]]})");
  const auto printed = RunPods({"permute", "-b", "4K", "-e", "4K", "--check", "all_ones",
                                "--custom-src-target-pairs", file});
  EXPECT_TRUE(printed[0].starts_with("0:")) << printed[0];
  EXPECT_TRUE(printed[1].starts_with("0:")) << printed[1];
}

TEST_F(NccomNodeTest, GroupsThatDoNotFitEndAllPodsWithTheReason) {
  const std::string file = FileOf("groups.json", R"({"replica_groups": [[[0, 64]]]})");
  for (const std::string& printed : RunPods({"allr", "--custom-replica-groups", file})) {
    EXPECT_TRUE(printed.starts_with("1:")) << printed;
    EXPECT_THAT(printed, ::testing::HasSubstr("replica group 0 names rank 64; expected 0 to 63"));
  }
}

TEST_F(NccomNodeTest, TwoPodsMeasureARealCollectiveOverTheSocket) {
  const auto printed =
      RunPods({"allr", "-b", "1K", "-e", "256K", "-f", "16", "-d", "fp32", "-c", "-r", "64"});
  EXPECT_TRUE(printed[0].starts_with("0:") && printed[1].starts_with("0:"));
  EXPECT_THAT(printed[0], ::testing::HasSubstr("262144           65536     fp32"));
  EXPECT_THAT(printed[1], ::testing::HasSubstr("3 sizes over 64 workers on 16 chips"));
}

}  // namespace
}  // namespace tahoma::sim
