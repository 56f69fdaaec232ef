#include "controller/share/queue_calendar.h"

#include <absl/time/civil_time.h>
#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr int kDayMinutes = 24 * 60;
constexpr std::size_t kWeekMinutes = 7 * kDayMinutes;
// Every period begins and ends within a week and a day, unless clocks are set forward over the
// whole period.
constexpr std::chrono::hours kWeek{8 * 24};
constexpr std::chrono::hours kSure{15 * 24};
// Offsets of time zones are compared for so long.
constexpr absl::Duration kYear = absl::Hours(366 * 24);

using WeekOfMinutes = std::bitset<kWeekMinutes>;

absl::Time AbslOf(WallTime time) {
  return absl::UnixEpoch() + absl::Nanoseconds(time.time_since_epoch().count());
}

// Returns the first moment at which clocks of the zone show the time or a later one.
WallTime FirstAt(absl::CivilDay day, int minute, absl::TimeZone zone) {
  const absl::CivilSecond time = absl::CivilSecond(day) + std::int64_t{60} * minute;
  return WallTime(std::chrono::seconds(absl::ToUnixSeconds(absl::FromCivil(time, zone))));
}

int WeekdayOf(absl::CivilDay day) { return static_cast<int>(absl::GetWeekday(day)); }

// Returns the minutes of a week of clocks in which the period is in force.
WeekOfMinutes MinutesOf(const QueuePeriod& period) {
  const int length = (period.until - period.from + 2 * kDayMinutes - 1) % kDayMinutes + 1;
  WeekOfMinutes minutes;
  for (int day = 0; day < 7; ++day) {
    if ((period.days >> day & 1) == 0) continue;
    for (int i = 0; i < length; ++i) {
      minutes.set(static_cast<std::size_t>(day * kDayMinutes + period.from + i) % kWeekMinutes);
    }
  }
  return minutes;
}

WeekOfMinutes Later(const WeekOfMinutes& minutes, int by) {
  const auto size = static_cast<int>(kWeekMinutes);
  const auto shift = static_cast<std::size_t>((by % size + size) % size);
  return minutes << shift | minutes >> (kWeekMinutes - shift);
}

// Returns by how many minutes clocks of `a` are ahead of those of `b`: each difference of a year.
std::set<int> DifferencesOf(absl::TimeZone a, absl::TimeZone b, absl::Time now) {
  std::set<int> differences;
  const auto add = [&](absl::Time when) {
    differences.insert((a.At(when).offset - b.At(when).offset) / 60);
  };
  add(now);
  if (a == b) return differences;
  for (const absl::TimeZone zone : {a, b}) {
    absl::TimeZone::CivilTransition next;
    for (absl::Time at = now; zone.NextTransition(at, &next);) {
      const absl::TimeZone::TimeInfo after = zone.At(next.to);  // not unique where clocks go back
      at = after.kind == absl::TimeZone::TimeInfo::UNIQUE ? after.pre : after.trans;
      if (at > now + kYear) break;
      add(at);
    }
  }
  return differences;
}

using MinutesByQueue = std::map<std::string, WeekOfMinutes>;

// Returns why periods of one calendar are in each other's way, or "".
std::string OverlapInside(const QueueCalendarSpec& calendar, MinutesByQueue& taken) {
  for (std::size_t i = 0; i < calendar.periods.size(); ++i) {
    const QueuePeriod& period = calendar.periods[i];
    const WeekOfMinutes minutes = MinutesOf(period);
    for (const auto& [queue, numbers] : period.queues) {
      WeekOfMinutes& all = taken[queue];
      if ((all & minutes).none()) {
        all |= minutes;
        continue;
      }
      for (std::size_t j = 0; j < i; ++j) {
        const QueuePeriod& earlier = calendar.periods[j];
        if (!earlier.queues.contains(queue) || (MinutesOf(earlier) & minutes).none()) continue;
        return fmt::format("periods {} and {} overlap, and both name queue {}", earlier.name,
                           period.name, queue);
      }
    }
  }
  return "";
}

std::string OverlapWith(const QueueCalendarSpec& earlier, const MinutesByQueue& taken,
                        const std::set<int>& ahead, const MinutesByQueue& minutes) {
  for (const auto& [queue, mine] : minutes) {
    const auto theirs = taken.find(queue);
    if (theirs == taken.end()) continue;
    for (const int by : ahead) {
      if ((theirs->second & Later(mine, by)).none()) continue;
      return fmt::format("its periods overlap periods of QueueCalendar {}, and both name queue {}",
                         earlier.name, queue);
    }
  }
  return "";
}

}  // namespace

