// The one mapping from answers to errors, and from errors to what a caller does next.

#include "lib/kube/answer.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;

Response Answer(int status, std::string body = "{}") {
  return {.status = status, .headers = {}, .body = std::move(body)};
}

TEST(AnswerTest, EveryHttpStatusHasAnOutcome) {
  const std::vector<std::pair<int, Outcome>> rows = {
      {200, Outcome::kDone},       {201, Outcome::kDone},       {202, Outcome::kDone},
      {301, Outcome::kRefused},    {400, Outcome::kRefused},    {401, Outcome::kRefused},
      {403, Outcome::kRefused},    {404, Outcome::kNotFound},   {405, Outcome::kRefused},
      {408, Outcome::kRetryLater}, {409, Outcome::kConflict},   {410, Outcome::kExpired},
      {413, Outcome::kRefused},    {415, Outcome::kRefused},    {418, Outcome::kRefused},
      {422, Outcome::kRefused},    {429, Outcome::kRetryLater}, {500, Outcome::kRetryLater},
      {501, Outcome::kRefused},    {502, Outcome::kRetryLater}, {503, Outcome::kRetryLater},
      {504, Outcome::kRetryLater}, {507, Outcome::kRetryLater}};
  for (const auto& [code, outcome] : rows) {
    EXPECT_EQ(OutcomeOf(StatusOf(Answer(code))), outcome) << code;
  }
}

TEST(AnswerTest, WithoutAnAnswerItMayHaveBeenDone) {
  for (const absl::Status& status :
       {Unavailable("reset"), DeadlineExceeded("slow"), ResourceExhausted("too large"),
        Unauthenticated("no token"), Internal("a mistake")}) {
    EXPECT_EQ(OutcomeOf(StatusOf(status)), Outcome::kRetryLater) << status;
  }
  EXPECT_EQ(OutcomeOf(InvalidArgument("metadata.name: Required value")), Outcome::kRefused);
}

TEST(AnswerTest, AReasonSaysMoreThanTheNumber) {
  const auto outcome_of = [](int code, const char* reason) {
    return OutcomeOf(StatusOf(Answer(code, json{{"reason", reason}}.dump())));
  };
  EXPECT_EQ(outcome_of(409, "AlreadyExists"), Outcome::kConflict);
  EXPECT_EQ(outcome_of(500, "ServerTimeout"), Outcome::kRetryLater);
  EXPECT_EQ(outcome_of(410, "Gone"), Outcome::kExpired);
  EXPECT_TRUE(absl::IsOutOfRange(ErrorOf({{"reason", "Expired"}})));
}

TEST(AnswerTest, AnObjectIsReadFromTextAndFromAValue) {
  EXPECT_EQ(**ObjectOf(Answer(200, R"({"a":1})")), (json{{"a", 1}}));
  Response answer = Answer(200, "");
  answer.parsed = std::make_shared<const json>(json{{"b", 2}});
  EXPECT_EQ(ObjectOf(answer)->get(), answer.parsed.get()) << "without a copy";
  EXPECT_TRUE(absl::IsUnavailable(ObjectOf(Answer(200, "<html>")).status()));
  EXPECT_TRUE(absl::IsNotFound(ObjectOf(Answer(404)).status()));
}

TEST(AnswerTest, APlaceIsLostWhenItIsTooOldOrNotYetThere) {
  const json too_large{{"code", 504},
                       {"reason", "Timeout"},
                       {"details", {{"causes", {{{"reason", "ResourceVersionTooLarge"}}}}}}};
  EXPECT_TRUE(IsPlaceLost(ErrorOf(too_large)));
  EXPECT_TRUE(IsPlaceLost(StatusOf(Answer(410, ""))));
  EXPECT_FALSE(IsPlaceLost(StatusOf(Answer(504))));
  EXPECT_FALSE(IsPlaceLost(Unavailable("reset")));
}

}  // namespace
}  // namespace tahoma::kube
