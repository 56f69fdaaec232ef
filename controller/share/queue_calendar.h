// Calendars that give queues other numbers by time of day and week.
//
//   QueueCalendars calendars(specs, now);              // of objects of the kind QueueCalendar
//   const QueueTree tree(EffectiveSpecs(queues, calendars.InForceAt(now)));
//   const auto wake = calendars.NextChanges(now).any;  // look again then
//
// The numbers of queues are a function of the wall time alone: a clock that is set back or forward
// skips no period and repeats none. A period begins and ends when clocks of the zone first show the
// time: a time that a day has twice counts once, the first time, and a time that a day does not
// have is the moment at which clocks are set forward.
//
// Periods of one calendar that overlap and name the same queue make the calendar ineffective. Of
// two calendars, the first by name counts.
//
// Scope: values and pure functions. Time zones are loaded elsewhere, as that reads files
// (core/facts/queue_calendar_object.h).
//
// Thread safety: values; QueueCalendars is immutable once made.

#pragma once

#include <absl/time/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/share/queue_spec.h"
#include "controller/share/queue_tree.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The numbers that a period gives to a queue, in place of the queue's own.
struct PeriodNumbers {
  std::optional<ChipCounts> guaranteed;
  std::optional<ChipCounts> limit;

  friend bool operator==(const PeriodNumbers&, const PeriodNumbers&) = default;
};

struct QueuePeriod {
  static constexpr std::uint8_t kEveryDay = 0x7f;

  std::string name;
  std::uint8_t days = kEveryDay;  // on which the period begins; bit 0 is Monday
  int from = 0;                   // minutes of the day
  int until = 0;                  // minutes of the day; up to `from`: of the next day
  std::map<std::string, PeriodNumbers> queues;

  friend bool operator==(const QueuePeriod&, const QueuePeriod&) = default;
};

struct QueueCalendarSpec {
  std::string name;
  std::string uid;
  std::int64_t generation = 0;
  std::string time_zone = "UTC";              // IANA's name
  absl::TimeZone zone = absl::UTCTimeZone();  // as loaded
  std::chrono::seconds warning = std::chrono::minutes(30);
  std::vector<QueuePeriod> periods;
  // The first broken rule of the fields above; empty: none is broken.
  std::string invalid;

  friend bool operator==(const QueueCalendarSpec&, const QueueCalendarSpec&) = default;
};

enum class CalendarTrouble : std::uint8_t {
  kNone,
  kInvalid,       // a field has no valid value, or the time zone is unknown
  kOverlap,       // periods overlap and name the same queue
  kQueueUnknown,  // a period names a queue without an object; other queues have the numbers
};

// The period that gives a queue its numbers.
struct PeriodInForce {
  std::shared_ptr<const QueueCalendarSpec> calendar;
  std::size_t period = 0;  // index into the calendar's periods

  const QueuePeriod& get() const { return calendar->periods[period]; }
  // Returns the period for people: "period day of QueueCalendar day-and-night".
  std::string Describe() const;
  friend bool operator==(const PeriodInForce&, const PeriodInForce&) = default;
};

class QueueCalendars {
 public:
  using Specs = std::map<std::string, std::shared_ptr<const QueueCalendarSpec>>;
  // By queue.
  using InForce = std::map<std::string, PeriodInForce>;

  // A moment at which periods begin or end.
  struct Change {
    WallTime at;
    InForce in_force;                   // from then on
    std::string why;                    // "period day of QueueCalendar day-and-night begins"
    std::chrono::seconds warning = {};  // the longest of the calendars that change something
  };
  // The next times at which a period begins or ends.
  struct Next {
    std::optional<WallTime> any;
    std::map<std::string, WallTime> of_calendar;  // by name
    std::map<std::string, WallTime> for_queue;    // of periods that name the queue
  };

  QueueCalendars() = default;
  // `now` tells which offsets of time zones count when calendars of different zones are compared.
  QueueCalendars(const Specs& specs, WallTime now);

  bool empty() const { return calendars_.empty(); }
  // Returns the periods that give queues their numbers at the moment.
  InForce InForceAt(WallTime when) const;
  // Returns the names of the periods that are in force at the moment, by calendar.
  std::map<std::string, std::vector<std::string>> PeriodsAt(WallTime when) const;
  Next NextChanges(WallTime now) const;
  // Returns the changes of the coming eight days by time, the first of those with the same periods
  // in force afterwards, at most `most`: every combination that a week brings, if not too many.
  std::vector<Change> ComingChanges(WallTime now, std::size_t most) const;

  // Returns why the calendar has no effect, or lacks some; `message` is a sentence, or empty.
  CalendarTrouble TroubleOf(const std::string& calendar, const QueueTree::Specs& queues,
                            std::string& message) const;

 private:
  struct Trouble {
    CalendarTrouble kind = CalendarTrouble::kNone;
    std::string message;
  };
  // A period from its begin to its end.
  struct Occurrence {
    WallTime begin;
    WallTime end;
    std::size_t calendar = 0;
    std::size_t period = 0;
  };

  // Returns the occurrences that touch the time from `from` to `to`, of effective calendars.
  std::vector<Occurrence> Occurrences(WallTime from, WallTime to) const;
  void Apply(const Occurrence& one, InForce& in_force) const;

  std::vector<std::shared_ptr<const QueueCalendarSpec>> calendars_;  // effective ones, by name
  Specs all_;
  std::map<std::string, Trouble> troubles_;
};

// Returns the specs with the numbers in force. Specs without a period are those of `queues`.
QueueTree::Specs EffectiveSpecs(const QueueTree::Specs& queues,
                                const QueueCalendars::InForce& in_force);

// Returns specs for gangs that start now and cannot be ended before the change: a guarantee that
// the change raises is not lent beyond the present guarantee. `now` has the specs in force.
QueueTree::Specs SpecsAfter(const QueueTree::Specs& queues, const QueueCalendars::Change& change,
                            const QueueTree::Specs& now);

// Returns the reason of a calendar's condition Ready: "Ready", "Overlap", …
std::string_view ToString(CalendarTrouble trouble);

}  // namespace tahoma::controller
