// Tests what the server refuses and in which words, kind by kind; and the defaults that it fills
// in.

#include "controller/apiserver/validation/validation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "lib/base/json.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& KindNamed(std::string_view plural) {
  static const std::shared_ptr<const Kind>* const gang =
      new std::shared_ptr<const Kind>(KindOfCrdFile("gangs"));
  if (plural == "gangs") return **gang;
  for (const auto& kind : BuiltInKinds()) {
    if (kind->plural == plural) return *kind;
  }
  ADD_FAILURE() << plural;
  return **gang;
}

Json Defaulted(const Kind& kind, Json object) {
  if (!object.contains("metadata")) object["metadata"] = Json::object();
  if (!object["metadata"].contains("name")) object["metadata"]["name"] = "x";
  if (kind.namespaced) object["metadata"]["namespace"] = "default";
  ApplyDefaults(*kind.schema, object);
  ApplyKindDefaults(kind, "2026-11-21T10:00:00Z", object);
  return object;
}

std::vector<std::string> Texts(const std::vector<Cause>& causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) texts.push_back(cause.field + ": " + cause.message);
  return texts;
}

struct CreateCase {
  const char* plural;
  std::string object;
  std::vector<std::string> errors;
};

class CreateTable : public ::testing::TestWithParam<CreateCase> {};

TEST_P(CreateTable, SaysWhatKubernetesSays) {
  const Kind& kind = KindNamed(GetParam().plural);
  EXPECT_EQ(Texts(ValidateCreate(kind, Defaulted(kind, ParseJson(GetParam().object)))),
            GetParam().errors);
}

std::string Repeated(const std::string& item, int times) {
  std::string list;
  for (int i = 0; i < times; ++i) list += (i == 0 ? "" : ", ") + item;
  return list;
}

std::string Claim(const std::string& devices) {
  return R"({"spec": {"devices": )" + devices + "}}";
}

INSTANTIATE_TEST_SUITE_P(
    Metadata, CreateTable,
    ::testing::Values(
        CreateCase{"configmaps", R"({"metadata": {"name": "a.b-c"}})", {}},
        CreateCase{"configmaps",
                   R"({"metadata": {"name": ""}})",
                   {"metadata.name: Required value: name or generateName is required"}},
        CreateCase{"configmaps",
                   R"({"metadata": {"name": "A"}})",
                   {"metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must "
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and "
                    "end with an alphanumeric character (e.g. 'example.com', regex used for "
                    "validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
        CreateCase{"configmaps",
                   R"({"metadata": {"finalizers": ["orphan", "foregroundDeletion"]}})",
                   {"metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: "
                    "finalizer orphan and foregroundDeletion cannot be both set"}},
        CreateCase{
            "configmaps",
            R"({"metadata": {"labels": {"a": "b c"}}})",
            {"metadata.labels: Invalid value: \"b c\": a valid label must be an empty string "
             "or consist of alphanumeric characters, '-', '_' or '.', and must start and "
             "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
             "'12345', regex used for validation is "
             "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}},
        CreateCase{"nodes",
                   R"({"metadata": {"namespace": "a"}})",
                   {"metadata.namespace: Forbidden: not allowed on this type"}},
        CreateCase{"configmaps",
                   R"({"metadata": {"annotations": {"a": ")" + std::string(300000, 'x') + R"("}}})",
                   {"metadata.annotations: Too long: may not be more than 262144 bytes"}}));

INSTANTIATE_TEST_SUITE_P(
    Pods, CreateTable,
    ::testing::Values(
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "resources": {"claims": [{"name": "c"}]}}],
                     "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}})",
                   {}},
        CreateCase{"pods", R"({"spec": {}})", {"spec.containers: Required value"}},
        CreateCase{"pods", R"({"spec": {"containers": []}})", {"spec.containers: Required value"}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a"}]}})",
                   {"spec.containers[0].image: Required value"}},
        CreateCase{"pods",
                   R"({"spec": {"restartPolicy": "Never!", "containers":
                     [{"name": "a", "image": "i"}]}})",
                   {"spec.restartPolicy: Unsupported value: \"Never!\": supported values: "
                    "\"Always\", \"OnFailure\", \"Never\""}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}})",
                   {"spec.containers[0].volumeMounts[0].name: Not found: \"v\""}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "resources": {"claims": [{"name": "c"}]}}]}})",
                   {"spec.containers[0].resources.claims[0]: Not found: \"c\": must be one of "
                    "the names in pod.spec.resourceClaims which is empty"}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "resources": {"requests": {"aws.amazon.com/neuron": "1", "cpu": "1"}}}]}})",
                   {"spec.containers[0].resources.limits: Required value: Limit must be set for "
                    "non overcommitable resources"}},
        CreateCase{"pods",
                   R"({"spec": {"initContainers": [{"name": "a", "image": "i",
                     "resources": {"requests": {"hugepages-2Mi": "2Mi"}}}],
                     "containers": [{"name": "b", "image": "i"}]}})",
                   {"spec.initContainers[0].resources.limits: Required value: Limit must be set "
                    "for non overcommitable resources"}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "resources": {"requests": {"aws.amazon.com/neuron": "1"},
                                   "limits": {"aws.amazon.com/neuron": "2"}}}]}})",
                   {"spec.containers[0].resources.requests: Invalid value: \"1\": must be equal to "
                    "aws.amazon.com/neuron limit of 2"}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "resources": {"requests": {"aws.amazon.com/neuron": "500m"},
                                   "limits": {"aws.amazon.com/neuron": "500m"}}}]}})",
                   {"spec.containers[0].resources.limits[aws.amazon.com/neuron]: Invalid value: "
                    "\"500m\": must be an integer",
                    "spec.containers[0].resources.requests[aws.amazon.com/neuron]: Invalid value: "
                    "\"500m\": must be an integer"}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i",
                     "resources": {"requests": {"cpu": "1", "aws.amazon.com/neuron": "2"},
                                   "limits": {"cpu": "2", "aws.amazon.com/neuron": "2"}}}]}})",
                   {}},
        CreateCase{"pods",
                   R"({"spec": {"containers": [{"name": "a", "image": "i"}],
                     "resourceClaims": [{"name": "c"}]}})",
                   {"spec.resourceClaims[0]: Invalid value: {\"name\":\"c\"}: must specify one of: "
                    "`resourceClaimName`, `resourceClaimTemplateName`"}}));

