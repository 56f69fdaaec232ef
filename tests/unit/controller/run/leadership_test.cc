// Leader election of controllers: who leads when a lease is free, held, given up, or out of reach.

#include "controller/run/leadership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/patience.h"

namespace tahoma::controller {
namespace {

using json = Json;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
constexpr seconds kSoon = testing::Patience(20);

// A lease behind an API that can be out of reach.
class LeaseApi final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const std::lock_guard lock(mutex_);
    if (away_) return Unavailable("the API server is away");
    if (request.method == "GET") {
      if (lease_.is_null()) return Refusal(404, "NotFound");
      return kube::Response{.status = 200, .headers = {}, .body = lease_.dump()};
    }
    json wanted = ParseJson(request.Text());
    if (on_write_) on_write_();
    if (request.method == "POST" && !lease_.is_null()) return Refusal(409, "AlreadyExists");
    if (request.method == "PUT" && lease_.is_null()) return Refusal(404, "NotFound");
    if (request.method == "PUT" &&
        wanted["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
      return Refusal(409, "Conflict");
    }
    wanted["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease_ = wanted;
    return kube::Response{.status = 200, .headers = {}, .body = lease_.dump()};
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no streams here");
  }

  void SetAway(bool away) {
    const std::lock_guard lock(mutex_);
    away_ = away;
  }
  // As when the API server is restored from a backup.
  json Save() {
    const std::lock_guard lock(mutex_);
    return lease_;
  }
  void Restore(json lease) {
    const std::lock_guard lock(mutex_);
    lease_ = std::move(lease);
  }
  // Calls `then` in each write, before the API handles the write.
  void OnWrite(std::function<void()> then) {
    const std::lock_guard lock(mutex_);
    on_write_ = std::move(then);
  }
  std::string holder() {
    const std::lock_guard lock(mutex_);
    if (lease_.is_null() || !lease_["spec"].contains("holderIdentity")) return "";
    return lease_["spec"]["holderIdentity"].is_string()
               ? lease_["spec"]["holderIdentity"].get<std::string>()
               : "";
  }

 private:
  static kube::Response Refusal(int code, const std::string& reason) {
    const json status = {{"kind", "Status"},     {"apiVersion", "v1"}, {"status", "Failure"},
                         {"message", "refused"}, {"reason", reason},   {"code", code}};
    return {.status = code, .headers = {}, .body = status.dump()};
  }
  std::mutex mutex_;
  json lease_;
  int version_ = 0;
  bool away_ = false;
  std::function<void()> on_write_;
};

// A clock that moves on request, and counts its readings.
class WatchedClock final : public Clock {
 public:
  WallTime WallNow() const override { return clock_.WallNow(); }
  MonotonicTime MonotonicNow() const override {
    {
      const std::lock_guard lock(mutex_);
      ++looks_;
    }
    looked_.notify_all();
    return clock_.MonotonicNow();
  }
  // Moves on, and returns after `looks` further readings.
  bool AdvanceAndWait(std::chrono::nanoseconds by, int looks) {
    std::unique_lock lock(mutex_);
    clock_.Advance(by);
    const int wanted = looks_ + looks;
    return looked_.wait_for(lock, kSoon, [&] { return looks_ >= wanted; });
  }

 private:
  ManualClock clock_{WallTime(seconds(1'700'000'000))};
  mutable std::mutex mutex_;
  mutable std::condition_variable looked_;
  mutable int looks_ = 0;
};

// A candidate for leadership, as in a controller, with its log lines.
struct Candidate {
  Candidate(LeaseApi& api, const Clock& clock, const std::string& identity)
      : leadership(
            api, clock, {.ns = "tahoma", .name = "controller", .identity = identity},
            [this](const std::string& line) {
              const std::lock_guard lock(mutex);
              lines.push_back(line);
            },
            [this] { ++histories_lost; }) {}
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex);
    return lines;
  }
  std::mutex mutex;
  std::vector<std::string> lines;
  std::atomic<int> histories_lost = 0;
  Leadership leadership;
};

class LeadershipTest : public ::testing::Test {
 protected:
  // Lets time go by, each step seen by every candidate, until `holds`; a minute at the most.
  bool PassTimeUntil(const std::function<bool()>& holds) {
    for (seconds passed(0); passed < seconds(60) && !holds(); passed += kStep) {
      if (!clock_.AdvanceAndWait(kStep, kLooks)) return false;
    }
    return holds();
  }
  static constexpr seconds kStep{4};  // less than the ten seconds in which a leader must renew
  static constexpr int kLooks = 12;   // two rounds of two candidates

