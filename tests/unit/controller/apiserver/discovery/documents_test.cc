// Discovery, OpenAPI and tables: what kubectl asks for before it does anything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "controller/apiserver/discovery/discovery.h"
#include "controller/apiserver/discovery/openapi.h"
#include "controller/apiserver/printers/table.h"
#include "controller/apiserver/printers/table_path.h"
#include "controller/apiserver/schema/schema.h"
#include "lib/base/json.h"
#include "tests/unit/controller/apiserver/schema/gang_crd.h"
#include "tests/unit/controller/apiserver/verbs/golden.h"

namespace tahoma::controller::apiserver {
namespace {

std::shared_ptr<const KindTable> Kinds() {
  KindRegistry registry;
  EXPECT_TRUE(registry.ApplyCrd(GangCrd()).ok());
  return registry.Snapshot();
}

WallTime Now() { return *ParseTime("2026-01-02T00:00:00Z"); }

TEST(DiscoveryTest, AggregatedDocumentsAreAsKubectlReadsThem) {
  ExpectGolden("discovery_core.json", AggregatedCore(*Kinds()));
  ExpectGolden("discovery_groups.json", AggregatedGroups(*Kinds()));
}

TEST(DiscoveryTest, LegacyDocumentsListTheSameResources) {
  const auto kinds = Kinds();
  ExpectGolden("discovery_gang_legacy.json", *ApiResourceList(*kinds, "tahoma.dev", "v1alpha1"));
  std::set<std::string> legacy;
  const Json core = *ApiResourceList(*kinds, "", "v1");
  for (const Json& resource : core["resources"]) legacy.insert(resource["name"]);
  std::set<std::string> aggregated;
  const Json document = AggregatedCore(*kinds);
  for (const Json& one : document["items"][0]["versions"][0]["resources"]) {
    aggregated.insert(one["resource"]);
    if (!one.contains("subresources")) continue;
    for (const Json& sub : one["subresources"]) {
      aggregated.insert(one["resource"].get<std::string>() + "/" +
                        sub["subresource"].get<std::string>());
    }
  }
  EXPECT_EQ(legacy, aggregated);
  EXPECT_TRUE(legacy.contains("pods/binding"));
}

// Source: api/discovery/apis__authorization.k8s.io__v1.json and …authentication… of Kubernetes; a
// RESTMapper knows no other kinds than those it finds here.
TEST(DiscoveryTest, TheReviewsAreListedAsByARealServer) {
  const auto resource = [](const char* kind, const char* singular, bool namespaced) {
    return Json{{"kind", kind},
                {"name", std::string(singular) + "s"},
                {"namespaced", namespaced},
                {"singularName", singular},
                {"verbs", {"create"}}};
  };
  const auto kinds = Kinds();
  const auto authorization = ApiResourceList(*kinds, "authorization.k8s.io", "v1");
  ASSERT_TRUE(authorization.has_value());
  EXPECT_EQ(*authorization,
            (Json{{"apiVersion", "v1"},
                  {"groupVersion", "authorization.k8s.io/v1"},
                  {"kind", "APIResourceList"},
                  {"resources",
                   {resource("LocalSubjectAccessReview", "localsubjectaccessreview", true),
                    resource("SelfSubjectAccessReview", "selfsubjectaccessreview", false),
                    resource("SelfSubjectRulesReview", "selfsubjectrulesreview", false),
                    resource("SubjectAccessReview", "subjectaccessreview", false)}}}));
  EXPECT_EQ(ApiResourceList(*kinds, "authentication.k8s.io", "v1")->at("resources"),
            Json::array({resource("SelfSubjectReview", "selfsubjectreview", false),
                         resource("TokenReview", "tokenreview", false)}));
  const Json core = ApiResourceList(*kinds, "", "v1")->at("resources");
  EXPECT_NE(std::ranges::find(core, Json{{"name", "serviceaccounts/token"},
                                         {"singularName", ""},
                                         {"namespaced", true},
                                         {"group", "authentication.k8s.io"},
                                         {"version", "v1"},
                                         {"kind", "TokenRequest"},
                                         {"verbs", {"create"}}}),
            core.end());
}

TEST(DiscoveryTest, GroupsAreFoundByName) {
  const auto kinds = Kinds();
  EXPECT_EQ(ApiGroup(*kinds, "tahoma.dev")->at("preferredVersion")["groupVersion"],
            "tahoma.dev/v1alpha1");
  EXPECT_FALSE(ApiGroup(*kinds, "networking.k8s.io").has_value());
  EXPECT_FALSE(ApiResourceList(*kinds, "tahoma.dev", "v2").has_value());
  EXPECT_EQ(ApiGroupList(*kinds)["groups"].size(), 14U);
}

TEST(DiscoveryTest, TheAcceptHeaderMayHaveOtherParametersInAnyOrder) {
  EXPECT_TRUE(WantsAggregated(kAggregatedContentType));
  EXPECT_TRUE(WantsAggregated(
      "application/json; as=APIGroupDiscoveryList; v=v2; profile=nopeer; g=apidiscovery.k8s.io"));
  EXPECT_TRUE(WantsAggregated(
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"));
  EXPECT_FALSE(WantsAggregated("application/json"));
  EXPECT_FALSE(
      WantsAggregated("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"));
}

// Every $ref must be found in the same document.
void CollectRefs(const Json& value, std::set<std::string>& refs) {
  if (value.is_object() && value.contains("$ref")) refs.insert(value["$ref"].get<std::string>());
  if (value.is_structured()) {
    for (const Json& child : value) CollectRefs(child, refs);
  }
}

TEST(OpenApiTest, GangDocumentIsAsKubectlReadsIt) {
  Json document = OpenApiOf(*Kinds(), "tahoma.dev", "v1alpha1");
  ExpectGolden("openapi_gang.json", document);
}

TEST(OpenApiTest, PodComponentIsAsKubectlReadsIt) {
  const Json document = OpenApiOf(*Kinds(), "", "v1");
  ExpectGolden("openapi_pod.json", document["components"]["schemas"]["io.k8s.api.core.v1.Pod"]);
}

TEST(OpenApiTest, ASharedTypeHasItsOwnWordsWhicheverFieldUsesItFirst) {
  const Json document = OpenApiOf(*Kinds(), "", "v1");
  const Json& types = document["components"]["schemas"];
  const Json& type = types["io.k8s.api.core.v1.ResourceRequirements"];
  const Json& use = types["io.k8s.api.core.v1.Container"]["properties"]["resources"];
  EXPECT_NE(type["description"], use["description"]);
  EXPECT_FALSE(type.contains("default"));
  EXPECT_EQ(use["default"], Json::object());
}

TEST(OpenApiTest, EveryReferenceResolvesInItsOwnDocument) {
  const auto kinds = Kinds();
  for (const auto& kind : kinds->kinds()) {
    const Json document = OpenApiOf(*kinds, kind->group, kind->version);
    std::set<std::string> refs;
    CollectRefs(document, refs);
    for (const std::string& ref : refs) {
      EXPECT_TRUE(document.contains(Json::json_pointer(ref.substr(1)))) << ref;
    }
  }
}

TEST(OpenApiTest, PatchTakesFieldValidationAndStrategicMergeOnlyForBuiltInKinds) {
  const auto kinds = Kinds();
  const auto patch_of = [&](const char* group, const char* version, const char* path) {
    return OpenApiOf(*kinds, group, version)["paths"][path]["patch"];
  };
  const Json gang = patch_of("tahoma.dev", "v1alpha1",
                             "/apis/tahoma.dev/v1alpha1/namespaces/{namespace}/gangs/{name}");
  EXPECT_EQ(gang["x-kubernetes-group-version-kind"]["kind"], "Gang");
  std::set<std::string> parameters;
  for (const Json& one : gang["parameters"]) parameters.insert(one["name"]);
  EXPECT_TRUE(parameters.contains("fieldValidation"));
  EXPECT_TRUE(parameters.contains("dryRun"));
  EXPECT_FALSE(gang["requestBody"]["content"].contains("application/strategic-merge-patch+json"));
  const Json node = patch_of("", "v1", "/api/v1/nodes/{name}");
  EXPECT_TRUE(node["requestBody"]["content"].contains("application/strategic-merge-patch+json"));
}

TEST(OpenApiTest, TheIndexNamesEachDocumentByItsHashAndFollowsTheKinds) {
  KindRegistry registry;
  OpenApiCache cache;
  const Json before = ParseJson(cache.Index(*registry.Snapshot()));
  EXPECT_FALSE(before["paths"].contains("apis/tahoma.dev/v1alpha1"));
  ASSERT_TRUE(registry.ApplyCrd(GangCrd()).ok());
  const auto kinds = registry.Snapshot();
  const Json after = ParseJson(cache.Index(*kinds));
  const auto document = cache.Document(*kinds, "apis/tahoma.dev/v1alpha1");
  ASSERT_NE(document, nullptr);
  EXPECT_EQ(after["paths"]["apis/tahoma.dev/v1alpha1"]["serverRelativeURL"],
            "/openapi/v3/apis/tahoma.dev/v1alpha1?hash=" + document->hash);
  EXPECT_THAT(document->hash, ::testing::MatchesRegex("[0-9A-F]{64}"));
  EXPECT_EQ(before["paths"]["api/v1"], after["paths"]["api/v1"]) << "unchanged groups keep a hash";
  EXPECT_EQ(cache.Document(*kinds, "apis/networking.k8s.io/v1"), nullptr);
  EXPECT_EQ(cache.Document(*kinds, "api/v1"), cache.Document(*kinds, "api/v1"));
}

Json Row(const Kind& kind, const char* object) {
  return TableRow(kind, ParseJson(object), IncludeObject::kNone, Now())["cells"];
}

const Kind& BuiltIn(const char* group, const char* plural) {
  static const KindRegistry* const registry = new KindRegistry;
  return *registry->Snapshot()->Find(group, "v1", plural);
}

TEST(TableTest, AGangHasTheColumnsOfItsCrd) {
  const Json gang = ParseJson(R"({"apiVersion": "tahoma.dev/v1alpha1", "kind": "Gang",
    "metadata": {"name": "llama", "namespace": "default", "uid": "u",
                 "creationTimestamp": "2026-01-01T23:30:00Z"},
    "spec": {"members": 4, "shape": "4x4x4", "queue": "default"},
    "status": {"conditions": [{"type": "Placed", "status": "False"},
                              {"type": "Bound", "status": "True"}]}})");
  const Json table = MakeTable(*GangKind(), {&gang}, {{"resourceVersion", "7"}, {"other", 1}},
                               IncludeObject::kMetadata, Now());
  ExpectGolden("table_gang.json", table);
  EXPECT_EQ(MakeTable(*GangKind(), {}, {}, IncludeObject::kNone, Now(), false)["columnDefinitions"],
            Json(nullptr));
}

TEST(TableTest, AnEmptyGangHasEmptyCells) {
  EXPECT_EQ(Row(*GangKind(), R"({"metadata": {"name": "a"}})"),
            ParseJson(R"(["a", null, null, null, null, null])"));
}

TEST(TableTest, PodsHaveTheCellsThatKubectlUsersKnow) {
  const Kind& pods = BuiltIn("", "pods");
  ExpectGolden("table_pod_columns.json", TableColumns(pods));
  EXPECT_EQ(
      Row(pods, R"({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T23:58:30Z"},
      "spec": {"nodeName": "n1", "containers": [{}, {}]},
      "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [
        {"ready": true, "restartCount": 2, "state": {"running": {}},
         "lastState": {"terminated": {"finishedAt": "2026-01-01T23:59:00Z"}}},
        {"ready": false, "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
      ]}})"),
      ParseJson(R"json(["a", "1/2", "CrashLoopBackOff", "3 (60s ago)", "90s", "10.0.0.1", "n1",
                            "<none>", "<none>"])json"));
}

