// Queues as objects go through the core: each has a status and a view, until it is gone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CoreQueueObjectsTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const QueueSpec> Spec(const std::string& uid, const std::string& invalid) {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = "research";
    spec->uid = uid;
    spec->invalid = invalid;
    return spec;
  }
  // Returns the reasons that Queues show.
  std::vector<std::string> Step(const std::vector<Command>& commands) {
    const auto passed = ++steps_ * std::chrono::seconds(5);
    StepOutput out =
        core_.Step(commands, Now{WallTime(std::chrono::hours(24) + passed), MonotonicTime(passed)});
    std::vector<std::string> reasons;
    for (const ApiWrite& write : out.writes) {
      const auto* status = std::get_if<QueueStatusWrite>(&write.what);
      if (status == nullptr) continue;
      reasons.emplace_back(ToString(status->status->trouble));
      last_ = write;
    }
    return reasons;
  }
  bool Shown() const { return core_.snapshot()->queues.Find(std::string("research")) != nullptr; }

  Core core_{FirstFit};
  int steps_ = 0;
  ApiWrite last_;
};

TEST_F(CoreQueueObjectsTest, AQueueSaysThatItIsReadyOrWhyNot) {
  EXPECT_THAT(Step({QueueSeen{Spec("u", "")}}), IsEmpty()) << "not before all is listed";
  EXPECT_THAT(Step({WatchesSynced{}}), ElementsAre("Ready"));
  EXPECT_TRUE(Shown());
  EXPECT_THAT(Step({ResultOf(last_), QueueSeen{Spec("u", "spec.halfLife: must be more than 0")}}),
              ElementsAre("Invalid"));
  EXPECT_EQ(std::get<QueueStatusWrite>(last_.what).status->message,
            "spec.halfLife: must be more than 0");
  EXPECT_THAT(Step({ResultOf(last_), QueueSeen{Spec("u", "")}}), ElementsAre("Ready"));
}

TEST_F(CoreQueueObjectsTest, AQueueThatIsGoneShowsNothingAndNoneOfAnEarlierUidEndsIt) {
  EXPECT_THAT(Step({WatchesSynced{}, QueueSeen{Spec("u", "")}}), ElementsAre("Ready"));
  Step({QueueGone{"research", "earlier"}});
  EXPECT_TRUE(Shown());
  Step({QueueGone{"research", "u"}});
  EXPECT_FALSE(Shown());
  EXPECT_THAT(Step({QueueSeen{Spec("later", "")}}), ElementsAre("Ready"));
  EXPECT_EQ(std::get<QueueStatusWrite>(last_.what).uid, "later");
}

}  // namespace
}  // namespace tahoma::controller
