// Leases of coordination.k8s.io/v1: a single leader among several programs, and a node's heartbeat.
//
//   LeaderElection election({.ns = "tahoma", .name = "controller", .identity = pod_uid});
//   const LeaderElection::Step step = election.Next(clock.MonotonicNow(), clock.WallNow());
//   if (step.action == LeaderElection::Action::kRead) {      // or kCreate, kUpdate: OnWritten
//     election.OnRead(client.Get(kLeases, {"tahoma", "controller"}), clock.MonotonicNow());
//   }
//   if (election.IsLeader(clock.MonotonicNow())) …
//
// Only monotonic time decides, as in client-go's leaderelection: another program's lease is over
// when this program has seen no change for the lease's duration. So clocks need not agree.
//
// A lease in our name at the first look is taken again at once: the process before us wrote the
// lease and is dead (the giver of the identity ensures this). A lease that gets our name later,
// without our doing, belongs to another program: the API was restored from a backup of the time
// when we led, and the present leader has not noticed yet.
//
// The lease also shows that the API lost its history. Only the holder writes the lease, so a leader
// that reads a state before its own last renewal reads a restored backup. For stand-bys a backup
// hides renewals: the lease looks silent, released or unwritten while somebody leads. So a stand-by
// waits the full duration again when the lease went back, or was not looked at for a while; only a
// process that has just started must believe its first look.
//
// Scope: decisions. The caller reads, writes and waits.
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
  // A leader without a renewal for this long stops leading, well before `duration` is over.
  std::chrono::seconds renew_deadline = std::chrono::seconds(10);
  std::chrono::seconds retry = std::chrono::seconds(2);
  std::chrono::milliseconds leader_retry = std::chrono::milliseconds(500);  // of a failed renewal
  // The longest pause between two looks that can hide no renewal: restoring a backup takes the API
  // server away for longer.
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
  // Returns the number of the leadership as last seen (leaseTransitions). The number grows with
  // each holder, unless the lease was deleted or restored from a backup.
  std::int64_t term() const { return term_; }
  // Returns the time at which IsLeader ends without another renewal; nullopt when not leading.
  std::optional<MonotonicTime> leads_until() const;
  // Returns whether, since the last call, the lease was found in a state before our own last
  // renewal.
  bool ConsumeHistoryLost() { return std::exchange(history_lost_, false); }
  // Returns the lease without its holder, to write at an orderly end; nullopt when not leading.
  std::optional<std::string> Release(MonotonicTime now, WallTime wall) const;

 private:
  std::string Desired(WallTime wall) const;
  bool PausedTooLong(MonotonicTime now) const;
  // Sees a lease that was read or written; null for no lease.
  void Observe(const Json& lease, MonotonicTime now);
  void TryAgain(MonotonicTime now);
  // Returns whether renewals of another may have been lost since the last look.
  bool MayHideRenewals(const Json& lease, MonotonicTime now) const;
  // Returns whether the lease just read, or null for no lease, is older than our last write.
  bool IsBeforeRenewal(const Json& lease) const;

  const LeaderElectionOptions options_;
  bool known_ = false;  // the lease was read and is still believed
  bool exists_ = false;
  std::string observed_;  // the lease's JSON text
  std::string version_;   // the lease's resourceVersion
  std::string holder_;
  std::int64_t term_ = 0;
  std::chrono::seconds their_duration_{};
  MonotonicTime changed_{};              // when version_ was first seen
  std::optional<MonotonicTime> looked_;  // when the last look was answered
  MonotonicTime look_began_{};
  MonotonicTime quiet_until_{};  // until then somebody may lead of whom the API does not know
  MonotonicTime next_try_{};
  MonotonicTime write_began_{};
  std::optional<MonotonicTime> renewed_;
  bool own_ = false;  // our name is in the lease by our own doing, or by the process before us
  std::string acknowledged_version_;  // of our last answered renewal
  std::string acknowledged_time_;     // the renewTime of the same renewal
  bool history_lost_ = false;
};

// The renewal interval of a node's heartbeat in namespace kube-node-lease, and its duration, as a
// kubelet's.
inline constexpr std::chrono::seconds kNodeLeaseRenewal{10};
inline constexpr std::chrono::seconds kNodeLeaseDuration{40};
Json MakeNodeLease(const std::string& node, const std::string& node_uid, WallTime wall);
// Returns the merge patch that renews the lease.
Json NodeLeaseRenewal(const std::string& node, WallTime wall);

}  // namespace tahoma::kube