struct PodStatusCase {
  const char* pod;
  const char* status;
};
class PodStatusTable : public ::testing::TestWithParam<PodStatusCase> {};

TEST_P(PodStatusTable, IsTheWordThatKubectlPrints) {
  EXPECT_EQ(Row(BuiltIn("", "pods"), GetParam().pod)[2], GetParam().status);
}

INSTANTIATE_TEST_SUITE_P(
    Pods, PodStatusTable,
    ::testing::Values(
        PodStatusCase{R"({"status": {"phase": "Pending"}})", "Pending"},
        PodStatusCase{R"({"status": {"phase": "Failed", "reason": "Evicted"}})", "Evicted"},
        PodStatusCase{R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
                          "status": {"phase": "Running"}})",
                      "Terminating"},
        PodStatusCase{R"({"status": {"phase": "Pending", "containerStatuses":
                          [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}})",
                      "ErrImagePull"},
        PodStatusCase{R"({"status": {"phase": "Succeeded", "containerStatuses":
                          [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}})",
                      "Completed"},
        PodStatusCase{R"({"status": {"phase": "Failed", "containerStatuses":
                          [{"state": {"terminated": {"exitCode": 3}}}]}})",
                      "ExitCode:3"},
        PodStatusCase{R"({"status": {"phase": "Failed", "containerStatuses":
                          [{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]}})",
                      "Signal:9"},
        PodStatusCase{R"({"spec": {"initContainers": [{}, {}]}, "status": {"phase": "Pending",
                          "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}},
                                                    {"state": {"running": {}}}]}})",
                      "Init:1/2"},
        PodStatusCase{R"({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled",
                          "status": "False", "reason": "SchedulingGated"}]}})",
                      "SchedulingGated"}));

