// Persistent volumes, their claims and classes: stored, checked and shown; nothing binds them.

#include <gmock/gmock.h>

#include <string>

#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

const std::string kVolumeClaims = "/api/v1/namespaces/default/persistentvolumeclaims";
const std::string kVolumes = "/api/v1/persistentvolumes";
const std::string kStorageClasses = "/apis/storage.k8s.io/v1/storageclasses";
const std::string kMerge = "merge-patch+json";

class VolumesTest : public testing::ApiFixture {
 protected:
  static Json ClaimOf(const std::string& name) {
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"accessModes", {"ReadWriteOnce"}},
              {"storageClassName", "ssd"},
              {"resources", {{"requests", {{"storage", "8Gi"}}}}}}}};
  }
  static Json VolumeOf(const std::string& name) {
    return ParseJson(R"({"metadata": {"name": ")" + name + R"("},
      "spec": {"capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "ssd", "csi": {"driver": "d", "volumeHandle": "h"},
        "claimRef": {"namespace": "default", "name": "data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
          {"key": "zone", "operator": "In", "values": ["a"]}]}]}}}})");
  }
  Json CellsOf(const std::string& path) {
    const Answer table =
        Call("GET", path, "", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
    EXPECT_EQ(table.status, 200) << table.text;
    return table.body["rows"][0]["cells"];
  }
};

TEST_F(VolumesTest, AClaimOrAVolumeOfNothingIsRefused) {
  for (const char* size : {"0", "0Gi", "-1Gi"}) {
    Json claim = ClaimOf("empty");
    claim["spec"]["resources"]["requests"]["storage"] = size;
    EXPECT_THAT(Call("POST", kVolumeClaims, claim).text,
                HasSubstr("spec.resources[storage]: Invalid value"))
        << size;
    Json volume = VolumeOf("empty");
    volume["spec"]["capacity"]["storage"] = size;
    EXPECT_THAT(Call("POST", kVolumes, volume).text,
                HasSubstr("spec.capacity[storage]: Invalid value"))
        << size;
  }
}

TEST_F(VolumesTest, AClaimIsPendingUntilSomebodyBindsIt) {
  Json claim = ClaimOf("data");
  claim["status"] = {{"phase", "Bound"}};
  const Answer made = Call("POST", kVolumeClaims, claim);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["status"], (Json{{"phase", "Pending"}}));
  EXPECT_EQ(made.body["spec"]["volumeMode"], "Filesystem");
  EXPECT_EQ(CellsOf(kVolumeClaims + "/data"),
            (Json{"data", "Pending", "", "", "", "ssd", "<unset>", "0s", "Filesystem"}));
  ASSERT_EQ(Patch(kVolumeClaims + "/data", kMerge, {{"spec", {{"volumeName", "pv"}}}}).status, 200);
  const Json bound = {{"status",
                       {{"phase", "Bound"},
                        {"accessModes", {"ReadWriteOnce"}},
                        {"capacity", {{"storage", "9Gi"}}}}}};
  ASSERT_EQ(Patch(kVolumeClaims + "/data/status", kMerge, bound).status, 200);
  EXPECT_EQ(CellsOf(kVolumeClaims + "/data"),
            (Json{"data", "Bound", "pv", "9Gi", "RWO", "ssd", "<unset>", "0s", "Filesystem"}));
}

