// The earliest moment is the one at which a planner that looks at every moment finds a place.

#include "controller/core/forecast/what_if.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/blocks/block_hosts.h"
#include "controller/reserve/book.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

WallTime Morning() { return *ParseTime("2026-11-23T09:00:00Z"); }

// Holds chips of a node: all of them as one device, or some one by one.
std::shared_ptr<const Holding> Hold(const std::string& node, Rng& rng) {
  Holding holding;
  holding.claim = {"default", "held-" + node};
  holding.claim_uid = "held-" + node;
  if (rng.Chance(1, 3)) {
    holding.devices = {{.node = node, .device = "neuron-node"}};
  } else {
    const int chips = rng.Chance(1, 2) ? 16 : 1 + static_cast<int>(rng.Below(16));
    for (int chip = 0; chip < chips; ++chip) {
      holding.devices.push_back({.node = node, .device = fmt::format("neuron-device-{}", chip)});
    }
  }
  if (!rng.Chance(1, 20)) holding.end = Morning() + std::chrono::minutes(1 + rng.Below(120));
  return std::make_shared<const Holding>(std::move(holding));
}

// A fleet, nearly all of which is in use.
struct BusyFleet {
  ClusterState fleet;
  std::vector<std::shared_ptr<const Holding>> held;
};

BusyFleet BusyWorld(Rng& rng) {
  BusyFleet world;
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("us-{}", i);
    AddUltraServer(world.fleet, name);
    for (int z = 0; z < 4; ++z) {
      if (rng.Chance(1, 10)) continue;
      world.held.push_back(Hold(fmt::format("{}-n{}", name, z), rng));
      world.fleet.Hold(world.held.back());
    }
  }
  return world;
}

Snapshot SnapshotOf(const ClusterState& fleet, const BlockBook& book) {
  Snapshot snapshot;
  snapshot.cluster = std::make_shared<const ClusterState>(fleet);
  snapshot.block_list = book.blocks();
  snapshot.profile = book.profile();
  return snapshot;
}

// Returns when the gang has a place, by a plan at each end; nullopt when it never has.
std::optional<WallTime> FirstPlace(const BusyFleet& world,
                                   const std::shared_ptr<const GangSpec>& gang) {
  std::vector<WallTime> ends;
  for (const auto& holding : world.held) {
    if (holding->end) ends.push_back(*holding->end);
  }
  std::sort(ends.begin(), ends.end());
  for (const WallTime end : ends) {
    ClusterState then = world.fleet;
    for (const auto& holding : world.held) {
      if (holding->end && *holding->end <= end) then.Release(holding->claim_uid);
    }
    if (Planner().Plan(then, {gang}, end).front().placement) return end;
  }
  return std::nullopt;
}

TEST(WhatIfTest, TheEarliestMomentIsThatOfAPlannerWhichLooksAtAll) {
  Rng rng(1);
  const BlockBook book({}, Morning());
  int later = 0;
  for (int round = 0; round < 60; ++round) {
    const BusyFleet world = BusyWorld(rng);
    WhatIf what_if;
    for (const char* shape : {"4x4x4", "4x4x2", "2x2x2", "1x2", ""}) {
      GangRequest request{.members = 0,
                          .shape = shape,
                          .slices = 1 + static_cast<std::int64_t>(rng.Below(3)),
                          .max_runtime = "1h"};
      if (request.shape.empty()) request.chips = 8;
      const auto gang = GangOfRequest(request, {"default", "gang"});
      ASSERT_TRUE(gang.ok()) << gang.status();
      const Forecast forecast = what_if.Ask(SnapshotOf(world.fleet, book), *gang, Morning());
      if (forecast.now) continue;
      const auto first = FirstPlace(world, *gang);
      ASSERT_EQ(forecast.earliest.has_value(), first.has_value()) << round << " " << shape;
      if (!first) continue;
      EXPECT_EQ(forecast.earliest->when, *first) << round << " " << shape;
      EXPECT_TRUE(forecast.earliest->place.has_value());
      ++later;
    }
  }
  EXPECT_GT(later, 100) << "the fleets were not busy";
}

