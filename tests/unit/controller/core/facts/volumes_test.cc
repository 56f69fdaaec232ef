// Pods go where their volumes are, or say why not in the words of kube-scheduler.

#include "controller/core/facts/volumes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controller/core/facts/gang_membership.h"

namespace tahoma::controller {
namespace {

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() {
    pod_.key = {"ml", "p"};
    pod_.uid = "uid-p";
    pod_.volumes = {{.claim = "data", .ephemeral = false}};
    claim_.key = {"ml", "data"};
    claim_.uid = "uid-data";
    claim_.storage_class = "ssd";
    AddClass({.name = "ssd", .waits = true, .provisions = true, .nodes = {}});
  }
  void AddClass(const StorageClassFact& added) {
    facts_.storage_classes[added.name] = std::make_shared<const StorageClassFact>(added);
  }
  void AddVolume(const std::string& name, const kube::NodeTerms& nodes) {
    facts_.volumes[name] =
        std::make_shared<const VolumeFact>(VolumeFact{.name = name, .nodes = nodes});
  }
  // Returns why the pod waits with its claim as it is; "ready" when it does not.
  std::string Why() {
    facts_.volume_claims.Put(std::make_shared<const VolumeClaimFact>(claim_));
    return Said();
  }
  std::string Said() {
    facts_.pods.Put(std::make_shared<const PodFact>(pod_));
    const Readiness ready = GangMembership().Assess({{"ml", "p"}, true}, facts_,
                                                    [](const ClaimKey&) { return std::string(); });
    if (ready.spec == nullptr) return std::string(ToString(ready.reason)) + ": " + ready.message;
    demand_ = ready.spec->members.at(0).node;
    return "ready";
  }
  bool Admits(const std::string& node, const std::string& zone = "") const {
    Node candidate;
    candidate.name = node;
    if (!zone.empty()) candidate.labels = {{"zone", zone}};
    return demand_.Admits(candidate);
  }
  static kube::NodeTerms Zone(const std::string& zone) {
    return {{{.key = "zone", .values = {zone}}}};
  }

  Facts facts_;
  PodFact pod_;
  VolumeClaimFact claim_;
  NodeDemand demand_;
};

TEST_F(VolumesTest, AClaimThatCannotBeUsedKeepsItsPodWaiting) {
  EXPECT_EQ(Said(), "WaitingForVolumes: pod p: persistentvolumeclaim \"data\" not found");
  claim_.deleting = true;
  EXPECT_EQ(Why(), "WaitingForVolumes: pod p: persistentvolumeclaim \"data\" is being deleted");
  claim_.lost = true;
  claim_.volume = "pv";
  EXPECT_EQ(Why(),
            "WaitingForVolumes: pod p: persistentvolumeclaim \"data\" bound to non-existent "
            "persistentvolume \"pv\"");
}

TEST_F(VolumesTest, AClaimThatIsBoundBeforeItsPodIsWaitedFor) {
  const std::string unbound =
      "WaitingForVolumes: pod p: pod has unbound immediate PersistentVolumeClaims: data";
  claim_.storage_class = "fast";
  EXPECT_EQ(Why(), unbound) << "a class that does not exist";
  AddClass({.name = "fast", .waits = false, .provisions = true, .nodes = {}});
  EXPECT_EQ(Why(), unbound);
  claim_.storage_class = "ssd";
  claim_.volume = "pv";
  EXPECT_EQ(Why(), unbound) << "it asks for a volume by name";
  claim_.bound = true;
  EXPECT_EQ(Why(),
            "WaitingForVolumes: pod p: persistentvolumeclaim \"data\" bound to non-existent "
            "persistentvolume \"pv\"");
  AddVolume("pv", {});
  EXPECT_EQ(Why(), "ready");
  EXPECT_TRUE(Admits("n"));
}

TEST_F(VolumesTest, AnEphemeralVolumesClaimIsThePods) {
  pod_.volumes = {{.claim = "data", .ephemeral = true}};
  EXPECT_EQ(Said(),
            "WaitingForVolumes: pod p: waiting for ephemeral volume controller to create the "
            "persistentvolumeclaim \"data\"");
  claim_.owner = "uid-of-another";
  EXPECT_EQ(Why(),
            "WaitingForVolumes: pod p: PVC ml/data was not created for pod ml/p (pod is not "
            "owner)");
  EXPECT_FALSE(Uses(pod_, claim_));
  claim_.owner = "uid-p";
  EXPECT_EQ(Why(), "ready");
  EXPECT_TRUE(Uses(pod_, claim_));
}

TEST_F(VolumesTest, ThePodGoesWhereEachOfItsVolumesIs) {
  AddVolume("pv", {{{.key = "zone", .values = {"a"}}}, {{.key = "zone", .values = {"b"}}}});
  claim_.volume = "pv";
  claim_.bound = true;
  EXPECT_EQ(Why(), "ready");
  EXPECT_TRUE(Admits("n", "a") && Admits("n", "b"));
  EXPECT_FALSE(Admits("n", "c") || Admits("n"));
  VolumeClaimFact logs = claim_;
  logs.key.name = "logs";
  logs.volume = "pv-b";
  facts_.volume_claims.Put(std::make_shared<const VolumeClaimFact>(logs));
  AddVolume("pv-b", Zone("b"));
  pod_.volumes.push_back({.claim = "logs", .ephemeral = false});
  EXPECT_EQ(Why(), "ready");
  EXPECT_TRUE(Admits("n", "b"));
  EXPECT_FALSE(Admits("n", "a"));
}

TEST_F(VolumesTest, AVolumeThatIsNotMadeYetFollowsItsClassOrTheSelectedNode) {
  AddClass({.name = "ssd", .waits = true, .provisions = true, .nodes = Zone("a")});
  EXPECT_EQ(Why(), "ready");
  EXPECT_TRUE(Admits("n", "a"));
  EXPECT_FALSE(Admits("n", "b"));
  EXPECT_TRUE(AwaitsNode(claim_, facts_));
  claim_.selected_node = "n";
  EXPECT_EQ(Why(), "ready");
  EXPECT_TRUE(Admits("n", "b"));
  EXPECT_FALSE(Admits("m", "a"));
  EXPECT_FALSE(AwaitsNode(claim_, facts_));
}

TEST_F(VolumesTest, NoVolumeIsChosenForAClaimWithoutAProvisioner) {
  AddClass({.name = "ssd", .waits = true, .provisions = false, .nodes = {}});
  EXPECT_EQ(Why(),
            "WaitingForVolumes: pod p: persistentvolumeclaim \"data\" is not bound, and "
            "StorageClass ssd has no provisioner: name the claim in the claimRef of a volume");
  EXPECT_FALSE(AwaitsNode(claim_, facts_));
}

}  // namespace
}  // namespace tahoma::controller
