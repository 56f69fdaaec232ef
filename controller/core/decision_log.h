// The controller's last decisions about gangs, in order: the places of gangs, and the gangs without
// a place and why.
//
// Ids grow by one. The first id of a process is about the microsecond of the process's first
// decision: ids also grow over restarts and from leader to leader, as far as their clocks agree.
//
//   log.Add(LoggedOf(DecisionKind::kPlaced, decision, now));
//   fmt::print("{}", DecisionLine(log.at(log.end() - 1)));  // gang a/train: placed on us-0 4x4x2 …
//
// Scope: the memory of one process, bounded. The journal has the facts that must survive, and the
// Kubernetes API the events and conditions of each gang.
//
// Thread safety: belongs to one thread; copies are immutable and may be read by any.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/gang_status.h"
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
  std::size_t pods = 0;                   // that have a place
  std::string where = {};                 // its slices, or else its nodes
  std::string message = {};               // why
  GangReason reason = GangReason::kNone;  // kBlocked, kUndone: why, in a word
  std::string members = {};  // "train-0 on node-1, train-1 on node-2", and how many more
  // kPlaced, kBound: since its last pod was created.
  std::optional<std::chrono::nanoseconds> waited = {};
};

// Returns the entry of a decision about a gang with a place.
LoggedDecision LoggedOf(DecisionKind kind, const GangDecision& decision, WallTime when);

// Returns the entry as a line for people, in at most 8 KiB: "gang default/train: waits (NotFound):
// …". No text from outside breaks the line.
std::string DecisionLine(const LoggedDecision& decision);

class DecisionLog {
 public:
  // The entries that are kept; each has texts of at most kTextMost bytes.
  static constexpr std::size_t kEntriesMost = 8192;
  static constexpr std::size_t kTextMost = 2048;

  void Add(LoggedDecision decision);

  // The ids that are kept are those from first() on and before end(); none before the first Add.
  std::uint64_t first() const { return end_ - entries_.size(); }
  std::uint64_t end() const { return end_; }
  const LoggedDecision& at(std::uint64_t id) const { return *entries_[id % kEntriesMost]; }

 private:
  PersistentVector<std::shared_ptr<const LoggedDecision>> entries_;
  std::uint64_t end_ = 0;
};

}  // namespace tahoma::controller
