// Jobs are tried on random ends of pods, lost writes and deletions. The oracle counts the ends as
// they happen.

#include "controller/apiserver/controllers/workloads/job_rules.h"
#include "tests/unit/controller/apiserver/controllers/workloads/small_cluster.h"

namespace tahoma::controller::apiserver {
namespace {

Decision SyncJobOf(const SmallCluster& cluster) {
  return SyncJob(cluster.Get(kJobs, "a"), cluster.All(kube::kPods), cluster.now());
}

// Decides and writes until nothing is left to write.
void Settle(SmallCluster& cluster) {
  for (int i = 0; i < 50 && !cluster.Get(kJobs, "a").is_null(); ++i) {
    const Decision decision = SyncJobOf(cluster);
    if (decision.writes.empty()) return;
    cluster.Take(decision);
  }
  const Json job = cluster.Get(kJobs, "a");
  ASSERT_TRUE(job.is_null()) << "the job never comes to rest: " << job;
}

Json JobOf(Json spec) { return WorkloadOf("Job", "a", std::move(spec)); }

Bodies ActivePods(const SmallCluster& cluster) {
  Bodies active = cluster.All(kube::kPods);
  std::erase_if(active, [](const auto& pod) { return !IsActive(*pod); });
  return active;
}

std::string FirstActive(const SmallCluster& cluster) {
  const Bodies active = ActivePods(cluster);
  return active.empty() ? "" : std::string(kube::NameOf(*active.front()));
}

std::int64_t StatusOf(const SmallCluster& cluster, const char* field) {
  return kube::IntAt(cluster.Get(kJobs, "a"), {"status", field});
}

std::string ReasonOf(const SmallCluster& cluster, const char* condition) {
  const Json job = cluster.Get(kJobs, "a");
  return std::string(kube::StringAt(ConditionOf(job, condition), {"reason"}));
}

class AnyJob : public ::testing::TestWithParam<unsigned> {};

// One step of a world in which pods run, end and are deleted, and writes are lost.
class Life {
 public:
  Life(unsigned seed, Json spec) : cluster_(seed), parallelism_(spec["parallelism"]) {
    cluster_.Put(kJobs, JobOf(std::move(spec)));
  }

  void Step() {
    cluster_.Advance(std::chrono::seconds(cluster_.Below(20)));
    const Json before = cluster_.Get(kJobs, "a");
    const Decision decision = SyncJobOf(cluster_);
    CheckCreated(before, decision);
    cluster_.Take(decision, 70);
    EXPECT_LE(static_cast<std::int64_t>(ActivePods(cluster_).size()), parallelism_);
    for (const auto& pod : cluster_.All(kube::kPods)) Move(*pod);
  }

  bool IsOver() const {
    const Json job = cluster_.Get(kJobs, "a");
    return IsTrue(job, "Complete") || IsTrue(job, "Failed");
  }

  SmallCluster& cluster() { return cluster_; }
  std::size_t succeeded() const { return succeeded_.size(); }
  std::size_t failed() const { return failed_.size(); }

 private:
  void CheckCreated(const Json& job, const Decision& decision) {
    const IndexSet done = ParseIndexes(kube::StringAt(job, {"status", "completedIndexes"}), 1000);
    for (const Write& write : decision.writes) {
      if (write.verb != Write::Verb::kCreate) continue;
      if (const auto index = CompletionIndexOf(*write.object)) {
        EXPECT_FALSE(done.contains(*index)) << "index " << *index << " was complete";
      }
    }
  }

  void Move(const Json& pod) {
    const std::string name(kube::NameOf(pod));
    const std::string uid(kube::UidOf(pod));
    if (HasPhase(pod, "Pending") && !kube::IsBeingDeleted(pod) && cluster_.Chance(70)) {
      cluster_.Run(name);
    } else if (HasPhase(pod, "Running") && cluster_.Chance(50)) {
      const bool good = cluster_.Chance(80);
      // A pod whose deletion was counted as a failure is no longer tracked.
      if (kube::HasFinalizer(pod, kJobTracking) && !kube::IsBeingDeleted(pod)) {
        (good ? succeeded_ : failed_).insert(uid);
      }
      cluster_.End(name, good ? 0 : 1);
    }
  }

