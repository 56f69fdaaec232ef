#include "controller/timeline/promise.h"

#include <fmt/format.h>

#include "controller/plan/decision.h"
#include "lib/base/check.h"

namespace tahoma::controller {

bool Meets(const Promise& promise, WallTime start, std::optional<std::chrono::seconds> runtime) {
  if (start >= promise.until) return false;
  return !runtime || promise.from < EndOf(start, *runtime) - kPromiseGrain;
}

std::string Describe(const Promise& promise) {
  switch (promise.kind) {
    case PromiseKind::kStart:
      return fmt::format("it begins by {} on {}", FormatTime(promise.from), promise.place);
    case PromiseKind::kPatience:
      return fmt::format("{} is kept for it as it comes free", promise.place);
    case PromiseKind::kPreempt:
      return fmt::format("others end for it on {}", promise.place);
  }
  TAHOMA_CHECK(false);
  return "";
}

}  // namespace tahoma::controller
