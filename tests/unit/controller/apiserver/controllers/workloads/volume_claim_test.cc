// Claims and volumes with lost writes at each step: a claim never has two volumes, nor a volume two
// claims.

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <vector>

#include "controller/apiserver/schema/fields.h"
#include "tests/unit/controller/apiserver/controllers/workloads/small_cluster.h"

namespace tahoma::controller::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFolder[] = "/state/volumes";
const kube::Resource kClasses{
    .group = "storage.k8s.io", .version = "v1", .plural = "storageclasses"};

class VolumeClaimTest : public ::testing::Test {
 protected:
  explicit VolumeClaimTest(unsigned seed = 0) : cluster_(seed) {
    MakeClass("standard", kHostPathProvisioner);
  }

  void MakeClass(const std::string& name, const std::string& maker,
                 const Json& more = Json::object()) {
    Json made = {{"metadata", {{"name", name}}}, {"provisioner", maker}};
    made.update(more);
    cluster_.Put(kClasses, made);
  }
  void MakeClaim(const std::string& name, Json spec, const std::string& size = "1Gi") {
    if (!spec.contains("accessModes")) spec["accessModes"] = Json::array({"ReadWriteOnce"});
    spec["resources"]["requests"]["storage"] = size;
    if (!spec.contains("storageClassName")) spec["storageClassName"] = "standard";
    cluster_.Create(
        kube::kVolumeClaims,
        {{"kind", "PersistentVolumeClaim"},
         {"metadata",
          {{"name", name}, {"finalizers", Json::array({"kubernetes.io/pvc-protection"})}}},
         {"spec", std::move(spec)},
         {"status", {{"phase", "Pending"}}}});
  }
  void MakeVolume(const std::string& name, const std::string& size,
                  const Json& more = Json::object()) {
    Json spec = {{"accessModes", {"ReadWriteOnce", "ReadOnlyMany"}},
                 {"capacity", {{"storage", size}}},
                 {"persistentVolumeReclaimPolicy", "Retain"},
                 {"hostPath", {{"path", "/data/" + name}}}};
    spec.update(more);
    cluster_.Create(
        kube::kVolumes,
        {{"metadata",
          {{"name", name}, {"finalizers", Json::array({"kubernetes.io/pv-protection"})}}},
         {"spec", std::move(spec)}});
  }

  Decision DecideClaim(const Json& claim) {
    ClaimSurroundings around{.volumes = cluster_.All(kube::kVolumes), .folder = kFolder};
    const std::string name = TextAt(claim, {"spec", "storageClassName"});
    const Json storage_class = cluster_.Get(kClasses, name);
    if (!storage_class.is_null()) around.storage_class = Shared(storage_class);
    around.in_use = used_.contains(std::string(kube::NameOf(claim)));
    return SyncVolumeClaim(claim, around);
  }
  Decision DecideVolume(const Json& volume) {
    const std::string name = TextAt(volume, {"spec", "claimRef", "name"});
    const Json claim = cluster_.Get(kube::kVolumeClaims, name);
    return SyncVolume(volume, claim.is_null() ? nullptr : &claim, kFolder);
  }
  // Looks once at everything. Returns how many writes were carried out, each with the chance.
  int Look(int percent = 100) {
    int taken = 0;
    for (const auto& claim : cluster_.All(kube::kVolumeClaims)) {
      const Decision decision = DecideClaim(*claim);
      for (const Note& note : decision.notes) told_[std::string(kube::NameOf(*claim))] = note;
      taken += cluster_.Take(decision, percent);
    }
    for (const auto& volume : cluster_.All(kube::kVolumes)) {
      const Decision decision = DecideVolume(*volume);
      if (!decision.remove_folder.empty()) removed_.push_back(decision.remove_folder);
      taken += cluster_.Take(decision, percent);
    }
    return taken;
  }
  void Rest() {
    for (int i = 0; i < 30; ++i) {
      if (Look() == 0) return;
    }
    FAIL() << "the controllers never come to rest";
  }
  Json Claim(const std::string& name) { return cluster_.Get(kube::kVolumeClaims, name); }
  Json Volume(const std::string& name) { return cluster_.Get(kube::kVolumes, name); }
  std::string PhaseOf(const Json& object) { return TextAt(object, {"status", "phase"}); }
  std::string VolumeOf(const std::string& claim) {
    return TextAt(Claim(claim), {"spec", "volumeName"});
  }

