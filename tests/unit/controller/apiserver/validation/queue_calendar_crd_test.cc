// A QueueCalendar is valid by the CustomResourceDefinition exactly when
// controller/core/facts/queue_calendar_object.h finds no broken rule, but for rules that the
// definition cannot say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/core/facts/queue_calendar_object.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

using ::testing::HasSubstr;

const Kind& Calendars() {
  static const auto* const kind = new std::shared_ptr<const Kind>(KindOfCrdFile("queuecalendars"));
  return **kind;
}

Json CalendarOf(const Json& spec) {
  Json calendar = {{"apiVersion", "tahoma.dev/v1alpha1"},
                   {"kind", "QueueCalendar"},
                   {"metadata", {{"name", "by-day"}}},
                   {"spec", spec}};
  ApplyDefaults(*Calendars().schema, calendar);
  return calendar;
}

Json PeriodJson() {
  return {
      {"name", "day"},
      {"from", "08:00"},
      {"until", "20:00"},
      {"queues", Json::array({{{"name", "serving"}, {"guaranteed", {{"trn2.48xlarge", 64}}}}})}};
}

std::string WrongIn(const Json& calendar) { return ParseQueueCalendar(calendar)->spec->invalid; }

TEST(QueueCalendarCrdTest, AnObjectIsReadAsItIsWritten) {
  Json period = PeriodJson();
  period["days"] = {"Mon", "Sun"};
  period["until"] = "24:00";
  period["queues"].push_back({{"name", "training"}, {"limit", Json::object()}});
  const Json calendar = CalendarOf(
      {{"timeZone", "Europe/Berlin"}, {"warning", "90m"}, {"periods", Json::array({period})}});
  EXPECT_TRUE(ValidateCreate(Calendars(), calendar).empty());
  const auto spec = ParseQueueCalendar(calendar)->spec;
  QueueCalendarSpec expected;
  expected.name = "by-day";
  expected.time_zone = "Europe/Berlin";
  ASSERT_TRUE(absl::LoadTimeZone("Europe/Berlin", &expected.zone));
  expected.warning = std::chrono::minutes(90);
  expected.periods = {{.name = "day", .days = 0x41, .from = 480, .until = 1440, .queues = {}}};
  expected.periods[0].queues["serving"].guaranteed = ChipCounts{{"trn2.48xlarge", 64}};
  expected.periods[0].queues["training"].limit = ChipCounts{};
  EXPECT_EQ(*spec, expected);
  const auto plain =
      ParseQueueCalendar(CalendarOf({{"periods", Json::array({PeriodJson()})}}))->spec;
  EXPECT_EQ(plain->time_zone, "UTC");
  EXPECT_EQ(plain->warning, std::chrono::minutes(30));
  EXPECT_EQ(plain->periods[0].days, QueuePeriod::kEveryDay);
}

TEST(QueueCalendarCrdTest, RulesThatTheDefinitionCannotSayAreTheControllers) {
  Json period = PeriodJson();
  period["queues"][0]["guaranteed"] = {{"trn2", 1}};
  const Json types = CalendarOf({{"periods", Json::array({period})}});
  EXPECT_TRUE(ValidateCreate(Calendars(), types).empty());
  EXPECT_EQ(WrongIn(types),
            "spec.periods[0].queues[0].guaranteed: must name instance types, such as "
            "trn2.48xlarge");
  const Json zone =
      CalendarOf({{"timeZone", "Europe/Nowhere"}, {"periods", Json::array({PeriodJson()})}});
  EXPECT_TRUE(ValidateCreate(Calendars(), zone).empty());
  EXPECT_EQ(
      WrongIn(zone),
      "spec.timeZone: Europe/Nowhere is no time zone, or unknown on the controller's machine");
}

TEST(QueueCalendarCrdTest, NoFileButATimeZoneIsRead) {
  for (const char* name : {"/etc/passwd", "../../etc/passwd", "file:/etc/passwd", ":UTC", "",
                           "UTC/", "Europe//Berlin", "Europe/../UTC", "Etc/UTC\n"}) {
    const Json calendar =
        CalendarOf({{"timeZone", name}, {"periods", Json::array({PeriodJson()})}});
    EXPECT_FALSE(ValidateCreate(Calendars(), calendar).empty()) << name;
    EXPECT_THAT(WrongIn(calendar), HasSubstr("spec.timeZone")) << name;
  }
}