// Of a fleet that is sold whole from the day after tomorrow on, what is kept is not foreseen.
TEST(WhatIfTest, HostsThatAreBookedAreNotForeseen) {
  ClusterState fleet;
  std::vector<std::shared_ptr<const Holding>> held;
  for (int i = 0; i < 4; ++i) {
    AddUltraServer(fleet, fmt::format("us-{}", i));
    for (int z = 0; z < 4; ++z) {
      Holding holding;
      holding.claim_uid = fmt::format("us-{}-n{}", i, z);
      holding.claim = {"default", holding.claim_uid};
      holding.devices = {{.node = holding.claim_uid, .device = "neuron-node"}};
      holding.end = Morning() + std::chrono::hours(1 + i);
      fleet.Hold(std::make_shared<const Holding>(std::move(holding)));
    }
  }
  BookOptions options;
  options.hosts.one_spare_in = 0;
  BlockBook book(options, Morning());
  BlockHosts hosts;
  hosts.Update(fleet, book, Morning());
  const Product& product = *FindProduct("u-trn2x64");
  const Slot start = SlotOf(Morning()) + 2;
  const auto bought = book.Purchase({.offering_id = OfferingId({.product = &product,
                                                                .count = 4,
                                                                .zone = kDefaultZone,
                                                                .any_cell = true,
                                                                .start = StartOf(start),
                                                                .end = StartOf(start + 1),
                                                                .rate = product.rate}),
                                     .key = {"team-a", "train"}},
                                    Morning());
  ASSERT_TRUE(bought.ok()) << bought.status();
  book.Advance(Morning());
  for (const auto& [host, use] : book.TakeUses()) fleet.SetBlockUse(host, use);
  const Snapshot snapshot = SnapshotOf(fleet, book);
  WhatIf what_if;
  const auto when = [&](const char* runtime) {
    const auto gang = GangOfRequest(
        {.members = 0, .shape = "4x4x4", .slices = 2, .max_runtime = runtime}, {"default", "gang"});
    const Forecast forecast = what_if.Ask(snapshot, *gang, Morning());
    EXPECT_FALSE(forecast.now.has_value());
    return forecast.earliest ? forecast.earliest->when : WallTime{};
  };
  EXPECT_EQ(when("2h"), Morning() + std::chrono::hours(2)) << "it has gone before the block begins";
  EXPECT_EQ(when("72h"), StartOf(start + 1)) << "the block has ended";
}

TEST(WhatIfTest, HardwareThatIsPromisedIsForeseenForShortGangsAlone) {
  const BlockBook book({}, Morning());
  ClusterState fleet;
  AddUltraServer(fleet, "us-0");
  const auto holder = GangOfRequest({.members = 0, .shape = "4x4x4"}, {"default", "holder"});
  ASSERT_TRUE(holder.ok());
  const auto placed = Planner().Plan(fleet, {*holder}, Morning());
  ASSERT_TRUE(placed.front().placement.has_value());
  Promise promise;
  promise.from = Morning() + std::chrono::hours(2);
  promise.until = Morning() + std::chrono::hours(5);
  promise.holdings = placed.front().placement->Holdings(**holder, Morning());
  Snapshot snapshot = SnapshotOf(fleet, book);
  snapshot.promises.push_back(std::make_shared<const Promise>(promise));
  const auto ask = [&](const std::string& runtime) {
    const auto gang = GangOfRequest({.members = 0, .shape = "4x4x1", .max_runtime = runtime},
                                    {"default", "gang"});
    EXPECT_TRUE(gang.ok());
    return WhatIf().Ask(snapshot, *gang, Morning());
  };
  EXPECT_TRUE(ask("1h").now.has_value());
  const Forecast later = ask("3h");
  EXPECT_FALSE(later.now.has_value());
  ASSERT_TRUE(later.earliest.has_value());
  EXPECT_EQ(later.earliest->when, promise.until);
}

}  // namespace
}  // namespace tahoma::controller