TEST_F(VolumesTest, AClaimsVolumeIsNamedOnceAndItsSizeMayGrowWhenBound) {
  ASSERT_EQ(Call("POST", kVolumeClaims, ClaimOf("data")).status, 201);
  const Json larger = {{"spec", {{"resources", {{"requests", {{"storage", "16Gi"}}}}}}}};
  EXPECT_THAT(Patch(kVolumeClaims + "/data", kMerge, larger).message(),
              HasSubstr("spec: Forbidden: spec is immutable after creation except "
                        "resources.requests and volumeAttributesClassName for bound claims"));
  EXPECT_EQ(Patch(kVolumeClaims + "/data", kMerge, {{"spec", {{"volumeName", "pv"}}}}).status, 200);
  EXPECT_EQ(Patch(kVolumeClaims + "/data", kMerge, {{"spec", {{"volumeName", "other"}}}}).status,
            422);
  Patch(kVolumeClaims + "/data/status", kMerge, {{"status", {{"phase", "Bound"}}}});
  EXPECT_EQ(Patch(kVolumeClaims + "/data", kMerge, larger).status, 200);
  const Json annotated = {
      {"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "n"}}}}}};
  EXPECT_EQ(Patch(kVolumeClaims + "/data", kMerge, annotated).status, 200);
}

TEST_F(VolumesTest, AClaimSaysHowItIsUsedAndHowLargeItIs) {
  Json claim = ClaimOf("data");
  claim["spec"].erase("accessModes");
  claim["spec"]["resources"] = Json::object();
  const Answer none = Call("POST", kVolumeClaims, claim);
  EXPECT_EQ(none.status, 422);
  EXPECT_EQ(none.message(),
            "PersistentVolumeClaim \"data\" is invalid: [spec.accessModes: Required value: at "
            "least 1 access mode is required, spec.resources[storage]: Required value]");
  claim = ClaimOf("data");
  claim["spec"]["accessModes"] = {"Once"};
  EXPECT_THAT(Call("POST", kVolumeClaims, claim).message(),
              HasSubstr("spec.accessModes: Unsupported value: \"Once\": supported values: "
                        "\"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", "
                        "\"ReadWriteOncePod\""));
  claim["spec"]["accessModes"] = {"ReadWriteOnce", "ReadWriteOncePod"};
  EXPECT_THAT(Call("POST", kVolumeClaims, claim).message(),
              HasSubstr("may not use ReadWriteOncePod with other access modes"));
}

TEST_F(VolumesTest, AVolumeNamesItsNodesOrNone) {
  const Answer made = Call("POST", kVolumes, VolumeOf("pv"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["spec"]["persistentVolumeReclaimPolicy"], "Retain");
  EXPECT_EQ(CellsOf(kVolumes + "/pv"),
            (Json{"pv", "8Gi", "RWO", "Retain", "Pending", "default/data", "ssd", "<unset>", "",
                  "0s", "Filesystem"}));
  Json wrong = VolumeOf("wrong");
  wrong["spec"]["nodeAffinity"] = Json::object();
  wrong["spec"]["capacity"] = Json::object();
  EXPECT_EQ(Call("POST", kVolumes, wrong).message(),
            "PersistentVolume \"wrong\" is invalid: [spec.capacity: Required value, spec.capacity: "
            "Unsupported value: {}: supported values: \"storage\", spec.nodeAffinity.required: "
            "Required value: must specify required node constraints]");
  wrong = VolumeOf("wrong");
  wrong["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = Json::array();
  EXPECT_THAT(Call("POST", kVolumes, wrong).message(),
              HasSubstr("spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have "
                        "at least one node selector term"));
}

TEST_F(VolumesTest, AClassIsImmediateUnlessItSaysOtherwiseAndStaysSo) {
  const Json given = {
      {"metadata",
       {{"name", "ssd"},
        {"annotations", {{"storageclass.kubernetes.io/is-default-class", "true"}}}}},
      {"provisioner", "ebs.csi.aws.com"}};
  const Answer made = Call("POST", kStorageClasses, given);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(CellsOf(kStorageClasses + "/ssd"),
            (Json{"ssd (default)", "ebs.csi.aws.com", "Delete", "Immediate", false, "0s"}));
  EXPECT_THAT(
      Patch(kStorageClasses + "/ssd", kMerge, {{"volumeBindingMode", "WaitForFirstConsumer"}})
          .message(),
      HasSubstr("volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable"));
  EXPECT_THAT(Patch(kStorageClasses + "/ssd", kMerge, {{"provisioner", "other"}}).message(),
              HasSubstr("provisioner: Forbidden: updates to provisioner are forbidden."));
  EXPECT_EQ(Call("POST", kStorageClasses, {{"metadata", {{"name", "none"}}}}).status, 422);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
