// The numbers of queues that calendars put in force, and how people are told of calendars.
//
// All is a function of the objects and of the wall time, and found anew whenever a period begins or
// ends, or the clock was set back.
//
// Scope: which numbers are in force and which come. QueueKeeper lives by the numbers.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/facts/queue_calendar_object.h"
#include "controller/share/queue_calendar.h"
#include "controller/share/queue_tree.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class CalendarKeeper {
 public:
  // The most combinations of periods of the coming week that gangs which cannot be ended are held
  // against: each is a tree of all queues.
  static constexpr std::size_t kComingMost = 16;

  using Statuses = std::vector<std::pair<std::string, QueueCalendarStatus>>;

  // `facts` must outlive it.
  explicit CalendarKeeper(const Facts& facts) : facts_(facts) {}

  void OnCalendars() { changed_ = true; }
  // Takes what changed. Returns whether specs() or coming() may be others.
  bool Follow(WallTime now, bool queues_changed);

  // Returns the specs of all queues with the numbers in force.
  const QueueTree::Specs& specs() const { return specs_; }
  // Returns the period that gives the queue its numbers; nullptr without one.
  const PeriodInForce* PeriodOf(const std::string& queue) const;
  // Returns when a period that names the queue begins or ends next.
  std::optional<WallTime> NextChangeFor(const std::string& queue) const;
  // Returns the coming combinations of periods, by time.
  const std::vector<QueueCalendars::Change>& coming() const { return coming_; }

  Statuses DrainStatuses() { return std::exchange(statuses_, {}); }
  // Returns when Follow has something to do without any news.
  std::optional<WallTime> wake() const { return next_.any; }

 private:
  void ShowStatuses(WallTime now);

  const Facts& facts_;
  bool changed_ = false;
  QueueCalendars calendars_;
  QueueTree::Specs specs_;
  QueueCalendars::InForce in_force_;
  std::vector<QueueCalendars::Change> coming_;
  QueueCalendars::Next next_;
  WallTime seen_;  // the time of the last Follow
  Statuses statuses_;
};

}  // namespace tahoma::controller