  SmallCluster cluster_;
  std::set<std::string> used_;        // claims
  std::map<std::string, Note> told_;  // by claim
  std::vector<std::string> removed_;  // folders
};

TEST_F(VolumeClaimTest, AClaimOfTheBuiltInClassGetsAFolderThatGoesWithTheClaim) {
  MakeClaim("c", Json::object());
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Bound");
  EXPECT_EQ(Claim("c")["status"]["capacity"]["storage"], "1Gi");
  const std::string name = VolumeOf("c");
  EXPECT_EQ(PhaseOf(Volume(name)), "Bound");
  EXPECT_EQ(TextAt(Volume(name), {"spec", "hostPath", "path"}), kFolder + ("/" + name));
  EXPECT_EQ(told_["c"].reason, "ProvisioningSucceeded");
  cluster_.Delete(kube::kVolumeClaims, "c");
  Rest();
  EXPECT_TRUE(Claim("c").is_null());
  EXPECT_THAT(cluster_.All(kube::kVolumes), IsEmpty());
  ASSERT_FALSE(removed_.empty());
  EXPECT_EQ(removed_[0], kFolder + ("/" + name));
}

TEST_F(VolumeClaimTest, AClaimInUseStaysUntilItsLastPodHasEnded) {
  MakeClaim("c", Json::object());
  Rest();
  used_ = {"c"};
  cluster_.Delete(kube::kVolumeClaims, "c");
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Bound");
  used_ = {};
  Rest();
  EXPECT_TRUE(Claim("c").is_null());
}

