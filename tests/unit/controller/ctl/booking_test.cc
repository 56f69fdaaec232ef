// `kubectl tahoma book`: the objects made, the wait, and the result.

#include "controller/ctl/booking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json WithStatus(const Json& status) {
  return {{"metadata", {{"name", "train"}, {"namespace", "team-a"}}},
          {"spec", {{"capacityBlockOfferingId", "cb-01"}}},
          {"status", status}};
}
Json InState(const std::string& state) {
  return WithStatus({{"state", state},
                     {"count", 1},
                     {"ultraserverType", "u-trn2x64"},
                     {"startDate", "2026-11-24T11:30:00Z"},
                     {"endDate", "2026-11-25T11:30:00Z"},
                     {"upfrontFee", "3433.04"},
                     {"currencyCode", "USD"}});
}

TEST(BookingTest, EachStateEndsTheWaitOrGoesOnWithIt) {
  using enum BookingOutcome;
  const auto outcome = [](const Json& object, BookingWait wait) {
    return LookAtBooking(object, wait).outcome;
  };
  EXPECT_EQ(outcome(WithStatus(nullptr), BookingWait::kNone), kDone);
  EXPECT_EQ(outcome(WithStatus(nullptr), BookingWait::kBought), kPending);
  const struct {
    const char* state;
    BookingOutcome bought, active;
  } kStates[] = {{"payment-pending", kPending, kPending},
                 {"scheduled", kDone, kPending},
                 {"active", kDone, kDone},
                 {"unavailable", kDone, kDone},
                 {"expired", kDone, kDone},
                 {"payment-failed", kLost, kLost},
                 {"failed", kLost, kLost}};
  for (const auto& [state, bought, active] : kStates) {
    EXPECT_EQ(outcome(InState(state), BookingWait::kBought), bought) << state;
    EXPECT_EQ(outcome(InState(state), BookingWait::kActive), active) << state;
  }
  const Json refused = WithStatus({{"reason", "InstanceLimitExceeded"}, {"message", "too many"}});
  EXPECT_EQ(LookAtBooking(refused, BookingWait::kBought),
            (BookingView{kRefused, "refused: InstanceLimitExceeded: too many"}));
  EXPECT_EQ(LookAtBooking(InState("scheduled"), BookingWait::kBought).line,
            "scheduled: 1 u-trn2x64, 2026-11-24T11:30:00Z to 2026-11-25T11:30:00Z, 3433.04 USD");
}

// An API whose object is another one at each look.
class Blocks final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    if (request.method == "POST") {
      made.push_back(ParseJson(request.Text()));
      if (!taken) return kube::Response{.status = 201, .headers = {}, .body = made.back().dump()};
      return kube::Response{
          .status = 409,
          .headers = {},
          .body = R"({"kind": "Status", "status": "Failure", "reason": "AlreadyExists",
                      "message": "it exists", "code": 409})"};
    }
    const Json object = looks.size() > 1 ? looks.front() : looks.back();
    if (looks.size() > 1) looks.erase(looks.begin());
    return kube::Response{.status = 200, .headers = {}, .body = object.dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unimplemented("nothing is watched");
  }
  std::vector<Json> made;
  std::vector<Json> looks;
  bool taken = false;
};

class Steps final : public kube::Sleeper {
 public:
  explicit Steps(ManualClock& clock) : clock_(clock) {}
  bool Sleep(std::chrono::nanoseconds duration) override {
    clock_.Advance(duration);
    return true;
  }

 private:
  ManualClock& clock_;
};

TEST(BookingTest, TheObjectSaysWhatWasAskedAndNoMore) {
  Blocks api;
  ASSERT_TRUE(MakeBlock(api, {.offering_id = "cb-01", .ns = "team-a"}).ok());
  EXPECT_EQ(api.made[0].at("metadata").at("name"), BookingNameOf("cb-01"));
  EXPECT_EQ(api.made[0].at("spec"), Json({{"capacityBlockOfferingId", "cb-01"}}));
  ASSERT_TRUE(MakeBlock(api, {.offering_id = "cb-01",
                              .ns = "team-a",
                              .name = "train",
                              .platform = "SUSE Linux",
                              .replace = "Automatic",
                              .binding = "AtPurchase",
                              .tags = {{"run", "7"}}})
                  .ok());
  EXPECT_EQ(api.made[1].at("spec"), ParseJson(R"({"capacityBlockOfferingId": "cb-01",
      "instancePlatform": "SUSE Linux", "replacePolicy": "Automatic",
      "bindingMode": "AtPurchase", "tags": {"run": "7"}})"));
}