INSTANTIATE_TEST_SUITE_P(
    Claims, CreateTable,
    ::testing::Values(
        CreateCase{"resourceclaims",
                   Claim(R"({"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}],
                     "constraints": [{"matchAttribute": "tahoma.dev/x", "requests": ["r"]}]})"),
                   {}},
        CreateCase{"resourceclaims",
                   Claim(R"({"requests": [{"name": "r"}]})"),
                   {"spec.devices.requests[0]: Required value: exactly one of `exactly` or "
                    "`firstAvailable` is required"}},
        CreateCase{"resourceclaims",
                   Claim(R"({"requests": [{"name": "r", "exactly": {"deviceClassName": "c"},
                     "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]})"),
                   {"spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or "
                    "`firstAvailable` is required, but multiple fields are set"}},
        CreateCase{"resourceclaims",
                   Claim(R"({"requests": [{"name": "r", "exactly": {"deviceClassName": "c",
                     "allocationMode": "All", "count": 2}}]})"),
                   {"spec.devices.requests[0].exactly.count: Invalid value: 2: must not be "
                    "specified when allocationMode is 'All'"}},
        CreateCase{"resourceclaims",
                   Claim(R"({"requests": [{"name": "r", "exactly": {"deviceClassName": "c",
                     "count": 0}}]})"),
                   {"spec.devices.requests[0].exactly.count: Invalid value: 0: must be greater "
                    "than zero"}},
        CreateCase{
            "resourceclaims",
            Claim(R"({"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}],
                     "constraints": [{"matchAttribute": "x", "requests": ["q"]}]})"),
            {"spec.devices.constraints[0].requests[0]: Invalid value: \"q\": must be the "
             "name of a request in the claim or the name of a request and a subrequest "
             "separated by '/'",
             "spec.devices.constraints[0].matchAttribute: Invalid value: \"x\": must include "
             "a domain"}},
        CreateCase{
            "resourceclaims",
            Claim(R"({"config": [{"opaque": {"driver": "d.e", "parameters": {"x": ")" +
                  std::string(11000, 'y') + R"("}}}]})"),
            {"spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 "
             "bytes"}},
        CreateCase{"resourceclaims",
                   Claim(R"({"constraints": [)" +
                         Repeated(R"({"matchAttribute": "tahoma.dev/x"})", 33) + "]}"),
                   {"spec.devices.constraints: Too many: 33: must have at most 32 items"}}));

