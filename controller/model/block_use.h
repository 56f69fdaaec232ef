// What Capacity Blocks have to do with a topology domain now, and how long hardware may be lent.
//
// Hardware that a block has, or will have, may be lent to preemptible gangs: those have agreed to
// be ended when it is needed. A loan ends early enough for the pods' grace.
//
// Scope: values and arithmetic. Who may borrow what: plan/decision.h; who ends it:
// core/queue/borrowers.h.
//
// Thread safety: values; pure functions.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/clock.h"

namespace tahoma::controller {

struct BlockUse {
  // The Capacity Reservation whose hardware it is now: only gangs of that block may be placed on
  // it, and those that borrow it. Empty: nobody's.
  std::string reservation = {};
  // When a block will have it: what is placed on it must have ended by then. nullopt: none will, as
  // far as is known.
  std::optional<WallTime> kept_from = {};
  // Of a block that lends what it does not use: when its hardware is taken back. nullopt: it does
  // not lend.
  std::optional<WallTime> lent_until = {};
  // A gang of the block is about to get it: no loan begins.
  bool wanted = false;
  // It is kept to take the place of hardware that fails: for those who can be ended only.
  bool spare = false;
  // How many seconds of blocks pass in one: 1, but on a test clock. The times above are real.
  std::int64_t scale = 1;

  friend bool operator==(const BlockUse&, const BlockUse&) = default;
};

// Hardware is free of loans this long before a block begins on it.
inline constexpr std::chrono::minutes kLoanLead{10};
// A loan that would be shorter is not made.
inline constexpr std::chrono::minutes kLoanLeast{2};

// Returns when a loan of the domain to pods with that grace must begin to end: the earliest moment
// of all when it may not be lent at all, nullopt when no end is known.
inline std::optional<WallTime> LoanEnd(const BlockUse& use, std::chrono::seconds grace) {
  const std::chrono::nanoseconds lead = std::chrono::nanoseconds(kLoanLead) / use.scale;
  std::optional<WallTime> end;
  if (!use.reservation.empty()) {
    if (!use.lent_until) return WallTime::min();
    // From then on everything on it is ended. The time that it takes is meant for shorter graces.
    end = *use.lent_until - std::max<std::chrono::nanoseconds>(grace - lead, {});
  }
  if (use.kept_from) {
    const WallTime before = *use.kept_from - std::max<std::chrono::nanoseconds>(grace, lead);
    end = std::min(end.value_or(before), before);
  }
  return end;
}

}  // namespace tahoma::controller
