// Calendars of queues: which period is in force when, on ordinary days and when clocks are set.

#include "controller/share/queue_calendar.h"

#include <absl/time/civil_time.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kCalendarType = "trn2.48xlarge";
constexpr const char* kBerlin = "Europe/Berlin";
constexpr std::uint8_t kSunday = 1U << 6U;

WallTime Utc(const std::string& text) { return *ParseTime(text); }

absl::TimeZone ZoneOf(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name << ": is the package tzdata installed?";
  return zone;
}

QueuePeriod Period(const std::string& name, int from, int until,
                   const std::vector<std::string>& queues = {"training"},
                   std::uint8_t days = QueuePeriod::kEveryDay) {
  QueuePeriod period{.name = name, .days = days, .from = from, .until = until, .queues = {}};
  std::int64_t chips = 0;
  for (const std::string& queue : queues) {
    period.queues[queue].guaranteed = ChipCounts{{kCalendarType, ++chips}};
  }
  return period;
}

std::shared_ptr<const QueueCalendarSpec> Calendar(const std::string& name,
                                                  std::vector<QueuePeriod> periods,
                                                  const std::string& zone = "UTC") {
  QueueCalendarSpec spec;
  spec.name = name;
  spec.time_zone = zone;
  spec.zone = ZoneOf(zone);
  spec.periods = std::move(periods);
  return std::make_shared<const QueueCalendarSpec>(std::move(spec));
}

QueueCalendars::Specs SpecsOf(
    const std::vector<std::shared_ptr<const QueueCalendarSpec>>& calendars) {
  QueueCalendars::Specs specs;
  for (const auto& calendar : calendars) specs[calendar->name] = calendar;
  return specs;
}

QueueCalendars Of(const std::vector<std::shared_ptr<const QueueCalendarSpec>>& calendars,
                  const std::string& now = "2026-12-01T00:00:00Z") {
  return {SpecsOf(calendars), Utc(now)};
}

std::string PeriodOf(const QueueCalendars& calendars, const std::string& queue, WallTime when) {
  const QueueCalendars::InForce in_force = calendars.InForceAt(when);
  const auto found = in_force.find(queue);
  return found == in_force.end() ? "" : found->second.get().name;
}

std::string ReasonOf(const QueueCalendars& calendars, const std::string& name,
                     const QueueTree::Specs& queues = {}) {
  std::string message;
  const CalendarTrouble trouble = calendars.TroubleOf(name, queues, message);
  return fmt::format("{}: {}", ToString(trouble), message);
}

constexpr int Clock(int hour, int minute = 0) { return hour * 60 + minute; }

TEST(QueueCalendarTest, APeriodIsInForceFromItsBeginUntilItsEnd) {
  const auto calendars = Of({Calendar("c", {Period("day", Clock(8), Clock(20))})});
  for (const auto& [time, period] :
       std::map<std::string, std::string>{{"2026-12-01T07:59:59Z", ""},
                                          {"2026-12-01T08:00:00Z", "day"},
                                          {"2026-12-01T19:59:59Z", "day"},
                                          {"2026-12-01T20:00:00Z", ""}}) {
    EXPECT_EQ(PeriodOf(calendars, "training", Utc(time)), period) << time;
  }
  EXPECT_EQ(calendars.NextChanges(Utc("2026-12-01T08:00:00Z")).any, Utc("2026-12-01T20:00:00Z"));
  EXPECT_EQ(calendars.NextChanges(Utc("2026-12-01T20:00:00Z")).any, Utc("2026-12-02T08:00:00Z"));
  EXPECT_EQ(calendars.NextChanges(Utc("2026-12-01T00:00:00Z")).for_queue,
            (std::map<std::string, WallTime>{{"training", Utc("2026-12-01T08:00:00Z")}}));
  EXPECT_THAT(calendars.PeriodsAt(Utc("2026-12-01T09:00:00Z")).at("c"), ElementsAre("day"));
}

// 2026-12-06 is a Sunday.
TEST(QueueCalendarTest, APeriodOverMidnightEndsOnTheNextDay) {
  const auto calendars =
      Of({Calendar("c", {Period("night", Clock(22), Clock(6), {"training"}, kSunday)})});
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-12-06T05:00:00Z")), "");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-12-06T22:00:00Z")), "night");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-12-07T05:59:59Z")), "night");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-12-07T06:00:00Z")), "");
  EXPECT_EQ(calendars.NextChanges(Utc("2026-12-07T06:00:00Z")).any, Utc("2026-12-13T22:00:00Z"));
}

// Clocks of Berlin go from 02:00 to 03:00 on 2026-03-29 (01:00 UTC).
TEST(QueueCalendarTest, ATimeThatADayDoesNotHaveIsTheMomentOfTheChange) {
  const auto calendars = Of(
      {Calendar("c",
                {Period("half", Clock(2, 30), Clock(5)), Period("lost", Clock(2, 5), Clock(2, 20))},
                kBerlin)},
      "2026-03-01T00:00:00Z");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-03-29T00:59:59Z")), "");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-03-29T01:00:00Z")), "half");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-03-29T02:59:59Z")), "half") << "04:59 there";
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-03-29T03:00:00Z")), "");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-03-28T01:10:00Z")), "lost") << "a day before";
}

