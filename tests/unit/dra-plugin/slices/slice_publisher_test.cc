#include "dra-plugin/slices/slice_publisher.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "dra-plugin/slices/claim_source.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/unit/dra-plugin/slices/fake_api.h"

namespace tahoma::dra {
namespace {

using json = Json;

wire::Inventory TestNode() {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = "node-a",
                               .instance_type = "trn2.48xlarge",
                               .driver_version = "2.26.10.0"};
  for (int i = 0; i < 16; ++i) inventory.chips.push_back({.index = i});
  return inventory;
}

constexpr Publish kChipsOnly = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false};

Pool Build(const wire::Inventory& inventory, Publish publish = {}) {
  return *BuildPool(inventory, {.publish = publish});
}

// Expects what an allocator relies on: a complete pool of one generation with every device once.
void ExpectWhole(const FakeApi& api, const Pool& pool) {
  std::set<std::string> wanted;
  for (const auto& group : pool.groups) {
    for (const Device& device : group) wanted.insert(device.name);
  }
  std::set<std::string> seen;
  std::set<std::int64_t> generations;
  for (const auto& [name, slice] : api.slices) {
    generations.insert(slice["spec"]["pool"]["generation"].get<std::int64_t>());
    EXPECT_EQ(slice["spec"]["pool"]["resourceSliceCount"], api.slices.size());
    EXPECT_EQ(slice["spec"]["pool"]["name"], "node-a");
    if (!slice["spec"].contains("devices")) continue;
    for (const json& device : slice["spec"]["devices"]) {
      EXPECT_TRUE(seen.insert(device["name"].get<std::string>()).second) << device["name"];
    }
  }
  EXPECT_EQ(generations.size(), 1u);
  EXPECT_EQ(seen, wanted);
}

TEST(SlicePublisherTest, PublishesAWholePoolAndThenNothing) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  const Pool pool = Build(TestNode());
  ASSERT_TRUE(publisher.Publish(pool).ok());
  ASSERT_EQ(api.slices.size(), 5u);
  ExpectWhole(api, pool);
  const json& first = api.slices.begin()->second;
  EXPECT_EQ(first["metadata"]["ownerReferences"],
            json::parse(R"([{"apiVersion":"v1","kind":"Node","name":"node-a","uid":"node-uid",
                             "controller":true}])"));
  EXPECT_TRUE(first["spec"].contains("sharedCounters"));
  const int writes = api.writes();
  ASSERT_TRUE(publisher.Publish(pool).ok());
  SlicePublisher restarted(api, "node-a");
  ASSERT_TRUE(restarted.Publish(pool).ok());
  EXPECT_EQ(api.writes(), writes) << "what is there already is not written again";
}

TEST(SlicePublisherTest, OneChangedSliceIsUpdatedInPlace) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory, kChipsOnly)).ok());
  const std::string name = api.slices.begin()->first;
  inventory.chips[3].healthy = false;
  inventory.chips[3].reason = "dma-error";
  api.now = "2026-11-21T11:00:00Z";
  ASSERT_TRUE(publisher.Publish(Build(inventory, kChipsOnly)).ok());
  ASSERT_EQ(api.slices.size(), 1u);
  const json& slice = api.slices.at(name);
  EXPECT_EQ(slice["spec"]["pool"]["generation"], 1);
  const json& taints = slice["spec"]["devices"][3]["taints"];
  EXPECT_EQ(taints[0]["timeAdded"], "2026-11-21T10:00:00Z") << "the old taint keeps its age";
  EXPECT_EQ(taints[1]["key"], "tahoma.dev/unhealthy");
  EXPECT_EQ(taints[1]["timeAdded"], "2026-11-21T11:00:00Z");
  inventory.chips[3].healthy = true;
  ASSERT_TRUE(publisher.Publish(Build(inventory, kChipsOnly)).ok());
  EXPECT_EQ(api.slices.at(name)["spec"]["devices"][3]["taints"].size(), 1u) << "repaired";
}

TEST(SlicePublisherTest, SeveralChangedSlicesGetANewGeneration) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  inventory.chips[3].healthy = false;
  const Pool broken = Build(inventory);
  ASSERT_TRUE(publisher.Publish(broken).ok());
  ExpectWhole(api, broken);
  EXPECT_EQ(api.slices.begin()->second["spec"]["pool"]["generation"], 2);
}

TEST(SlicePublisherTest, WhatAServerThatWasRestoredHasLostIsPublishedAgain) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  const auto backup = api.slices;
  inventory.chips[3].healthy = false;
  const Pool broken = Build(inventory);
  ASSERT_TRUE(publisher.Publish(broken).ok());
  const auto said = [&] {
    std::multiset<std::string> all;
    for (const auto& [name, slice] : api.slices) {
      all.insert(slice["spec"].value("devices", json::array()).dump());
    }
    return all;
  };
  const std::multiset<std::string> wanted = said();
  for (const auto& restored : {backup, decltype(api.slices)()}) {
    api.slices = restored;
    ASSERT_TRUE(publisher.Publish(broken).ok());
    ExpectWhole(api, broken);
    EXPECT_EQ(said(), wanted);
  }
}

