// The queues of a snapshot, for a question: may a gang that does not exist start in a queue, now or
// when some runs have ended.
//
// The numbers are from the snapshot's views, the rules from QueueShares: a core with such a gang
// denies the same.
//
// Scope: queues. Where there is room: what_if.h. Without any object of the kind Queue nothing is
// refused or denied.
//
// Thread safety: immutable once made.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/queue/queue_entry.h"
#include "controller/core/snapshot.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/share/queue_shares.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class AskedQueues {
 public:
  // How many other queues Others looks at.
  static constexpr std::size_t kOthersMost = 1000;

  // `snapshot` outlives it. Looks at each queue, and where queues have bounds at each gang, once.
  AskedQueues(const Snapshot& snapshot, WallTime now);

  bool ordered() const { return shares_.tree().any(); }
  const QueueShares& shares() const { return shares_; }

  // Gives the gang the queue that the gang names or, for `default`, the namespace's queue, and the
  // queue's terms.
  std::optional<QueueRefusal> Enter(GangSpec& gang) const;
  // Returns why no gang that needs as much may start now in the gang's queue.
  std::optional<QueueDenial> Deny(const GangSpec& gang) const;
  // Returns why the gang may not start there at `when`, in the fleet of then.
  std::optional<QueueDenial> Deny(const GangSpec& gang, const Placement& placement,
                                  const ClusterState& fleet, WallTime when) const;
  // Returns the other queues, by name, in which the gang may wait.
  std::vector<std::string> Others(const GangSpec& gang) const;

 private:
  // Chips that a queue holds until a run ends.
  struct HeldUntil {
    WallTime end;
    std::string queue;
    Eighths amount;
  };

  // The part of the gangs of the queue itself.
  struct Own {
    Eighths held;
    std::int64_t running = 0;
  };

  void TakeHeld(WallTime now);
  void TakeEnds(WallTime now);
  QueueShares SharesAt(const ClusterState& fleet, WallTime when) const;

  const Snapshot& snapshot_;
  const WallTime now_;
  QueueShares shares_;
  std::map<std::string, Own> own_;  // by queue
  std::vector<HeldUntil> ends_;     // ascending
};

}  // namespace tahoma::controller