std::string Slice(const std::string& rest) {
  return R"({"spec": {"driver": "d.e", "nodeName": "n",
             "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, )" +
         rest + "}}";
}

std::string Devices(int count, const std::string& rest) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list += fmt::format(R"({}{{"name": "d{}"{}}})", i == 0 ? "" : ", ", i, rest);
  }
  return R"("devices": [)" + list + "]";
}

INSTANTIATE_TEST_SUITE_P(
    Slices, CreateTable,
    ::testing::Values(
        CreateCase{"resourceslices", Slice(Devices(128, "")), {}},
        CreateCase{"resourceslices",
                   Slice(Devices(129, "")),
                   {"spec.devices: Too many: 129: must have at most 128 items"}},
        CreateCase{"resourceslices",
                   Slice(Devices(65, R"(, "taints": [{"key": "a", "effect": "NoSchedule"}])")),
                   {"spec.devices: Too many: 65: must have at most 64 items"}},
        CreateCase{"resourceslices",
                   Slice(R"("allNodes": true)"),
                   {"spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, "
                    "`nodeSelector`, "
                    "`allNodes`, `perDeviceNodeSelection` is required, but multiple fields are "
                    "set"}},
        CreateCase{"resourceslices",
                   Slice(Devices(1, R"(, "attributes": {"a": {"int": 1, "bool": true}})")),
                   {"spec.devices[0].attributes[a]: Invalid value: {\"bool\":true,\"int\":1}: "
                    "exactly one value must be specified"}},
        CreateCase{"resourceslices",
                   Slice(Devices(1, "") + R"(, "sharedCounters": [{"name": "s", "counters":
                     {"c": {"value": "1"}}}])"),
                   {"spec: Invalid value: null: only one of `sharedCounters` or `devices` is "
                    "allowed"}}));

INSTANTIATE_TEST_SUITE_P(
    Gangs, CreateTable,
    ::testing::Values(
        CreateCase{"gangs", R"({"spec": {"members": 4, "shape": "4x4x2", "slices": 2}})", {}},
        CreateCase{"gangs",
                   R"({"spec": {"members": 4, "shape": "3x5x2"}})",
                   {"spec.shape: Invalid value: each side must be 1, 2 or 4"}},
        CreateCase{"gangs",
                   R"({"spec": {"members": 4, "shape": "8x4"}})",
                   {"spec.shape: Invalid value: each side must be 1, 2 or 4"}},
        CreateCase{"gangs",
                   R"({"spec": {"members": 4, "slices": 3}})",
                   {"spec.slices: Invalid value: must divide spec.members"}},
        CreateCase{
            "gangs",
            R"({"spec": {"members": 4, "chips": 4, "shape": "4x1"}})",
            {"spec.chips: Invalid value: may not be set together with spec.shape, which says "
             "how many chips a slice has"}},
        CreateCase{"gangs",
                   R"({"spec": {"members": 0}})",
                   {"spec.members: Invalid value: 0: spec.members in body should be greater than "
                    "or equal to 1"}}));

INSTANTIATE_TEST_SUITE_P(
    Others, CreateTable,
    ::testing::Values(
        CreateCase{"leases",
                   R"({"spec": {"leaseDurationSeconds": 0}})",
                   {"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"}},
        CreateCase{"customresourcedefinitions",
                   R"({"metadata": {"name": "w"}, "spec": {"group": "e.c", "scope": "Cluster",
                       "names": {"plural": "ws", "kind": "W"}, "versions": [{"name": "v1",
                       "served": true, "storage": true}]}})",
                   {"metadata.name: Invalid value: \"w\": must be spec.names.plural+\".\"+"
                    "spec.group"}}));

struct UpdateCase {
  const char* plural;
  const char* subresource;
  const char* before;
  const char* patch;  // RFC 7386
  std::vector<std::string> errors;
};

class UpdateTable : public ::testing::TestWithParam<UpdateCase> {};