// Clocks of Berlin go from 03:00 to 02:00 on 2026-10-25 (01:00 UTC).
TEST(QueueCalendarTest, ATimeThatADayHasTwiceCountsTheFirstTime) {
  const auto calendars =
      Of({Calendar(
             "c", {Period("half", Clock(2, 30), Clock(5)), Period("up", Clock(2, 5), Clock(2, 20))},
             kBerlin)},
         "2026-10-01T00:00:00Z");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-10-25T00:05:00Z")), "up");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-10-25T00:29:59Z")), "");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-10-25T00:30:00Z")), "half");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-10-25T01:10:00Z")), "half") << "02:10 again";
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-10-25T03:59:59Z")), "half");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-10-25T04:00:00Z")), "");
}

TEST(QueueCalendarTest, PeriodsOfOneCalendarThatOverlapHaveNoEffect) {
  const auto calendars =
      Of({Calendar("twice", {Period("day", Clock(8), Clock(20), {"a", "training"}),
                             Period("late", Clock(19), Clock(3)), Period("b", 0, 60, {"b"})})});
  EXPECT_EQ(ReasonOf(calendars, "twice"),
            "Overlap: periods day and late overlap, and both name queue training");
  EXPECT_EQ(PeriodOf(calendars, "b", Utc("2026-12-01T00:30:00Z")), "");
  EXPECT_EQ(calendars.NextChanges(Utc("2026-12-01T00:00:00Z")).any, std::nullopt);
  const auto apart =
      Of({Calendar("c", {Period("day", Clock(8), Clock(20)), Period("night", Clock(20), Clock(8)),
                         Period("late", Clock(19), Clock(21), {"other"})})});
  EXPECT_EQ(ReasonOf(apart, "c", {{"training", nullptr}, {"other", nullptr}}), "Ready: ");
}

TEST(QueueCalendarTest, OfTwoCalendarsThatOverlapTheFirstByNameCounts) {
  const auto calendars = Of({Calendar("b", {Period("late", Clock(19), Clock(21))}),
                             Calendar("a", {Period("day", Clock(8), Clock(20))}),
                             Calendar("c", {Period("night", Clock(20), Clock(8))})});
  EXPECT_EQ(
      ReasonOf(calendars, "b"),
      "Overlap: its periods overlap periods of QueueCalendar a, and both name queue training");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-12-01T19:30:00Z")), "day");
  EXPECT_EQ(PeriodOf(calendars, "training", Utc("2026-12-01T20:30:00Z")), "night");
}

// Berlin and New York are six hours apart, and five in the weeks between both changes of clocks.
TEST(QueueCalendarTest, CalendarsOfTwoZonesOverlapWhereTheyDoOnceAYear) {
  const auto reason = [](int from, int until) {
    return ReasonOf(Of({Calendar("berlin", {Period("day", Clock(12), Clock(18))}, kBerlin),
                        Calendar("york", {Period("part", from, until)}, "America/New_York")}),
                    "york");
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(reason(Clock(4), Clock(6)), HasSubstr("QueueUnknown"));
  EXPECT_THAT(reason(Clock(4), Clock(6, 1)), HasSubstr("Overlap"));
  EXPECT_THAT(reason(Clock(12), Clock(14)), HasSubstr("Overlap")) << "five hours apart";
  EXPECT_THAT(reason(Clock(13), Clock(14)), HasSubstr("QueueUnknown"));
}

TEST(QueueCalendarTest, AQueueWithoutAnObjectIsSaidAndTheOthersHaveTheirNumbers) {
  const auto calendars =
      Of({Calendar("c", {Period("day", Clock(8), Clock(20), {"gone", "training"})})});
  auto training = std::make_shared<QueueSpec>();
  training->name = "training";
  training->guaranteed = {{kCalendarType, 64}};
  training->limit = {{kCalendarType, 96}};
  const QueueTree::Specs queues{{"training", training}};
  EXPECT_EQ(ReasonOf(calendars, "c", queues),
            "QueueUnknown: period day names queue gone, which does not exist");
  const auto by_day = EffectiveSpecs(queues, calendars.InForceAt(Utc("2026-12-01T09:00:00Z")));
  EXPECT_EQ(by_day.at("training")->guaranteed, (ChipCounts{{kCalendarType, 2}}));
  EXPECT_EQ(by_day.at("training")->limit, training->limit) << "the period has none";
  EXPECT_EQ(by_day.size(), 1U);
  EXPECT_EQ(EffectiveSpecs(queues, calendars.InForceAt(Utc("2026-12-01T21:00:00Z"))), queues);
}

TEST(QueueCalendarTest, EachCombinationOfPeriodsOfAWeekIsAComingChange) {
  const auto calendars =
      Of({Calendar("c", {Period("day", Clock(8), Clock(20)), Period("night", Clock(20), Clock(8)),
                         Period("sunday", Clock(10), Clock(12), {"b"}, kSunday)})});
  std::vector<std::string> changes;
  for (const auto& change : calendars.ComingChanges(Utc("2026-12-01T09:00:00Z"), 8)) {
    std::string periods;
    for (const auto& [queue, period] : change.in_force) periods += " " + period.get().name;
    changes.push_back(FormatTime(change.at) + periods);
  }
  EXPECT_THAT(changes,
              ElementsAre("2026-12-01T20:00:00Z night", "2026-12-06T10:00:00Z sunday day"));
  EXPECT_EQ(calendars.ComingChanges(Utc("2026-12-01T09:00:00Z"), 1).size(), 1U);
}

TEST(QueueCalendarTest, ThreeHundredCalendarsAreReadAtOnce) {
  std::vector<std::shared_ptr<const QueueCalendarSpec>> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(Calendar(fmt::format("c{:03}", i),
                           {Period("day", i, Clock(20), {fmt::format("q{}", i % 150)})}));
  }
  const auto calendars = Of(all);
  EXPECT_EQ(calendars.InForceAt(Utc("2026-12-01T12:00:00Z")).size(), 150U);
  EXPECT_THAT(ReasonOf(calendars, "c150"), ::testing::HasSubstr("QueueCalendar c000"));
  EXPECT_EQ(calendars.NextChanges(Utc("2026-12-01T12:00:00Z")).any, Utc("2026-12-01T20:00:00Z"));
}

