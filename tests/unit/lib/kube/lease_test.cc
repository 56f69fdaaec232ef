// Leader election: at most one leader at a time, whatever is lost, and in the end a leader.

#include "lib/kube/lease.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"

namespace tahoma::kube {
namespace {

using json = Json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = LeaderElection::Action;

// A server with a lease; checks resourceVersion.
class LeaseServer {
 public:
  absl::StatusOr<json> Read() const {
    if (lease_.is_null()) return NotFound("no lease");
    return lease_;
  }
  absl::StatusOr<json> Write(const std::string& text, Action action) {
    const json wanted = ParseJson(text);
    if (action == Action::kCreate && !lease_.is_null()) return AlreadyExists("it is there");
    if (action == Action::kUpdate && ResourceVersionOf(wanted) != ResourceVersionOf(lease_)) {
      return Aborted("conflict");
    }
    lease_ = wanted;
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
    return lease_;
  }
  json lease_;

 private:
  int version_ = 0;
};

class Candidate {
 public:
  explicit Candidate(const std::string& identity)
      : identity_(identity),
        election_({.ns = "tahoma", .name = "controller", .identity = identity}) {}
  // Acts once; with `lost`, the answer does not come back (the write happens).
  void Act(LeaseServer& server, const ManualClock& clock, bool lost) {
    const auto step = election_.Next(clock.MonotonicNow(), clock.WallNow());
    if (step.action == Action::kWait) return;
    absl::StatusOr<json> answer =
        step.action == Action::kRead ? server.Read() : server.Write(step.lease, step.action);
    if (lost) answer = Unavailable("lost");
    if (step.action == Action::kRead) {
      election_.OnRead(answer, clock.MonotonicNow());
    } else {
      election_.OnWritten(answer, clock.MonotonicNow());
    }
  }
  const std::string identity_;
  LeaderElection election_;
};

// Acts every 100 ms until `one` leads, at most `most` times. At no time do both lead.
void ActUntilItLeads(const Candidate& one, const Candidate& other, ManualClock& clock, int most,
                     const std::function<void()>& act) {
  for (int i = 0; i < most && !one.election_.IsLeader(clock.MonotonicNow()); ++i) {
    act();
    clock.Advance(milliseconds(100));
    ASSERT_FALSE(one.election_.IsLeader(clock.MonotonicNow()) &&
                 other.election_.IsLeader(clock.MonotonicNow()));
  }
  EXPECT_TRUE(one.election_.IsLeader(clock.MonotonicNow()));
}

TEST(LeaderElectionTest, TheFirstTakesAFreeLeaseAndKeepsIt) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a"), b("b");
  for (int i = 0; i < 600; ++i) {
    a.Act(server, clock, false);
    b.Act(server, clock, false);
    clock.Advance(milliseconds(100));
    EXPECT_TRUE(i < 3 || a.election_.IsLeader(clock.MonotonicNow())) << i;
    EXPECT_FALSE(b.election_.IsLeader(clock.MonotonicNow()));
  }
  EXPECT_EQ(b.election_.holder(), "a");
  EXPECT_EQ(server.lease_["spec"]["leaseTransitions"], 0);
  EXPECT_EQ(server.lease_["spec"]["leaseDurationSeconds"], 15);
}

TEST(LeaderElectionTest, AnotherTakesOverWhenTheLeaderFallsSilent) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a"), b("b");
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  ASSERT_TRUE(a.election_.IsLeader(clock.MonotonicNow()));
  int ticks = 0;
  for (; !b.election_.IsLeader(clock.MonotonicNow()) && ticks < 1000; ++ticks) {
    b.Act(server, clock, false);
    clock.Advance(milliseconds(100));
  }
  EXPECT_GE(ticks, 150);
  EXPECT_LE(ticks, 200);
  EXPECT_FALSE(a.election_.IsLeader(clock.MonotonicNow()));
  EXPECT_EQ(server.lease_["spec"]["leaseTransitions"], 1);
}

TEST(LeaderElectionTest, AReleasedLeaseIsTakenAtOnce) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a"), b("b");
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  const auto released = a.election_.Release(clock.MonotonicNow(), clock.WallNow());
  ASSERT_TRUE(released);
  ASSERT_TRUE(server.Write(*released, Action::kUpdate).ok());
  b.Act(server, clock, false);
  b.Act(server, clock, false);
  EXPECT_TRUE(b.election_.IsLeader(clock.MonotonicNow()));
  EXPECT_EQ(b.election_.Release(clock.MonotonicNow() + seconds(60), clock.WallNow()), std::nullopt);
}

