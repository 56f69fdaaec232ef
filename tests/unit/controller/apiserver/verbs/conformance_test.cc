// Compares our answers with those of a real kube-apiserver, which tests/cluster/conformance.py
// found.

#include <gmock/gmock.h>

#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/paths.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;
using testing::Answer;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConformanceTest : public testing::ApiFixture {
 protected:
  Answer PostPod(const json& container) {
    json pod = PodOf("q");
    pod["spec"]["containers"][0].update(container);
    return Call("POST", kPods, pod);
  }
};

TEST_F(ConformanceTest, QuantitiesThatAreNoneAreRefusedWhileDecoding) {
  const Answer refused = PostPod({{"resources", {{"limits", {{"cpu", "one"}}}}}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.message(), HasSubstr("quantities must match the regular expression"));
  EXPECT_EQ(PostPod({{"resources", {{"limits", {{"cpu", 1}}}}}}).status, 201);
}

TEST_F(ConformanceTest, NegativeQuantitiesAndRequestsAboveLimitsAreInvalid) {
  const Answer negative = PostPod({{"resources", {{"limits", {{"cpu", "-1"}}}}}});
  EXPECT_EQ(negative.status, 422);
  EXPECT_THAT(negative.message(), HasSubstr("limits[cpu]: Invalid value: \"-1\": must be greater"));
  const Answer above =
      PostPod({{"resources", {{"limits", {{"cpu", "1"}}}, {"requests", {{"cpu", "1500m"}}}}}});
  EXPECT_EQ(above.status, 422);
  EXPECT_THAT(above.message(), HasSubstr("must be less than or equal to cpu limit of 1"));
}

TEST_F(ConformanceTest, MalformedTimesAreRefusedWhileDecoding) {
  const json lease = {{"metadata", {{"name", "l"}}}, {"spec", {{"renewTime", "soon"}}}};
  const Answer refused = Call("POST", kLeases, lease);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.message(), HasSubstr("parsing time \"soon\""));
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("m", "1")).status, 201);
  const Answer patched =
      Patch(kMaps + "/m", "merge-patch+json", {{"metadata", {{"creationTimestamp", "soon"}}}});
  EXPECT_EQ(patched.status, 422) << "the patch is to blame";
}

TEST_F(ConformanceTest, AnApplyAgainstTheOwnerOfAContainerWithKeyedListsConflicts) {
  json pod = PodOf("p");
  pod["spec"]["containers"][0]["env"] = {{{"name", "A"}, {"value", "1"}},
                                         {{"name", "B"}, {"value", "2"}}};
  const std::string path = kPods + "/p?fieldManager=";
  ASSERT_EQ(Patch(path + "one", "apply-patch+yaml", pod).status, 201);
  pod["spec"]["containers"][0]["image"] = "other:v1";
  const Answer refused = Patch(path + "two", "apply-patch+yaml", pod);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.message(), HasSubstr("conflict with \"one\""));
}

TEST_F(ConformanceTest, APodToleratesSilentNodesForFiveMinutes) {
  const json made = Call("POST", kPods, PodOf("p")).body;
  ASSERT_EQ(made.at("spec").at("tolerations").size(), 2U);
  EXPECT_EQ(made["spec"]["tolerations"][0].at("key"), "node.kubernetes.io/not-ready");
  EXPECT_EQ(made["spec"]["tolerations"][1].at("tolerationSeconds"), 300);
  json own = PodOf("own");
  own["spec"]["tolerations"] = {{{"operator", "Exists"}}};
  EXPECT_EQ(Call("POST", kPods, own).body.at("spec").at("tolerations").size(), 1U);
}

TEST_F(ConformanceTest, ItemsOfBuiltInListsCarryNoType) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("m", "1")).status, 201);
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  for (const std::string& path : {kPods, kMaps}) {
    const json item = Call("GET", path).body.at("items").at(0);
    EXPECT_FALSE(item.contains("kind") || item.contains("apiVersion")) << path;
    EXPECT_TRUE(item.contains("metadata"));
  }
  EXPECT_EQ(Call("GET", kGangs).body.at("items").at(0).at("kind"), "Gang");
}

