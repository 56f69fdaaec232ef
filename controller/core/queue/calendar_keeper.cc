#include "controller/core/queue/calendar_keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tahoma::controller {

bool CalendarKeeper::Follow(WallTime now, bool queues_changed) {
  const bool calendars_changed = std::exchange(changed_, false);
  const bool set_back = now < std::exchange(seen_, now);
  const bool due = next_.any && (now >= *next_.any || set_back);
  if (!calendars_changed && !queues_changed && !due) return false;
  if (calendars_changed) calendars_ = QueueCalendars(facts_.queue_calendars, now);
  in_force_ = calendars_.InForceAt(now);
  next_ = calendars_.NextChanges(now);
  coming_ = calendars_.ComingChanges(now, kComingMost);
  specs_ = EffectiveSpecs(facts_.queues, in_force_);
  ShowStatuses(now);
  return true;
}

const PeriodInForce* CalendarKeeper::PeriodOf(const std::string& queue) const {
  const auto found = in_force_.find(queue);
  return found == in_force_.end() ? nullptr : &found->second;
}

std::optional<WallTime> CalendarKeeper::NextChangeFor(const std::string& queue) const {
  const auto found = next_.for_queue.find(queue);
  return found == next_.for_queue.end() ? std::nullopt : std::optional(found->second);
}

void CalendarKeeper::ShowStatuses(WallTime now) {
  const auto periods = calendars_.PeriodsAt(now);
  for (const auto& [name, spec] : facts_.queue_calendars) {
    QueueCalendarStatus status;
    status.observed_generation = spec->generation;
    status.trouble = calendars_.TroubleOf(name, facts_.queues, status.message);
    if (const auto found = periods.find(name); found != periods.end()) {
      status.period = fmt::format("{}", fmt::join(found->second, ","));
    }
    const auto next = next_.of_calendar.find(name);
    if (next != next_.of_calendar.end()) status.next_change = next->second;
    statuses_.emplace_back(name, std::move(status));
  }
}

}  // namespace tahoma::controller