class RandomCalendar {
 public:
  explicit RandomCalendar(std::uint64_t seed) : rng_(seed) {}

  Json Next() {
    Json spec = Json::object();
    maybe(spec, "timeZone", {"UTC", "Europe/Berlin", "Asia/Kolkata", "", "/UTC", "a..b"});
    maybe(spec, "warning", {"30m", "1h", "0s", "168h", "169h", "604801s", "h", "-1h", "1d"});
    Json periods = Json::array();
    for (std::uint64_t left = rng_.Below(4); left > 0 || periods.empty(); --left) {
      periods.push_back(Period());
      if (left == 0) break;
    }
    if (rng_.Chance(1, 32)) periods = Json::array();
    if (rng_.Chance(1, 64)) periods = Json::array_t(33, PeriodJson());
    if (!rng_.Chance(1, 64)) spec["periods"] = std::move(periods);
    return spec;
  }

 private:
  void maybe(Json& object, const char* field, const std::vector<std::string>& choices) {
    if (rng_.Chance(1, 3)) object[field] = Pick(choices);
  }
  // Seldom a wrong choice, of those behind the third.
  std::string Pick(const std::vector<std::string>& choices) {
    const std::size_t count =
        rng_.Chance(9, 10) ? std::min<std::size_t>(3, choices.size()) : choices.size();
    return choices[rng_.Below(count)];
  }
  Json Period() {
    Json period = PeriodJson();
    period["name"] = Pick({"day", "night", "late", "weekend", "", "Day", "a.b"});
    maybe(period, "from", {"00:00", "23:59", "07:30", "24:00", "7:30", "07:60", "", "20:00"});
    maybe(period, "until", {"00:00", "24:00", "19:30", "24:01", "-1:00", "0730", "08:00"});
    if (rng_.Chance(1, 3)) {
      Json days = Json::array();
      for (std::uint64_t left = rng_.Below(3); left > 0; --left) {
        days.push_back(Pick({"Mon", "Sat", "Sun", "mon", "Monday", ""}));
      }
      period["days"] = std::move(days);
    }
    if (rng_.Chance(1, 8)) period["queues"].push_back(Queue());
    if (rng_.Chance(1, 32)) period["queues"] = Json::array();
    if (rng_.Chance(1, 64)) period.erase(Pick({"name", "from", "until", "queues"}));
    return period;
  }
  Json Queue() {
    Json queue = {{"name", Pick({"training", "other", "more", "serving", "Q", ""})}};
    for (const char* field : {"guaranteed", "limit"}) {
      if (!rng_.Chance(3, 4)) continue;
      queue[field] = Json::object();
      if (rng_.Chance(3, 4)) queue[field]["trn2.48xlarge"] = rng_.Chance(1, 8) ? -1 : 16;
    }
    return queue;
  }

  Rng rng_;
};

TEST(QueueCalendarCrdTest, TheDefinitionAndTheControllerAgreeOnRandomCalendars) {
  RandomCalendar specs(19);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
    const Json calendar = CalendarOf(specs.Next());
    const auto causes = ValidateCreate(Calendars(), calendar);
    const std::string by_controller = WrongIn(calendar);
    EXPECT_EQ(causes.empty(), by_controller.empty())
        << calendar.dump() << ": " << by_controller
        << (causes.empty() ? "" : " / " + causes.front().field + " " + causes.front().message);
    ++(causes.empty() ? valid : invalid);
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 1000);
}

TEST(QueueCalendarCrdTest, WhatIsNoCalendarIsAnErrorAndADamagedOneIsInvalid) {
  for (const char* text : {"null", "[]", "{}", "3", R"({"metadata": []})"}) {
    EXPECT_FALSE(ParseQueueCalendar(ParseJson(text)).ok()) << text;
  }
  for (const char* text :
       {R"({"metadata": {"name": "c"}})", R"({"metadata": {"name": "c"}, "spec": 3})",
        R"({"metadata": {"name": "c"}, "spec": {"periods": {"a": 1}}})",
        R"({"metadata": {"name": "c"}, "spec": {"periods": [7]}})",
        R"({"metadata": {"name": "c"}, "spec": {"timeZone": 3, "periods": []}})"}) {
    const auto calendar = ParseQueueCalendar(ParseJson(text));
    ASSERT_TRUE(calendar.ok()) << text;
    EXPECT_NE(calendar->spec->invalid, "") << text;
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
