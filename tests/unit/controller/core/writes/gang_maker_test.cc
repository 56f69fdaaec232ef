#include "controller/core/writes/gang_maker.h"

#include <gtest/gtest.h>

#include <memory>
#include <variant>

namespace tahoma::controller {
namespace {

const GangKey kMlTrain{"ml", "train"};

class GangMakerTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const GangWish> Wish(std::int64_t members) {
    GangWish wish{.gang = "train", .request = {}, .fault = "", .owner = std::nullopt};
    wish.request.members = members;
    return std::make_shared<const GangWish>(wish);
  }
  // Returns the writes of a Flush.
  std::vector<ApiWrite> Flush() {
    maker_.Flush(now_);
    return writes_.DrainWrites();
  }
  bool Answer(const ApiWrite& write, WriteOutcome outcome, const std::string& message = "") {
    ApiResult result = ResultOf(write);
    result.outcome = outcome;
    result.message = message;
    return maker_.OnResult(result, now_);
  }

  WriteBuffer writes_;
  GangMaker maker_{writes_};
  Now now_{.wall = WallTime(), .monotonic = MonotonicTime(std::chrono::hours(1))};
};

TEST_F(GangMakerTest, AGangIsMadeOnceHoweverOftenItIsWanted) {
  maker_.Want(kMlTrain, Wish(4));
  maker_.Want(kMlTrain, Wish(4));
  const auto writes = Flush();
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(std::get<GangCreation>(writes[0].what).wish->request.members, 4);
  EXPECT_FALSE(Answer(writes[0], WriteOutcome::kDone));
  maker_.Want(kMlTrain, Wish(4));
  EXPECT_TRUE(Flush().empty());
}

TEST_F(GangMakerTest, AGangThatExistsAlreadyIsAsGoodAsMade) {
  maker_.Want(kMlTrain, Wish(4));
  Answer(Flush().at(0), WriteOutcome::kConflict);
  EXPECT_EQ(maker_.RefusalOf(kMlTrain), "");
  EXPECT_FALSE(maker_.wake(now_).has_value());
}

TEST_F(GangMakerTest, ARefusalIsKeptAndTheWriteIsSentAgain) {
  maker_.Want(kMlTrain, Wish(4));
  EXPECT_TRUE(Answer(Flush().at(0), WriteOutcome::kRefused, "no quota"));
  EXPECT_EQ(maker_.RefusalOf(kMlTrain), "no quota");
  EXPECT_TRUE(Flush().empty());
  ASSERT_TRUE(maker_.wake(now_).has_value());
  now_.monotonic = *maker_.wake(now_);
  const auto writes = Flush();
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_TRUE(Answer(writes[0], WriteOutcome::kDone));
  EXPECT_EQ(maker_.RefusalOf(kMlTrain), "");
}

TEST_F(GangMakerTest, AnotherWishIsSentAtOnce) {
  maker_.Want(kMlTrain, Wish(4));
  Answer(Flush().at(0), WriteOutcome::kRefused, "no quota");
  maker_.Want(kMlTrain, Wish(2));
  ASSERT_EQ(Flush().size(), 1U);
}

TEST_F(GangMakerTest, AGangThatNobodyWantsAnyMoreIsForgotten) {
  maker_.Want(kMlTrain, Wish(4));
  const auto writes = Flush();
  maker_.Forget(kMlTrain);
  EXPECT_FALSE(Answer(writes.at(0), WriteOutcome::kUnavailable));
  EXPECT_TRUE(Flush().empty());
}

}  // namespace
}  // namespace tahoma::controller