TEST_P(UpdateTable, SaysWhatKubernetesSays) {
  const Kind& kind = KindNamed(GetParam().plural);
  const Json before = Defaulted(kind, ParseJson(GetParam().before));
  Json after = before;
  after.merge_patch(ParseJson(GetParam().patch));
  EXPECT_EQ(Texts(ValidateUpdate(kind, before, after, GetParam().subresource)), GetParam().errors);
}

constexpr char kPod[] = R"({"spec": {"containers": [{"name": "a", "image": "i"}],
                            "schedulingGates": [{"name": "g"}]}})";
constexpr char kClaim[] = R"({"spec": {"devices": {"requests": [{"name": "r", "exactly":
                              {"deviceClassName": "c"}}]}}})";
constexpr char kAllocated[] = R"({"spec": {"devices": {"requests": [{"name": "r", "exactly":
    {"deviceClassName": "c"}}]}}, "status": {"allocation": {"devices": {"results": [
    {"request": "r", "driver": "d.e", "pool": "p", "device": "x"}]}}}})";

INSTANTIATE_TEST_SUITE_P(
    Updates, UpdateTable,
    ::testing::Values(
        UpdateCase{"pods",
                   "",
                   kPod,
                   R"({"spec": {"activeDeadlineSeconds": 5,
                                        "schedulingGates": null}})",
                   {}},
        UpdateCase{"pods",
                   "",
                   kPod,
                   R"({"spec": {"hostname": "h"}})",
                   {"spec: Forbidden: pod updates may not change fields other than "
                    "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
                    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if "
                    "it was previously negative)"}},
        UpdateCase{"pods",
                   "",
                   kPod,
                   R"({"spec": {"schedulingGates": [{"name": "h"}]}})",
                   {"spec.schedulingGates: Forbidden: only deletion is allowed, but found new "
                    "scheduling gate 'h'"}},
        UpdateCase{"configmaps",
                   "",
                   R"({"metadata": {"uid": "1"}})",
                   R"({"metadata": {"uid": "2"}})",
                   {"metadata.uid: Invalid value: \"2\": field is immutable"}},
        UpdateCase{"configmaps",
                   "",
                   R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})",
                   R"({"metadata": {"finalizers": ["a.b/c"]}})",
                   {"metadata.finalizers: Forbidden: no new finalizers can be added if the object "
                    "is being deleted, found new finalizers []string{\"a.b/c\"}"}},
        UpdateCase{"configmaps",
                   "",
                   R"({"immutable": true, "data": {"a": "b"}})",
                   R"({"data": {"a": "c"}})",
                   {"data: Forbidden: field is immutable when `immutable` is set"}},
        UpdateCase{
            "resourceclaims",
            "status",
            kClaim,
            R"({"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}})",
            {"status.reservedFor: Forbidden: may not be specified when `allocated` is not "
             "set"}},
        UpdateCase{
            "resourceclaims", "status", kAllocated, R"({"status": {"allocation": null}})", {}},
        UpdateCase{"resourceclaims",
                   "status",
                   kAllocated,
                   R"({"status": {"allocation": {"devices": {"results": []}}}})",
                   {"status.allocation: Invalid value: {\"devices\":{\"results\":[]}}: field is "
                    "immutable"}},
        UpdateCase{"resourceclaims",
                   "status",
                   kClaim,
                   R"({"status": {"allocation": {"devices": {"results": [{"request": "q",
                       "driver": "d.e", "pool": "p", "device": "x"}]}}}})",
                   {"status.allocation.devices.results[0].request: Invalid value: \"q\": must be "
                    "the name of a request in the claim or the name of a request and a subrequest "
                    "separated by '/'"}}));

TEST(ClaimUpdateTest, TheSpecNeverChanges) {
  const Kind& claims = KindNamed("resourceclaims");
  const Json before = Defaulted(claims, ParseJson(kClaim));
  Json after = before;
  after["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2;
  const auto causes = ValidateUpdate(claims, before, after, "");
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].field, "spec");
  EXPECT_TRUE(causes[0].message.ends_with(": field is immutable"));
}

TEST(InvalidMessageTest, OneErrorStandsAloneAndSeveralInBrackets) {
  EXPECT_EQ(InvalidMessage("Gang", "g", {Required("spec.members")}),
            "Gang \"g\" is invalid: spec.members: Required value");
  EXPECT_EQ(InvalidMessage("Gang", "g", {Required("a"), TooLong("b", 3)}),
            "Gang \"g\" is invalid: [a: Required value, b: Too long: may not be more than 3 "
            "bytes]");
}