TEST(SlicePublisherTest, ObsoleteSlicesGoFirst) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(TestNode())).ok());
  api.log.clear();
  const Pool chips = Build(TestNode(), kChipsOnly);
  ASSERT_TRUE(publisher.Publish(chips).ok());
  ExpectWhole(api, chips);
  EXPECT_EQ(api.slices.size(), 1u);
  bool wrote = false;
  for (const std::string& line : api.log) {
    wrote = wrote || line.starts_with("PUT") || line.starts_with("POST");
    EXPECT_FALSE(wrote && line.starts_with("DELETE")) << line;
  }
}

TEST(SlicePublisherTest, AnotherDriversSlicesAreLeftAlone) {
  FakeApi api;
  api.slices["efa"] = {{"metadata", {{"name", "efa"}, {"resourceVersion", "1"}}},
                       {"spec", {{"driver", "dra.net"}, {"nodeName", "node-a"}}}};
  SlicePublisher publisher(api, "node-a");
  ASSERT_TRUE(publisher.Publish(Build(TestNode(), kChipsOnly)).ok());
  EXPECT_TRUE(api.slices.contains("efa"));
}

TEST(SlicePublisherTest, AServerThatDropsFieldsIsToldOfOnceAndNotWrittenForever) {
  FakeApi api;
  api.gates_off = {"spec.devices[].taints", "spec.devices[].consumesCounters",
                   "spec.sharedCounters"};
  SlicePublisher publisher(api, "node-a");
  const Pool pool = Build(TestNode());
  ASSERT_TRUE(publisher.Publish(pool).ok());
  EXPECT_EQ(publisher.dropped_fields(), api.gates_off);
  const int writes = api.writes();
  ASSERT_TRUE(publisher.Publish(pool).ok());
  EXPECT_EQ(api.writes(), writes);
}

TEST(SlicePublisherTest, AConflictIsLookedAtAgain) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  int conflicts = 2;
  api.before = [&](const kube::Request& request) {
    if (request.method != "PUT" || conflicts-- <= 0) return;
    for (auto& [name, slice] : api.slices) slice["metadata"]["resourceVersion"] = "changed";
  };
  inventory.chips[0].links_down = {"x+"};
  const Pool pool = Build(inventory);
  ASSERT_TRUE(publisher.Publish(pool).ok());
  ExpectWhole(api, pool);
}

TEST(SlicePublisherTest, EndlessConflictsAreGivenUp) {
  FakeApi api;
  SlicePublisher publisher(api, "node-a");
  wire::Inventory inventory = TestNode();
  ASSERT_TRUE(publisher.Publish(Build(inventory)).ok());
  int version = 0;
  api.before = [&](const kube::Request& request) {
    if (request.method != "PUT") return;
    for (auto& [name, slice] : api.slices) {
      slice["metadata"]["resourceVersion"] = fmt::format("v{}", ++version);
    }
  };
  inventory.chips[0].healthy = false;
  EXPECT_TRUE(absl::IsAborted(publisher.Publish(Build(inventory))));
}

TEST(SlicePublisherTest, ANodeThatIsNotThereYetIsNotFound) {
  FakeApi api;
  api.has_node = false;
  SlicePublisher publisher(api, "node-a");
  EXPECT_EQ(Message(publisher.Publish(Build(TestNode()))),
            "reading node node-a: nodes \"node-a\" not found");
  EXPECT_EQ(api.writes(), 0);
}

// A plugin that dies after any number of writes leaves what the next one makes whole.
TEST(SlicePublisherPropertyTest, WhereverItStopsTheNextPublishMendsIt) {
  Rng rng(12);
  FakeApi api;
  wire::Inventory inventory = TestNode();
  for (int round = 0; round < 15; ++round) {
    inventory.chips[rng.Below(16)].healthy = rng.Chance(1, 2);
    const Publish publish = {.chips = true, .lnc1 = rng.Chance(1, 2), .lnc2 = rng.Chance(1, 2)};
    const Pool pool = Build(inventory, publish);
    int left = static_cast<int>(rng.Below(8));
    class Dying final : public kube::Transport {
     public:
      Dying(FakeApi& api, int& left) : api_(api), left_(left) {}
      absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
        if (request.method != "GET" && left_-- <= 0) return Unavailable("dead");
        return api_.Send(request);
      }
      absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                            std::chrono::milliseconds) override {
        return Unavailable("dead");
      }

     private:
      FakeApi& api_;
      int& left_;
    } dying(api, left);
    SlicePublisher first(dying, "node-a");
    (void)first.Publish(pool);
    SlicePublisher second(api, "node-a");
    ASSERT_TRUE(second.Publish(pool).ok());
    ExpectWhole(api, pool);
    const int writes = api.writes();
    ASSERT_TRUE(second.Publish(pool).ok());
    ASSERT_EQ(api.writes(), writes);
  }
}

TEST(ApiClaimSourceTest, ReadsAClaimOrSaysNotFound) {
  FakeApi api;
  ApiClaimSource source(api);
  EXPECT_TRUE(absl::IsNotFound(source.Get("default", "a/b").status()));
  EXPECT_EQ(api.log.back(), "GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a%2Fb");
}

}  // namespace
}  // namespace tahoma::dra