TEST(LeaderElectionTest, ALeaseThatMakesNoSenseDoesNotLockUsOut) {
  ManualClock clock;
  LeaderElection election({.ns = "n", .name = "l", .identity = "me"});
  for (const char* spec : {"null", "1", R"({"holderIdentity":5})",
                           R"({"holderIdentity":"x","leaseDurationSeconds":-9223372036854775808})",
                           R"({"leaseTransitions":"many"})"}) {
    json lease{{"metadata", {{"name", "l"}, {"resourceVersion", spec}}}, {"spec", ParseJson(spec)}};
    Action action = Action::kWait;
    for (int looks = 0; looks < 3700 && action != Action::kUpdate; ++looks) {
      action = election.Next(clock.MonotonicNow(), clock.WallNow()).action;
      if (action == Action::kRead) election.OnRead(lease, clock.MonotonicNow());
      clock.Advance(seconds(1));
    }
    EXPECT_EQ(action, Action::kUpdate) << spec;
    election.OnWritten(Aborted("conflict"), clock.MonotonicNow());
  }
}

TEST(LeaderElectionTest, ACountThatCannotBeCountedOnBeginsAnew) {
  ManualClock clock;
  for (const json& count : {json(INT64_MAX), json(UINT64_MAX), json(INT32_MAX), json(-7), json(2.5),
                            json("3"), json(nullptr)}) {
    LeaderElection election({.ns = "n", .name = "l", .identity = "me"});
    election.OnRead(json{{"metadata", {{"name", "l"}, {"resourceVersion", "5"}}},
                         {"spec", {{"holderIdentity", ""}, {"leaseTransitions", count}}}},
                    clock.MonotonicNow());
    const auto step = election.Next(clock.MonotonicNow(), clock.WallNow());
    ASSERT_EQ(step.action, Action::kUpdate) << count;
    EXPECT_EQ(ParseJson(step.lease)["spec"]["leaseTransitions"], 1) << count;
  }
}

TEST(LeaderElectionTest, ARenewalAnsweredLateCountsFromTheTimeOfItsSending) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a");
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  clock.Advance(seconds(3));
  const auto renewal = a.election_.Next(clock.MonotonicNow(), clock.WallNow());
  ASSERT_EQ(renewal.action, Action::kUpdate);
  const auto answer = server.Write(renewal.lease, renewal.action);
  clock.Advance(milliseconds(9'999));
  a.election_.OnWritten(answer, clock.MonotonicNow());
  EXPECT_TRUE(a.election_.IsLeader(clock.MonotonicNow()));
  clock.Advance(milliseconds(1));
  EXPECT_FALSE(a.election_.IsLeader(clock.MonotonicNow())) << "ten seconds after it was sent";
  EXPECT_EQ(a.election_.Release(clock.MonotonicNow(), clock.WallNow()), std::nullopt);
}

TEST(LeaderElectionTest, ALeaderWhoseRenewalConflictsLeadsNoMoreOnceItSeesTheNewHolder) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a");
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  server.lease_["spec"]["holderIdentity"] = "b";  // an administrator's hand
  server.lease_["metadata"]["resourceVersion"] = "99";
  clock.Advance(seconds(2));
  a.Act(server, clock, false);  // conflict
  clock.Advance(seconds(2));
  a.Act(server, clock, false);  // reads
  EXPECT_FALSE(a.election_.IsLeader(clock.MonotonicNow()));
  EXPECT_EQ(a.election_.holder(), "b");
  EXPECT_EQ(a.election_.Next(clock.MonotonicNow(), clock.WallNow()).action, Action::kWait);
}

// The defect: a killed controller waited for the end of its own lease.
TEST(LeaderElectionTest, AProcessThatStartsAgainTakesItsOwnLeaseAtOnce) {
  ManualClock clock;
  LeaseServer server;
  Candidate before("a"), again("a"), other("b");
  before.Act(server, clock, false);
  before.Act(server, clock, false);
  clock.Advance(seconds(1));
  for (int i = 0; i < 2; ++i) {
    other.Act(server, clock, false);
    again.Act(server, clock, false);
  }
  EXPECT_TRUE(again.election_.IsLeader(clock.MonotonicNow()));
  EXPECT_FALSE(other.election_.IsLeader(clock.MonotonicNow()));
  EXPECT_EQ(server.lease_["spec"]["leaseTransitions"], 0);
}

