#include "dra-plugin/slices/slice_json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lib/base/json.h"
#include "lib/hw/catalogue.h"

namespace tahoma::dra {
namespace {

using json = Json;

wire::Inventory Node(std::string type, bool ultra_server) {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = "node-a",
                               .instance_type = type,
                               .network_layers = {"nn-1", "nn-2", "nn-3"},
                               .capacity_block_id = "cr-1",
                               .driver_version = "2.26.10.0"};
  if (ultra_server) {
    inventory.ultra_server =
        wire::UltraServer{.id = "us-0123456789abcdef", .node_id = 2, .mode = 4};
  }
  for (int i = 0; i < hw::FindInstanceType(type)->chip_count(); ++i) {
    inventory.chips.push_back({.index = i});
  }
  return inventory;
}

// Compares with a file in tests/golden/dra-plugin; TAHOMA_WRITE_GOLDEN=1 writes it.
void ExpectGolden(const std::string& name, const wire::Inventory& inventory, Publish publish) {
  const auto pool = BuildPool(inventory, {.publish = publish, .driver_version = "0.1.0"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  const auto contents = CutIntoSlices(*pool);
  std::string text;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    text += SliceObject({.node_name = "node-a", .node_uid = "node-uid"},
                        {.generation = 1, .slice_count = contents.size()}, contents[i], i)
                .dump(1) +
            "\n";
  }
  const std::string path = "tests/golden/dra-plugin/" + name;
  if (std::getenv("TAHOMA_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

TEST(SliceJsonTest, GoldenChipsOfTrn2) {
  ExpectGolden("slices-trn2.48xlarge-chips.json", Node("trn2.48xlarge", false),
               {.chips = true, .lnc1 = false, .lnc2 = false, .node = true});
}

TEST(SliceJsonTest, GoldenUltraServerMemberWithNode) {
  ExpectGolden("slices-trn2u.48xlarge-node.json", Node("trn2u.48xlarge", true),
               {.chips = true, .lnc1 = false, .lnc2 = false, .node = true});
}

TEST(SliceJsonTest, GoldenEverythingOfASmallInstance) {
  wire::Inventory inventory = Node("trn2.3xlarge", false);
  inventory.chips[0].healthy = false;
  inventory.chips[0].reason = "dma-error";
  ExpectGolden("slices-trn2.3xlarge-all.json", inventory, {});
}

TEST(SliceJsonTest, NamesSortByIndex) {
  const SliceOwner owner = {.node_name = "node-a", .node_uid = "u"};
  EXPECT_EQ(SliceGenerateName(owner, 2), "02-neuron.aws.com-node-a-");
  EXPECT_LT(SliceGenerateName(owner, 9), SliceGenerateName(owner, 10));
}

TEST(SliceJsonTest, DroppedFieldsAreNamedOnce) {
  const json sent = ParseJson(R"({"spec":{"devices":[{"name":"a","taints":[1]},
      {"name":"b","taints":[1],"consumesCounters":[{"counterSet":"n"}]}]}})");
  const json kept = ParseJson(R"({"extra":1,"spec":{"devices":[{"name":"a"},
      {"name":"b","consumesCounters":[{}]}]}})");
  EXPECT_EQ(DroppedFields(sent, kept),
            (std::set<std::string>{"spec.devices[].taints",
                                   "spec.devices[].consumesCounters[].counterSet"}));
  EXPECT_TRUE(DroppedFields(sent, sent).empty());
}

TEST(SliceJsonTest, RemovingWhatWasDroppedMakesBothAlike) {
  json sent = ParseJson(R"({"spec":{"sharedCounters":[1],"devices":[{"name":"a","taints":[1]}]}})");
  const json kept = ParseJson(R"({"spec":{"devices":[{"name":"a"}]}})");
  RemoveFields(DroppedFields(sent, kept), sent);
  EXPECT_EQ(sent, kept);
}

TEST(SliceJsonTest, ATaintKeepsItsAge) {
  const json existing = ParseJson(R"({"spec":{"devices":[{"name":"a","taints":[
      {"key":"k","value":"v","effect":"NoExecute","timeAdded":"t1"}]}]}})");
  json wanted = ParseJson(R"({"spec":{"devices":[
      {"name":"a","taints":[{"key":"k","value":"v","effect":"NoExecute"},
                            {"key":"k","value":"other","effect":"NoExecute"}]},
      {"name":"b","taints":[{"key":"k","value":"v","effect":"NoExecute"}]}]}})");
  KeepTaintTimes(existing, wanted);
  const json& devices = wanted["spec"]["devices"];
  EXPECT_EQ(devices[0]["taints"][0]["timeAdded"], "t1");
  EXPECT_FALSE(devices[0]["taints"][1].contains("timeAdded"));
  EXPECT_FALSE(devices[1]["taints"][0].contains("timeAdded"));
}

// Found by fuzzing: an answer that is none could end the plugin.
TEST(KeepTaintTimesTest, WhatIsNoTaintHasNoTime) {
  json wanted = {{"spec", {{"devices", {{{"name", "a"}, {"taints", {{{"key", "k"}}}}}}}}}};
  const json before = wanted;
  for (const json& device :
       {json(5), json{{"name", 5}, {"taints", {{{"timeAdded", "t1"}}}}},
        json{{"name", "a"}, {"taints", 5}}, json{{"name", "a"}, {"taints", {5}}},
        json{{"name", "a"}, {"taints", {{{"key", 5}, {"timeAdded", "t1"}}}}}}) {
    KeepTaintTimes({{"spec", {{"devices", json::array({device})}}}}, wanted);
    EXPECT_EQ(wanted, before) << device;
  }
}

}  // namespace
}  // namespace tahoma::dra
