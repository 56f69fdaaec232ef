// Leases of coordination.k8s.io/v1: one leader among several programs, and a node's heartbeat.
//
//   LeaderElection election({.ns = "tahoma", .name = "controller", .identity = pod_uid});
//   const LeaderElection::Step step = election.Next(clock.MonotonicNow(), clock.WallNow());
//   if (step.action == LeaderElection::Action::kRead) {      // or kCreate, kUpdate: OnWritten
//     election.OnRead(client.Get(kLeases, {"tahoma", "controller"}), clock.MonotonicNow());
//   }
//   if (election.IsLeader(clock.MonotonicNow())) …
//
// Only monotonic time decides, as in client-go's leaderelection: another program's lease is over
// when it has not changed for its duration *as this program saw it*, so clocks need not agree.
//
// A lease that is in our name at the first look is taken again at once: the process before us wrote
// it, and it is dead (whoever gives the identity ensures that). One that comes to be in our name
// later, without our doing, belongs to another: the API was restored from a backup of the time when
// we led, and the present leader has not noticed yet.
//
// The lease also shows that the API lost its history: nobody but the holder writes it, so a leader
// that reads a state before its own last renewal reads a restored backup. For the others such a
// backup hides renewals: the lease looks silent, released or unwritten while somebody leads. So a
// lease that went back, or that was not looked at for a while, is waited for anew; only a process
// that has just started must believe what it reads.
//
// Scope: decisions. Whoever calls it does the reading, writing and waiting.
//
// Thread safety: none.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::kube {

struct LeaderElectionOptions {
  std::string ns;
  std::string name;
  std::string identity;  // of this program, unique
  std::chrono::seconds duration = std::chrono::seconds(15);
  // The leader stops leading when it could not renew for this long, well before `duration` is over.
  std::chrono::seconds renew_deadline = std::chrono::seconds(10);
  std::chrono::seconds retry = std::chrono::seconds(2);
  std::chrono::milliseconds leader_retry = std::chrono::milliseconds(500);  // of a failed renewal
  // The longest pause between two looks in which no renewal can have come and been lost again: the
  // restore of a backup takes the API server away for longer.
  std::chrono::seconds longest_pause = std::chrono::seconds(5);
};

class LeaderElection {
 public:
  enum class Action { kWait, kRead, kCreate, kUpdate };
  struct Step {
    Action action = Action::kWait;
    MonotonicTime until{};  // kWait: nothing to do before
    std::string lease;      // kCreate, kUpdate: the object's JSON text
  };

  explicit LeaderElection(LeaderElectionOptions options) : options_(std::move(options)) {}

  // Returns the next action. After kRead call OnRead, after kCreate and kUpdate OnWritten, with the
  // answer.
  Step Next(MonotonicTime now, WallTime wall);
  void OnRead(const absl::StatusOr<Json>& lease, MonotonicTime now);
  void OnWritten(const absl::StatusOr<Json>& lease, MonotonicTime now);

  // Returns true until `renew_deadline` after the last renewal began.
  bool IsLeader(MonotonicTime now) const;
  // The holder as last seen; empty when nobody holds the lease.
  const std::string& holder() const { return holder_; }
  // Returns the number of the leadership as last seen (leaseTransitions): each holder's is larger
  // than those before it, unless the lease was deleted or restored from a backup.
  std::int64_t term() const { return term_; }
  // The time at which IsLeader ends unless there is another renewal; nullopt when not leading.
  std::optional<MonotonicTime> leads_until() const;
  // Returns whether, since the last call, the lease was found in a state before our own last
  // renewal.
  bool TakeHistoryLost() { return std::exchange(history_lost_, false); }
  // Returns the lease without its holder, to write at an orderly end; nullopt when not leading.
  std::optional<std::string> Release(MonotonicTime now, WallTime wall) const;

 private:
  std::string Desired(WallTime wall) const;
  bool PausedTooLong(MonotonicTime now) const;
  // Sees a lease, or null for none, that was read or written.
  void Observe(const Json& lease, MonotonicTime now);
  void TryAgain(MonotonicTime now);
  // Returns whether renewals of another may have been lost since the last look.
  bool MayHideRenewals(const Json& lease, MonotonicTime now) const;
  // Returns whether the lease that was read, or null for none, is older than the one we wrote last.
  bool IsBeforeRenewal(const Json& lease) const;

  const LeaderElectionOptions options_;
  bool known_ = false;  // the lease was read and is still believed
  bool exists_ = false;
  std::string observed_;  // its JSON text
  std::string version_;   // its resourceVersion
  std::string holder_;
  std::int64_t term_ = 0;
  std::chrono::seconds their_duration_{};
  MonotonicTime changed_{};              // when its resourceVersion was first seen
  std::optional<MonotonicTime> looked_;  // when the last look was answered
  MonotonicTime look_began_{};
  MonotonicTime quiet_until_{};  // until then somebody may lead of whom the API does not know
  MonotonicTime next_try_{};
  MonotonicTime write_began_{};
  std::optional<MonotonicTime> renewed_;
  bool own_ = false;  // true: it is in our name by our own doing, or the process before us wrote it
  std::string acknowledged_version_;  // of our last renewal that was answered
  std::string acknowledged_time_;     // its renewTime
  bool history_lost_ = false;
};

// The renewal interval of a node's heartbeat in namespace kube-node-lease, of its 40 s; as a
// kubelet's.
inline constexpr std::chrono::seconds kNodeLeaseRenewal{10};
inline constexpr std::chrono::seconds kNodeLeaseDuration{40};
Json MakeNodeLease(const std::string& node, const std::string& node_uid, WallTime wall);
// Returns the merge patch that renews it.
Json NodeLeaseRenewal(const std::string& node, WallTime wall);

}  // namespace tahoma::kube
