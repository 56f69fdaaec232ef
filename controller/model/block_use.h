// The use of a topology domain by Capacity Blocks now, and how long the domain may be lent.
//
// Hardware of a present or coming block may be lent to preemptible gangs: such gangs have agreed to
// be ended when a block needs the hardware. A loan ends early enough for the pods' grace.
//
// Scope: values and arithmetic. plan/decision.h says who may borrow; core/queue/borrowers.h ends
// loans.
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
  // The Capacity Reservation that has the domain now: only gangs of that block, and borrowers, may
  // be placed there. Empty: no block has the domain.
  std::string reservation = {};
  // When a block will have the domain: gangs placed there must have ended by then. nullopt: no
  // known block will.
  std::optional<WallTime> kept_from = {};
  // When the block's hardware is taken back, if the block lends its idle hosts. nullopt: the block
  // lends nothing.
  std::optional<WallTime> lent_until = {};
  // A gang of the block is about to get the domain: no loan begins.
  bool wanted = false;
  // The domain is kept to take the place of failed hardware: only preemptible gangs may use it.
  bool spare = false;
  // How many seconds of blocks pass in a real second: 1, except on a test clock. The times above
  // are real.
  std::int64_t scale = 1;

  friend bool operator==(const BlockUse&, const BlockUse&) = default;
};

// Hardware is free of loans this long before a block begins on it.
inline constexpr std::chrono::minutes kLoanLead{10};
// A shorter loan is not made.
inline constexpr std::chrono::minutes kLoanLeast{2};

// Returns when a loan of the domain to pods with that grace must begin to end: the earliest moment
// of all when the domain may not be lent at all, nullopt when no end is known.
inline std::optional<WallTime> LoanEnd(const BlockUse& use, std::chrono::seconds grace) {
  const std::chrono::nanoseconds lead = std::chrono::nanoseconds(kLoanLead) / use.scale;
  std::optional<WallTime> end;
  if (!use.reservation.empty()) {
    if (!use.lent_until) return WallTime::min();
    // At lent_until everything on the domain is ended. Pods with a longer grace than `lead` end
    // before.
    end = *use.lent_until - std::max<std::chrono::nanoseconds>(grace - lead, {});
  }
  if (use.kept_from) {
    const WallTime before = *use.kept_from - std::max<std::chrono::nanoseconds>(grace, lead);
    end = std::min(end.value_or(before), before);
  }
  return end;
}

}  // namespace tahoma::controller
