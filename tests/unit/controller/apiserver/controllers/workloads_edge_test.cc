// Workloads on a real API server in this process: what the decisions write is admitted, and events
// of pods lead to the next decision. The decisions themselves are tested in workloads/.

#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "tests/unit/controller/apiserver/controllers/controllers_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr char kJobsPath[] = "/apis/batch/v1/namespaces/default/jobs";
constexpr char kDeploymentsPath[] = "/apis/apps/v1/namespaces/default/deployments";

class WorkloadsEdgeTest : public ControllersTest {
 protected:
  Json Template(const char* restart) const {
    return {{"metadata", {{"labels", {{"app", "a"}}}}},
            {"spec",
             {{"restartPolicy", restart},
              {"containers", Json::array({{{"name", "c"}, {"image", "i"}}})}}}};
  }
  Json Pods() { return Get(kPods)["items"]; }
  void End(const Json& pod, const char* phase) {
    Call("PATCH", kPods + "/" + pod["metadata"]["name"].get<std::string>() + "/status",
         {{"status", {{"phase", phase}}}}, "application/merge-patch+json");
    EXPECT_EQ(status_, 200);
  }
};

TEST_F(WorkloadsEdgeTest, AJobThatIsInterruptedAtEachStepStillCountsEachPodOnce) {
  Call("POST", kJobsPath,
       {{"metadata", {{"name", "j"}}},
        {"spec", {{"completions", 3}, {"parallelism", 2}, {"template", Template("Never")}}}});
  ASSERT_EQ(status_, 201);
  for (int i = 0; i < 30; ++i) {
    Restart();  // after each piece of work
    controllers_->Step(clock_.WallNow(), 1);
    Restart();
    Step();
    for (const Json& pod : Pods()) {
      if (pod["status"]["phase"] == "Pending") {
        End(pod, "Succeeded");
        break;
      }
    }
  }
  const Json job = Get(std::string(kJobsPath) + "/j");
  EXPECT_EQ(job["status"]["succeeded"], 3) << job["status"];
  EXPECT_EQ(Pods().size(), 3U);
  for (const Json& pod : Pods()) EXPECT_TRUE(kube::FinalizersOf(pod).empty());
}

TEST_F(WorkloadsEdgeTest, PodsOfADeletedJobDoNotWaitToBeCounted) {
  Call("POST", kJobsPath,
       {{"metadata", {{"name", "j"}}}, {"spec", {{"template", Template("Never")}}}});
  Step();
  EXPECT_EQ(Pods().size(), 1U);
  Call("DELETE", std::string(kJobsPath) + "/j", {{"propagationPolicy", "Background"}});
  Step();
  EXPECT_TRUE(Pods().empty());
}

TEST_F(WorkloadsEdgeTest, ADeploymentThatIsDeletedTakesItsPodsAlong) {
  Call("POST", kDeploymentsPath,
       {{"metadata", {{"name", "d"}}},
        {"spec",
         {{"replicas", 2},
          {"selector", {{"matchLabels", {{"app", "a"}}}}},
          {"template", Template("Always")}}}});
  ASSERT_EQ(status_, 201);
  Step();
  EXPECT_EQ(Pods().size(), 2U);
  Call("DELETE", std::string(kDeploymentsPath) + "/d", {{"propagationPolicy", "Background"}});
  Step();
  EXPECT_TRUE(Pods().empty());
}

