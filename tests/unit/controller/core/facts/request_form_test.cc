// The objects of requests as JSON: what is written reads as the same again, and what cannot be read
// says where and why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/core/facts/read_request.h"
#include "controller/publish/render_request.h"
#include "lib/base/json.h"
#include "lib/kube/patch.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

const WallTime kNow = *ParseTime("2026-11-23T11:30:00Z");

Json ObjectWith(const Json& spec) {
  return {
      {"metadata", {{"name", "more"}, {"namespace", "team-a"}, {"uid", "u"}, {"generation", 3}}},
      {"spec", spec}};
}

std::string ErrorOf(RequestKind kind, const Json& spec) {
  const auto fact = ParseRequest(kind, ObjectWith(spec));
  return fact.ok() ? (*fact)->spec_error : std::string(fact.status().message());
}

void ExpectReadAgain(RequestKind kind, const RequestStatus& status) {
  Json object = ObjectWith(Json::object());
  object["status"] = kube::MergePatch(Json::object(), RequestStatusJson(kind, status));
  const auto fact = ParseRequest(kind, object);
  ASSERT_TRUE(fact.ok());
  ASSERT_TRUE((*fact)->status);
  EXPECT_TRUE(*(*fact)->status == status) << object["status"].dump(2);
}

TEST(RequestFormTest, AStatusReadsAsItWasWritten) {
  ExpectReadAgain(
      RequestKind::kExtension,
      {.generation = 3, .reason = "InsufficientInstanceCapacity", .message = "no", .since = kNow});
  ExpectReadAgain(RequestKind::kExtension,
                  {.generation = 1,
                   .state = "payment-pending",
                   .since = kNow,
                   .result = ExtensionResult{.block = "train",
                                             .reservation = "cr-1",
                                             .offering_id = "cbe-1",
                                             .instance_type = "trn2.48xlarge",
                                             .instances = 16,
                                             .zone = "tahoma-1a",
                                             .hours = 24,
                                             .purchased = kNow,
                                             .start = kNow,
                                             .end = kNow + std::chrono::hours(24),
                                             .fee = Money{12'340'000}}});
  ExpectReadAgain(RequestKind::kQuota,
                  {.state = "WithinLimits", .since = kNow, .result = QuotaUse{}});
  ExpectReadAgain(RequestKind::kQuota,
                  {.state = "Exceeded",
                   .message = "too many",
                   .since = kNow,
                   .result = QuotaUse{.limits = {.instances = 4, .average = 2, .window_days = 7},
                                      .today = 1,
                                      .peak = 8,
                                      .peak_at = kNow,
                                      .instance_days = 56}});
}

TEST(RequestFormTest, ASpecThatCannotBeUsedSaysWhatWouldBeRight) {
  EXPECT_EQ(ErrorOf(RequestKind::kExtension, {{"capacityBlockExtensionDurationHours", 24}}),
            "spec: must have either capacityBlockName or capacityReservationId");
  EXPECT_EQ(ErrorOf(RequestKind::kExtension, {{"capacityBlockName", "a"},
                                              {"capacityReservationId", "cr-1"},
                                              {"capacityBlockExtensionDurationHours", 24}}),
            "spec: must have either capacityBlockName or capacityReservationId");
  EXPECT_EQ(ErrorOf(RequestKind::kExtension, {{"capacityBlockName", "a"}}),
            "spec: must have either capacityBlockExtensionOfferingId or "
            "capacityBlockExtensionDurationHours");
  EXPECT_THAT(ErrorOf(RequestKind::kExtension,
                      {{"capacityBlockName", 7}, {"capacityBlockExtensionDurationHours", 24}}),
              HasSubstr("spec.capacityBlockName: is a number, must be a string"));
  EXPECT_EQ(ErrorOf(RequestKind::kQuota, {{"averageWindowDays", 0}}),
            "spec.averageWindowDays: is 0, must be 1 to 182");
  EXPECT_EQ(ErrorOf(RequestKind::kQuota, Json::object()), "");
}

TEST(RequestFormTest, ADamagedStatusReadsAsFarAsItCanBeRead) {
  Json object =
      ObjectWith({{"capacityBlockName", "a"}, {"capacityBlockExtensionDurationHours", 24}});
  object["status"] = {{"state", "payment-pending"},
                      {"capacityReservationId", 7},
                      {"upfrontFee", "many"},
                      {"conditions", "none"}};
  const auto fact = ParseRequest(RequestKind::kExtension, object);
  ASSERT_TRUE(fact.ok());
  EXPECT_TRUE(IsSettled(*(*fact)->status));
  EXPECT_FALSE(ParseRequest(RequestKind::kExtension, {{"metadata", "none"}}).ok());
}

}  // namespace
}  // namespace tahoma::controller
