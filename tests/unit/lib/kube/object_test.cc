// Reading metadata, also of objects that are wrong.

#include "lib/kube/object.h"

#include <absl/container/flat_hash_map.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"

namespace tahoma::kube {
namespace {

using json = Json;

const json kPod = ParseJson(R"({"apiVersion":"v1","kind":"Pod","metadata":{
  "namespace":"training","name":"worker-0","uid":"u1","resourceVersion":"42","generation":3,
  "labels":{"app":"train","bad":1},"annotations":{"note":"x"},"finalizers":["a","b"],
  "deletionTimestamp":"2026-11-21T09:35:00Z",
  "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u2"},
    {"apiVersion":"tahoma.dev/v1alpha1","kind":"Gang","name":"g","uid":"u3","controller":true,
     "blockOwnerDeletion":true}]}})");

TEST(ObjectTest, MetadataIsRead) {
  EXPECT_EQ(KeyOf(kPod), (ObjectKey{"training", "worker-0"}));
  EXPECT_EQ(KeyOf(kPod).ToString(), "training/worker-0");
  EXPECT_EQ(UidOf(kPod), "u1");
  EXPECT_EQ(ResourceVersionOf(kPod), "42");
  EXPECT_EQ(GenerationOf(kPod), 3);
  EXPECT_EQ(KindOf(kPod), "Pod");
  EXPECT_EQ(ApiVersionOf(kPod), "v1");
  EXPECT_TRUE(IsBeingDeleted(kPod));
  EXPECT_EQ(LabelOf(kPod, "app"), "train");
  EXPECT_EQ(LabelOf(kPod, "bad"), std::nullopt);
  EXPECT_EQ(LabelsOf(kPod), (std::map<std::string, std::string>{{"app", "train"}}));
  EXPECT_EQ(AnnotationOf(kPod, "note"), "x");
  EXPECT_TRUE(HasFinalizer(kPod, "b"));
  EXPECT_FALSE(HasFinalizer(kPod, "c"));
  EXPECT_EQ(OwnersOf(kPod).size(), 2u);
  EXPECT_EQ(ControllerOf(kPod)->uid, "u3");
  EXPECT_TRUE(ControllerOf(kPod)->block_owner_deletion);
}

TEST(ObjectTest, FieldsOfAnotherTypeReadAsEmpty) {
  const json object = ParseJson(R"({"a":{"int":3,"flag":true,"list":["x",1,"y"],"text":"t"}})");
  EXPECT_EQ(IntAt(object, {"a", "int"}), 3);
  EXPECT_TRUE(BoolAt(object, {"a", "flag"}));
  EXPECT_EQ(StringsAt(object, {"a", "list"}), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(ListAt(object, {"a", "list"}).size(), 3u);
  for (const char* key : {"text", "none"}) {
    EXPECT_EQ(IntAt(object, {"a", key}), 0) << key;
    EXPECT_FALSE(BoolAt(object, {"a", key})) << key;
    EXPECT_TRUE(StringsAt(object, {"a", key}).empty()) << key;
    EXPECT_EQ(ListAt(object, {"a", key}), json::array()) << key;
  }
  EXPECT_EQ(ValueAt(object, {"a", "text", "deeper"}), nullptr);
  EXPECT_EQ(ValueAt(json::array(), {"a"}), nullptr);
}

TEST(ObjectTest, WhatIsWrongReadsAsEmpty) {
  for (const char* text : {"null", "[]", "1", "{}", R"({"metadata":1})",
                           R"({"metadata":{"name":1,"labels":[],"ownerReferences":{},
                               "finalizers":"x","generation":"1","annotations":null}})",
                           R"({"metadata":{"ownerReferences":[1,null]}})"}) {
    const json object = ParseJson(text);
    EXPECT_EQ(KeyOf(object), ObjectKey()) << text;
    EXPECT_EQ(UidOf(object), "");
    EXPECT_EQ(GenerationOf(object), 0);
    EXPECT_FALSE(IsBeingDeleted(object));
    EXPECT_TRUE(LabelsOf(object).empty());
    EXPECT_TRUE(FinalizersOf(object).empty());
    EXPECT_EQ(ControllerOf(object), std::nullopt);
  }
}

TEST(ObjectTest, KeysHashAndOrder) {
  absl::flat_hash_map<ObjectKey, int> map{{{"a", "b"}, 1}};
  EXPECT_EQ(map.count(ObjectKey{"a", "b"}), 1u);
  EXPECT_EQ(map.count(ObjectKey{"b", "a"}), 0u);
  EXPECT_LT((ObjectKey{"a", "z"}), (ObjectKey{"b", "a"}));
}

TEST(ObjectTest, ApiVersionsAreSplit) {
  using Pair = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(SplitApiVersion("apps/v1"), Pair("apps", "v1"));
  EXPECT_EQ(SplitApiVersion("v1"), Pair("", "v1"));
}

}  // namespace
}  // namespace tahoma::kube