TEST_F(VolumeClaimTest, AFolderThatIsRetainedIsNotRemovedNorGivenToAnotherClaim) {
  MakeClass("kept", kHostPathProvisioner, {{"reclaimPolicy", "Retain"}});
  MakeClaim("c", {{"storageClassName", "kept"}});
  Rest();
  const std::string name = VolumeOf("c");
  cluster_.Delete(kube::kVolumeClaims, "c");
  MakeClaim("d", {{"storageClassName", "kept"}});
  Rest();
  EXPECT_EQ(PhaseOf(Volume(name)), "Released");
  EXPECT_NE(VolumeOf("d"), name);
  EXPECT_THAT(removed_, IsEmpty());
  cluster_.Delete(kube::kVolumes, name);
  Rest();
  EXPECT_TRUE(Volume(name).is_null());
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(VolumeClaimTest, TheSmallestVolumeThatFitsIsTaken) {
  MakeVolume("large", "8Gi");
  MakeVolume("small", "512Mi");
  MakeVolume("right", "2Gi");
  MakeVolume("classed", "1Gi", {{"storageClassName", "ssd"}});
  MakeVolume("block", "1Gi", {{"volumeMode", "Block"}});
  MakeVolume("other-mode", "1Gi", {{"accessModes", {"ReadOnlyMany"}}});
  MakeClaim("c", {{"storageClassName", ""}});
  Rest();
  EXPECT_EQ(VolumeOf("c"), "right");
  EXPECT_EQ(Claim("c")["status"]["capacity"]["storage"], "2Gi");
  EXPECT_EQ(PhaseOf(Volume("large")), "Available");
}

TEST_F(VolumeClaimTest, AClaimThatNamesAVolumeGetsThatOneOrWaits) {
  MakeVolume("named", "1Gi");
  MakeClaim("c", {{"storageClassName", ""}, {"volumeName", "named"}}, "2Gi");
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Pending");
  EXPECT_EQ(told_["c"].message,
            "Cannot bind to requested volume \"named\": requested PV is too small");
  MakeClaim("d", {{"storageClassName", ""}, {"volumeName", "named"}});
  Rest();
  EXPECT_EQ(PhaseOf(Claim("d")), "Bound");
  MakeClaim("e", {{"storageClassName", ""}, {"volumeName", "named"}});
  Rest();
  EXPECT_EQ(PhaseOf(Claim("e")), "Pending");
  EXPECT_EQ(told_["e"].message, "volume \"named\" already bound to a different claim.");
}

TEST_F(VolumeClaimTest, AVolumeThatNamesItsClaimIsKeptForTheClaim) {
  MakeVolume("kept", "4Gi", {{"claimRef", {{"namespace", "default"}, {"name", "mine"}}}});
  MakeClaim("c", {{"storageClassName", ""}});
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Pending");
  EXPECT_EQ(told_["c"].message,
            "no persistent volumes available for this claim and no storage class is set");
  MakeClaim("mine", {{"storageClassName", ""}});
  Rest();
  EXPECT_EQ(VolumeOf("mine"), "kept");
}

TEST_F(VolumeClaimTest, ASelectorChoosesByLabels) {
  MakeVolume("plain", "1Gi");
  MakeVolume("fast", "8Gi");
  Json fast = Volume("fast");
  fast["metadata"]["labels"]["speed"] = "fast";
  cluster_.Put(kube::kVolumes, fast);
  MakeClaim("c", {{"storageClassName", ""}, {"selector", {{"matchLabels", {{"speed", "fast"}}}}}});
  Rest();
  EXPECT_EQ(VolumeOf("c"), "fast");
}

TEST_F(VolumeClaimTest, AVolumeThatIsLostUnderItsClaimIsSaid) {
  MakeVolume("v", "1Gi");
  MakeClaim("c", {{"storageClassName", ""}});
  Rest();
  Json gone = Volume("v");
  gone["metadata"].erase("finalizers");
  cluster_.Put(kube::kVolumes, gone);
  cluster_.Delete(kube::kVolumes, "v");
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Lost");
}

TEST_F(VolumeClaimTest, AVolumeInUseOutlivesItsDeletion) {
  MakeVolume("v", "1Gi");
  MakeClaim("c", {{"storageClassName", ""}});
  Rest();
  cluster_.Delete(kube::kVolumes, "v");
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Bound");
  cluster_.Delete(kube::kVolumeClaims, "c");
  Rest();
  EXPECT_TRUE(Volume("v").is_null());
}

TEST_F(VolumeClaimTest, AClaimOfAnotherClassIsItsProvisioners) {
  MakeClass("ebs", "ebs.csi.aws.com");
  MakeClaim("c", {{"storageClassName", "ebs"}});
  Rest();
  EXPECT_EQ(kube::AnnotationOf(Claim("c"), "volume.kubernetes.io/storage-provisioner"),
            "ebs.csi.aws.com");
  EXPECT_THAT(cluster_.All(kube::kVolumes), IsEmpty());
  MakeClaim("d", {{"storageClassName", "none"}});
  Rest();
  EXPECT_EQ(told_["d"].message, "storageclass.storage.k8s.io \"none\" not found");
}

TEST_F(VolumeClaimTest, AClaimThatWaitsForItsFirstPodGetsItsFolderWithTheNode) {
  MakeClass("late", kHostPathProvisioner, {{"volumeBindingMode", "WaitForFirstConsumer"}});
  MakeClaim("c", {{"storageClassName", "late"}});
  Rest();
  EXPECT_EQ(told_["c"].reason, "WaitForFirstConsumer");
  Json claim = Claim("c");
  claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n";
  cluster_.Put(kube::kVolumeClaims, claim);
  Rest();
  EXPECT_EQ(PhaseOf(Claim("c")), "Bound");
}

TEST_F(VolumeClaimTest, AFolderElsewhereIsNeverRemovedWhateverItsVolumeSays) {
  MakeVolume("pvc-x", "1Gi",
             {{"persistentVolumeReclaimPolicy", "Delete"}, {"hostPath", {{"path", "/etc"}}}});
  Json forged = Volume("pvc-x");
  forged["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] = kHostPathProvisioner;
  cluster_.Put(kube::kVolumes, forged);
  MakeClaim("c", {{"storageClassName", ""}});
  Rest();
  cluster_.Delete(kube::kVolumeClaims, "c");
  Rest();
  EXPECT_THAT(removed_, IsEmpty());
  EXPECT_EQ(PhaseOf(Volume("pvc-x")), "Failed");
  EXPECT_THAT(TextAt(Volume("pvc-x"), {"status", "message"}), HasSubstr("remove the folder"));
  cluster_.Delete(kube::kVolumes, "pvc-x");
  Rest();
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(VolumeClaimTest, BlockVolumesAreRefused) {
  MakeClaim("c", {{"volumeMode", "Block"}});
  Rest();
  EXPECT_EQ(told_["c"].reason, "ProvisioningFailed");
}

class ManyClaimsTest : public VolumeClaimTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  ManyClaimsTest() : VolumeClaimTest(GetParam()) {}

  // Bindings that were completed stay, each volume has one claim and each claim one volume.
  void Check() {
    std::map<std::string, std::string> claim_of;
    for (const auto& claim : cluster_.All(kube::kVolumeClaims)) {
      const std::string name(kube::NameOf(*claim));
      const std::string volume = TextAt(*claim, {"spec", "volumeName"});
      if (volume.empty()) continue;
      EXPECT_TRUE(claim_of.emplace(volume, name).second)
          << volume << " has the claims " << name << " and " << claim_of[volume];
      const std::string uid(kube::UidOf(*claim));
      const std::string before = bound_.try_emplace(uid, volume).first->second;
      EXPECT_EQ(before, volume) << name << " has changed its volume";
      EXPECT_EQ(TextAt(Volume(volume), {"spec", "claimRef", "uid"}), uid);
    }
  }
  std::map<std::string, std::string> bound_;  // volumes by the claim's uid
};

TEST_P(ManyClaimsTest, NoLostWriteGivesAClaimTwoVolumesOrAVolumeTwoClaims) {
  std::size_t claims = 0;
  std::size_t volumes = 0;
  for (int round = 0; round < 60; ++round) {
    if (cluster_.Chance(30)) {
      MakeClaim(fmt::format("c{}", claims++),
                {{"storageClassName", cluster_.Chance(50) ? "standard" : ""}},
                fmt::format("{}Gi", 1 + cluster_.Below(3)));
    }
    if (cluster_.Chance(20)) {
      MakeVolume(fmt::format("v{}", volumes++), fmt::format("{}Gi", 1 + cluster_.Below(3)),
                 {{"storageClassName", cluster_.Chance(50) ? "standard" : ""}});
    }
    if (claims > 0 && cluster_.Chance(10)) {
      cluster_.Delete(kube::kVolumeClaims, fmt::format("c{}", cluster_.Below(claims)));
    }
    Look(60);
    Check();
  }
  Rest();
  Check();
  for (const auto& claim : cluster_.All(kube::kVolumeClaims)) {
    if (TextAt(*claim, {"spec", "storageClassName"}) == "standard") {
      EXPECT_EQ(PhaseOf(*claim), "Bound");
    }
  }
  for (const auto& volume : cluster_.All(kube::kVolumes)) {
    const bool has_claim = !TextAt(*volume, {"spec", "claimRef", "uid"}).empty();
    EXPECT_NE(PhaseOf(*volume), "") << *volume;
    EXPECT_TRUE(has_claim || PhaseOf(*volume) == "Available") << *volume;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManyClaimsTest, ::testing::Range(0U, 40U));

}  // namespace
}  // namespace tahoma::controller::apiserver
