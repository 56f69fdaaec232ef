#include "lib/kube/objects/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using ::testing::ElementsAre;

TEST(ParseVolumeTest, ReadsTheNodesThatReachTheVolume) {
  const auto volume = ParseVolume(ParseJson(R"({"metadata": {"name": "pv"},
    "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "a"]}]},
      {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}}})"));
  ASSERT_TRUE(volume.ok()) << volume.status();
  EXPECT_EQ(volume->name, "pv");
  ASSERT_EQ(volume->nodes.size(), 2U);
  EXPECT_EQ(volume->nodes[0].at(0).key, "zone");
  EXPECT_THAT(volume->nodes[0].at(0).values, ElementsAre("a", "b"));
  EXPECT_TRUE(volume->nodes[1].at(0).field);
  EXPECT_TRUE(ParseVolume(ParseJson(R"({"metadata": {"name": "nfs"}})"))->nodes.empty());
}

TEST(ParseVolumeClaimTest, ReadsWhetherTheClaimIsBoundAndForWhichNode) {
  Json object = ParseJson(R"({"metadata": {"name": "data", "namespace": "ns", "uid": "u",
      "resourceVersion": "7", "annotations": {"volume.kubernetes.io/selected-node": "n"},
      "ownerReferences": [{"kind": "X", "uid": "x"},
                          {"kind": "Pod", "uid": "pod", "controller": true}]},
    "spec": {"storageClassName": "ssd", "volumeName": "pv"}, "status": {"phase": "Bound"}})");
  const auto claim = ParseVolumeClaim(object);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->metadata.ns, "ns");
  EXPECT_EQ(claim->volume, "pv");
  EXPECT_EQ(claim->storage_class, "ssd");
  EXPECT_EQ(claim->selected_node, "n");
  EXPECT_EQ(claim->owner, "pod");
  EXPECT_TRUE(claim->bound);
  object["status"]["phase"] = "Lost";
  EXPECT_TRUE(ParseVolumeClaim(object)->lost);
  EXPECT_FALSE(ParseVolumeClaim(object)->bound);
  object["status"]["phase"] = "Pending";
  EXPECT_FALSE(ParseVolumeClaim(object)->bound) << "its volume is only asked for";
  object["metadata"]["annotations"] = {{"volume.beta.kubernetes.io/storage-class", "old"}};
  EXPECT_EQ(ParseVolumeClaim(object)->storage_class, "old");
  object["spec"]["volumeName"] = 7;
  EXPECT_EQ(Message(ParseVolumeClaim(object).status()),
            "persistent volume claim data: spec.volumeName: is a number, must be a string");
}

TEST(ParseStorageClassTest, ReadsWhenAndWhereVolumesAreMade) {
  Json object = ParseJson(R"({"metadata": {"name": "ssd"}, "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [
      {"matchLabelExpressions": [{"key": "zone", "values": ["b", "a"]}]}]})");
  const auto ssd = ParseStorageClass(object);
  ASSERT_TRUE(ssd.ok()) << ssd.status();
  EXPECT_TRUE(ssd->waits);
  EXPECT_TRUE(ssd->provisions);
  ASSERT_EQ(ssd->nodes.size(), 1U);
  EXPECT_EQ(ssd->nodes[0].at(0).op, NodeOperator::kIn);
  EXPECT_THAT(ssd->nodes[0].at(0).values, ElementsAre("a", "b"));
  object["provisioner"] = "kubernetes.io/no-provisioner";
  object.erase("volumeBindingMode");
  EXPECT_FALSE(ParseStorageClass(object)->waits);
  EXPECT_FALSE(ParseStorageClass(object)->provisions);
}

}  // namespace
}  // namespace tahoma::kube
