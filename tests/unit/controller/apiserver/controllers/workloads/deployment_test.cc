// Deployments and ReplicaSets together, on pods that become ready in a random order. The oracle is
// the promise of a rolling update: never too many pods, never too few that are available.

#include "lib/kube/field.h"
#include "tests/unit/controller/apiserver/controllers/workloads/small_cluster.h"

namespace tahoma::controller::apiserver {
namespace {

class Rollout {
 public:
  explicit Rollout(unsigned seed, Json strategy = nullptr, int replicas = 5) : cluster_(seed) {
    Json spec = {{"replicas", replicas}, {"progressDeadlineSeconds", 600}};
    if (!strategy.is_null()) spec["strategy"] = std::move(strategy);
    cluster_.Put(kDeployments, WorkloadOf("Deployment", "web", std::move(spec)));
  }

  Json deployment() const { return cluster_.Get(kDeployments, "web"); }
  SmallCluster& cluster() { return cluster_; }

  void Change(const std::function<void(Json& spec)>& edit) {
    Json next = deployment();
    edit(next["spec"]);
    next["metadata"]["generation"] = kube::GenerationOf(next) + 1;
    cluster_.Put(kDeployments, std::move(next));
  }
  void SetImage(const char* image) {
    Change([&](Json& spec) { spec["template"]["spec"]["containers"][0]["image"] = image; });
  }

  int Decide(int percent) {
    int taken = 0;
    const auto owned = [&](const Bodies& all, const Json& owner) {
      Bodies mine = all;
      std::erase_if(mine, [&](const auto& one) {
        const auto controller = kube::ControllerOf(*one);
        return controller && controller->uid != kube::UidOf(owner);
      });
      return mine;
    };
    taken += cluster_.Take(SyncDeployment(deployment(), cluster_.All(kReplicaSets),
                                          cluster_.All(kube::kPods), cluster_.now()),
                           percent);
    for (const auto& set : cluster_.All(kReplicaSets)) {
      taken += cluster_.Take(
          SyncReplicaSet(*set, owned(cluster_.All(kube::kPods), *set), cluster_.now()), percent);
    }
    return taken;
  }

  // Returns whether anything happened.
  bool Step(int percent = 70) {
    bool moved = Decide(percent) > 0;
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
    cluster_.Advance(std::chrono::seconds(1));
    return moved;
  }

  void Finish() {
    for (int i = 0; i < 1000; ++i) {
      if (!Step(100)) return;
    }
    FAIL() << "the roll-out never comes to rest: " << deployment();
  }

  std::int64_t CountPods(bool available) const {
    std::int64_t count = 0;
    for (const auto& pod : cluster_.All(kube::kPods)) {
      count += IsActive(*pod) && (!available || IsTrue(*pod, "Ready")) ? 1 : 0;
    }
    return count;
  }
  std::int64_t CountPodsOf(const std::string& image) const {
    std::int64_t count = 0;
    for (const auto& pod : cluster_.All(kube::kPods)) {
      count += IsActive(*pod) && (*pod)["spec"]["containers"][0]["image"] == image ? 1 : 0;
    }
    return count;
  }

 private:
  SmallCluster cluster_;
};

class AnyRollout : public ::testing::TestWithParam<unsigned> {};

TEST_P(AnyRollout, KeepsItsPromisesAtEachStep) {
  Rollout rollout(GetParam(), {{"type", "RollingUpdate"},
                               {"rollingUpdate", {{"maxSurge", 2}, {"maxUnavailable", "40%"}}}});
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("i"), 5);
  rollout.SetImage("j");
  for (int i = 0; i < 500; ++i) {
    rollout.Step();
    EXPECT_LE(rollout.CountPods(false), 5 + 2);
    EXPECT_GE(rollout.CountPods(true), 5 - 2);
  }
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("j"), 5);
  EXPECT_EQ(rollout.CountPods(false), 5);
  const Json deployment = rollout.deployment();
  EXPECT_EQ(kube::StringAt(ConditionOf(deployment, "Progressing"), {"reason"}),
            "NewReplicaSetAvailable");
  EXPECT_EQ(kube::IntAt(deployment, {"status", "updatedReplicas"}), 5);
  EXPECT_EQ(kube::AnnotationOf(deployment, "deployment.kubernetes.io/revision"), "2");
}

