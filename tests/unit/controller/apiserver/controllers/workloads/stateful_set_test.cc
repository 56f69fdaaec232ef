// StatefulSets and DaemonSets on pods that become ready in a random order, with lost writes;
// budgets and Endpoints by examples.

#include "tests/unit/controller/apiserver/controllers/workloads/small_cluster.h"

namespace tahoma::controller::apiserver {
namespace {

class Set {
 public:
  Set(unsigned seed, Json spec) : cluster_(seed) {
    spec["serviceName"] = "db";
    cluster_.Put(kStatefulSets, WorkloadOf("StatefulSet", "db", std::move(spec)));
  }

  SmallCluster& cluster() { return cluster_; }
  Json set() const { return cluster_.Get(kStatefulSets, "db"); }
  void Change(const std::function<void(Json& spec)>& edit) {
    Json next = set();
    edit(next["spec"]);
    cluster_.Put(kStatefulSets, std::move(next));
  }

  bool Step(int percent) {
    const ClaimLookup claims = [&](const std::string& name) {
      const Json claim = cluster_.Get(kube::kVolumeClaims, name);
      return claim.is_null() ? nullptr : std::make_shared<const Json>(claim);
    };
    bool moved = cluster_.Take(SyncStatefulSet(set(), cluster_.All(kube::kPods),
                                               cluster_.All(kRevisions), claims, cluster_.now()),
                               percent) > 0;
    for (const auto& pod : cluster_.All(kube::kPods)) {
      const std::string name(kube::NameOf(*pod));
      if (kube::IsBeingDeleted(*pod)) {
        cluster_.End(name, 1);
      } else if (HasPhase(*pod, "Pending") && cluster_.Chance(50)) {
        cluster_.Run(name);
      } else {
        moved |= HasPhase(*pod, "Pending");
        continue;
      }
      moved = true;
    }
    return moved;
  }
  void Finish() {
    for (int i = 0; i < 1000; ++i) {
      if (!Step(100)) return;
    }
    FAIL() << "the set never comes to rest: " << set();
  }

  std::string Images() const {
    std::string images;
    for (const auto& pod : cluster_.All(kube::kPods)) {
      images += fmt::format("{}={} ", kube::NameOf(*pod),
                            (*pod)["spec"]["containers"][0]["image"].get<std::string>());
    }
    return images;
  }
  int CountReady() const {
    int ready = 0;
    for (const auto& pod : cluster_.All(kube::kPods)) {
      ready += IsActive(*pod) && IsTrue(*pod, "Ready") ? 1 : 0;
    }
    return ready;
  }

