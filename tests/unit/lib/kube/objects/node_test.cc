#include "lib/kube/objects/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(NodeTest, ReadsLabelsAndTaints) {
  const auto node = ParseNode(ParseJson(R"({"metadata": {"name": "n",
      "labels": {"zone": "a", "kubernetes.io/os": "linux"}},
    "spec": {"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"},
                                               {"key": "soft", "effect": "PreferNoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})"));
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT(node->labels, ElementsAre(Pair("kubernetes.io/os", "linux"), Pair("zone", "a")));
  EXPECT_THAT(node->taints, ElementsAre(Taint{"k", "v", TaintEffect::kNoExecute},
                                        Taint{"soft", "", TaintEffect::kNone}));
  EXPECT_FALSE(node->schedulable);
  EXPECT_FALSE(node->ready);
}

TEST(NodeTest, AnUnreadableFieldIsNamedWithItsPath) {
  EXPECT_EQ(Message(ParseNode(ParseJson(R"({"metadata": {"name": "n"},
                "spec": {"taints": [{"key": 7}]}})"))
                        .status()),
            "node n: spec.taints[0].key: is a number, must be a string");
  EXPECT_EQ(Message(ParseNode(ParseJson(R"({"metadata": {"name": "n", "labels": {"a": null,
                "b/c": []}}})"))
                        .status()),
            "node n: metadata.labels[b/c]: is a list, must be a string");
}

TEST(TaintTest, AWrittenObjectReadsBackEqual) {
  for (const TaintEffect effect :
       {TaintEffect::kNone, TaintEffect::kNoSchedule, TaintEffect::kNoExecute}) {
    for (const char* value : {"", "v"}) {
      const Taint taint{.key = "k", .value = value, .effect = effect};
      const json written = RenderTaint(taint);
      Reading reading(written);
      EXPECT_EQ(ParseTaint(reading.root()), taint) << written;
      EXPECT_EQ(written.contains("value"), *value != '\0');
      const Toleration toleration{
          .key = "k",
          .op = *value == '\0' ? TolerationOperator::kExists : TolerationOperator::kEqual,
          .value = value,
          .effect = effect,
          .seconds = *value == '\0' ? std::nullopt : std::optional<std::int64_t>(5)};
      const json tolerated = RenderToleration(toleration);
      Reading toleration_reading(tolerated);
      EXPECT_EQ(ParseToleration(toleration_reading.root()), toleration) << tolerated;
      EXPECT_TRUE(Tolerates(toleration, taint));
    }
  }
}

TEST(TaintTest, AnEmptyTolerationToleratesEverythingIfItExists) {
  const json object = {{"operator", "Exists"}};
  Reading reading(object);
  const Toleration any = ParseToleration(reading.root());
  EXPECT_EQ(any.effect, std::nullopt);
  EXPECT_TRUE(Tolerates(any, {.key = "k", .value = "v", .effect = TaintEffect::kNoExecute}));
  EXPECT_EQ(RenderToleration(any), object);
}

}  // namespace
}  // namespace tahoma::kube