  LeaseApi api_;
  WatchedClock clock_;
};

TEST_F(LeadershipTest, ALeaseThatNobodyHoldsIsTaken) {
  Candidate one(api_, clock_, "one");
  EXPECT_TRUE(one.leadership.Wait(kSoon));
  EXPECT_TRUE(one.leadership.leading());
  EXPECT_EQ(api_.holder(), "one");
  EXPECT_THAT(one.log(), Contains("leading: lease tahoma/controller"));
}

TEST_F(LeadershipTest, AnEndingLeaderGivesTheLeaseUpAndAStandByLeadsAtOnce) {
  {
    Candidate one(api_, clock_, "one");
    ASSERT_TRUE(one.leadership.Wait(kSoon));
  }
  EXPECT_EQ(api_.holder(), "");
  Candidate two(api_, clock_, "two");
  EXPECT_TRUE(two.leadership.Wait(kSoon)) << "although no time has passed";
  EXPECT_EQ(api_.holder(), "two");
}

TEST_F(LeadershipTest, AStandByWaitsWhileTheLeaseOfAnotherRuns) {
  Candidate one(api_, clock_, "one");
  ASSERT_TRUE(one.leadership.Wait(kSoon));
  Candidate two(api_, clock_, "two");
  const MonotonicTime later = clock_.MonotonicNow() + seconds(30);
  EXPECT_TRUE(PassTimeUntil([&] { return clock_.MonotonicNow() > later; }));
  EXPECT_FALSE(two.leadership.Wait(std::chrono::milliseconds(0)));
  EXPECT_TRUE(one.leadership.leading()) << "it renews";
  EXPECT_EQ(api_.holder(), "one");
}

TEST_F(LeadershipTest, ALeaderThatCannotRenewStopsLeadingAndSaysSo) {
  Candidate one(api_, clock_, "one");
  ASSERT_TRUE(one.leadership.Wait(kSoon));
  api_.SetAway(true);
  EXPECT_TRUE(PassTimeUntil([&] { return !one.leadership.leading(); }));
  EXPECT_THAT(one.log(), Contains(HasSubstr("lease tahoma/controller lost")));
  api_.SetAway(false);
  EXPECT_TRUE(PassTimeUntil([&] { return one.leadership.leading(); })) << "it leads again";
}

// The defect: a controller led until its thread had looked, even after an hour's stop.
TEST_F(LeadershipTest, AControllerStoppedForLongerThanItsLeaseDoesNotLeadWhenItContinues) {
  Candidate one(api_, clock_, "one");
  ASSERT_TRUE(one.leadership.Wait(kSoon));
  api_.SetAway(true);  // the thread cannot renew in between
  ASSERT_TRUE(clock_.AdvanceAndWait(std::chrono::hours(1), 0));
  EXPECT_FALSE(one.leadership.leading());
}

TEST_F(LeadershipTest, AKilledLeaderThatComesBackLeadsAtOnce) {
  {
    Candidate one(api_, clock_, "one");
    ASSERT_TRUE(one.leadership.Wait(kSoon));
    api_.SetAway(true);  // cannot give the lease up
  }
  api_.SetAway(false);
  ASSERT_EQ(api_.holder(), "one");
  Candidate again(api_, clock_, "one");
  EXPECT_TRUE(again.leadership.Wait(kSoon)) << "although no time has passed";
}

TEST_F(LeadershipTest, ALeaderTellsThatTheApiWasRestoredAndLeadsOn) {
  Candidate one(api_, clock_, "one");
  ASSERT_TRUE(one.leadership.Wait(kSoon));
  const json backup = api_.Save();
  ASSERT_TRUE(PassTimeUntil([&] { return api_.Save() != backup; })) << "it renews";
  ASSERT_EQ(one.histories_lost, 0);
  api_.Restore(backup);
  EXPECT_TRUE(PassTimeUntil([&] { return one.histories_lost == 1; }));
  EXPECT_TRUE(PassTimeUntil([&] { return one.leadership.leading(); }));
}

TEST_F(LeadershipTest, ALeaderWhoseLeaseTheBackupDoesNotHaveWritesItAgainAndHasNotLost) {
  Candidate one(api_, clock_, "one");
  ASSERT_TRUE(one.leadership.Wait(kSoon));
  std::atomic<bool> led_between = false;
  std::atomic<bool> lost_between = false;
  std::atomic<int> written = 0;
  api_.Restore(nullptr);
  api_.OnWrite([&] {
    if (one.histories_lost == 0) return;  // the renewal that finds the lease gone
    led_between = one.leadership.leading();
    lost_between = one.leadership.lost();
    ++written;
  });
  EXPECT_TRUE(PassTimeUntil([&] { return written > 0 && one.leadership.leading(); }));
  EXPECT_FALSE(led_between) << "nothing may be written before the lease is";
  EXPECT_FALSE(lost_between) << "and the program must not end for that";
  EXPECT_EQ(api_.holder(), "one");
}

TEST_F(LeadershipTest, ALeaderWhoseRestoredLeaseAnotherHoldsHasLost) {
  Candidate one(api_, clock_, "one");
  ASSERT_TRUE(one.leadership.Wait(kSoon));
  json other = api_.Save();
  other["spec"]["holderIdentity"] = "two";
  other["metadata"]["resourceVersion"] = "0";
  api_.Restore(other);
  EXPECT_TRUE(PassTimeUntil([&] { return one.leadership.lost(); }));
}

TEST_F(LeadershipTest, ALeaseThatCannotBeGivenUpIsLogged) {
  std::vector<std::string> lines;
  {
    Leadership leadership(api_, clock_, {.ns = "a", .name = "b", .identity = "one"},
                          [&](const std::string& line) { lines.push_back(line); });
    ASSERT_TRUE(leadership.Wait(kSoon));
    api_.SetAway(true);
  }
  EXPECT_THAT(lines, Contains("the lease could not be given up"));
}

TEST_F(LeadershipTest, AnApiThatIsAwayFromTheStartIsWaitedForWithoutEnd) {
  api_.SetAway(true);
  Candidate one(api_, clock_, "one");
  EXPECT_FALSE(one.leadership.Wait(std::chrono::milliseconds(1)));
  api_.SetAway(false);
  EXPECT_TRUE(PassTimeUntil([&] { return one.leadership.leading(); }));
}

}  // namespace
}  // namespace tahoma::controller