TEST(TableTest, OtherKindsHaveTheirOwnCells) {
  EXPECT_EQ(Row(BuiltIn("", "nodes"), R"({"metadata": {"name": "n", "creationTimestamp":
      "2025-12-31T00:00:00Z", "labels": {"node-role.kubernetes.io/worker": ""}},
      "spec": {"unschedulable": true}, "status": {"nodeInfo": {"kubeletVersion": "v1.36.0"},
      "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}],
      "conditions": [{"type": "Ready", "status": "True"}]}})"),
            ParseJson(R"(["n", "Ready,SchedulingDisabled", "worker", "2d", "v1.36.0", "10.0.0.2",
                            "<none>", "<unknown>", "<unknown>", "<unknown>"])"));
  const Kind& claims = BuiltIn("resource.k8s.io", "resourceclaims");
  EXPECT_EQ(Row(claims, R"({"metadata": {"name": "c"}})")[1], "pending");
  EXPECT_EQ(Row(claims, R"({"metadata": {"name": "c"}, "status": {"allocation": {},
                            "reservedFor": [{}]}})")[1],
            "allocated,reserved");
  EXPECT_EQ(Row(BuiltIn("resource.k8s.io", "resourceslices"), R"({"metadata": {"name": "s"},
      "spec": {"nodeName": "n", "driver": "neuron.aws.com", "pool": {"name": "p"}}})"),
            ParseJson(R"(["s", "n", "neuron.aws.com", "p", "<unknown>"])"));
  EXPECT_EQ(Row(BuiltIn("", "events"), R"({"metadata": {"name": "e"}, "type": "Warning",
      "reason": "FailedScheduling", "message": "no", "lastTimestamp": "2026-01-01T23:59:55Z",
      "firstTimestamp": "2026-01-01T23:59:00Z", "count": 3, "reportingComponent": "tahoma",
      "involvedObject": {"kind": "Pod", "name": "p"}})"),
            ParseJson(R"(["5s", "Warning", "FailedScheduling", "pod/p", "", "tahoma", "no", "60s",
                            "3", "e"])"));
}

