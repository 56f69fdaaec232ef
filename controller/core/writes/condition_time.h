// The time of a condition in a status: when the condition came to hold, or ceased to.
//
// Scope: arithmetic. A condition has the fields `holds` and `since`.
//
// Thread safety: a pure function.

#pragma once

#include <chrono>
#include <optional>

#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns the time of the condition as shown before, or now where the condition has changed.
template <typename Condition>
WallTime SinceOf(bool holds, const std::optional<Condition>& before, WallTime now) {
  if (before && before->holds == holds) return before->since;
  return std::chrono::floor<std::chrono::seconds>(now);
}

}  // namespace tahoma::controller
