// An UltraServer of four sim-node programs whose pods reach one another's memory: every byte comes
// back, the times are those of one process, and faults given to the nodes show in them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "sim-node/participants/remote_memory.h"
#include "tests/integration/ultraserver_nodes.h"
#include "tests/support/child_program.h"

namespace tahoma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Bin;
using testing::ChildProgram;
using ::testing::HasSubstr;
using torus::ChipIndex;

constexpr int kNodes = testing::UltraServerNodes::kCount;

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest() {
    const SystemClock clock;
    const MonotonicTime end = clock.MonotonicNow() + seconds(60);
    for (int node = 0; node < kNodes; ++node) {
      while (!std::filesystem::exists(nodes_.Path("ports", node)) && clock.MonotonicNow() < end) {
        if (nodes_[node].WaitEnd(milliseconds(5))) break;
      }
      tokens_.push_back(nodes_.Claim(node));
    }
  }

  using Ranks = std::vector<std::unique_ptr<ChildProgram>>;
  Ranks Run(const std::string& job, const std::vector<std::string>& command) {
    Ranks ranks;
    for (int node = 0; node < kNodes; ++node) {
      ranks.push_back(nodes_.RunRank(node, tokens_[static_cast<std::size_t>(node)], job, command));
    }
    return ranks;
  }

  struct Row {
    int hops = 0;
    double write_us = 0;
    double read_us = 0;
    std::string wrong;
  };
  // The rows of one chip, by the chip it reached.
  static std::map<int, Row> RowsOf(const std::string& log) {
    std::istringstream lines(log);
    std::string line;
    std::getline(lines, line);
    std::map<int, Row> rows;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      int chip = 0, other = 0, bytes = 0;
      double rate = 0;
      Row row;
      words >> chip >> other >> row.hops >> bytes >> row.write_us >> rate >> row.read_us >> rate >>
          row.wrong;
      EXPECT_TRUE(words) << line;
      rows[other] = row;
    }
    return rows;
  }

  testing::UltraServerNodes nodes_;
  std::vector<std::string> tokens_;
};

double MicrosecondsOf(sim::AccessKind kind, int chip, int other, const sim::TorusLinks& links) {
  const sim::MemoryAccess access{.kind = kind,
                                 .local = {ChipIndex(chip), 0},
                                 .remote = {ChipIndex(other), 0},
                                 .bytes = 64 << 10};
  const auto times = sim::TimeAccesses(std::vector{access}, links, sim::kAllChips);
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? sim::Nanoseconds(times->end.time_since_epoch()) / 1e3 : 0;
}

TEST_F(SharedMemoryTest, AChipReachesTheMemoryOfAll64WithTheTimesOfOneProcess) {
  for (const bool broken : {false, true}) {
    sim::TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
    if (broken) {
      // Chip 21 is chip 5 of node 1; its cable to chip 22.
      ASSERT_THAT(nodes_.Admin(1, "POST", "/v1/links/5/x+/down"), HasSubstr("linkPermille"));
      ASSERT_TRUE(
          links
              .SetCablePermille(
                  sim::TorusLinks::IdOf(ChipIndex(21), torus::Axis::kX, torus::Direction::kPlus), 0)
              .ok());
    }
    const std::string job = broken ? "around" : "whole";
    const Ranks ranks = Run(job, {Bin("trn-mem"), "-b", "64K", "--from", "21"});
    for (const auto& rank : ranks) ASSERT_EQ(rank->Wait(), 0) << rank->log();
    const std::map<int, Row> rows = RowsOf(ranks[1]->log());
    ASSERT_EQ(rows.size(), 64U) << ranks[1]->log();
    for (const auto& [other, row] : rows) {
      EXPECT_EQ(row.wrong, "0") << other;
      EXPECT_NEAR(row.write_us, MicrosecondsOf(sim::AccessKind::kWrite, 21, other, links), 0.001);
      EXPECT_NEAR(row.read_us, MicrosecondsOf(sim::AccessKind::kRead, 21, other, links), 0.001);
    }
    EXPECT_EQ(rows.at(22).hops, broken ? 3 : 1);
  }
}

TEST_F(SharedMemoryTest, AllChipsAtOnceGetEveryByteBack) {
  const Ranks ranks = Run("all", {Bin("trn-mem"), "-b", "4K", "--all"});
  for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->log();
}

TEST_F(SharedMemoryTest, ADeadChipEndsTheGangsWorkWithTheNrtErrorOnEveryRank) {
  ASSERT_THAT(nodes_.Admin(2, "POST", "/v1/chips/7/break", R"({"reason":"dead"})"),
              HasSubstr("\"dead\""));
  for (const auto& command : {std::vector<std::string>{Bin("trn-mem"), "-b", "64K"},
                              {Bin("nccom-test"), "allr", "-b", "64K", "-e", "64K"}}) {
    const Ranks ranks = Run("job" + std::to_string(command.size()), command);
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->Wait(), 1);
      EXPECT_THAT(rank->log(), HasSubstr("NRT_EXEC_HW_ERR_COLLECTIVES (1200)"));
    }
  }
}

}  // namespace
}  // namespace tahoma