// ---- Against clocks that are looked at minute by minute -----------------------------------------

// Follows one period by the face of the zone's clock alone. A clock has shown a time as soon as the
// clock shows that time or a later time.
class ClockWatcher {
 public:
  ClockWatcher(const QueuePeriod& period, absl::TimeZone zone) : period_(period), zone_(zone) {}

  // Takes the next minute.
  void Look(WallTime now) {
    const absl::CivilMinute shown = absl::ToCivilMinute(
        absl::FromUnixSeconds(
            std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count()),
        zone_);
    latest_ = std::max(latest_, shown);
    in_force_ = false;
    const absl::CivilDay today(latest_);
    for (absl::CivilDay day = today - 2; day <= today; ++day) {
      if ((period_.days >> static_cast<int>(absl::GetWeekday(day)) & 1) == 0) continue;
      const absl::CivilMinute begin = absl::CivilMinute(day) + period_.from;
      const absl::CivilMinute end =
          absl::CivilMinute(day) + period_.until + (period_.until <= period_.from ? 1440 : 0);
      in_force_ = in_force_ || (begin <= latest_ && latest_ < end);
    }
  }
  bool in_force() const { return in_force_; }

 private:
  const QueuePeriod period_;
  const absl::TimeZone zone_;
  absl::CivilMinute latest_ = absl::CivilMinute::min();
  bool in_force_ = false;
};

TEST(QueueCalendarPropertyTest, PeriodsAreThoseOfTheClocksOfEachZone) {
  // Each with a day at which clocks are set; those of Lord Howe are set by half an hour.
  const std::vector<std::pair<std::string, std::string>> zones = {
      {"UTC", "2026-12-01T00:00:00Z"},
      {kBerlin, "2026-03-29T00:00:00Z"},
      {kBerlin, "2026-10-25T00:00:00Z"},
      {"America/New_York", "2026-11-01T00:00:00Z"},
      {"Asia/Kolkata", "2026-06-01T00:00:00Z"},
      {"Australia/Lord_Howe", "2026-04-04T12:00:00Z"},
      {"Australia/Lord_Howe", "2026-10-03T12:00:00Z"}};
  Rng rng(41);
  for (int round = 0; round < 84; ++round) {
    const auto& [zone, day] = zones[static_cast<std::size_t>(round) % zones.size()];
    const bool at_night = rng.Below(2) == 0;  // when clocks are set
    const int from = static_cast<int>(rng.Below(at_night ? 240 : 1440));
    int until = static_cast<int>(rng.Below(at_night ? 240 : 1440));
    if (until == from) ++until;
    const QueuePeriod period =
        Period("p", from, until, {"q"}, static_cast<std::uint8_t>(1 + rng.Below(127)));
    const auto calendars = Of({Calendar("c", {period}, zone)}, day);
    ClockWatcher watcher(period, ZoneOf(zone));
    std::optional<WallTime> next;
    std::string before;
    for (WallTime now = Utc(day) - hours(30); now < Utc(day) + hours(30); now += minutes(1)) {
      watcher.Look(now);
      const std::string in_force = PeriodOf(calendars, "q", now);
      ASSERT_EQ(!in_force.empty(), watcher.in_force())
          << zone << " " << FormatTime(now) << " from " << from << " until " << until;
      ASSERT_TRUE(!next || in_force == before || now == *next)
          << "nobody was woken for the change of " << FormatTime(now);
      if (!next || now >= *next) next = calendars.NextChanges(now).any;
      ASSERT_TRUE(next && *next > now);
      before = in_force;
    }
  }
}

}  // namespace
}  // namespace tahoma::controller
