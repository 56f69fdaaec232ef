// QueueCalendars as objects of the Kubernetes API: the spec that is read, and the status that is
// shown.
//
//   absl::StatusOr<QueueCalendarObject> calendar = ParseQueueCalendar(object);
//   if (!Says(status, before)) Write(status);
//
// The rules of a single calendar are those of its CustomResourceDefinition, and three that the
// definition cannot say: the time zone exists, instance types have the form of such names, and
// periods do not overlap (share/queue_calendar.h). A calendar that breaks a rule is still read:
// QueueCalendarSpec::invalid names the first broken rule.
//
// Time zones are loaded from the machine's files (package tzdata), once each: whoever parses is an
// edge of the program.
//
// Scope: values. writes/queue_calendar_statuses.h decides when a status is written.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "controller/core/facts/queue_object.h"
#include "controller/share/queue_calendar.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline const kube::Resource kQueueCalendars{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "queuecalendars"};

struct QueueCalendarObject {
  std::shared_ptr<const QueueCalendarSpec> spec;
  QueueShown shown;  // without `stopped`
};

// Fails with kInvalidArgument when the object is no calendar at all: its metadata has no name.
absl::StatusOr<QueueCalendarObject> ParseQueueCalendar(const Json& object);

struct QueueCalendarStatus {
  std::int64_t observed_generation = 0;
  CalendarTrouble trouble = CalendarTrouble::kNone;
  std::string message;
  std::string period;                   // the names of those in force, separated by commas
  std::optional<WallTime> next_change;  // nullopt: the calendar has no effect
  // When the condition last changed.
  WallTime ready_since = {};
};

// Compares all but `ready_since`.
bool Says(const QueueCalendarStatus& a, const QueueCalendarStatus& b);

}  // namespace tahoma::controller