TEST_F(ConformanceTest, TheLastStateOfAPodSaysThatItWasDeleted) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  const json gone = Call("DELETE", kPods + "/p").body;
  EXPECT_EQ(gone.at("metadata").at("deletionGracePeriodSeconds"), 0);
  EXPECT_TRUE(gone.at("metadata").contains("deletionTimestamp"));
  EXPECT_EQ(gone.at("metadata").at("generation"), 2);
}

TEST_F(ConformanceTest, ADryRunOfADeletionShowsWhatWouldBe) {
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("m", "1")).status, 201);
  const json would = Call("DELETE", kMaps + "/m?propagationPolicy=Orphan&dryRun=All").body;
  EXPECT_EQ(would.at("metadata").at("finalizers"), json::array({"orphan"}));
  EXPECT_FALSE(Call("GET", kMaps + "/m").body.at("metadata").contains("finalizers"));
}

TEST_F(ConformanceTest, NamespacesThatEveryClusterNeedsStay) {
  const Answer refused = Call("DELETE", "/api/v1/namespaces/default");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

TEST_F(ConformanceTest, OptionsAreNamedByTheirVerb) {
  EXPECT_THAT(Call("POST", kMaps + "?dryRun=Some", ConfigMapOf("m", "1")).message(),
              StartsWith("CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
                         "[\"Some\"]"));
  EXPECT_THAT(Call("PUT", kMaps + "/m?fieldValidation=No", ConfigMapOf("m", "1")).message(),
              HasSubstr("UpdateOptions.meta.k8s.io"));
}

TEST_F(ConformanceTest, AManagerHasAShortPrintableName) {
  const std::string tail = std::string(129, 'm');
  EXPECT_THAT(Call("POST", kMaps + "?fieldManager=" + tail, ConfigMapOf("m", "1")).message(),
              HasSubstr("fieldManager: Too long: may not be more than 128 bytes"));
  EXPECT_THAT(Call("POST", kMaps + "?fieldManager=a%07b", ConfigMapOf("m", "1")).message(),
              HasSubstr("invalid character U+0007 (at position 1)"));
  EXPECT_EQ(Call("POST", kMaps + "?fieldManager=m", ConfigMapOf("m", "1")).status, 201);
}

TEST_F(ConformanceTest, OnlyAnApplyMayUseForce) {
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("m", "1")).status, 201);
  const Answer refused = Patch(kMaps + "/m?force=true", "merge-patch+json", json::object());
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(), HasSubstr("force: Forbidden: may not be specified for non-apply"));
  EXPECT_EQ(Patch(kMaps + "/n?force=true&fieldManager=m", "apply-patch+yaml",
                  {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "n"}}}})
                .status,
            201);
}

TEST_F(ConformanceTest, AReplacementNamesItself) {
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("m", "1")).status, 201);
  EXPECT_EQ(Call("PUT", kMaps + "/m", {{"metadata", json::object()}}).message(),
            "the name of the object (m based on URL) was undeterminable: name must be provided");
  EXPECT_EQ(Call("PUT", kMaps + "/m", ConfigMapOf("n", "1")).message(),
            "the name of the object (n) does not match the name on the URL (m)");
}

TEST_F(ConformanceTest, SeveralWrongListOptionsAreAllNamed) {
  EXPECT_THAT(Call("GET", kMaps + "?watch=1&sendInitialEvents=true&continue=x"
                                  "&resourceVersionMatch=NotOlderThan")
                  .message(),
              HasSubstr("resourceVersionMatch is forbidden when continue is provided"));

  const Answer refused =
      Call("GET", kPods + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(refused.body.at("details").at("causes").size(), 2U);
}

TEST_F(ConformanceTest, OneObjectOfAVersionToComeIsATimeout) {
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("m", "1")).status, 201);
  EXPECT_EQ(Call("GET", kMaps + "/m?resourceVersion=99999").status, 504);
  EXPECT_EQ(Call("GET", kMaps + "/m?resourceVersion=1").status, 200);
}

