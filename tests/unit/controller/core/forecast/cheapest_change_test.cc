// The change that gives up least, among all that fit.

#include "controller/core/forecast/cheapest_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "controller/core/facts/asked_gang.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

const WallTime kNow{hours(500'000)};

std::shared_ptr<const GangSpec> Gang(GangRequest request) {
  request.members = 0;
  const auto gang = GangOfRequest(std::move(request), {"default", "asked"});
  TAHOMA_CHECK_OK(gang.status());
  return *gang;
}

std::optional<std::string> Nowhere(const std::shared_ptr<const GangSpec>&) { return std::nullopt; }

TEST(CheapestChangeTest, NothingHelpsWhereNothingFits) {
  const Change change = FindChange({.gang = Gang({.shape = "4x4x4"}), .fits = Nowhere}, kNow);
  EXPECT_EQ(change.kind, ChangeKind::kNothing);
  EXPECT_EQ(change.gives_up, 1);
  EXPECT_THAT(change.message, HasSubstr("none is known"));
}

TEST(CheapestChangeTest, TheLargestShapeAndTheMostSlicesThatFitAreTaken) {
  const auto fits = [](const std::shared_ptr<const GangSpec>& gang) -> std::optional<std::string> {
    const std::int64_t chips =
        std::int64_t{gang->slices} *
        BoxesOf({.members = 1, .shape = gang->shape_text}).shapes.front().chip_count();
    if (chips > 40) return std::nullopt;
    return "us-0";
  };
  const Change shape = FindChange({.gang = Gang({.shape = "4x4x4"}), .fits = fits}, kNow);
  EXPECT_EQ(shape.kind, ChangeKind::kShape);
  EXPECT_EQ(shape.value, "4x4x2");
  EXPECT_EQ(shape.gives_up, 0.5);
  const Change slices =
      FindChange({.gang = Gang({.shape = "2x2x1", .slices = 64}), .fits = fits}, kNow);
  EXPECT_EQ(slices.kind, ChangeKind::kSlices);
  EXPECT_EQ(slices.value, "10");
  EXPECT_EQ(slices.message, "ask for 10 slices instead of 64: they fit now on us-0");
}

TEST(CheapestChangeTest, TheLongestRunTimeThatFitsIsTakenInWholeMinutes) {
  const auto fits = [](const std::shared_ptr<const GangSpec>& gang) -> std::optional<std::string> {
    if (!gang->max_runtime || *gang->max_runtime > hours(5)) return std::nullopt;
    return "us-0";
  };
  const Change change =
      FindChange({.gang = Gang({.shape = "4x4x4", .max_runtime = "10h"}),
                  .fits = fits,
                  .runtimes = {std::chrono::seconds(20), minutes(30),
                               minutes(150) + std::chrono::seconds(59), hours(7), hours(30)}},
                 kNow);
  EXPECT_EQ(change.kind, ChangeKind::kMaxRuntime);
  EXPECT_EQ(change.value, "2h30m");
  EXPECT_EQ(change.gives_up, 0.75);
}

TEST(CheapestChangeTest, WaitingCountsAsThePartOfTheTimeUntilTheEnd) {
  const auto fits = [](const std::shared_ptr<const GangSpec>& gang) -> std::optional<std::string> {
    if (gang->shape_text != "4x4x2") return std::nullopt;
    return "us-0";
  };
  const auto kind_after = [&](std::chrono::seconds wait) {
    return FindChange({.gang = Gang({.shape = "4x4x4", .max_runtime = "8h"}),
                       .fits = fits,
                       .earliest = kNow + wait},
                      kNow)
        .kind;
  };
  EXPECT_EQ(kind_after(hours(7)), ChangeKind::kWait) << "7 of 15 hours are less than half";
  EXPECT_EQ(kind_after(hours(9)), ChangeKind::kShape);
}

TEST(CheapestChangeTest, GangsThatEndAndOtherQueuesGiveUpNothing) {
  const auto fits = [](const std::shared_ptr<const GangSpec>& gang) -> std::optional<std::string> {
    if (gang->queue != "b") return std::nullopt;
    return "us-0";
  };
  ChangesAsked asked{.gang = Gang({.shape = "4x4x4"}), .fits = fits, .queues = {"a", "b", "c"}};
  EXPECT_EQ(FindChange(asked, kNow).value, "b");
  asked.end_for_it = 2;
  EXPECT_EQ(FindChange(asked, kNow).message, "none: 2 gangs end for it");
}

TEST(CheapestChangeTest, NoMoreThanABoundOfQuestionsIsAsked) {
  std::size_t questions = 0;
  const auto count = [&](const std::shared_ptr<const GangSpec>&) -> std::optional<std::string> {
    ++questions;
    return std::nullopt;
  };
  std::vector<std::string> queues(1000, "q");
  std::vector<std::chrono::seconds> runtimes;
  for (int i = 1; i < 100'000; ++i) runtimes.push_back(minutes(i));
  FindChange({.gang = Gang({.shape = "1x1x1", .slices = 1024}),
              .fits = count,
              .queues = queues,
              .runtimes = runtimes},
             kNow);
  EXPECT_GT(questions, 20U);
  EXPECT_LE(questions, kTriesMost);
}

}  // namespace
}  // namespace tahoma::controller
