// Many hosts are taken back at one moment: all are free in time, and the API server gets a
// bounded number of deletions at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "tests/unit/controller/core/block_story.h"

namespace tahoma::controller {
namespace {

// All that end in a day of 15,625 UltraServers in weekly blocks are 2,232; that takes minutes here.
int HostsOfStorm() {
  const char* hosts = std::getenv("TAHOMA_STORM_ULTRASERVERS");
  return hosts == nullptr ? 128 : std::atoi(hosts);
}

// A gang of one pod on each host, of one chip each: deletions are what is tested.
TEST(ReclaimStormTest, EveryHostIsFreeBeforeTheEnd) {
  const int host_count = HostsOfStorm();
  CoreOptions options;
  options.blocks.hosts.one_spare_in = 0;
  options.blocks.share_ultra_servers = true;
  LendingStory story(host_count, options);
  FakeApi& api = story.api();
  std::vector<std::string> names;
  for (int bought = 0; bought < host_count; bought += kHostsMost) {
    names.push_back("b" + std::to_string(bought));
    // An owner has 256 instances at most.
    story.Buy(names.back(), {.access = {"default"}}, std::min(kHostsMost, host_count - bought), 1,
              1, names.back());
  }
  const Block first = story.block(names.front(), names.front());
  story.world().MoveTo(first.start());
  int gangs = 0;
  for (const std::string& name : names) {
    for (const std::string& host : story.block(name, name).hosts) {
      for (int z = 0; z < 4; ++z) {
        const std::string pod = fmt::format("g{}", gangs++);
        api.AddPodWithClaim(pod, "", 1);
        api.ChangePod(pod, [&](PodFact& fact) {
          fact.block = name + "/" + name;
          fact.demand.all.push_back({.key = "metadata.name",
                                     .op = NodeOperator::kIn,
                                     .values = {fmt::format("{}-n{}", host, z)},
                                     .field = true});
        });
      }
    }
  }
  story.world().Settle(20'000);
  ASSERT_EQ(BoundPods(api), host_count * 4);
  std::size_t deletions = 0;
  story.world().on_writes = [&](const std::vector<ApiWrite>& writes) {
    const auto now = std::count_if(writes.begin(), writes.end(), [](const ApiWrite& write) {
      return write.kind() == WriteKind::kDeletePod;
    });
    deletions = std::max(deletions, static_cast<std::size_t>(now));
  };
  story.world().MoveTo(first.reclaim());
  story.world().Settle(20'000);
  EXPECT_EQ(BoundPods(api), 0);
  EXPECT_LT(story.now(), first.end);
  EXPECT_GT(deletions, 0U);
  EXPECT_LE(deletions, GangRuns::kDeletionsMost);
  EXPECT_THAT(api.faults, ::testing::IsEmpty());
}

}  // namespace
}  // namespace tahoma::controller
