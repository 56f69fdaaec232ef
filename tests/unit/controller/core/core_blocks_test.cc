// A new leader that knows blocks and gangs from the API only: what it tells the gangs of a block,
// and whom it ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/blocks/block_hosts.h"
#include "controller/core/core.h"
#include "controller/core/journal/block_record.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "tests/support/fake_api.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const PodKey kPod{"team-a", "train-0"};

std::vector<NodeFacts> UltraServer() {
  std::vector<NodeFacts> nodes;
  for (int z = 0; z < 4; ++z) {
    nodes.push_back(NodeFactsOf({.name = "n" + std::to_string(z),
                                 .type = "trn2u.48xlarge",
                                 .ultra_server = "us-0",
                                 .z = z}));
  }
  return nodes;
}

// A block of one day on the UltraServer, as a controller before us has left it.
class Before {
 public:
  Before() {
    ClusterState cluster;
    for (const NodeFacts& node : UltraServer()) cluster.PutNode(node);
    BlockHosts().Update(cluster, book_, now_);
    const auto search = CheckQuery({.ultraserver_type = "u-trn2x64",
                                    .ultraserver_count = 1,
                                    .duration_hours = 24,
                                    .start_date_range = StartOf(SlotOf(now_) + 1)},
                                   now_);
    TAHOMA_CHECK_OK(search.status());
    const auto found = SearchOfferings(book_.profile(), book_.prices(), *search, now_);
    const auto bought = book_.Purchase({.offering_id = OfferingId(found.offerings.at(0)),
                                        .key = {"team-a", "train"},
                                        .uid = "uid-train"},
                                       now_);
    TAHOMA_CHECK_OK(bought.status());
    reservation_ = (*bought)->reservation;
  }
  std::shared_ptr<const Block> At(WallTime time) {
    book_.Advance(time);
    return block();
  }
  std::shared_ptr<const Block> block() const { return book_.Find(reservation_); }

 private:
  WallTime now_ = *ParseTime("2026-11-23T09:00:00Z");
  BlockBook book_{{}, now_};
  std::string reservation_;
};

class CoreBlocksTest : public ::testing::Test {
 protected:
  // Takes block and gang over from the API, and returns what is written to pods.
  std::vector<ApiWrite> Lead(const Block& block, WallTime told, WallTime now) {
    std::vector<Command> commands;
    for (NodeFacts& node : UltraServer()) {
      commands.push_back(NodeSeen{InternAlone(std::move(node))});
    }
    auto object = std::make_shared<BlockFact>();
    object->key = block.key;
    object->uid = "uid-train";
    object->protected_by_finalizer = true;
    object->order.offering_id = block.offering_id;
    object->record = Hex(EncodeBlock(block));
    commands.push_back(BlockSeen{object});
    commands.push_back(ClaimSeen{Claim()});
    commands.push_back(PodSeen{Pod(told)});
    commands.push_back(WatchesSynced{});
    Core core(FirstFit);
    std::vector<ApiWrite> writes;
    for (int i = 0; i < 5; ++i) {
      StepOutput out = core.Step(std::exchange(commands, {}), {now, MonotonicTime(1h)});
      for (ApiWrite& write : out.writes) {
        const bool pods =
            write.kind() == WriteKind::kPodReclaim || write.kind() == WriteKind::kDeletePod;
        if (pods) writes.push_back(std::move(write));
      }
    }
    return writes;
  }

  static std::shared_ptr<const ClaimFact> Claim() {
    auto allocation = std::make_shared<Allocation>();
    allocation->node = "n0";
    DeviceResult chip;
    chip.request = "chips";
    chip.driver = "neuron.aws.com";
    chip.pool = "n0";
    chip.device = "neuron-device-0";
    allocation->results = {chip};
    auto claim = std::make_shared<ClaimFact>();
    claim->key = {"team-a", "c0"};
    claim->uid = "uid-c0";
    claim->resource_version = "7";
    claim->protected_by_finalizer = true;
    claim->reserved_for = {{"", "pods", "train-0", "uid-pod"}};
    claim->allocation = allocation;
    return claim;
  }
  static std::shared_ptr<const PodFact> Pod(WallTime told) {
    auto pod = std::make_shared<PodFact>();
    pod->key = kPod;
    pod->uid = "uid-pod";
    pod->node = "n0";
    pod->claims = {{"chips", "c0", false}};
    pod->bound_gang_uid = "uid-pod";
    pod->bound_reclaim = told;
    pod->grace_seconds = 7200;
    return pod;
  }

  Before before_;
};

TEST_F(CoreBlocksTest, AGangOfABlockThatIsActiveIsLeftAlone) {
  const auto block = before_.At(before_.block()->start());
  EXPECT_THAT(Lead(*block, block->reclaim(), block->start() + 1h), IsEmpty());
}

TEST_F(CoreBlocksTest, ANewLeaderMovesTheReclaimAnnotationThatItsPredecessorDidNot) {
  const auto block = before_.At(before_.block()->start());
  const auto writes = Lead(*block, block->reclaim() - 24h, block->start() + 1h);
  ASSERT_THAT(writes, SizeIs(1));
  const auto& told = std::get<PodReclaimWrite>(writes[0].what);
  EXPECT_EQ(told.key.name, "train-0");
  EXPECT_EQ(told.reclaim, block->reclaim());
}

TEST_F(CoreBlocksTest, AGangOfABlockThatIsBeingTakenBackIsEndedBeforeItsEnd) {
  const auto block = before_.At(before_.block()->reclaim());
  ASSERT_TRUE(block->reclaiming);
  const auto writes = Lead(*block, block->reclaim(), block->end - 50min);
  ASSERT_THAT(writes, SizeIs(1));
  const auto& deletion = std::get<PodDeletion>(writes[0].what);
  EXPECT_EQ(deletion.by, block->end);
  EXPECT_EQ(deletion.grace_seconds, 49 * 60) << "a minute is left, of its own two hours";
}

}  // namespace
}  // namespace tahoma::controller
