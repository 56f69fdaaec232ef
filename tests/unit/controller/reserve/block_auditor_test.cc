// The auditor finds defects: each is planted where a book without it has done the same before.

#include "tests/unit/controller/reserve/block_auditor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two blocks on two hosts, from their purchase to the end, whose changes are forged on their way to
// the auditor.
class PlantedDefect : public ::testing::Test {
 protected:
  using Forge = std::function<void(Block&, BlockNews)>;

  // Returns what the auditor says, which looks at everything at the start, and at the end, of the
  // blocks.
  std::vector<std::string> Live(const Forge& forge) {
    for (const int host : {0, 1}) auditor_.OnHost(world_.host(host));
    const auto first = world_.Buy({.days = 1});
    const auto second = world_.Buy({.days = 1, .owner = "team-b"});
    Follow(forge);
    for (const WallTime time :
         {first->start() - kMinute, first->start(), first->end, second->end}) {
      world_.MoveTo(time);
      Follow(forge);
      auditor_.Audit(world_.book());
    }
    return auditor_.violations();
  }

  void Follow(const Forge& forge) {
    for (BlockChange change : world_.book().TakeChanges()) {
      auto forged = std::make_shared<Block>(*change.block);
      forge(*forged, change.news);
      if (*forged != *change.block) change.block = forged;
      auditor_.Take(world_.book(), change);
    }
  }

  BlockWorld world_{{.hosts = 2}};
  BlockAuditor auditor_;
};

TEST_F(PlantedDefect, NoneIsFoundWhereNoneIs) {
  EXPECT_THAT(Live([](Block&, BlockNews) {}), IsEmpty());
  EXPECT_GT(auditor_.changes(), 10U);
}

TEST_F(PlantedDefect, AHostThatTwoBlocksHaveIsFound) {
  const auto found = Live([](Block& block, BlockNews) {
    if (!block.hosts.empty()) block.hosts = {"us-00"};
  });
  EXPECT_THAT(found, Contains(HasSubstr("a host of it is another block's")));
}

TEST_F(PlantedDefect, ABlockThatEndsTwiceIsFound) {
  const auto found = Live([](Block& block, BlockNews news) {
    if (news == BlockNews::kExpired) block.state = BlockState::kActive;
  });
  EXPECT_THAT(found, Contains(HasSubstr("it is not as the journal has it")));
  Follow([](Block&, BlockNews) {});
  EXPECT_EQ(auditor_.journal().begin()->second->state, BlockState::kActive);
}

TEST_F(PlantedDefect, AHostWithoutItsBlockIsFound) {
  const auto found = Live([](Block& block, BlockNews) { block.hosts.clear(); });
  EXPECT_THAT(found, Contains(HasSubstr("it is not as the journal has it")));
}

TEST_F(PlantedDefect, AFeeThatIsNotTheRateTimesTheTimeIsFound) {
  const auto found = Live([](Block& block, BlockNews news) {
    if (news == BlockNews::kExtended || news == BlockNews::kDelivered) {
      block.bought.rate = block.bought.rate + Money{1};
    }
  });
  EXPECT_THAT(found, Contains(HasSubstr("what was bought has changed")));
}

TEST_F(PlantedDefect, AHostWhoseFailureTheBookDoesNotCountIsFound) {
  for (const int host : {0, 1}) auditor_.OnHost(world_.host(host));
  HostState failed = world_.host(1);
  failed.healthy = false;
  auditor_.OnHost(failed);
  world_.MoveBy(kMinute);
  auditor_.Audit(world_.book());
  EXPECT_THAT(auditor_.violations(),
              Contains(HasSubstr("the counts of cell nn-0 are not its blocks' and hosts'")));
}

TEST_F(PlantedDefect, AChangeThatIsNotToldIsFound) {
  for (const int host : {0, 1}) auditor_.OnHost(world_.host(host));
  world_.Buy({.days = 1});
  world_.book().TakeChanges();
  auditor_.Audit(world_.book());
  EXPECT_THAT(auditor_.violations(),
              Contains(HasSubstr("1 blocks are there, 0 are in the journal")));
}

}  // namespace
}  // namespace tahoma::controller