// Restores the lease from a backup. Versions go on.
TEST(LeaderElectionTest, ALeaderFindsOutThatTheLeaseWentBack) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost);
    ManualClock clock;
    LeaseServer server;
    Candidate a("a");
    a.Act(server, clock, false);
    if (!lost) a.Act(server, clock, false);
    const json backup = server.lease_;  // null: of a time before the lease
    for (int i = 0; i < 40; ++i) {
      a.Act(server, clock, i % 7 == 6);
      clock.Advance(seconds(1));
      EXPECT_FALSE(a.election_.ConsumeHistoryLost()) << i;
    }
    ASSERT_TRUE(a.election_.IsLeader(clock.MonotonicNow()));
    server.lease_ = backup;
    bool found = false;
    int ticks = 0;
    for (; !found && ticks < 100; ++ticks) {
      a.Act(server, clock, false);
      clock.Advance(milliseconds(100));
      found = a.election_.ConsumeHistoryLost();
    }
    EXPECT_LE(ticks, 50) << "one renewal that is refused, and a look";
    EXPECT_FALSE(a.election_.ConsumeHistoryLost()) << "it is told once";
    for (int i = 0; i < 30; ++i) a.Act(server, clock, false);
    EXPECT_TRUE(a.election_.IsLeader(clock.MonotonicNow())) << "it leads on";
  }
}

TEST(LeaderElectionTest, ALeaseThatComesToBeInOurNameWithoutUsIsWaitedFor) {
  ManualClock clock;
  LeaseServer server;
  Candidate before("b");
  before.Act(server, clock, false);
  before.Act(server, clock, false);
  const json backup = server.lease_;
  server.lease_["spec"]["holderIdentity"] = "";
  Candidate a("a"), b("b");
  for (int i = 0; i < 60; ++i) {
    a.Act(server, clock, false);
    b.Act(server, clock, false);
    clock.Advance(milliseconds(100));
  }
  ASSERT_TRUE(a.election_.IsLeader(clock.MonotonicNow()));
  server.lease_ = backup;
  ActUntilItLeads(b, a, clock, 400, [&] {
    b.Act(server, clock, false);
    a.Act(server, clock, false);
  });
}

TEST(LeaderElectionTest, ALeaderLeadsOnWhenTheServerIsBackJustBeforeItsTimeIsOver) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a");
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  const json before = server.lease_;
  for (int i = 0; i < 200; ++i) {
    a.Act(server, clock, i < 90);  // no answer for 9 s
    if (i < 90) server.lease_ = before;
    clock.Advance(milliseconds(100));
    ASSERT_TRUE(a.election_.IsLeader(clock.MonotonicNow())) << i;
  }
}

// The defect: the backup showed the very state that a paused stand-by knew. The stand-by took the
// lease for silent during its whole duration, while a leader renewed it.
TEST(LeaderElectionTest, AStandByThatPausedDoesNotTakeARestoredBackupForSilence) {
  // The backup's lease: as the stand-by knows it, released, or not written yet.
  for (const char* const backup_of : {"known", "released", "none"}) {
    SCOPED_TRACE(backup_of);
    ManualClock clock;
    LeaseServer server;
    Candidate a("a"), b("b");
    a.Act(server, clock, false);
    a.Act(server, clock, false);
    b.Act(server, clock, false);
    json backup = server.lease_;
    if (backup_of == std::string("released")) backup["spec"]["holderIdentity"] = "";
    if (backup_of == std::string("none")) backup = nullptr;
    for (int i = 0; i < 20; ++i) {
      clock.Advance(seconds(1));
      a.Act(server, clock, false);  // and b is stopped
    }
    ASSERT_TRUE(a.election_.IsLeader(clock.MonotonicNow()));
    server.lease_ = backup;
    ActUntilItLeads(b, a, clock, 300, [&] { b.Act(server, clock, false); });  // a is silent now
  }
}

TEST(LeaderElectionTest, AStandByThatSeesALeaseGoBackWaitsTheFullDurationAgain) {
  ManualClock clock;
  LeaseServer server;
  Candidate a("a"), b("b");
  a.Act(server, clock, false);
  for (int i = 0; i < 100; ++i) {
    a.Act(server, clock, false);
    b.Act(server, clock, false);
    clock.Advance(milliseconds(100));
  }
  ASSERT_EQ(b.election_.holder(), "a");
  server.lease_ = nullptr;  // a backup from before the lease
  for (int i = 0; i < 100; ++i) {
    b.Act(server, clock, false);
    clock.Advance(milliseconds(50));
    ASSERT_FALSE(b.election_.IsLeader(clock.MonotonicNow()));
  }
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  a.Act(server, clock, false);
  EXPECT_TRUE(a.election_.IsLeader(clock.MonotonicNow())) << "who leads writes it again";
}

