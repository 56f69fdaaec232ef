// The command line and the table with a node made up for the purpose; then end to end over a socket
// to memories that really are written.

#include "sim-node/workload/trn_mem.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/server.h"
#include "sim-node/serve/memory_calls.h"
#include "sim-node/workload/mem_node.h"

namespace tahoma::sim {
namespace {

// Four chips, of which this pod has the second and the third. Moves bytes between its own and takes
// 1 us for a write, 2 us for a read.
class FixedNode final : public MemNode {
 public:
  absl::StatusOr<CommJoined> Join(const CommPlace&) override { return joined; }
  absl::Status Store(int chip, std::uint64_t address, const std::string& bytes) override {
    memory_[{chip + 1, address}] = bytes;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Load(int chip, std::uint64_t address, std::uint64_t) override {
    std::string found = memory_[{chip + 1, address}];
    for (std::uint64_t i = 0; i < wrong; ++i) found[i] = static_cast<char>(found[i] ^ 1);
    return found;
  }
  absl::StatusOr<std::vector<MemTaken>> Access(const CommPlace&,
                                               const std::vector<MemAccess>& accesses,
                                               bool move) override {
    ++rounds;
    if (rounds == fail_at) return Aborted("rank 1 is gone");
    std::vector<MemTaken> taken;
    for (const MemAccess& one : accesses) {
      auto& own = memory_[{one.chip, one.address}];
      auto& other = memory_[{one.remote_chip, one.remote_address}];
      if (move) (one.write ? other = own : own = other);
      taken.push_back({.time_ps = one.write ? 1'000'000 : 2'000'000,
                       .hops = one.chip == one.remote_chip ? 0 : 1});
    }
    return taken;
  }
  void Leave(const CommPlace&) override { left = true; }

  CommJoined joined{.ranks = 16, .chips = 4, .first_chip = 1, .own_chips = 2, .pool = {0, 1, 2, 3}};
  std::uint64_t wrong = 0;
  int fail_at = -1;
  int rounds = 0;
  bool left = false;

 private:
  std::map<std::pair<int, std::uint64_t>, std::string> memory_;
};

class TrnMemTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments) {
    const auto options = ParseMemArguments(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    return RunTrnMem(*options, {"c", 1, 2}, node_, out_, err_);
  }
  FixedNode node_;
  std::ostringstream out_, err_;
};

constexpr std::string_view kTitle =
    "  chip other  hops     size(B)     write(us)   write(GB/s)      read(us)    read(GB/s)   "
    "wrong\n";

TEST_F(TrnMemTest, OneChipReachesEveryChipInTurn) {
  EXPECT_EQ(Run({"-b", "1K", "--from", "2"}), 0);
  EXPECT_EQ(out_.str(), std::string(kTitle) +
                            "     2     0     1        1024         1.000          1.02         "
                            "2.000          0.51       0\n"
                            "     2     1     1        1024         1.000          1.02         "
                            "2.000          0.51       0\n"
                            "     2     2     0        1024         1.000          1.02         "
                            "2.000          0.51       0\n"
                            "     2     3     1        1024         1.000          1.02         "
                            "2.000          0.51       0\n");
  EXPECT_EQ(node_.rounds, 8);
  EXPECT_TRUE(node_.left);
}

TEST_F(TrnMemTest, APodThatDoesNotHaveTheChipTakesPartAndPrintsNothing) {
  EXPECT_EQ(Run({"--from", "0"}), 0);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(node_.rounds, 8);
}

TEST_F(TrnMemTest, WithAllEveryChipReachesTheChipAtTheSameDistance) {
  EXPECT_EQ(Run({"-b", "16", "-e", "64", "--all"}), 0);
  EXPECT_EQ(node_.rounds, 2 * 3 * 2) << "two sizes, three distances, written and read";
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 3 * 2);
  EXPECT_NE(text.find("     1     2     1          16"), std::string::npos) << text;
  EXPECT_NE(text.find("     2     1     1          64"), std::string::npos) << text;
}

// Chips 1 and 2 of six are in an UltraServer with chip 5.
TEST_F(TrnMemTest, OnlyChipsOfTheUltraServerAreReachedInAsManyRoundsAsOthersNeed) {
  node_.joined = {.ranks = 24, .chips = 6, .first_chip = 1, .own_chips = 2, .pool = {1, 2, 5}};
  EXPECT_EQ(Run({"--all"}), 0) << err_.str();
  std::vector<std::string> reached;
  std::istringstream lines(out_.str());
  std::string line;
  std::getline(lines, line);  // the title
  while (std::getline(lines, line)) reached.push_back(line.substr(0, 12));
  EXPECT_EQ(reached, (std::vector<std::string>{"     1     2", "     2     5", "     1     5",
                                               "     2     1"}));
  EXPECT_EQ(node_.rounds, 2 * 5) << "writes and reads, with every other chip of the gang";
  out_.str("");
  node_.rounds = 0;
  EXPECT_EQ(Run({"--from", "2"}), 0);
  const std::string printed = out_.str();
  EXPECT_EQ(std::ranges::count(printed, '\n'), 1 + 3);
  EXPECT_EQ(node_.rounds, 2 * 6);
}

TEST_F(TrnMemTest, WrongBytesAreCountedAndFailTheRun) {
  node_.wrong = 3;
  EXPECT_EQ(Run({"-b", "16", "--from", "1"}), 1);
  EXPECT_EQ(err_.str(), "trn-mem: rank 1: 12 bytes are wrong\n");
}

TEST_F(TrnMemTest, WithoutACheckNothingIsCompared) {
  node_.wrong = 3;
  EXPECT_EQ(Run({"-b", "1G", "--from", "1", "--no-check"}), 0);
  EXPECT_NE(out_.str().find("N/A"), std::string::npos);
}

TEST_F(TrnMemTest, AnErrorIsPrintedAndTheGangLeft) {
  node_.fail_at = 3;
  EXPECT_EQ(Run({"--from", "1"}), 1);
  EXPECT_EQ(err_.str(), "trn-mem: rank 1: rank 1 is gone\n");
  EXPECT_TRUE(node_.left);
  EXPECT_EQ(Run({"--from", "4"}), 1);
  EXPECT_NE(err_.str().find("--from is 4; the gang has chips 0 to 3"), std::string::npos);
}

TEST(TrnMemArgumentsTest, WrongOnesAreNamed) {
  const auto message = [](const std::vector<std::string>& arguments) {
    const auto options = ParseMemArguments(arguments);
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(options.status()));
  };
  EXPECT_EQ(message({"--fast"}), "unknown option --fast; see --help");
  EXPECT_EQ(message({"-b"}), "-b needs a value");
  EXPECT_EQ(message({"allr"}), "\"allr\" is no option; see --help");
  EXPECT_EQ(
      message({"-b", "many"}),
      "--minbytes: \"many\" is no size from 1 to 1T; expected for example 8, 64K, 64MiB or 1G");
  EXPECT_EQ(message({"-b", "2G"}), "--minbytes is 2147483648 bytes; expected at most 1073741824");
  EXPECT_EQ(message({"-b", "2K", "-e", "1K"}), "--minbytes 2048 is more than --maxbytes 1024");
  EXPECT_EQ(message({"-b", "64M"}),
            "--maxbytes is 67108864; with a check expected at most 33554432 (see --no-check)");
  EXPECT_EQ(message({"-f", "1"}), "--stepfactor is \"1\"; expected 2 to 1024");
  EXPECT_EQ(message({"--from", "131072"}), "--from is \"131072\"; expected 0 to 131071");
  EXPECT_TRUE(ParseMemArguments({"--help"})->help);
  EXPECT_NE(MemHelp().find("--no-check"), std::string::npos);
}

