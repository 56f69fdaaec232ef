// The label by which a Service finds the controller that leads.

#include "controller/run/leader_label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// One pod behind an API that can be out of reach.
class PodApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    targets.push_back(request.method + " " + request.target);
    if (away) return Unavailable("the API server is away");
    pod.merge_patch(ParseJson(request.Text()));
    if (lost) return Unavailable("no answer came");
    return kube::Response{.status = 200, .headers = {}, .body = pod.dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams here");
  }
  bool Labelled() const {
    return pod["metadata"]["labels"].value("tahoma.dev/leader", "") == "true";
  }

  Json pod = {{"metadata", {{"labels", {{"app", "tahoma"}}}}}};
  bool away = false;
  bool lost = false;  // requests are carried out, and not answered
  std::vector<std::string> targets;
};

class LeaderLabelTest : public ::testing::Test {
 protected:
  PodApi api;
  ManualClock clock;
  std::vector<std::string> lines;
  LeaderLabel label{api, clock, {"tahoma-system", "tahoma-controller-0"}, [this](const auto& line) {
                      lines.push_back(line);
                    }};
};

TEST_F(LeaderLabelTest, IsOnThePodWhileTheControllerLeads) {
  label.Tend(false);
  EXPECT_FALSE(api.Labelled());
  label.Tend(true);
  EXPECT_TRUE(api.Labelled());
  EXPECT_EQ(api.pod["metadata"]["labels"]["app"], "tahoma");
  label.Tend(false);
  EXPECT_FALSE(api.Labelled());
  EXPECT_THAT(api.targets, SizeIs(3));
  EXPECT_EQ(api.targets[0], "PATCH /api/v1/namespaces/tahoma-system/pods/tahoma-controller-0");
}

TEST_F(LeaderLabelTest, TheLabelOfADeadContainerIsRemoved) {
  api.pod["metadata"]["labels"]["tahoma.dev/leader"] = "true";
  label.Tend(false);
  EXPECT_FALSE(api.Labelled());
}

TEST_F(LeaderLabelTest, IsWrittenOnceForEachChange) {
  for (int i = 0; i < 5; ++i) label.Tend(true);
  EXPECT_THAT(api.targets, SizeIs(1));
}

TEST_F(LeaderLabelTest, IsTriedAgainAfterAWhileAndTheTroubleIsSaidOnce) {
  api.away = true;
  label.Tend(true);
  label.Tend(true);
  EXPECT_THAT(api.targets, SizeIs(1));
  clock.Advance(LeaderLabel::kRetry);
  label.Tend(true);
  EXPECT_THAT(api.targets, SizeIs(2));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("pod tahoma-system/tahoma-controller-0 cannot be "
                                           "written: the API server is away")));
  api.away = false;
  clock.Advance(LeaderLabel::kRetry);
  label.Tend(true);
  EXPECT_TRUE(api.Labelled());
}

TEST_F(LeaderLabelTest, AChangeDoesNotWaitForTheRetryOfTheOneBefore) {
  api.away = true;
  label.Tend(true);
  api.away = false;
  label.Tend(false);
  EXPECT_FALSE(api.Labelled());
  EXPECT_THAT(api.targets, SizeIs(2));
}

TEST_F(LeaderLabelTest, AWriteWithoutAnAnswerMayHaveBeenCarriedOut) {
  label.Tend(false);
  api.lost = true;
  label.Tend(true);
  api.lost = false;
  label.Tend(false);
  EXPECT_FALSE(api.Labelled());
}

TEST(LeaderLabelWithoutAPodTest, SendsNothing) {
  PodApi api;
  const ManualClock clock;
  LeaderLabel label(api, clock, {"tahoma-system", ""}, nullptr);
  label.Tend(true);
  EXPECT_THAT(api.targets, IsEmpty());
}

}  // namespace
}  // namespace tahoma::controller
