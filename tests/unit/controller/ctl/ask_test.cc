// The texts that `kubectl tahoma` prints of questions: fit, plan, and the queue's part of why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/ctl/fit.h"
#include "controller/ctl/promise_list.h"
#include "controller/ctl/why_service.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

class AdminApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    asked = request;
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("nothing is watched");
  }
  void Say(int status, const Json& body) {
    answer = {.status = status, .headers = {}, .body = body.dump()};
  }
  kube::Response answer{.status = 200, .headers = {}, .body = "{}"};
  kube::Request asked;
};

TEST(FitTest, OnlyWhatWasSaidIsInTheQuestion) {
  AdminApi api;
  ASSERT_TRUE(AskFit(api, "team/a", {.shape = "4x4x4"}).ok());
  EXPECT_EQ(api.asked.method, "POST");
  EXPECT_EQ(api.asked.target, "/v1/placements/team%2Fa/simulate");
  EXPECT_EQ(*TryParseJson(api.asked.body).find("shape"), "4x4x4");
  EXPECT_EQ(TryParseJson(api.asked.body), (Json{{"shape", "4x4x4"}, {"moves", true}}));
  ASSERT_TRUE(AskFit(api, "team",
                     {.chips = 16,
                      .slices = 2,
                      .members = 4,
                      .max_runtime = "8h",
                      .block = "b",
                      .queue = "research",
                      .instance_type = "trn2u.48xlarge",
                      .priority = -5,
                      .preemptible = true,
                      .moves = false})
                  .ok());
  EXPECT_EQ(TryParseJson(api.asked.body), (Json{{"chips", 16},
                                                {"slices", 2},
                                                {"members", 4},
                                                {"maxRuntime", "8h"},
                                                {"capacityBlock", "b"},
                                                {"queue", "research"},
                                                {"instanceType", "trn2u.48xlarge"},
                                                {"priority", -5},
                                                {"preemptible", true}}));
}

TEST(FitTest, ARefusalIsTheControllersSentence) {
  AdminApi api;
  api.Say(400, {{"detail", "shape 3x3: each side must be 1, 2 or 4"}});
  EXPECT_EQ(AskFit(api, "a", {}).status(),
            InvalidArgument("shape 3x3: each side must be 1, 2 or 4"));
  api.Say(403, {{"detail", "not you"}});
  EXPECT_TRUE(absl::IsPermissionDenied(AskFit(api, "a", {}).status()));
  api.Say(429, {{"detail", "8 questions are being answered"}});
  EXPECT_TRUE(absl::IsUnavailable(AskFit(api, "a", {}).status()));
  api.Say(200, Json::array());
  EXPECT_THAT(std::string(AskFit(api, "a", {}).status().message()),
              HasSubstr("is this its address"));
}

TEST(FitTest, AGangThatFitsHasAPlaceAndASpeed) {
  const Json answer = {{"fits", true},
                       {"queue", "research"},
                       {"placement",
                        {{"slices", Json::array({{{"domain", "us-0"},
                                                  {"shape", "4x4x2"},
                                                  {"origin", "0,0,0"},
                                                  {"nodes", {"n0", "n1"}}}})},
                         {"nodes", {"n0", "n1"}},
                         {"pods", 2},
                         {"predictedAllReduce", "1.273ms"}}}};
  EXPECT_TRUE(Fits(answer));
  EXPECT_EQ(FitText(answer),
            "Fits now: us-0 4x4x2+0,0,0, 2 pods on n0, n1\n"
            "  Queue research\n"
            "  An all-reduce of 256 MiB in each chip is predicted to take 1.273ms\n");
}