TEST(DefaultsTest, APodIsFilledInAsByARealServer) {
  const Kind& pods = KindNamed("pods");
  Json pod = Defaulted(pods, ParseJson(R"({"spec": {"containers": [
    {"name": "a", "image": "registry:5000/x", "resources": {"limits": {"cpu": "1"}}},
    {"name": "b", "image": "x:v1"}, {"name": "c", "image": "x@sha256:0"}]}})"));
  const Json& spec = pod["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Always");
  EXPECT_EQ(spec["schedulerName"], "default-scheduler");
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ(spec["securityContext"], Json::object());
  EXPECT_EQ(spec["serviceAccountName"], "default");
  EXPECT_EQ(spec["containers"][0]["imagePullPolicy"], "Always");
  EXPECT_EQ(spec["containers"][1]["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ(spec["containers"][2]["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ(spec["containers"][0]["resources"]["requests"]["cpu"], "1");
  EXPECT_EQ(Defaulted(pods, pod), pod) << "idempotent";
  PrepareCreate(pods, "2026-01-02T03:04:05Z", pod);
  EXPECT_EQ(pod["status"], ParseJson(R"({"phase": "Pending", "qosClass": "Burstable"})"));
}

TEST(DefaultsTest, SecretsNamespacesAndClaimsHaveTheirOwn) {
  const Json secret =
      Defaulted(KindNamed("secrets"), ParseJson(R"({"stringData": {"a": "hello", "b": ""}})"));
  EXPECT_EQ(secret["data"], ParseJson(R"({"a": "aGVsbG8=", "b": ""})"));
  EXPECT_FALSE(secret.contains("stringData"));
  Json space = Defaulted(KindNamed("namespaces"), Json::object());
  PrepareCreate(KindNamed("namespaces"), "", space);
  EXPECT_EQ(space["metadata"]["labels"]["kubernetes.io/metadata.name"], "x");
  EXPECT_EQ(space["spec"]["finalizers"], Json::array({"kubernetes"}));
  const Json claim = Defaulted(KindNamed("resourceclaims"), ParseJson(kClaim));
  EXPECT_EQ(claim["spec"]["devices"]["requests"][0]["exactly"]["count"], 1);

  const Json slice = Defaulted(KindNamed("resourceslices"), ParseJson(R"({"spec": {"devices": [
      {"name": "a"},
      {"name": "b", "taints": [{"key": "k", "effect": "NoExecute"},
                               {"key": "l", "effect": "NoExecute",
                                "timeAdded": "2026-01-01T00:00:00Z"}]}]}})"));
  const Json& devices = slice["spec"]["devices"];
  EXPECT_FALSE(devices[0].contains("taints"));
  EXPECT_EQ(devices[1]["taints"][0]["timeAdded"], "2026-11-21T10:00:00Z");
  EXPECT_EQ(devices[1]["taints"][1]["timeAdded"], "2026-01-01T00:00:00Z");
}

TEST(PrepareUpdateTest, SpecAndStatusAreWrittenApart) {
  const Kind& gangs = KindNamed("gangs");
  const Json before = ParseJson(R"({"metadata": {"name": "g", "labels": {"a": "1"}},
                                      "spec": {"members": 1}, "status": {"boundMembers": 1}})");
  const Json wanted = ParseJson(R"({"metadata": {"name": "g", "resourceVersion": "7"},
                                      "spec": {"members": 2}, "status": {"boundMembers": 2}})");
  Json main = wanted;
  PrepareUpdate(gangs, before, main, "");
  EXPECT_EQ(main["status"], before["status"]);
  EXPECT_TRUE(SpecChanged(gangs, before, main));
  Json status = wanted;
  PrepareUpdate(gangs, before, status, "status");
  EXPECT_EQ(status["spec"], before["spec"]);
  EXPECT_EQ(status["status"], wanted["status"]);
  EXPECT_EQ(status["metadata"]["labels"], before["metadata"]["labels"]);
  EXPECT_EQ(status["metadata"]["resourceVersion"], "7");
  EXPECT_FALSE(SpecChanged(gangs, before, status));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
