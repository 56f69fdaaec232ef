// Deployments, Jobs and their neighbours: made complete, checked, scaled and shown. What a real
// server says of each mistake is compared in tests/cluster/conformance_workloads.py.

#include <gmock/gmock.h>

#include <string>

#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kApps = "/apis/apps/v1/namespaces/default/";
const std::string kDeployments = kApps + "deployments";
const std::string kJobs = "/apis/batch/v1/namespaces/default/jobs";
const std::string kMergePatch = "merge-patch+json";

class WorkloadsTest : public testing::ApiFixture {
 protected:
  static Json TemplateOf(const Json& labels) {
    return {{"metadata", {{"labels", labels}}},
            {"spec", {{"containers", {{{"name", "main"}, {"image", "i:1"}}}}}}};
  }
  static Json SetOf(const std::string& name) {
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"selector", {{"matchLabels", {{"app", "web"}}}}},
              {"template", TemplateOf({{"app", "web"}})}}}};
  }
  static Json JobOf(const std::string& name) {
    Json job = {{"metadata", {{"name", name}}}, {"spec", {{"template", TemplateOf({{"a", "b"}})}}}};
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never";
    return job;
  }
  Json CellsOf(const std::string& path) {
    const Answer table =
        Call("GET", path, "", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
    EXPECT_EQ(table.status, 200) << table.text;
    return table.body["rows"][0]["cells"];
  }
};

TEST_F(WorkloadsTest, ADeploymentIsMadeCompleteAndScales) {
  const Answer made = Call("POST", kDeployments, SetOf("web"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["spec"]["replicas"], 1);
  EXPECT_EQ(made.body["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
  EXPECT_FALSE(made.body["spec"]["template"]["spec"].contains("enableServiceLinks"));
  EXPECT_EQ(made.body["status"], Json::object());
  const std::string scale = kDeployments + "/web/scale";
  EXPECT_EQ(Call("GET", scale).body["status"]["selector"], "app=web");
  const Answer scaled = Patch(scale, kMergePatch, {{"spec", {{"replicas", 3}}}});
  EXPECT_EQ(scaled.body["spec"]["replicas"], 3) << scaled.text;
  const Json stored = Call("GET", kDeployments + "/web").body;
  EXPECT_EQ(stored["spec"]["replicas"], 3);
  EXPECT_EQ(stored["metadata"]["generation"], 2);
  EXPECT_EQ(CellsOf(kDeployments + "/web"),
            (Json{"web", "0/3", 0, 0, "0s", "main", "i:1", "app=web"}));
}

TEST_F(WorkloadsTest, AnAnnotationOfADeploymentCountsAsAChangeAndAStatusDoesNot) {
  ASSERT_EQ(Call("POST", kDeployments, SetOf("web")).status, 201);
  const Json annotated = {{"metadata", {{"annotations", {{"a", "b"}}}}}};
  EXPECT_EQ(Patch(kDeployments + "/web", kMergePatch, annotated).body["metadata"]["generation"], 2);
  const Answer told =
      Patch(kDeployments + "/web/status", kMergePatch, {{"status", {{"replicas", 1}}}});
  EXPECT_EQ(told.body["metadata"]["generation"], 2) << told.text;
  EXPECT_EQ(told.body["status"]["replicas"], 1);
}

TEST_F(WorkloadsTest, ASelectorMatchesItsTemplateAndStays) {
  Json other = SetOf("other");
  other["spec"]["selector"]["matchLabels"]["app"] = "none";
  const Answer refused = Call("POST", kDeployments, other);
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(), HasSubstr("`selector` does not match template `labels`"));
  ASSERT_EQ(Call("POST", kDeployments, SetOf("web")).status, 201);
  const Json more = {{"spec",
                      {{"selector", {{"matchLabels", {{"tier", "x"}}}}},
                       {"template", {{"metadata", {{"labels", {{"tier", "x"}}}}}}}}}};
  EXPECT_THAT(Patch(kDeployments + "/web", kMergePatch, more).message(),
              HasSubstr("field is immutable"));
}

TEST_F(WorkloadsTest, AJobSelectsItsPodsByItsOwnUid) {
  const Answer made = Call("POST", kJobs, JobOf("run"));
  ASSERT_EQ(made.status, 201) << made.text;
  const Json uid = made.body["metadata"]["uid"];
  const Json labels = {{"a", "b"},
                       {"batch.kubernetes.io/controller-uid", uid},
                       {"batch.kubernetes.io/job-name", "run"},
                       {"controller-uid", uid},
                       {"job-name", "run"}};
  EXPECT_EQ(made.body["spec"]["template"]["metadata"]["labels"], labels);
  EXPECT_EQ(made.body["metadata"]["labels"], labels);
  EXPECT_EQ(made.body["spec"]["selector"]["matchLabels"],
            (Json{{"batch.kubernetes.io/controller-uid", uid}}));
  EXPECT_EQ(made.body["spec"]["backoffLimit"], 6);
  EXPECT_THAT(Call("GET", kJobs + "?fieldSelector=status.successful%3D0").names(),
              ElementsAre("run"));
  EXPECT_EQ(CellsOf(kJobs + "/run")[1], "Running");
}

TEST_F(WorkloadsTest, AJobLeavesItsPodsBehindUnlessToldOtherwise) {
  ASSERT_EQ(Call("POST", kJobs, JobOf("a")).status, 201);
  const Answer kept = Call("DELETE", kJobs + "/a");
  EXPECT_EQ(kept.body["metadata"]["finalizers"], Json::array({"orphan"})) << kept.text;
  EXPECT_THAT(kept.header("Warning"), HasSubstr("child pods are preserved by default"));
  ASSERT_EQ(Call("POST", kJobs, JobOf("b")).status, 201);
  const Answer gone = Call("DELETE", kJobs + "/b?propagationPolicy=Background");
  EXPECT_EQ(gone.body["kind"], "Status");
  EXPECT_EQ(gone.header("Warning"), "");
}

TEST_F(WorkloadsTest, ADaemonSetCountsItsTemplates) {
  const std::string path = kApps + "daemonsets";
  const auto generation = [](const Answer& answer) {
    return answer.body["metadata"]["annotations"]["deprecated.daemonset.template.generation"];
  };
  EXPECT_EQ(generation(Call("POST", path, SetOf("agent"))), "1");
  const auto change = [&](const Json& spec) {
    return generation(Patch(path + "/agent", kMergePatch, {{"spec", spec}}));
  };
  EXPECT_EQ(change({{"minReadySeconds", 3}}), "1");
  EXPECT_EQ(change({{"template", {{"metadata", {{"labels", {{"v", "2"}}}}}}}}), "2");
}

TEST_F(WorkloadsTest, AStatefulSetKeepsItsServiceAndItsClaims) {
  const std::string path = kApps + "statefulsets";
  Json set = SetOf("db");
  set["spec"]["volumeClaimTemplates"] =
      Json::array({{{"metadata", {{"name", "data"}}},
                    {"spec",
                     {{"accessModes", {"ReadWriteOnce"}},
                      {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}});
  set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
      Json::array({{{"name", "data"}, {"mountPath", "/data"}}});
  const Answer made = Call("POST", path, set);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["spec"]["volumeClaimTemplates"][0]["status"]["phase"], "Pending");
  EXPECT_THAT(Patch(path + "/db", kMergePatch, {{"spec", {{"serviceName", "x"}}}}).message(),
              HasSubstr("updates to statefulset spec for fields other than"));
  EXPECT_EQ(Call("POST", path, SetOf("a.b")).status, 422);
}

TEST_F(WorkloadsTest, APatchReplacesTheSelectorOfABudget) {
  const std::string path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  const Json budget = {
      {"metadata", {{"name", "b"}}},
      {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"a", "b"}}}}}}}};
  ASSERT_EQ(Call("POST", path, budget).status, 201);
  const Json other = {{"spec", {{"selector", {{"matchLabels", {{"c", "d"}}}}}}}};
  EXPECT_EQ(Patch(path + "/b", "strategic-merge-patch+json", other).body["spec"]["selector"],
            (Json{{"matchLabels", {{"c", "d"}}}}));
  EXPECT_EQ(CellsOf(path + "/b"), (Json{"b", "1", "N/A", 0, "0s"}));
}