TEST(FitTest, AGangThatDoesNotFitHasAllThatIsKnown) {
  Json answer = {
      {"fits", false},
      {"reason", "WaitsForCapacity"},
      {"message", "needs 4x4x4"},
      {"earliest",
       {{"time", "2026-12-01T14:00:00Z"},
        {"exact", false},
        {"placement", {{"slices", Json::array()}, {"nodes", {"n0"}}, {"pods", 1}}}}},
      {"wouldEnd",
       {{"gangs", Json::array({{{"namespace", "a"},
                                {"name", "low"},
                                {"kind", "Gang"},
                                {"queue", "guest"},
                                {"priority", -10},
                                {"lostChipSeconds", 5400},
                                {"ending", false}},
                               {{"namespace", "a"},
                                {"name", "pod-1"},
                                {"kind", "Pod"},
                                {"queue", ""},
                                {"priority", 0},
                                {"lostChipSeconds", 0},
                                {"ending", true}}})},
        {"place", "us-0 4x4x4+0,0,0"}}},
      {"wouldMove",
       {{"moves", Json::array({{{"namespace", "a"},
                                {"name", "mover"},
                                {"from", "us-0 2x2x1+0,0,0"},
                                {"to", "us-1 2x2x1+0,0,0"},
                                {"lostChipSeconds", 360}}})},
        {"place", "us-0 4x4x4+0,0,0"}}},
      {"cheapestChange", {{"kind", "Preempt"}, {"message", "none: 2 gangs end for it"}}}};
  EXPECT_FALSE(Fits(answer));
  EXPECT_EQ(FitText(answer),
            "Does not fit now, WaitsForCapacity: needs 4x4x4\n"
            "  Earliest start: 2026-12-01T14:00:00Z or before on 1 pod on n0\n"
            "  Would have to end, for a place on us-0 4x4x4+0,0,0:\n"
            "    gang a/low of queue guest, priority -10, loses 1.5 chip-hours\n"
            "    pod a/pod-1, priority 0, ends already\n"
            "  Would have to move, for a place on us-0 4x4x4+0,0,0:\n"
            "    gang a/mover from us-0 2x2x1+0,0,0 to us-1 2x2x1+0,0,0, loses 0.1 chip-hours\n"
            "  Cheapest change: none: 2 gangs end for it\n");
  answer["wouldEnd"] = {{"gangs", Json::array()}, {"why", "no preemptible gang may end"}};
  answer["wouldMove"] = {{"moves", Json::array()}, {"why", "gang a/low stays"}};
  answer.erase("earliest");
  EXPECT_THAT(FitText(answer), HasSubstr("  Earliest start: not known\n"
                                         "  Nobody ends for it: no preemptible gang may end\n"
                                         "  No moves make a place: gang a/low stays\n"));
}

TEST(PlanTest, PromisesStandInTheOrderOfService) {
  AdminApi api;
  api.Say(200, {{"promises", Json::array({{{"kind", "Start"},
                                           {"holder", "gang a/big"},
                                           {"queue", "research"},
                                           {"from", "2026-12-01T14:00:00Z"},
                                           {"until", "2026-12-01T22:00:00Z"},
                                           {"place", "us-0 4x4x4+0,0,0"}},
                                          {{"kind", "Preempt"},
                                           {"holder", "gang a/own"},
                                           {"queue", "owner"},
                                           {"place", "us-1 4x4x1+0,0,0"}},
                                          {{"kind", "Patience"},
                                           {"holder", "pod a/p"},
                                           {"queue", "default"},
                                           {"place", "n1"}}})},
                {"waiting", 5},
                {"waitingWithout", 2}});
  const auto plan = ReadPromises(api, "a");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(api.asked.target, "/v1/promises?namespace=a");
  EXPECT_EQ(
      PlanText(*plan),
      "HOLDER       KIND       QUEUE      START                  UNTIL                  PLACE\n"
      "gang a/big   Start      research   2026-12-01T14:00:00Z   2026-12-01T22:00:00Z   "
      "us-0 4x4x4+0,0,0\n"
      "gang a/own   Preempt    owner      others end                                    "
      "us-1 4x4x1+0,0,0\n"
      "pod a/p      Patience   default    as it frees                                   n1\n"
      "2 gangs wait without a promise.\n");
  EXPECT_EQ(PlanText({{"promises", Json::array()}, {"waitingWithout", 1}}),
            "Nothing is promised. 1 gang waits without a promise.\n");
}

TEST(WhyServiceTest, ItsQueueItsPlaceAndPromisesFollow) {
  const Json queue = {{"name", "research"},
                      {"sharePercent", 75},
                      {"usedSharePercent", 12},
                      {"place", 2},
                      {"held", {{"trn2u.48xlarge", 16}}},
                      {"guaranteed", {{"trn2u.48xlarge", 48}}},
                      {"limit", {{"trn2u.48xlarge", 64}}}};
  const Json service = {
      {"name", "train"},
      {"order", {{"place", 3}, {"of", 12}}},
      {"queues", Json::array({{{"queue", queue}, {"siblings", 3}}})},
      {"promise", {{"kind", "Start"}, {"from", "2026-12-01T14:00:00Z"}, {"place", "us-0 4x4x4"}}},
      {"keptBy",
       Json::array({{{"kind", "Patience"}, {"holder", "gang a/big"}, {"place", "us-1"}}})}};
  EXPECT_EQ(ServiceText(service),
            "  3rd of 12 gangs that wait in its queue\n"
            "  Queue research: 2nd of 3 in turn, 75 % of use wanted, 12 % used; holds 16 chips of "
            "trn2u.48xlarge, 48 guaranteed, at most 64\n"
            "  Promised: us-0 4x4x4, 2026-12-01T14:00:00Z\n"
            "  Would begin now, but us-1 is promised to gang a/big, as it frees\n");
  EXPECT_FALSE(ServiceJson(service).contains("name"));
  EXPECT_EQ(ServiceJson(service).size(), 4U);
  EXPECT_EQ(ServiceText(Json::object()), "");
  EXPECT_THAT(ServiceText({{"order", {{"place", 11}, {"of", 112}}}}),
              HasSubstr("11th of 112 gangs that wait\n"));
}

}  // namespace
}  // namespace tahoma::controller