  SmallCluster cluster_;
  std::int64_t parallelism_;
  std::set<std::string> succeeded_;  // uids
  std::set<std::string> failed_;
};

TEST_P(AnyJob, CountsEachEndOnceAndNeverRunsTooManyPods) {
  Life life(GetParam(), {{"parallelism", 3}, {"completions", 7}, {"backoffLimit", 100}});
  for (int i = 0; i < 2000 && !life.IsOver(); ++i) life.Step();
  ASSERT_TRUE(life.IsOver()) << life.cluster().Get(kJobs, "a");
  EXPECT_EQ(StatusOf(life.cluster(), "succeeded"), life.succeeded());
  EXPECT_EQ(StatusOf(life.cluster(), "failed"), life.failed());
  EXPECT_GE(life.succeeded(), 7U);
}

TEST_P(AnyJob, CompletesEachIndexOnce) {
  Life life(GetParam(), {{"parallelism", 4},
                         {"completions", 9},
                         {"backoffLimit", 100},
                         {"completionMode", "Indexed"}});
  for (int i = 0; i < 2000 && !life.IsOver(); ++i) life.Step();
  ASSERT_TRUE(life.IsOver()) << life.cluster().Get(kJobs, "a");
  EXPECT_EQ(StatusOf(life.cluster(), "succeeded"), 9);
  EXPECT_EQ(kube::StringAt(life.cluster().Get(kJobs, "a"), {"status", "completedIndexes"}), "0-8");
  EXPECT_EQ(StatusOf(life.cluster(), "failed"), life.failed());
}

TEST_P(AnyJob, FailsAnIndexAfterItsOwnLimit) {
  Life life(GetParam(), {{"parallelism", 4},
                         {"completions", 6},
                         {"backoffLimit", 2147483647},
                         {"backoffLimitPerIndex", 1},
                         {"completionMode", "Indexed"}});
  for (int i = 0; i < 3000 && !life.IsOver(); ++i) life.Step();
  const Json job = life.cluster().Get(kJobs, "a");
  ASSERT_TRUE(life.IsOver()) << job;
  const IndexSet done = ParseIndexes(kube::StringAt(job, {"status", "completedIndexes"}), 6);
  const IndexSet failed = ParseIndexes(kube::StringAt(job, {"status", "failedIndexes"}), 6);
  EXPECT_EQ(done.size() + failed.size(), 6U) << job;
  EXPECT_EQ(IsTrue(job, "Failed"), !failed.empty());
  EXPECT_EQ(StatusOf(life.cluster(), "failed"), life.failed());
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyJob, ::testing::Range(0U, 40U));

TEST(JobTest, TheNextTryOfAFailedPodWaitsLongerEachTime) {
  SmallCluster cluster;
  cluster.Put(kJobs, JobOf({{"parallelism", 1}, {"completions", 1}, {"backoffLimit", 6}}));
  for (const int seconds : {10, 20, 40}) {
    Settle(cluster);
    cluster.Run(FirstActive(cluster));
    cluster.End(FirstActive(cluster), 1);
    Settle(cluster);
    EXPECT_TRUE(ActivePods(cluster).empty());
    EXPECT_EQ(SyncJobOf(cluster).again, cluster.now() + std::chrono::seconds(seconds));
    cluster.Advance(std::chrono::seconds(seconds));
    Settle(cluster);
    EXPECT_EQ(ActivePods(cluster).size(), 1U);
  }
}

TEST(JobTest, AJobFailsWhenItsBackoffLimitIsExceeded) {
  SmallCluster cluster;
  cluster.Put(kJobs, JobOf({{"parallelism", 1}, {"completions", 1}, {"backoffLimit", 0}}));
  Settle(cluster);
  cluster.End(FirstActive(cluster), 1);
  Settle(cluster);
  EXPECT_EQ(ReasonOf(cluster, "FailureTarget"), "BackoffLimitExceeded");
  EXPECT_EQ(ReasonOf(cluster, "Failed"), "BackoffLimitExceeded");
  EXPECT_EQ(StatusOf(cluster, "failed"), 1);
}

TEST(JobTest, APodFailurePolicyEndsTheJobOrForgivesThePod) {
  const Json policy = ParseJson(
      R"({"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}},
                   {"action":"Ignore","onExitCodes":{"operator":"In","values":[7]}}]})");
  SmallCluster cluster;
  cluster.Put(kJobs, JobOf({{"parallelism", 1},
                            {"completions", 1},
                            {"backoffLimit", 0},
                            {"podFailurePolicy", policy}}));
  Settle(cluster);
  cluster.End(FirstActive(cluster), 7);
  cluster.Advance(std::chrono::seconds(10));
  Settle(cluster);
  EXPECT_EQ(ActivePods(cluster).size(), 1U);
  EXPECT_EQ(StatusOf(cluster, "failed"), 0);
  cluster.End(FirstActive(cluster), 42);
  Settle(cluster);
  EXPECT_EQ(ReasonOf(cluster, "Failed"), "PodFailurePolicy");
  EXPECT_NE(cluster.Get(kJobs, "a")
                .dump()
                .find("failed with exit code 42 matching FailJob rule at index 0"),
            std::string::npos);
}

