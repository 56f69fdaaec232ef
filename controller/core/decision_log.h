// The controller's last decisions about gangs, in order: the places of gangs, and the gangs without
// a place and why.
//
// Ids grow by one. The first id of a process is about the microsecond of the process's first
// decision: ids also grow over restarts and from leader to leader, as far as their clocks agree.
//
// Scope: the memory of one process, bounded. The journal has the facts that must survive, and the
// Kubernetes API the events and conditions of each gang.
//
// Thread safety: belongs to one thread; copies are immutable and may be read by any.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/journal/gang_decision.h"
#include "controller/model/persistent.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class DecisionKind : std::uint8_t {
  kPlaced,   // the gang was given a place
  kBlocked,  // the gang was given none, for another reason than before
  kBound,    // all of its pods are bound
  kUndone,   // its place is taken back
};
// Returns "Placed", "Blocked", "Bound" or "Undone".
std::string_view ToString(DecisionKind kind);

struct LoggedDecision {
  std::uint64_t id = 0;  // given by the log
  WallTime when = {};
  GangRef gang = {};
  DecisionKind kind = DecisionKind::kPlaced;
  std::size_t pods = 0;      // that have a place
  std::string where = {};    // its slices, or else its nodes
  std::string message = {};  // why
};

class DecisionLog {
 public:
  // The entries that are kept; each has texts of at most kTextMost bytes.
  static constexpr std::size_t kEntriesMost = 8192;
  static constexpr std::size_t kTextMost = 2048;

  void Add(LoggedDecision decision);
  // … of a placement.
  void Add(DecisionKind kind, const GangDecision& decision, std::string message, WallTime when);

  // The ids that are kept are those from first() on and before end(); none before the first Add.
  std::uint64_t first() const { return end_ - entries_.size(); }
  std::uint64_t end() const { return end_; }
  const LoggedDecision& at(std::uint64_t id) const { return *entries_[id % kEntriesMost]; }

 private:
  PersistentVector<std::shared_ptr<const LoggedDecision>> entries_;
  std::uint64_t end_ = 0;
};

}  // namespace tahoma::controller