TEST_F(WorkloadsTest, EndpointsShowThreeAddresses) {
  const std::string path = "/api/v1/namespaces/default/endpoints";
  Json addresses = Json::array();
  for (int i = 1; i <= 5; ++i) addresses.push_back({{"ip", "10.0.0." + std::to_string(i)}});
  const Json endpoints = {{"metadata", {{"name", "e"}}},
                          {"subsets", {{{"addresses", addresses}, {"ports", {{{"port", 80}}}}}}}};
  ASSERT_EQ(Call("PUT", path + "/e", endpoints).status, 201);
  EXPECT_EQ(CellsOf(path + "/e")[1], "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...");
}

TEST_F(WorkloadsTest, AppliedContainersFollowThoseOfOthers) {
  const auto apply = [&](const std::string& manager, const std::string& container) {
    Json set = SetOf("web");
    set["apiVersion"] = "apps/v1";
    set["kind"] = "Deployment";
    set["spec"]["template"]["spec"]["containers"][0] = {{"name", container}, {"image", "i:1"}};
    return Patch(kDeployments + "/web?fieldManager=" + manager, "apply-patch+yaml", set);
  };
  ASSERT_EQ(apply("one", "main").status, 201);
  const Json containers = apply("two", "side").body["spec"]["template"]["spec"]["containers"];
  ASSERT_EQ(containers.size(), 2U);
  EXPECT_EQ(containers[0]["name"], "main");
  EXPECT_EQ(containers[1]["name"], "side");
}

}  // namespace
}  // namespace tahoma::controller::apiserver
