// A queue as people see the queue: held chips, waiting gangs, and trouble.
//
//   const auto* view = snapshot.queues.Find("research");
//   if (view != nullptr) Show((*view)->waiting, (*view)->running);
//
// Thread safety: values.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "controller/share/queue_spec.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The reasons why gangs of a queue wait until somebody mends the queue.
enum class QueueTrouble : std::uint8_t {
  kNone,
  kNoParent,    // the parent does not exist
  kCircle,      // the queue is above itself
  kGuarantees,  // the queues below a parent are guaranteed more than the parent
  kInvalid,     // a field has no valid value, where no CRD has refused the object
};

struct QueueView {
  // With the numbers in force; nullptr: the queue has no object, but gangs.
  std::shared_ptr<const QueueSpec> spec;
  std::string name;
  QueueTrouble trouble = QueueTrouble::kNone;
  std::string message;  // the trouble as a sentence, or a warning; empty: nothing is wrong
  // The period that gives `spec` its numbers, "day-and-night/day"; empty: the numbers are its own.
  std::string period = {};
  std::optional<WallTime> next_change = {};  // when a period that names the queue begins or ends
  std::int64_t waiting = 0;                  // gangs, here and in queues below
  std::int64_t running = 0;
  ChipCounts held;             // by running gangs, here and below, from the decision on
  Eighths held_eighths;        // the same, with parts of chips
  ChipCounts borrowed;         // the part of `held` beyond the guarantee
  double used_chip_hours = 0;  // the past use that still counts
  double share = 0;            // the wanted part of the siblings' use, 0 to 1
  double used_share = 0;       // the part of the siblings' use so far
  // The place among the siblings, 1 is served first; 0: no gang waits here.
  int place = 0;

  friend bool operator==(const QueueView&, const QueueView&) = default;
};

}  // namespace tahoma::controller
