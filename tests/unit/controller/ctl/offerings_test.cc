// The request and the output of `kubectl tahoma offerings`.

#include "controller/ctl/offerings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

class AdminApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    asked = request.target;
    return answer;
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("nothing is watched");
  }
  kube::Response answer{.status = 200, .headers = {}, .body = "{}"};
  std::string asked;
};

const Json kOffering = {{"capacityBlockOfferingId", "cb-01"},
                        {"ultraserverType", "u-trn2x64"},
                        {"ultraserverCount", 2},
                        {"instanceType", "trn2u.48xlarge"},
                        {"instanceCount", 8},
                        {"availabilityZone", "tahoma-1a"},
                        {"startDate", "2026-11-24T11:30:00Z"},
                        {"endDate", "2026-11-26T18:00:00Z"},
                        {"capacityBlockDurationHours", 54},
                        {"capacityBlockDurationMinutes", 30},
                        {"upfrontFee", "6866.08"},
                        {"currencyCode", "USD"}};

TEST(OfferingsTest, EachOptionIsAParameterOfTheSearch) {
  AdminApi api;
  ASSERT_TRUE(AskForOfferings(api, {.type = "u-trn2x64", .count = 2, .hours = 48}).ok());
  EXPECT_EQ(api.asked,
            "/v1/capacityblockofferings?ultraserverType=u-trn2x64&ultraserverCount=2&"
            "capacityDurationHours=48&maxResults=6");
  ASSERT_TRUE(AskForOfferings(api, {.type = "trn2.48xlarge",
                                    .count = 16,
                                    .hours = 24,
                                    .hours_most = 72,
                                    .segments = 3,
                                    .from = "2026-12-01T00:00:00Z",
                                    .to = "2026-12-31T00:00:00Z",
                                    .zone = "tahoma-1a",
                                    .any_cell = true,
                                    .order = "Start",
                                    .most = 10,
                                    .ns = "team-a"})
                  .ok());
  EXPECT_EQ(api.asked,
            "/v1/capacityblockofferings?instanceType=trn2.48xlarge&instanceCount=16&"
            "capacityDurationHours=24&maxResults=10&maxDurationHours=72&segments=3&"
            "startDateRange=2026-12-01T00%3A00%3A00Z&endDateRange=2026-12-31T00%3A00%3A00Z&"
            "availabilityZone=tahoma-1a&orderBy=Start&namespace=team-a&anyCell=true");
}

TEST(OfferingsTest, OfferingsAreATable) {
  const Json answer = {{"capacityBlockOfferings", Json::array({kOffering})}};
  EXPECT_TRUE(HasOfferings(answer));
  EXPECT_EQ(OfferingsText(answer),
            "TYPE        COUNT   ZONE        START                  END                    "
            "DURATION   FEE           OFFERING\n"
            "u-trn2x64   2       tahoma-1a   2026-11-24T11:30:00Z   2026-11-26T18:00:00Z   "
            "2d6h30m    6866.08 USD   cb-01\n");
}

TEST(OfferingsTest, SegmentsAreATableAndTheWordThatBuysThem) {
  Json second = kOffering;
  second["capacityBlockOfferingId"] = "cb-02";
  const Json answer = {{"capacityBlockOfferings", Json::array()},
                       {"splitOfferings", Json::array({{{"capacityBlockDurationHours", 120},
                                                        {"upfrontFee", "13732.16"},
                                                        {"currencyCode", "USD"},
                                                        {"segments", {kOffering, second}}}})}};
  EXPECT_TRUE(HasOfferings(answer));
  const std::string text = OfferingsText(answer);
  EXPECT_THAT(text, HasSubstr("In 2 segments, 5d for 13732.16 USD:\nTYPE"));
  EXPECT_THAT(text, HasSubstr("all or none: kubectl tahoma book cb-01,cb-02\n"));
}

TEST(OfferingsTest, WhereThereAreNoneTheReasonsAndTheNearestAreShown) {
  const Json answer = {
      {"capacityBlockOfferings", Json::array()},
      {"reasons", Json::array({{{"message", "3 hosts are missing in tahoma-1a"}}})},
      {"nearest", Json::array({kOffering})}};
  EXPECT_FALSE(HasOfferings(answer));
  const std::string text = OfferingsText(answer);
  EXPECT_THAT(text, HasSubstr("No offerings.\n  3 hosts are missing in tahoma-1a\nNearest:\nTYPE"));
  EXPECT_THAT(text, HasSubstr("cb-01"));
}

TEST(OfferingsTest, ARefusalHasTheCodeAndWhatWouldBeLegal) {
  AdminApi api;
  api.answer = {.status = 400,
                .headers = {},
                .body = R"({"detail": "CapacityDurationHours 25: must be 24", "code": "X"})"};
  EXPECT_EQ(Message(AskForOfferings(api, {.type = "u-trn2x64"}).status()),
            "X: CapacityDurationHours 25: must be 24");
  api.answer = {.status = 404, .headers = {}, .body = "not here"};
  EXPECT_THAT(std::string(Message(AskForOfferings(api, {.type = "u-trn2x64"}).status())),
              HasSubstr("answered with 404"));
}

}  // namespace
}  // namespace tahoma::controller
