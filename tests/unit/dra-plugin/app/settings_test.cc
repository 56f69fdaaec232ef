// Tests the options of dra-plugin: accepted files, refused files, and the text of --help.

#include "dra-plugin/app/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace tahoma::dra {
namespace {

using ::testing::HasSubstr;

const std::string kHead = "apiVersion: tahoma.dev/v1alpha1\nkind: DraPluginConfig\n";
const std::string kNode = kHead + "nodeName: n1\nnodeSocket: /run/tahoma/node.sock\n";

// Returns the error of a file, from any of the checks; empty for a good file.
std::string WhyNot(const std::string& text) {
  Settings settings;
  absl::Status status = config::ParseFile(text, "file", DeclareSettings(settings));
  if (status.ok()) status = CheckSettings(settings);
  if (status.ok()) status = PoolOptionsOf(settings).status();
  return std::string(Message(status));
}

TEST(PluginSettingsTest, AFileSetsThePublishedDevicesAndTheEffectsOfFaults) {
  Settings settings;
  const absl::Status read = config::ParseFile(
      kNode +
          "publish: [chips, lnc2]\nfaultEffects: {link-down: NoSchedule, dma: NoExecute}\n"
          "flapHold: 30s\nmetricsAddress: \"0.0.0.0:9810\"\nlabelNode: true\nresyncPeriod: 1m\n",
      "file", DeclareSettings(settings));
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_TRUE(CheckSettings(settings).ok()) << CheckSettings(settings);
  const auto pool = PoolOptionsOf(settings);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->publish, (Publish{.chips = true, .lnc1 = false, .lnc2 = true, .node = false}));
  EXPECT_EQ(pool->fault_effects, (FaultEffects{{"link-down", TaintEffect::kNoSchedule},
                                               {"dma", TaintEffect::kNoExecute}}));
  EXPECT_EQ(pool->driver_version, kVersion);
  EXPECT_EQ(settings.flap_hold, std::chrono::seconds(30));
  EXPECT_TRUE(settings.label_node);
}

TEST(PluginSettingsTest, AWrongValueIsNamedWithTheRightValues) {
  EXPECT_EQ(WhyNot(kNode), "");
  EXPECT_EQ(WhyNot(kHead), "nodeName is empty; name the node");
  EXPECT_THAT(WhyNot(kHead + "nodeName: Node_1\n"),
              HasSubstr("nodeName is no name of a node: a lowercase RFC 1123 subdomain must"));
  EXPECT_EQ(WhyNot(kHead + "nodeName: n1\n"), "nodeSocket is empty; say where sim-node listens");
  EXPECT_THAT(WhyNot(kHead + "nodeName: n1\nnodeSocket: node.sock\n"), HasSubstr("nodeSocket: "));
  EXPECT_THAT(WhyNot(kNode + "publish: [chips, cores]\n"), HasSubstr("cores"));
  EXPECT_THAT(WhyNot(kNode + "publish: [chips, chips]\n"),
              HasSubstr("publish: \"chips\" is given twice"));
  EXPECT_THAT(WhyNot(kNode + "publish: []\n"), HasSubstr("publish"));
  EXPECT_THAT(WhyNot(kNode + "faultEffects: {overheating: NoExecute}\n"),
              HasSubstr("faultEffects: the reason \"overheating\" is unknown; expected one of"));
  EXPECT_EQ(WhyNot(kNode + "faultEffects: {dma: Evict}\n"),
            "faultEffects: dma is \"Evict\"; expected NoSchedule or NoExecute");
  EXPECT_THAT(WhyNot(kNode + "flapHold: 1h\n"), HasSubstr("flapHold"));
  EXPECT_THAT(WhyNot(kNode + "nodename: n2\n"), HasSubstr("nodename"));
  EXPECT_THAT(WhyNot("apiVersion: tahoma.dev/v1alpha1\nkind: ControllerConfig\n"),
              HasSubstr("DraPluginConfig"));
}

TEST(PluginSettingsTest, HelpExplainsEveryOption) {
  Settings settings;
  const std::string help = config::Help(DeclareSettings(settings));
  for (const char* option :
       {"--node-name", "--kubeconfig", "--node-socket", "--plugin-dir", "--registry-dir",
        "--cdi-dir", "--publish", "--efa", "--fault-effects", "--flap-hold", "--label-node",
        "--pod-uid", "--metrics-address", "--node-lost-after", "--resync-period",
        // The possible reasons of faults.
        "sram-uncorrectable, nc-uncorrectable, hbm-uncorrectable, dma, dead, unknown, node-lost"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
}

}  // namespace
}  // namespace tahoma::dra
