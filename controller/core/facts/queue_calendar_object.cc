#include "controller/core/facts/queue_calendar_object.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "controller/core/facts/spec_fields.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

using kube::Field;

// The bounds of charts/tahoma/crds/tahoma.dev_queuecalendars.yaml.
constexpr std::size_t kPeriodsMost = 32;
constexpr std::size_t kQueuesOfPeriodMost = 64;
constexpr std::size_t kZoneNameMost = 64;
constexpr std::chrono::hours kWarningMost{168};
constexpr std::array<std::string_view, 7> kDays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

// Reads minutes of the day.
int TimeOfDay(Field field, bool ends) {
  static const RE2 kTime("([01][0-9]|2[0-3]):([0-5][0-9])");
  const std::string_view text = field.Text();
  int hour = 0;
  int minute = 0;
  if (ends && text == "24:00") return 24 * 60;
  if (!RE2::FullMatch(text, kTime, &hour, &minute)) {
    field.Fail(ends ? "must be a time from 00:00 to 24:00" : "must be a time from 00:00 to 23:59");
  }
  return hour * 60 + minute;
}

std::uint8_t DaysOf(Field field) {
  if (field.size() == 0) return QueuePeriod::kEveryDay;
  std::uint8_t days = 0;
  for (const Field item : field.Items(kDays.size())) {
    const auto day = std::ranges::find(kDays, item.Text());
    if (day == kDays.end()) {
      item.Fail("must be Mon, Tue, Wed, Thu, Fri, Sat or Sun");
      continue;
    }
    const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(day - kDays.begin()));
    if ((days & bit) != 0) item.Fail("is there twice");
    days = static_cast<std::uint8_t>(days | bit);
  }
  return days;
}

void ReadNumbers(Field item, QueuePeriod& period) {
  const Field name = item.Required("name");
  if (!IsQueueName(name.Text())) name.Fail(kQueueNameRule);
  PeriodNumbers numbers;
  if (item.At("guaranteed").has_value()) numbers.guaranteed = ReadChipCounts(item.At("guaranteed"));
  if (item.At("limit").has_value()) numbers.limit = ReadChipCounts(item.At("limit"));
  if (!numbers.guaranteed && !numbers.limit) item.Fail("must have guaranteed or limit");
  if (!period.queues.emplace(name.Text(), std::move(numbers)).second) name.Fail("is there twice");
}

QueuePeriod PeriodOf(Field item) {
  QueuePeriod period;
  const Field name = item.Required("name");
  period.name = name.Text();
  if (!IsQueueName(period.name)) name.Fail(kQueueNameRule);
  period.days = DaysOf(item.At("days"));
  period.from = TimeOfDay(item.Required("from"), false);
  period.until = TimeOfDay(item.Required("until"), true);
  if (period.from == period.until) {
    item.At("until").Fail("must be another time than from: a whole day is from 00:00 until 24:00");
  }
  const Field queues = item.Required("queues");
  if (queues.size() == 0) queues.Fail("must have at least 1 item");
  for (const Field queue : queues.Items(kQueuesOfPeriodMost)) ReadNumbers(queue, period);
  return period;
}

void ReadZone(Field field, QueueCalendarSpec& calendar) {
  static const RE2 kName("[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*");
  if (!field.has_value()) return;
  calendar.time_zone = field.Text();
  const bool named =
      calendar.time_zone.size() <= kZoneNameMost && RE2::FullMatch(calendar.time_zone, kName);
  if (!named || !absl::LoadTimeZone(calendar.time_zone, &calendar.zone)) {
    calendar.zone = absl::UTCTimeZone();
    field.Fail(fmt::format("{} is no time zone, or unknown on the controller's machine",
                           calendar.time_zone));
  }
}

void ReadCalendar(Field root, QueueCalendarSpec& calendar) {
  const Field spec = root.Required("spec");
  ReadZone(spec.At("timeZone"), calendar);
  calendar.warning = ReadTimeSpan(spec.At("warning")).value_or(calendar.warning);
  if (calendar.warning > kWarningMost) spec.At("warning").Fail("must be at most 168h");
  const Field periods = spec.Required("periods");
  if (periods.size() == 0) periods.Fail("must have at least 1 item");
  for (const Field item : periods.Items(kPeriodsMost)) {
    QueuePeriod period = PeriodOf(item);
    if (std::ranges::find(calendar.periods, period.name, &QueuePeriod::name) !=
        calendar.periods.end()) {
      item.At("name").Fail("is there twice");
    }
    calendar.periods.push_back(std::move(period));
  }
}

}  // namespace

absl::StatusOr<QueueCalendarObject> ParseQueueCalendar(const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("queue calendar"));
  auto calendar = std::make_shared<QueueCalendarSpec>();
  calendar->name = std::move(metadata.name);
  calendar->uid = std::move(metadata.uid);
  calendar->generation = metadata.generation;
  kube::Reading spec_reading(object);
  ReadCalendar(spec_reading.root(), *calendar);
  if (!spec_reading.status().ok()) calendar->invalid = Message(spec_reading.status());
  return QueueCalendarObject{.spec = std::move(calendar),
                             .shown = ShownBy(object, std::move(metadata.resource_version))};
}

bool Says(const QueueCalendarStatus& a, const QueueCalendarStatus& b) {
  return a.observed_generation == b.observed_generation && a.trouble == b.trouble &&
         a.message == b.message && a.period == b.period && a.next_change == b.next_change;
}

}  // namespace tahoma::controller
