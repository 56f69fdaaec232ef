// Logs when Capacity Blocks begin to live ahead of the clock, which was set back or was wrong
// before, and when the clock has caught up.
//
//   AheadLog ahead(Warn);
//   while (!Ended()) ahead.Look(*loop.snapshot(), clock.WallNow());
//
// Thread safety: one thread.

#pragma once

#include <functional>
#include <string>
#include <utility>

#include "controller/core/snapshot.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class AheadLog {
 public:
  explicit AheadLog(std::function<void(const std::string& line)> log) : log_(std::move(log)) {}

  void Look(const Snapshot& snapshot, WallTime now);

 private:
  const std::function<void(const std::string&)> log_;
  bool was_ahead_ = false;
};

}  // namespace tahoma::controller
