#include "controller/timeline/promise.h"

#include <fmt/format.h>

#include "controller/plan/decision.h"
#include "lib/base/check.h"

namespace tahoma::controller {

void SetHolder(const GangSpec& gang, Promise& promise) {
  promise.holder = gang.Describe();
  promise.gang = gang.key;
  promise.single_pod = gang.single_pod;
}

bool Meets(const Promise& promise, WallTime start, std::optional<std::chrono::seconds> runtime) {
  if (start >= promise.until) return false;
  const WallTime from = promise.first_from.value_or(promise.from);
  return !runtime || from < EndOf(start, *runtime) - kPromiseGrain;
}

WallTime GoneFrom(const GangSpec& gang, WallTime start) {
  if (gang.preemptible && gang.reservation.empty()) {
    return EndOf(start, kLoanLeast + gang.grace);
  }
  if (!gang.max_runtime) return WallTime::max();
  return EndOf(start, *gang.max_runtime + kBindingMost + gang.grace);
}

bool Binds(const Promise& promise, const GangSpec& gang, WallTime start) {
  if (promise.kind != PromiseKind::kMaintenance) return Meets(promise, start, gang.max_runtime);
  return start < promise.until && promise.from < GoneFrom(gang, start);
}

std::string_view ToString(PromiseKind kind) {
  switch (kind) {
    case PromiseKind::kStart:
      return "Start";
    case PromiseKind::kPatience:
      return "Patience";
    case PromiseKind::kPreempt:
      return "Preempt";
    case PromiseKind::kMove:
      return "Move";
    case PromiseKind::kMaintenance:
      return "Maintenance";
  }
  TAHOMA_CHECK(false);
  return "";
}

std::string Describe(const Promise& promise) {
  switch (promise.kind) {
    case PromiseKind::kStart:
      return fmt::format("it begins by {} on {}", FormatTime(promise.from), promise.place);
    case PromiseKind::kPatience:
      return fmt::format("{} is kept for it as it comes free", promise.place);
    case PromiseKind::kPreempt:
      return fmt::format("others end for it on {}", promise.place);
    case PromiseKind::kMaintenance:
      return fmt::format("{} kept for {}", promise.place, promise.holder);
    case PromiseKind::kMove:
      return fmt::format("{} is kept for it while gangs move", promise.place);
  }
  TAHOMA_CHECK(false);
  return "";
}

}  // namespace tahoma::controller