TEST(CommCallTest, ACallNamesItsRankAndImpossibleAnswersAreRefused) {
  char name[] = "/tmp/tahoma-call-XXXXXX";
  const std::string folder = mkdtemp(name);
  Json asked;
  Json answer = {{"ranks", 8}, {"chips", 2}, {"firstChip", 1}, {"ownChips", 1}, {"pool", {0, 1}}};
  auto server =
      wire::Server::Start("unix:" + folder + "/pods.sock", {}, [&](const wire::Request& request) {
        asked = ParseJson(request.params);
        return wire::Reply{.result = answer.dump()};
      });
  ASSERT_TRUE(server.ok()) << server.status();
  CommCall call("unix:" + folder + "/pods.sock", "token");
  const CommPlace place{.comm_id = "c", .rank = 1, .world_size = 2};
  const auto joined = call.Join(place, 3);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(asked, ParseJson(R"({"token": "token", "commId": "c", "rank": 1,
                                             "worldSize": 2, "cores": 3})"));
  EXPECT_EQ(joined->first_chip, 1);
  EXPECT_EQ(joined->pool, (std::vector<int>{0, 1}));
  answer["pool"] = {0, 2};
  EXPECT_EQ(Message(call.Join(place, 0).status()), "commJoin.pool must hold chips from 0 to 1");
  answer["pool"] = {0, 1};
  answer["ownChips"] = 3;
  EXPECT_EQ(Message(call.Join(place, 0).status()), "commJoin.ownChips is 3; expected 1 to 2");
  (*server)->Stop();
  std::filesystem::remove_all(folder);
}