std::string PeriodInForce::Describe() const {
  return fmt::format("period {} of QueueCalendar {}", get().name, calendar->name);
}

QueueCalendars::QueueCalendars(const Specs& specs, WallTime now) : all_(specs) {
  std::vector<MinutesByQueue> taken;  // by the effective calendars
  std::map<std::pair<std::string, std::string>, std::set<int>> ahead;
  for (const auto& [name, spec] : specs) {
    Trouble& trouble = troubles_[name];
    trouble.message = spec->invalid;
    if (!trouble.message.empty()) {
      trouble.kind = CalendarTrouble::kInvalid;
      continue;
    }
    MinutesByQueue minutes;
    trouble.message = OverlapInside(*spec, minutes);
    for (std::size_t i = 0; i < calendars_.size() && trouble.message.empty(); ++i) {
      const QueueCalendarSpec& earlier = *calendars_[i];
      const auto [known, added] = ahead.try_emplace({earlier.time_zone, spec->time_zone});
      if (added) known->second = DifferencesOf(earlier.zone, spec->zone, AbslOf(now));
      trouble.message = OverlapWith(earlier, taken[i], known->second, minutes);
    }
    if (!trouble.message.empty()) {
      trouble.kind = CalendarTrouble::kOverlap;
      continue;
    }
    calendars_.push_back(spec);
    taken.push_back(std::move(minutes));
  }
}

std::vector<QueueCalendars::Occurrence> QueueCalendars::Occurrences(WallTime from,
                                                                    WallTime to) const {
  std::vector<Occurrence> all;
  for (std::size_t i = 0; i < calendars_.size(); ++i) {
    const QueueCalendarSpec& calendar = *calendars_[i];
    const absl::CivilDay first = absl::ToCivilDay(AbslOf(from), calendar.zone) - 1;
    const absl::CivilDay last = absl::ToCivilDay(AbslOf(to), calendar.zone);
    for (std::size_t j = 0; j < calendar.periods.size(); ++j) {
      const QueuePeriod& period = calendar.periods[j];
      const int next_day = period.until <= period.from ? 1 : 0;
      for (absl::CivilDay day = first; day <= last; ++day) {
        if ((period.days >> WeekdayOf(day) & 1) == 0) continue;
        const Occurrence one{.begin = FirstAt(day, period.from, calendar.zone),
                             .end = FirstAt(day + next_day, period.until, calendar.zone),
                             .calendar = i,
                             .period = j};
        if (one.begin < one.end && one.end > from && one.begin <= to) all.push_back(one);
      }
    }
  }
  return all;
}

// The first calendar by name counts.
void QueueCalendars::Apply(const Occurrence& one, InForce& in_force) const {
  const auto& calendar = calendars_[one.calendar];
  for (const auto& [queue, numbers] : calendar->periods[one.period].queues) {
    PeriodInForce& period = in_force[queue];
    if (period.calendar != nullptr &&
        std::tie(period.calendar->name, period.period) <= std::tie(calendar->name, one.period)) {
      continue;
    }
    period = {.calendar = calendar, .period = one.period};
  }
}

QueueCalendars::InForce QueueCalendars::InForceAt(WallTime when) const {
  InForce in_force;
  for (const Occurrence& one : Occurrences(when, when)) {
    if (one.begin <= when) Apply(one, in_force);
  }
  return in_force;
}

std::map<std::string, std::vector<std::string>> QueueCalendars::PeriodsAt(WallTime when) const {
  std::set<std::pair<std::size_t, std::size_t>> active;
  for (const Occurrence& one : Occurrences(when, when)) {
    if (one.begin <= when) active.insert({one.calendar, one.period});
  }
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [calendar, period] : active) {
    names[calendars_[calendar]->name].push_back(calendars_[calendar]->periods[period].name);
  }
  return names;
}

QueueCalendars::Next QueueCalendars::NextChanges(WallTime now) const {
  Next next;
  const auto add = [](std::map<std::string, WallTime>& to, const std::string& name, WallTime at) {
    WallTime& known = to.try_emplace(name, at).first->second;
    known = std::min(known, at);
  };
  for (const Occurrence& one : Occurrences(now, now + kSure)) {
    const QueueCalendarSpec& calendar = *calendars_[one.calendar];
    const WallTime at = one.begin > now ? one.begin : one.end;
    add(next.of_calendar, calendar.name, at);
    for (const auto& [queue, numbers] : calendar.periods[one.period].queues) {
      add(next.for_queue, queue, at);
    }
    next.any = std::min(next.any.value_or(at), at);
  }
  return next;
}