 private:
  SmallCluster cluster_;
};

class AnySet : public ::testing::TestWithParam<unsigned> {};

TEST_P(AnySet, StartsItsPodsInOrderAndReplacesThemOneByOne) {
  Set set(GetParam(), {{"replicas", 3}, {"ordinals", {{"start", 5}}}});
  for (int i = 0; i < 200; ++i) {
    set.Step(60);
    // A pod runs only after those of lower numbers.
    EXPECT_EQ(set.CountReady() + 1 >= static_cast<int>(set.cluster().All(kube::kPods).size()),
              true);
  }
  set.Finish();
  EXPECT_EQ(set.Images(), "db-5=i db-6=i db-7=i ");
  set.Change([](Json& spec) { spec["template"]["spec"]["containers"][0]["image"] = "j"; });
  for (int i = 0; i < 200; ++i) {
    set.Step(60);
    EXPECT_GE(set.CountReady(), 2);
  }
  set.Finish();
  EXPECT_EQ(set.Images(), "db-5=j db-6=j db-7=j ");
  const Json status = set.set()["status"];
  EXPECT_EQ(status["currentRevision"], status["updateRevision"]);
  EXPECT_EQ(status["readyReplicas"], 3);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnySet, ::testing::Range(0U, 25U));

TEST(StatefulSetTest, APartitionKeepsTheLowerPodsAtTheirRevision) {
  Set set(1, {{"replicas", 3}, {"updateStrategy", {{"rollingUpdate", {{"partition", 2}}}}}});
  set.Finish();
  set.Change([](Json& spec) { spec["template"]["spec"]["containers"][0]["image"] = "j"; });
  set.Finish();
  EXPECT_EQ(set.Images(), "db-0=i db-1=i db-2=j ");
  set.cluster().Delete(kube::kPods, "db-0");
  set.Finish();
  EXPECT_EQ(set.Images(), "db-0=i db-1=i db-2=j ") << "a lost pod comes back as it was";
}

TEST(StatefulSetTest, ClaimsOfTemplatesAreMadeAndKeptOrGivenUp) {
  for (const bool keeps : {true, false}) {
    Set set(
        1, {{"replicas", 2},
            {"persistentVolumeClaimRetentionPolicy", {{"whenScaled", keeps ? "Retain" : "Delete"}}},
            {"volumeClaimTemplates",
             Json::array({{{"metadata", {{"name", "data"}}}, {"spec", Json::object()}}})}});
    set.Finish();
    const Json pod = set.cluster().Get(kube::kPods, "db-1");
    EXPECT_EQ(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-db-1");
    set.Change([](Json& spec) { spec["replicas"] = 1; });
    set.Finish();
    const Json claim = set.cluster().Get(kube::kVolumeClaims, "data-db-1");
    ASSERT_FALSE(claim.is_null());
    EXPECT_EQ(kube::OwnersOf(claim).empty(), keeps);
  }
}

Json NodeNamed(const char* name, const char* taint = nullptr) {
  Json node = {{"metadata", {{"name", name}}}, {"spec", Json::object()}};
  if (taint != nullptr) {
    node["spec"]["taints"] = Json::array({{{"key", taint}, {"effect", "NoSchedule"}}});
  }
  return node;
}

TEST(DaemonSetTest, HasAPodOnEachNodeThatItTolerates) {
  SmallCluster cluster;
  cluster.Put(kDaemonSets, WorkloadOf("DaemonSet", "d", Json::object()));
  cluster.Put(kube::kNodes, NodeNamed("a"));
  cluster.Put(kube::kNodes, NodeNamed("b", "gpu"));
  cluster.Put(kube::kNodes, NodeNamed("c", "node.kubernetes.io/unschedulable"));
  for (int i = 0; i < 5; ++i) {
    cluster.Take(SyncDaemonSet(cluster.Get(kDaemonSets, "d"), cluster.All(kube::kPods),
                               cluster.All(kRevisions), cluster.All(kube::kNodes), cluster.now()),
                 60);
  }
  cluster.Take(SyncDaemonSet(cluster.Get(kDaemonSets, "d"), cluster.All(kube::kPods),
                             cluster.All(kRevisions), cluster.All(kube::kNodes), cluster.now()));
  EXPECT_EQ(cluster.All(kube::kPods).size(), 2U);
  EXPECT_EQ(kube::IntAt(cluster.Get(kDaemonSets, "d"), {"status", "desiredNumberScheduled"}), 2);
}

TEST(BudgetTest, CountsHowManyPodsMayGo) {
  SmallCluster cluster;
  Json budget = WorkloadOf("PodDisruptionBudget", "b", {{"minAvailable", "50%"}});
  cluster.Put(kBudgets, budget);
  for (const char* name : {"p", "q", "r"}) {
    cluster.Create(kube::kPods, {{"metadata", {{"name", name}, {"labels", {{"app", "b"}}}}}});
    cluster.Run(name);
  }
  cluster.Take(SyncBudget(cluster.Get(kBudgets, "b"), cluster.All(kube::kPods), 3, cluster.now()));
  const Json status = cluster.Get(kBudgets, "b")["status"];
  EXPECT_EQ(status["desiredHealthy"], 2);
  EXPECT_EQ(status["disruptionsAllowed"], 1);
}

TEST(EndpointsTest, NameReadyPodsAndThoseThatAreNot) {
  SmallCluster cluster;
  const Json service = ParseJson(
      R"({"metadata":{"name":"s","namespace":"default"},
          "spec":{"selector":{"app":"b"},"ports":[{"port":80,"targetPort":8080}]}})");
  for (const char* name : {"p", "q"}) {
    cluster.Create(kube::kPods, {{"metadata", {{"name", name}, {"labels", {{"app", "b"}}}}}});
    if (name == std::string("p")) cluster.Run(name);
    Json pod = cluster.Get(kube::kPods, name);
    pod["status"]["podIP"] = fmt::format("10.0.0.{}", name);
    cluster.Put(kube::kPods, pod);
  }
  const Decision made = SyncEndpoints(service, nullptr, cluster.All(kube::kPods));
  ASSERT_EQ(made.writes.size(), 1U);
  const Json subset = (*made.writes[0].object)["subsets"][0];
  EXPECT_EQ(subset["addresses"][0]["ip"], "10.0.0.p");
  EXPECT_EQ(subset["notReadyAddresses"][0]["ip"], "10.0.0.q");
  EXPECT_EQ(subset["ports"][0]["port"], 8080);
  EXPECT_TRUE(
      SyncEndpoints(service, made.writes[0].object.get(), cluster.All(kube::kPods)).writes.empty());
}

}  // namespace
}  // namespace tahoma::controller::apiserver