TEST_F(ConformanceTest, OwnersFinalizersAndKeysAreChecked) {
  json map = ConfigMapOf("m", "1");
  map["metadata"]["ownerReferences"] = {{{"kind", "Pod"}, {"apiVersion", "v1"}, {"name", "p"}}};
  EXPECT_THAT(Call("POST", kMaps, map).message(),
              HasSubstr("metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"));
  map["metadata"] = {{"name", "m"}, {"finalizers", {"hold"}}};
  EXPECT_THAT(Call("POST", kMaps, map).message(), HasSubstr("nor is it fully qualified"));
  map["metadata"] = {{"name", "m"}};
  map["data"] = {{"a b", "1"}};
  EXPECT_THAT(Call("POST", kMaps, map).message(), HasSubstr("data[a b]: Invalid value"));
  map["metadata"]["resourceVersion"] = "5";
  EXPECT_EQ(Call("POST", kMaps, map).status, 400);
}

TEST_F(ConformanceTest, AppliesWithUnknownFieldsAreRefused) {
  json gang = GangOf("g");
  gang["spec"]["bogus"] = 1;
  const Answer refused = Call("PATCH", kGangs + "/g?fieldManager=a", gang.dump(),
                              {{"Content-Type", "application/apply-patch+yaml"}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.message(),
            "failed to create typed patch object (/g; tahoma.dev/v1alpha1, Kind=Gang): "
            ".spec.bogus: field not declared in schema");
}

TEST_F(ConformanceTest, ANodeHasTheFieldsThatGoAlwaysWrites) {
  const json node =
      Call("POST", "/api/v1/nodes",
           {{"metadata", {{"name", "n"}}}, {"status", {{"capacity", {{"cpu", "4"}}}}}})
          .body;
  EXPECT_EQ(node.at("spec"), json::object());
  EXPECT_EQ(node.at("status").at("allocatable").at("cpu"), "4");
  EXPECT_EQ(node.at("status").at("daemonEndpoints").at("kubeletEndpoint").at("Port"), 0);
}

TEST_F(ConformanceTest, ConditionsWithoutTimesHaveNulls) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  const json pod = Patch(kPods + "/p/status", "strategic-merge-patch+json",
                         {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}})
                       .body;
  EXPECT_TRUE(pod.at("status").at("conditions").at(0).at("lastProbeTime").is_null());
}

TEST_F(ConformanceTest, AQosClassNeverChanges) {
  ASSERT_EQ(Call("POST", kPods, PodOf("p")).status, 201);
  const Answer refused =
      Patch(kPods + "/p/status", "merge-patch+json", {{"status", {{"qosClass", "Guaranteed"}}}});
  EXPECT_EQ(refused.status, 422);
}

TEST_F(ConformanceTest, OpenApiV2IsThereForKindsThatV3DoesNotHave) {
  const Answer proto =
      Call("GET", "/openapi/v2", "",
           {{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}});
  EXPECT_EQ(proto.status, 200);
  EXPECT_THAT(proto.text, StartsWith("\x0A\x03"
                                     "2.0\x12"));
  EXPECT_EQ(Call("GET", "/openapi/v2").body.at("swagger"), "2.0");
}

TEST_F(ConformanceTest, DeviceClassesOfV1beta1AreThoseOfV1) {
  const std::string beta = "/apis/resource.k8s.io/v1beta1/deviceclasses";
  const json made = {{"apiVersion", "resource.k8s.io/v1beta1"},
                     {"kind", "DeviceClass"},
                     {"metadata", {{"name", "neuron.aws.com"}}},
                     {"spec", {{"selectors", {{{"cel", {{"expression", "true"}}}}}}}}};
  ASSERT_EQ(Call("POST", beta, made).body.value("apiVersion", ""), "resource.k8s.io/v1beta1");
  EXPECT_EQ(Call("GET", "/apis/resource.k8s.io/v1/deviceclasses/neuron.aws.com")
                .body.value("apiVersion", ""),
            "resource.k8s.io/v1");
  EXPECT_EQ(Call("GET", beta).body.at("items").size(), 1U);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