TEST(JobTest, ASuccessPolicyEndsTheJobBeforeAllIndexesAreDone) {
  SmallCluster cluster;
  cluster.Put(kJobs,
              JobOf({{"parallelism", 3},
                     {"completions", 3},
                     {"completionMode", "Indexed"},
                     {"successPolicy", ParseJson(R"({"rules":[{"succeededIndexes":"0"}]})")}}));
  Settle(cluster);
  for (const auto& pod : ActivePods(cluster)) cluster.Run(std::string(kube::NameOf(*pod)));
  for (const auto& pod : ActivePods(cluster)) {
    if (CompletionIndexOf(*pod) == 0) cluster.End(std::string(kube::NameOf(*pod)), 0);
  }
  Settle(cluster);
  EXPECT_EQ(ReasonOf(cluster, "SuccessCriteriaMet"), "SuccessPolicy");
  EXPECT_EQ(ReasonOf(cluster, "Complete"), "") << "two pods have not ended yet";
  for (const auto& pod : cluster.All(kube::kPods)) {
    if (IsTerminating(*pod)) cluster.End(std::string(kube::NameOf(*pod)), 1);
  }
  Settle(cluster);
  EXPECT_EQ(ReasonOf(cluster, "Complete"), "SuccessPolicy");
}

TEST(JobTest, ASuspendedJobHasNoPodsAndStartsItsClockAnew) {
  SmallCluster cluster;
  cluster.Put(kJobs, JobOf({{"parallelism", 2}, {"completions", 2}, {"suspend", true}}));
  Settle(cluster);
  EXPECT_TRUE(cluster.All(kube::kPods).empty());
  EXPECT_EQ(ReasonOf(cluster, "Suspended"), "JobSuspended");
  EXPECT_FALSE(cluster.Get(kJobs, "a")["status"].contains("startTime"));
  const auto suspend = [&](bool value) {
    Json job = cluster.Get(kJobs, "a");
    job["spec"]["suspend"] = value;
    cluster.Put(kJobs, std::move(job));
    Settle(cluster);
  };
  suspend(false);
  EXPECT_EQ(ActivePods(cluster).size(), 2U);
  EXPECT_TRUE(cluster.Get(kJobs, "a")["status"].contains("startTime"));
  EXPECT_EQ(ReasonOf(cluster, "Suspended"), "JobResumed");
  suspend(true);
  EXPECT_TRUE(cluster.All(kube::kPods).empty());
  EXPECT_EQ(StatusOf(cluster, "failed"), 0) << "a suspended pod has not failed";
}

TEST(JobTest, AJobEndsAtItsDeadlineAndGoesAfterItsTime) {
  SmallCluster cluster;
  cluster.Put(kJobs, JobOf({{"parallelism", 1},
                            {"completions", 1},
                            {"activeDeadlineSeconds", 60},
                            {"ttlSecondsAfterFinished", 5}}));
  Settle(cluster);
  EXPECT_EQ(SyncJobOf(cluster).again, cluster.now() + std::chrono::seconds(60));
  cluster.Advance(std::chrono::seconds(60));
  Settle(cluster);
  EXPECT_EQ(ReasonOf(cluster, "Failed"), "DeadlineExceeded");
  cluster.Advance(std::chrono::seconds(5));
  Settle(cluster);
  EXPECT_TRUE(cluster.Get(kJobs, "a").is_null());
}

TEST(JobTest, AJobOfAnotherControllerIsLeftAlone) {
  SmallCluster cluster;
  cluster.Put(kJobs, JobOf({{"managedBy", "kueue.x-k8s.io/multikueue"}}));
  EXPECT_TRUE(SyncJobOf(cluster).writes.empty());
}

TEST(JobTest, APodOfAnIndexKnowsItsIndex) {
  SmallCluster cluster;
  cluster.Put(kJobs,
              JobOf({{"parallelism", 1}, {"completions", 1}, {"completionMode", "Indexed"}}));
  Settle(cluster);
  const Json pod = *cluster.All(kube::kPods).front();
  EXPECT_TRUE(kube::NameOf(pod).starts_with("a-0-"));
  EXPECT_EQ(pod["spec"]["hostname"], "a-0");
  EXPECT_EQ(kube::LabelOf(pod, "batch.kubernetes.io/job-completion-index"), "0");
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
}

TEST(IndexSetTest, IsWrittenAsKubernetesWritesIndexes) {
  for (const char* text : {"", "0", "0,1", "0-2", "1,3-5,7,8", "0,2,4"}) {
    EXPECT_EQ(FormatIndexes(ParseIndexes(text, 100)), text);
  }
  EXPECT_EQ(FormatIndexes(ParseIndexes("0-99,x,-1,3-", 3)), "0-2");
}

}  // namespace
}  // namespace tahoma::controller::apiserver
