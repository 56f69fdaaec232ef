#include "sim-node/trace/checkpoint_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;

constexpr VirtualDuration kLatency = Microseconds(500);

TEST(CheckpointOptionsTest, ManyNodesWaitForTheStorage) {
  const auto cost = CostOf({});
  ASSERT_TRUE(cost.ok()) << cost.status();
  // 128 nodes x 16 chips x 24 GiB at 100 GB/s.
  EXPECT_EQ(cost->bound, TransferTime(std::uint64_t{128} * 16 * 24 << 30, 100'000'000'000));
  EXPECT_EQ(cost->all, cost->bound + kLatency);
  EXPECT_EQ(cost->first, cost->all);
  EXPECT_THAT(cost->text, HasSubstr("128 nodes (trn2.48xlarge) write 412316860416 bytes each"));
  EXPECT_THAT(cost->text, HasSubstr("the limit is the storage system"));
}

TEST(CheckpointOptionsTest, OneNodeWaitsForWhatAClientMayUse) {
  const auto cost = CostOf({.access = "read", .nodes = 1});
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->bound, TransferTime(std::uint64_t{16} * 24 << 30, 87'500'000'000));
  EXPECT_EQ(cost->all, cost->bound + kLatency);
  EXPECT_THAT(cost->text, HasSubstr("1 node (trn2.48xlarge) read"));
  EXPECT_THAT(cost->text, HasSubstr("the limit is what one client may use"));
}

TEST(CheckpointOptionsTest, ASmallInstanceWaitsForItsNetwork) {
  const auto cost = CostOf({.nodes = 1, .instance_type = "trn2.3xlarge"});
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->bound, TransferTime(std::uint64_t{24} << 30, 25'000'000'000));
  EXPECT_THAT(cost->text, HasSubstr("the limit is each node's network"));
}

TEST(CheckpointOptionsTest, WhoeverBeginsFirstIsDoneEarlierWhenNodesTakeTurns) {
  CheckpointOptions options{.nodes = 8};
  const auto together = CostOf(options);
  options.stagger = std::chrono::seconds(4);
  const auto in_turns = CostOf(options);
  ASSERT_TRUE(together.ok() && in_turns.ok());
  EXPECT_LT(in_turns->first, together->first);
  EXPECT_GE(in_turns->all, together->all) << "the storage is no faster for it";
}

// The defect: virtual time ran over, and 106 days minus something were printed.
TEST(CheckpointOptionsTest, WhatTakesLongerThanVirtualTimeHoldsIsRefused) {
  EXPECT_THAT(Message(CostOf({.nodes = 65'536, .stagger = std::chrono::hours(1)}).status()),
              HasSubstr("65536 nodes take up to 2"));
  EXPECT_FALSE(
      CostOf({.nodes = 65'536, .bytes_per_chip = std::int64_t{1} << 40, .tebibytes = 1}).ok());
  EXPECT_TRUE(CostOf({.nodes = 1024, .stagger = std::chrono::hours(1)}).ok());
}

TEST(CheckpointOptionsTest, WrongOptionsAreNamed) {
  EXPECT_THAT(Message(CostOf({.access = "append"}).status()),
              HasSubstr("access is \"append\"; expected write or read"));
  EXPECT_THAT(Message(CostOf({.instance_type = "p5.48xlarge"}).status()),
              HasSubstr("instanceType \"p5.48xlarge\" is unknown; known are "));
}

}  // namespace
}  // namespace tahoma::sim