// The wall clocks differ by decades, and so do the origins of the monotonic clocks.
TEST(LeaderElectionTest, ClocksNeedNotAgree) {
  LeaseServer server;
  ManualClock ours, theirs;
  theirs.Advance(std::chrono::hours(24 * 365 * 20));
  Candidate a("a"), b("b");
  const auto pass = [&](milliseconds time) {
    ours.Advance(time);
    theirs.Advance(time);
  };
  for (int i = 0; i < 300; ++i) {
    a.Act(server, ours, false);
    b.Act(server, theirs, false);
    pass(milliseconds(100));
    EXPECT_FALSE(b.election_.IsLeader(theirs.MonotonicNow()));
  }
  ASSERT_TRUE(a.election_.IsLeader(ours.MonotonicNow()));
  int ticks = 0;  // until b leads, because a is silent
  for (; !b.election_.IsLeader(theirs.MonotonicNow()) && ticks < 400; ++ticks) {
    b.Act(server, theirs, false);
    pass(milliseconds(100));
  }
  EXPECT_GE(ticks, 130);
  EXPECT_LE(ticks, 200);
  EXPECT_FALSE(a.election_.IsLeader(ours.MonotonicNow()));
  // b's renewals come out of a's future, and a waits for them all the same.
  for (int i = 0; i < 300; ++i) {
    b.Act(server, theirs, false);
    a.Act(server, ours, false);
    pass(milliseconds(100));
    EXPECT_FALSE(a.election_.IsLeader(ours.MonotonicNow()));
  }
}

RC_GTEST_PROP(LeaderElectionProperty, NeverTwoLeadersWhateverBackupIsRestored,
              (std::uint64_t seed)) {
  Rng rng(seed);
  ManualClock clock;
  LeaseServer server;
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const char* name : {"a", "b", "c"}) candidates.push_back(std::make_unique<Candidate>(name));
  // Each candidate has looked once: a new process must believe its first look.
  for (const auto& candidate : candidates) candidate->Act(server, clock, false);
  std::vector<json> backups{server.lease_};
  for (int i = 0; i < 800; ++i) {
    clock.Advance(milliseconds(static_cast<std::int64_t>(rng.Below(400))));
    const std::unique_ptr<Candidate>& candidate = candidates[rng.Below(3)];
    if (!rng.Chance(1, 4)) candidate->Act(server, clock, rng.Chance(1, 5));
    if (rng.Chance(1, 20)) backups.push_back(server.lease_);
    if (rng.Chance(1, 50)) {
      clock.Advance(seconds(6));  // no server meanwhile
      server.lease_ = backups[rng.Below(backups.size())];
    }
    int leaders = 0;
    for (const auto& c : candidates) leaders += c->election_.IsLeader(clock.MonotonicNow());
    RC_ASSERT(leaders <= 1);
  }
}

RC_GTEST_PROP(LeaderElectionProperty, NeverTwoLeadersAndAlwaysOneAgain, (std::uint64_t seed)) {
  Rng rng(seed);
  ManualClock clock;
  LeaseServer server;
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const char* name : {"a", "b", "c"}) candidates.push_back(std::make_unique<Candidate>(name));
  for (int i = 0; i < 800; ++i) {
    clock.Advance(milliseconds(static_cast<std::int64_t>(rng.Below(400))));
    std::unique_ptr<Candidate>& candidate = candidates[rng.Below(3)];
    if (!rng.Chance(1, 4)) candidate->Act(server, clock, rng.Chance(1, 5));
    if (rng.Chance(1, 100)) clock.Advance(seconds(30));
    // The process is killed and starts again under the same name.
    if (rng.Chance(1, 50)) candidate = std::make_unique<Candidate>(candidate->identity_);
    int leaders = 0;
    for (const auto& c : candidates) leaders += c->election_.IsLeader(clock.MonotonicNow());
    RC_ASSERT(leaders <= 1);
  }
  bool led = false;
  for (int i = 0; i < 600 && !led; ++i) {
    clock.Advance(milliseconds(100));
    for (const auto& c : candidates) {
      c->Act(server, clock, false);
      led = led || c->election_.IsLeader(clock.MonotonicNow());
    }
  }
  RC_ASSERT(led);
}

TEST(NodeLeaseTest, IsWhatAKubeletWrites) {
  const WallTime time = WallTime(seconds(1'795'253'700));
  const json lease = MakeNodeLease("n1", "u1", time);
  EXPECT_EQ(KeyOf(lease), (ObjectKey{"kube-node-lease", "n1"}));
  EXPECT_EQ(lease["spec"]["renewTime"], "2026-11-21T09:35:00.000000Z");
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"], 40);
  EXPECT_EQ(OwnersOf(lease).at(0).uid, "u1");
  EXPECT_FALSE(MakeNodeLease("n1", "", time)["metadata"].contains("ownerReferences"));
  EXPECT_EQ(NodeLeaseRenewal("n1", time)["spec"], lease["spec"]);
}

}  // namespace
}  // namespace tahoma::kube