std::vector<QueueCalendars::Change> QueueCalendars::ComingChanges(WallTime now,
                                                                  std::size_t most) const {
  const std::vector<Occurrence> all = Occurrences(now, now + kWeek);
  std::map<WallTime, std::vector<std::size_t>> at;  // the occurrences that begin or end
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const WallTime when : {all[i].begin, all[i].end}) {
      if (when > now && when <= now + kWeek) at[when].push_back(i);
    }
  }
  std::set<std::size_t> active;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].begin <= now) active.insert(i);
  }
  const auto combination = [&] {
    std::set<std::pair<std::size_t, std::size_t>> periods;
    for (const std::size_t i : active) periods.insert({all[i].calendar, all[i].period});
    return periods;
  };
  std::set<std::set<std::pair<std::size_t, std::size_t>>> seen{combination()};
  std::vector<Change> changes;
  for (const auto& [when, indexes] : at) {
    Change change{.at = when, .in_force = {}, .why = "", .warning = {}};
    bool begins = false;
    for (const std::size_t i : indexes) {
      const bool begun = all[i].begin == when;
      if (change.why.empty() || (begun && !begins)) {
        const PeriodInForce period{calendars_[all[i].calendar], all[i].period};
        change.why = fmt::format("{} {}", period.Describe(), begun ? "begins" : "ends");
      }
      begins = begins || begun;
      change.warning = std::max(change.warning, calendars_[all[i].calendar]->warning);
      if (all[i].end == when) active.erase(i);
      if (all[i].begin == when) active.insert(i);
    }
    if (changes.size() >= most) break;
    if (!seen.insert(combination()).second) continue;
    for (const std::size_t i : active) Apply(all[i], change.in_force);
    changes.push_back(std::move(change));
  }
  return changes;
}

CalendarTrouble QueueCalendars::TroubleOf(const std::string& calendar,
                                          const QueueTree::Specs& queues,
                                          std::string& message) const {
  const auto known = troubles_.find(calendar);
  TAHOMA_CHECK(known != troubles_.end());
  message = known->second.message;
  if (known->second.kind != CalendarTrouble::kNone) return known->second.kind;
  for (const QueuePeriod& period : all_.at(calendar)->periods) {
    for (const auto& [queue, numbers] : period.queues) {
      if (queues.contains(queue)) continue;
      message = fmt::format("period {} names queue {}, which does not exist", period.name, queue);
      return CalendarTrouble::kQueueUnknown;
    }
  }
  return CalendarTrouble::kNone;
}

QueueTree::Specs EffectiveSpecs(const QueueTree::Specs& queues,
                                const QueueCalendars::InForce& in_force) {
  QueueTree::Specs specs = queues;
  for (const auto& [queue, period] : in_force) {
    const auto found = specs.find(queue);
    if (found == specs.end() || found->second == nullptr) continue;
    auto spec = std::make_shared<QueueSpec>(*found->second);
    const PeriodNumbers& numbers = period.get().queues.at(queue);
    if (numbers.guaranteed) spec->guaranteed = *numbers.guaranteed;
    if (numbers.limit) spec->limit = *numbers.limit;
    found->second = std::move(spec);
  }
  return specs;
}

QueueTree::Specs SpecsAfter(const QueueTree::Specs& queues, const QueueCalendars::Change& change,
                            const QueueTree::Specs& now) {
  QueueTree::Specs specs = EffectiveSpecs(queues, change.in_force);
  for (auto& [name, spec] : specs) {
    const auto found = now.find(name);
    if (found == now.end() || found->second->guaranteed == spec->guaranteed) continue;
    auto after = std::make_shared<QueueSpec>(*spec);
    for (const auto& [type, chips] : spec->guaranteed) {
      const auto before = found->second->guaranteed.find(type);
      const std::int64_t own = before == found->second->guaranteed.end() ? 0 : before->second;
      if (chips <= own) continue;
      std::int64_t& lent = after->lending_limit.try_emplace(type, own).first->second;
      lent = std::min(lent, own);
    }
    spec = std::move(after);
  }
  return specs;
}

std::string_view ToString(CalendarTrouble trouble) {
  switch (trouble) {
    case CalendarTrouble::kNone:
      return "Ready";
    case CalendarTrouble::kInvalid:
      return "Invalid";
    case CalendarTrouble::kOverlap:
      return "Overlap";
    case CalendarTrouble::kQueueUnknown:
      return "QueueUnknown";
  }
  TAHOMA_CHECK(false);
  return "";
}

}  // namespace tahoma::controller
