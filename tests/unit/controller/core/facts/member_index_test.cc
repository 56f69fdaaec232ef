// The rank that labels of pods ask for, by whoever made the pods.

#include "controller/core/facts/member_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tahoma::controller {
namespace {

std::optional<MemberIndex> Of(kube::Labels labels, const std::string& name = "p-7") {
  std::ranges::sort(labels);
  return IndexOf(labels, name);
}

TEST(MemberIndexTest, APodOfAnIndexedJobHasItsCompletionIndex) {
  const auto index = Of({{"batch.kubernetes.io/job-completion-index", "12"},
                         {"batch.kubernetes.io/job-name", "train"}});
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->group, "train");
  EXPECT_EQ(index->inner, 12);
  EXPECT_EQ(Describe(*index), "index 12 (batch.kubernetes.io/job-completion-index)");
}

TEST(MemberIndexTest, JobsOfAJobSetCountOneAfterTheOther) {
  const auto of = [](const std::string& job, const std::string& completion) {
    return Of({{"batch.kubernetes.io/job-completion-index", completion},
               {"batch.kubernetes.io/job-name", "set-workers-" + job},
               {"jobset.sigs.k8s.io/job-index", job},
               {"jobset.sigs.k8s.io/replicatedjob-name", "workers"}});
  };
  EXPECT_LT(*of("0", "3"), *of("1", "0"));
  EXPECT_LT(*of("2", "0"), *of("10", "0"));
  EXPECT_EQ(*of("1", "1"), *of("1", "1"));
}

TEST(MemberIndexTest, PodsOfALeaderWorkerSetCountInTheirGroup) {
  const auto of = [](const std::string& group, const std::string& worker) {
    return Of({{"apps.kubernetes.io/pod-index", "0"},
               {"leaderworkerset.sigs.k8s.io/group-index", group},
               {"leaderworkerset.sigs.k8s.io/name", "serve"},
               {"leaderworkerset.sigs.k8s.io/worker-index", worker}});
  };
  EXPECT_LT(*of("0", "1"), *of("1", "0"));
  EXPECT_LT(*of("0", "0"), *of("0", "1"));
}

TEST(MemberIndexTest, RolesOfTheTrainingOperatorDoNotShareIndexes) {
  const auto of = [](const std::string& type, const std::string& index) {
    return Of({{"training.kubeflow.org/replica-index", index},
               {"training.kubeflow.org/replica-type", type}});
  };
  EXPECT_LT(*of("master", "0"), *of("worker", "0"));
  EXPECT_NE(*of("master", "0"), *of("worker", "0"));
}

TEST(MemberIndexTest, APodOfAStatefulSetCountsInItsSet) {
  EXPECT_EQ(Of({{"apps.kubernetes.io/pod-index", "7"}}, "web-7")->group, "web");
}

TEST(MemberIndexTest, NoLabelAndNoNumberIsNoIndex) {
  EXPECT_EQ(Of({}), std::nullopt);
  EXPECT_EQ(Of({{"app", "train"}}), std::nullopt);
  for (const char* text : {"", "x", "-1", "1x", "99999999999"}) {
    EXPECT_EQ(Of({{"batch.kubernetes.io/job-completion-index", text}}), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tahoma::controller