// A sim-node's calls behind a socket, as trn-mem in a pod would find them.
TEST(TrnMemOverASocketTest, EveryByteComesBackFromEveryChip) {
  char name[] = "/tmp/tahoma-mem-XXXXXX";
  const std::string folder = mkdtemp(name);
  Communicators communicators(
      {.node_id = 0, .links = TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)});
  CommunicatorCalls ranks(communicators);
  MemoryCalls memory(communicators, ranks);
  const auto chips_of = [](const std::string& token) {
    return token == "zero" ? std::vector<int>{0, 1} : std::vector<int>{5, 10};
  };
  auto server =
      wire::Server::Start("unix:" + folder + "/pods.sock", {},
                          [&](const wire::Request& request) -> absl::StatusOr<wire::Reply> {
                            const std::string token = ParseJson(request.params)["token"];
                            std::vector<Member> cores;
                            std::vector<ClaimMemory::Share> shares;
                            for (const int chip : chips_of(token)) {
                              cores.push_back({.chip = torus::ChipIndex(chip), .ranks = 4});
                              shares.push_back({torus::ChipIndex(chip), std::uint64_t{96} << 30U});
                            }
                            if (CommunicatorCalls::Serves(request.method))
                              return ranks.Call(request, token, cores);
                            return memory.Call(request, token, shares);
                          });
  ASSERT_TRUE(server.ok()) << server.status();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-b", "100K", "--from", "3"}, {"-b", "1K", "-e", "1M", "--all"}}) {
    const auto options = ParseMemArguments(arguments);
    std::ostringstream out[2], err[2];
    int status[2] = {-1, -1};
    {
      std::vector<std::jthread> pods;
      for (int rank = 0; rank < 2; ++rank) {
        pods.emplace_back([&, rank] {
          SocketMemNode node("unix:" + folder + "/pods.sock", rank == 0 ? "zero" : "one");
          status[rank] = RunTrnMem(*options, {"c", rank, 2}, node, out[rank], err[rank]);
        });
      }
    }
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(status[rank], 0) << err[rank].str();
    // Chip 3 of the gang is chip 10; chip 2 is 5, two hops from it.
    if (!options->all) {
      EXPECT_NE(out[1].str().find("     3     2     2      102400"), std::string::npos)
          << out[1].str();
    }
  }
  (*server)->Stop();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tahoma::sim