TEST_P(AnyRollout, ARescaleDuringARolloutEndsAtTheNewSize) {
  Rollout rollout(GetParam());
  rollout.Finish();
  rollout.SetImage("j");
  for (unsigned i = 0; i < GetParam() % 7; ++i) rollout.Step();
  rollout.Change([](Json& spec) { spec["replicas"] = 9; });
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("j"), 9);
  EXPECT_EQ(rollout.CountPods(false), 9);
}

TEST_P(AnyRollout, RecreateNeverRunsTwoTemplatesAtOnce) {
  Rollout rollout(GetParam(), {{"type", "Recreate"}});
  rollout.Finish();
  rollout.SetImage("j");
  for (int i = 0; i < 300; ++i) {
    rollout.Step();
    EXPECT_TRUE(rollout.CountPodsOf("i") == 0 || rollout.CountPodsOf("j") == 0);
  }
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("j"), 5);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyRollout, ::testing::Range(0U, 25U));

TEST(DeploymentTest, AnOldTemplateTakesItsReplicaSetAgainWithANewRevision) {
  Rollout rollout(1);
  rollout.Finish();
  rollout.SetImage("j");
  rollout.Finish();
  rollout.SetImage("i");
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("i"), 5);
  const Bodies sets = rollout.cluster().All(kReplicaSets);
  ASSERT_EQ(sets.size(), 2U);
  std::set<std::string> revisions;
  for (const auto& set : sets) {
    revisions.insert(std::string(*kube::AnnotationOf(*set, "deployment.kubernetes.io/revision")));
  }
  EXPECT_EQ(revisions, (std::set<std::string>{"2", "3"}));
}

TEST(DeploymentTest, ForgetsTheOldestTemplatesBeyondItsLimit) {
  Rollout rollout(1);
  rollout.Change([](Json& spec) { spec["revisionHistoryLimit"] = 1; });
  for (const char* image : {"a", "b", "c", "d"}) {
    rollout.SetImage(image);
    rollout.Finish();
  }
  EXPECT_EQ(rollout.cluster().All(kReplicaSets).size(), 2U);
}

TEST(DeploymentTest, APausedDeploymentGrowsButRollsNothingOut) {
  Rollout rollout(1);
  rollout.Finish();
  rollout.Change([](Json& spec) { spec["paused"] = true; });
  rollout.SetImage("j");
  rollout.Change([](Json& spec) { spec["replicas"] = 7; });
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("i"), 7);
  rollout.Change([](Json& spec) { spec["paused"] = false; });
  rollout.Finish();
  EXPECT_EQ(rollout.CountPodsOf("j"), 7);
}

TEST(DeploymentTest, ARolloutWithoutProgressTimesOut) {
  Rollout rollout(1);
  rollout.Finish();
  rollout.SetImage("j");
  for (int i = 0; i < 20; ++i) rollout.Decide(100);  // the new pods never become ready
  rollout.cluster().Advance(std::chrono::seconds(601));
  rollout.Decide(100);
  const Json deployment = rollout.deployment();
  EXPECT_EQ(kube::StringAt(ConditionOf(deployment, "Progressing"), {"reason"}),
            "ProgressDeadlineExceeded");
  EXPECT_TRUE(IsTrue(deployment, "Available"));
}

TEST(ReplicaSetTest, AdoptsAPodWithoutAControllerAndLetsGoOneThatNoLongerMatches) {
  SmallCluster cluster;
  Json set = WorkloadOf("ReplicaSet", "web", {{"replicas", 1}});
  cluster.Put(kReplicaSets, set);
  cluster.Create(kube::kPods, {{"metadata", {{"name", "mine"}, {"labels", {{"app", "web"}}}}}});
  const auto sync = [&] {
    for (int i = 0; i < 5; ++i) {
      cluster.Take(SyncReplicaSet(cluster.Get(kReplicaSets, "web"), cluster.All(kube::kPods),
                                  cluster.now()));
    }
  };
  sync();
  EXPECT_EQ(kube::ControllerOf(cluster.Get(kube::kPods, "mine"))->uid, "owner");
  EXPECT_EQ(cluster.All(kube::kPods).size(), 1U);
  Json pod = cluster.Get(kube::kPods, "mine");
  pod["metadata"]["labels"]["app"] = "other";
  cluster.Put(kube::kPods, pod);
  sync();
  EXPECT_EQ(kube::ControllerOf(cluster.Get(kube::kPods, "mine")), std::nullopt);
  EXPECT_EQ(cluster.All(kube::kPods).size(), 2U);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
