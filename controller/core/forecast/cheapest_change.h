// Finds the change of a gang without a place that gives up least, so that the gang fits now.
//
// A change gives up a part of what was asked for: of the chips, of the run time, or by waiting of
// the time until the gang would have ended (a gang without a maxRuntime is taken to run for
// kUsualRuntime). Another queue, and waiting for gangs that end for this gang, give up nothing. Of
// equal changes the first kind counts.
//
// Scope: the search. Whether a changed gang fits says the caller: at most kTriesMost questions.
//
// Thread safety: a pure function.

#pragma once

#include <absl/functional/function_ref.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class ChangeKind : std::uint8_t {
  kPreempt,     // none: others end for the gang
  kQueue,       // another queue
  kShape,       // a smaller shape
  kChips,       // fewer chips in a slice
  kSlices,      // fewer slices
  kMaxRuntime,  // a shorter maxRuntime
  kWait,        // none: the gang fits later
  kNothing,     // nothing helps
};
// Returns "Preempt", "Queue", …
std::string_view ToString(ChangeKind kind);

struct Change {
  ChangeKind kind = ChangeKind::kNothing;
  std::string value;    // the new queue, shape, number or run time; a time for kWait
  double gives_up = 1;  // the part, 0 to 1
  std::string message;  // a sentence
};

inline constexpr std::chrono::hours kUsualRuntime{24};
inline constexpr std::size_t kTriesMost = 48;

struct ChangesAsked {
  std::shared_ptr<const GangSpec> gang;
  // Returns where the changed gang would go now, for people; nullopt when it finds no place.
  absl::FunctionRef<std::optional<std::string>(const std::shared_ptr<const GangSpec>&)> fits;
  std::vector<std::string> queues = {};  // in which the gang may wait, too
  // Run times below which some hardware is not kept for others.
  std::vector<std::chrono::seconds> runtimes = {};
  std::optional<WallTime> earliest = {};  // when the gang fits as it is
  std::size_t end_for_it = 0;             // gangs that would end for it
};
Change FindChange(const ChangesAsked& asked, WallTime now);

}  // namespace tahoma::controller
