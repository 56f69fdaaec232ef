// What clients that speak protobuf may send and are answered, as client-go and kubectl do.

#include <gmock/gmock.h>

#include "controller/apiserver/protobuf/protobuf.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller {
namespace {

using json = Json;
using testing::Answer;
using ::testing::HasSubstr;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const std::string kGangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";

class ProtobufVerbsTest : public testing::ApiFixture {
 protected:
  const rest::Headers sent_ = {{"Content-Type", std::string(kProtobufType)}};

  // Sends the object as protobuf.
  Answer Send(const std::string& method, const std::string& path, const json& object) {
    const absl::StatusOr<std::string> body = EncodeProtobuf(object);
    EXPECT_TRUE(body.ok()) << body.status();
    return Call(method, path, *body, sent_);
  }
};

TEST_F(ProtobufVerbsTest, ALeaseIsTakenAndRenewedAsLeaderElectionDoes) {
  json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", {{"name", "leader"}, {"namespace", "default"}}},
                {"spec",
                 {{"holderIdentity", "a"},
                  {"leaseDurationSeconds", 15},
                  {"acquireTime", "2027-01-15T08:00:00.123456Z"},
                  {"renewTime", "2027-01-15T08:00:00.123456Z"},
                  {"leaseTransitions", 0}}}};
  const Answer made = Send("POST", kLeases, lease);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body.at("spec"), lease.at("spec"));
  lease = made.body;
  lease["spec"]["renewTime"] = "2027-01-15T08:00:10.000000Z";
  const Answer renewed = Send("PUT", kLeases + "/leader", lease);
  ASSERT_EQ(renewed.status, 200) << renewed.text;
  EXPECT_EQ(renewed.body.at("spec"), lease.at("spec"));
  EXPECT_EQ(Send("PUT", kLeases + "/leader", lease).status, 409) << "its version has passed";
}

TEST_F(ProtobufVerbsTest, AnObjectIsStoredAsIfItHadComeAsJson) {
  const std::string pods = "/api/v1/namespaces/default/pods";
  const json pod = json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p",
      "labels":{"b":"1","a":"2"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n",
      "uid":"u","controller":false}]},
      "spec":{"schedulerName":"tahoma","containers":[{"name":"main","image":"train",
        "ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"250m","memory":"1Gi"}},
        "readinessProbe":{"httpGet":{"port":"http"}},
        "env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"x"}}}],
        "volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","emptyDir":{}}],"securityContext":{"runAsUser":0},
      "resourceClaims":[{"name":"c","resourceClaimName":"r"}],
      "tolerations":[{"operator":"Exists","tolerationSeconds":0}]}})");
  const Answer as_json = Call("POST", pods, pod);
  ASSERT_EQ(as_json.status, 201) << as_json.text;
  ASSERT_EQ(Call("DELETE", pods + "/p").status, 200);
  const Answer as_protobuf = Send("POST", pods, pod);
  ASSERT_EQ(as_protobuf.status, 201) << as_protobuf.text;
  EXPECT_EQ(as_protobuf.body.at("spec").dump(1), as_json.body.at("spec").dump(1));
  EXPECT_EQ(as_protobuf.body.at("status"), as_json.body.at("status"));
  EXPECT_EQ(as_protobuf.body.at("metadata").at("ownerReferences"),
            as_json.body.at("metadata").at("ownerReferences"));
}

TEST_F(ProtobufVerbsTest, BodiesThatAreCutOrBrokenAreRefused) {
  const std::string body =
      *EncodeProtobuf({{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "c"}}}});
  for (const std::string& bad :
       {std::string(), std::string("{}"), body.substr(0, 12), body + "\x0a", body + "\xff"}) {
    const Answer answer = Call("POST", kMaps, bad, sent_);
    EXPECT_EQ(answer.status, 400) << answer.text;
    EXPECT_THAT(answer.message(), HasSubstr("the protobuf body cannot be read"));
  }
  json named = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "\xff"}}}};
  EXPECT_THAT(Send("POST", kMaps, named).message(), HasSubstr("name: the text is not UTF-8"));
  EXPECT_TRUE(Call("GET", kMaps).body.at("items").empty());
}

TEST_F(ProtobufVerbsTest, CustomKindsTakeNoProtobuf) {
  const std::string body =
      ProtobufBody("tahoma.dev/v1alpha1", "Gang", *EncodeMessage("v1", "ConfigMap", GangOf("g")));
  const Answer answer = Call("POST", kGangs, body, sent_);
  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer.reason(), "UnsupportedMediaType");
}

TEST_F(ProtobufVerbsTest, DeleteOptionsAreReadOfBuiltInAndCustomKinds) {
  ASSERT_EQ(Call("POST", kGangs, GangOf("g")).status, 201);
  const json options = {{"apiVersion", "tahoma.dev/v1alpha1"},
                        {"kind", "DeleteOptions"},
                        {"preconditions", {{"uid", "another"}}}};
  EXPECT_EQ(Send("DELETE", kGangs + "/g", options).status, 409);
  EXPECT_EQ(Send("DELETE", kGangs + "/g",
                 {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"dryRun", {"All"}}})
                .status,
            200);
  EXPECT_EQ(Call("GET", kGangs + "/g").status, 200) << "it was a dry run";
}

}  // namespace
}  // namespace tahoma::controller