TEST(TableTest, EveryRowHasOneCellPerColumn) {
  const auto kinds = Kinds();
  for (const auto& kind : kinds->kinds()) {
    EXPECT_EQ(Row(*kind, R"({"metadata": {"name": "a"}})").size(), kind->columns.size())
        << kind->resource();
  }
}

TEST(HumanAgeTest, HasTheSteps) {
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  const std::vector<std::pair<std::chrono::nanoseconds, const char*>> steps = {
      {seconds(-5), "<invalid>"}, {seconds(-1), "0s"},       {seconds(0), "0s"},
      {seconds(119), "119s"},     {seconds(120), "2m"},      {seconds(125), "2m5s"},
      {minutes(10), "10m"},       {minutes(179), "179m"},    {minutes(180), "3h"},
      {minutes(185), "3h5m"},     {hours(8), "8h"},          {hours(47), "47h"},
      {hours(48), "2d"},          {hours(49), "2d1h"},       {hours(24 * 8), "8d"},
      {hours(24 * 400), "400d"},  {hours(24 * 731), "2y1d"}, {hours(24 * 365 * 9), "9y"}};
  for (const auto& [age, text] : steps) EXPECT_EQ(HumanAge(age), text);
}

TEST(FindPathTest, ReadsFieldsIndicesAndFilters) {
  const Json object = ParseJson(R"({"a": {"b.c": 1, "d": [10, 20, {"e": 30}]},
    "l": [{"t": "x", "v": 1}, {"t": "y", "v": 2}]})");
  const auto first = [&](const char* path) {
    const auto found = FindPath(object, path);
    return found.empty() ? Json("none") : *found.front();
  };
  EXPECT_EQ(first(".a['b.c']"), 1);
  EXPECT_EQ(first(".a.b\\.c"), 1);
  EXPECT_EQ(first(".a.d[1]"), 20);
  EXPECT_EQ(first(".a.d[-1].e"), 30);
  EXPECT_EQ(first(".l[?(@.t==\"y\")].v"), 2);
  EXPECT_EQ(first(".l[?(@.t=='x')].v"), 1);
  EXPECT_EQ(FindPath(object, ".l[*].v").size(), 2U);
  for (const char* nothing : {".x", ".a.d[9]", ".a[", ".l[?(@.t)]", "a", ".l[x]"}) {
    EXPECT_TRUE(FindPath(object, nothing).empty()) << nothing;
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