TEST_F(WorkloadsEdgeTest, AClaimOfTheDefaultClassIsBoundInUseProtectedAndItsFolderRemoved) {
  std::vector<std::string> removed;
  const auto restart = [&] {
    Restart({.volume_folder = "/state/volumes", .remove_folder = [&](const std::string& folder) {
               removed.push_back(folder);
               return removed.size() == 1 ? Unavailable("{} is busy", folder) : absl::OkStatus();
             }});
  };
  restart();
  Call("POST", "/apis/storage.k8s.io/v1/storageclasses",
       {{"metadata",
         {{"name", "standard"},
          {"annotations", {{"storageclass.kubernetes.io/is-default-class", "true"}}}}},
        {"provisioner", kHostPathProvisioner}});
  ASSERT_EQ(status_, 201);
  const std::string claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  Call("POST", claims,
       {{"metadata", {{"name", "data"}}},
        {"spec",
         {{"accessModes", {"ReadWriteOnce"}},
          {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}});
  ASSERT_EQ(status_, 201);
  for (int i = 0; i < 10; ++i) {
    restart();  // after each piece of work
    controllers_->Step(clock_.WallNow(), 1);
  }
  Step();
  const Json claim = Get(claims + "/data");
  EXPECT_EQ(claim["spec"]["storageClassName"], "standard");
  EXPECT_EQ(claim["status"]["phase"], "Bound") << claim;
  const std::string volume =
      "/api/v1/persistentvolumes/" + claim["spec"]["volumeName"].get<std::string>();
  EXPECT_EQ(Get(volume)["status"]["phase"], "Bound");

  Json pod = {
      {"metadata", {{"name", "p"}}},
      {"spec",
       {{"containers", Json::array({{{"name", "c"}, {"image", "i"}}})},
        {"volumes",
         Json::array({{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}})}}}};
  Call("POST", kPods, pod);
  Bind("p");
  Call("DELETE", claims + "/data");
  Step();
  EXPECT_TRUE(Exists(claims + "/data"));
  SetPhase("p", "Succeeded");
  Step();
  EXPECT_FALSE(Exists(claims + "/data"));
  EXPECT_TRUE(Exists(volume)) << "its folder could not be removed";
  clock_.Advance(std::chrono::minutes(5));
  Step();
  EXPECT_FALSE(Exists(volume));
  EXPECT_EQ(removed[0], "/state/volumes/" + claim["spec"]["volumeName"].get<std::string>());
}

TEST_F(WorkloadsEdgeTest, AnEphemeralVolumeHasAClaimThatGoesWithItsPod) {
  const std::string claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  const Json form = {
      {"metadata", {{"labels", {{"for", "p"}}}}},
      {"spec",
       {{"accessModes", {"ReadWriteOnce"}}, {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}};
  Call("POST", kPods,
       {{"metadata", {{"name", "p"}}},
        {"spec",
         {{"containers", Json::array({{{"name", "c"}, {"image", "i"}}})},
          {"volumes",
           Json::array({{{"name", "tmp"}, {"ephemeral", {{"volumeClaimTemplate", form}}}}})}}}});
  ASSERT_EQ(status_, 201);
  Step();
  const Json claim = Get(claims + "/p-tmp");
  ASSERT_EQ(status_, 200);
  EXPECT_EQ(claim["metadata"]["labels"]["for"], "p");
  EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["name"], "p");
  Call("DELETE", kPods + "/p", {{"gracePeriodSeconds", 0}});
  Step();
  EXPECT_FALSE(Exists(claims + "/p-tmp"));
}

TEST_F(WorkloadsEdgeTest, EvictionsOfABudgetsPodsWaitUntilThePodsAreReplaced) {
  Call("POST", kDeploymentsPath,
       {{"metadata", {{"name", "d"}}},
        {"spec",
         {{"replicas", 2},
          {"selector", {{"matchLabels", {{"app", "a"}}}}},
          {"template", Template("Always")}}}});
  Call("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
       {{"metadata", {{"name", "b"}}},
        {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "a"}}}}}}}});
  ASSERT_EQ(status_, 201);
  const auto run = [&] {
    clock_.Advance(std::chrono::seconds(1));
    Step();
    for (const Json& pod : Pods()) {
      Call("PATCH", kPods + "/" + pod["metadata"]["name"].get<std::string>() + "/status",
           {{"status",
             {{"phase", "Running"},
              {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}},
           "application/merge-patch+json");
    }
    for (int i = 0; i < 2; ++i) {
      clock_.Advance(std::chrono::seconds(1));
      Step();
    }
  };
  run();
  const Json pods = Pods();
  ASSERT_EQ(pods.size(), 2U);
  const auto evict = [&](const Json& pod) {
    const std::string name = pod["metadata"]["name"];
    Call("POST", kPods + "/" + name + "/eviction", {{"metadata", {{"name", name}}}});
    return status_;
  };
  EXPECT_EQ(evict(pods[0]), 201);
  EXPECT_EQ(evict(pods[1]), 429);
  run();
  EXPECT_EQ(evict(pods[1]), 201);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