TEST(BookingTest, TheSameBookingGoesOnAndAnotherOfTheNameDoesNot) {
  Blocks api;
  api.taken = true;
  api.looks = {InState("scheduled")};
  EXPECT_TRUE(MakeBlock(api, {.offering_id = "cb-01", .name = "train"}).ok());
  EXPECT_EQ(Message(MakeBlock(api, {.offering_id = "cb-02", .name = "train"}).status()),
            "the CapacityBlock default/train is of another offering; give another --name");
}

TEST(BookingTest, SeveralOfferingsAreOneSeries) {
  Blocks api;
  const Booking booking{.offering_id = "cb-01,cb-02", .ns = "team-a", .tags = {{"run", "7"}}};
  ASSERT_TRUE(MakeBlock(api, booking).ok());
  EXPECT_EQ(api.made[0].at("kind"), "CapacityBlockSeries");
  EXPECT_EQ(api.made[0].at("spec"), ParseJson(R"({
      "capacityBlockOfferingIds": ["cb-01", "cb-02"], "tags": {"run": "7"}})"));
  EXPECT_THAT(
      Message(MakeBlock(api, {.offering_id = "cb-01,cb-02", .binding = "AtPurchase"}).status()),
      HasSubstr("are for one offering"));
  Json series = {{"kind", "CapacityBlockSeries"},
                 {"status", {{"state", "committed"}, {"message", "2 blocks for 5 USD"}}}};
  using enum BookingOutcome;
  EXPECT_EQ(LookAtBooking(series, BookingWait::kBought),
            (BookingView{kPending, "committed: 2 blocks for 5 USD"}));
  series["status"]["state"] = "purchased";
  EXPECT_EQ(LookAtBooking(series, BookingWait::kBought).outcome, kDone);
  series["status"] = {{"reason", "InsufficientInstanceCapacity"}, {"message", "none was bought"}};
  EXPECT_EQ(LookAtBooking(series, BookingWait::kBought).outcome, kRefused);
  // The same again goes on with it, others of the name do not.
  series["spec"]["capacityBlockOfferingIds"] = {"cb-01", "cb-02"};
  api.taken = true;
  api.looks = {series};
  EXPECT_TRUE(MakeBlock(api, booking).ok());
  EXPECT_EQ(Message(MakeBlock(api, {.offering_id = "cb-01,cb-03", .name = "x"}).status()),
            "the CapacityBlockSeries default/x is of another offering; give another --name");
}

TEST(BookingTest, EachNewLineIsToldOnceUntilItIsDecided) {
  Blocks api;
  api.looks = {WithStatus(nullptr), WithStatus(nullptr), InState("payment-pending"),
               InState("scheduled"), InState("active")};
  ManualClock clock;
  Steps sleeper(clock);
  std::vector<std::string> lines;
  const BookingWaitOptions options{.wait = BookingWait::kActive,
                                   .timeout = std::chrono::hours(1),
                                   .tell = [&](const std::string& line) { lines.push_back(line); }};
  const auto outcome = WaitForBooking(
      api, sleeper, clock, {.offering_id = "cb-01", .ns = "team-a", .name = "train"}, options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(*outcome, BookingOutcome::kDone);
  EXPECT_THAT(lines, ElementsAre("team-a/train waits for the controller",
                                 HasSubstr("team-a/train payment-pending: 1 u-trn2x64"),
                                 HasSubstr("team-a/train scheduled: "),
                                 HasSubstr("team-a/train active: ")));
}

TEST(BookingTest, TheWaitEndsInTime) {
  Blocks api;
  api.looks = {InState("scheduled")};
  ManualClock clock;
  Steps sleeper(clock);
  const auto outcome =
      WaitForBooking(api, sleeper, clock, {.offering_id = "cb-01", .name = "train"},
                     {.wait = BookingWait::kActive, .timeout = std::chrono::minutes(1)});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(*outcome, BookingOutcome::kPending);
  EXPECT_EQ(clock.MonotonicNow().time_since_epoch(), std::chrono::minutes(1));
}

}  // namespace
}  // namespace tahoma::controller
