// How long a pod may take to end when its hardware is taken back at a known time.
//
//   write.grace_seconds = GraceUntil(end, now, pod.grace_seconds);   // nullopt: the pod's own
//
// Scope: the arithmetic. At the end of the grace the node kills what still runs.
//
// Thread safety: a pure function.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns the whole seconds that a pod gets instead of its own grace; nullopt when that is short
// enough. A twentieth of the time, at most a minute, is left for what comes after the kill. Never
// 0: that would take the object away while the pod runs.
inline std::optional<std::int64_t> GraceUntil(WallTime by, WallTime now, std::int64_t own) {
  const std::chrono::nanoseconds left = by - now;
  const std::chrono::nanoseconds rest =
      std::min<std::chrono::nanoseconds>(left / 20, std::chrono::minutes(1));
  const std::int64_t most = std::chrono::floor<std::chrono::seconds>(left - rest).count();
  if (own <= most) return std::nullopt;
  return std::max<std::int64_t>(most, 1);
}

}  // namespace tahoma::controller
