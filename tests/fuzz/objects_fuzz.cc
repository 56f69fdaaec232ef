// Objects about Capacity Blocks, Queues, QueueCalendars, MaintenanceWindows and Defragmentations,
// as a watch gives them; the first byte is the kind. A status that is read is written as one that
// reads as the same, the calendar is drawn of any block, a Queue or Defragmentation without a
// broken rule has numbers within its bounds, periods of a QueueCalendar begin and end, and a window
// without a broken rule goes through its phases in their order.

#include <memory>
#include <string>
#include <string_view>

#include "controller/core/facts/defragmentation.h"
#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/facts/queue_object.h"
#include "controller/core/facts/read_facts.h"
#include "controller/core/facts/read_request.h"
#include "controller/core/facts/window_object.h"
#include "controller/ctl/calendar_reader.h"
#include "controller/ctl/calendar_svg.h"
#include "controller/ctl/defragmentation.h"
#include "controller/ctl/queue_tree.h"
#include "controller/publish/render_defragmentation.h"
#include "controller/publish/render_request.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/patch.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::controller;
using tahoma::Json;

void FuzzRequest(RequestKind kind, const Json& object) {
  const auto fact = ParseRequest(kind, object);
  if (!fact.ok() || !(*fact)->status) return;
  const RequestStatus& status = *(*fact)->status;
  Json again = object;
  again["status"] = tahoma::kube::MergePatch(Json::object(), RequestStatusJson(kind, status));
  const auto same = ParseRequest(kind, again);
  TAHOMA_CHECK_OK(same.status());
  Json third = object;
  third["status"] =
      tahoma::kube::MergePatch(Json::object(), RequestStatusJson(kind, *(*same)->status));
  TAHOMA_CHECK(third["status"] == again["status"]);
}

void FuzzBlock(const Json& object) {
  (void)ParseBlock(object).ok();
  const auto block = CalendarBlockOf(object);
  if (!block) return;
  for (const auto by : {CalendarBy::kBlock, CalendarBy::kHost, CalendarBy::kCell}) {
    const Calendar calendar = MakeCalendar({*block, *block}, {.now = block->start, .by = by});
    TAHOMA_CHECK(!DrawCalendarText(calendar, 80).empty());
    TAHOMA_CHECK(DrawCalendarSvg(calendar).ends_with("</svg>\n"));
  }
}

void FuzzQueueCalendar(const Json& object) {
  const auto read = ParseQueueCalendar(object);
  if (!read.ok()) return;
  constexpr tahoma::WallTime kNow{std::chrono::seconds(1'800'000'000)};
  const QueueCalendars calendars({{read->spec->name, read->spec}}, kNow);
  std::string message;
  const CalendarTrouble trouble = calendars.TroubleOf(read->spec->name, {}, message);
  TAHOMA_CHECK((trouble == CalendarTrouble::kNone) == message.empty());
  const auto next = calendars.NextChanges(kNow).any;
  TAHOMA_CHECK(!next || *next > kNow);
  if (!read->spec->invalid.empty()) {
    TAHOMA_CHECK(!next);
    return;
  }
  for (const QueuePeriod& period : read->spec->periods) {
    TAHOMA_CHECK(period.days != 0 && period.from != period.until && !period.queues.empty());
    TAHOMA_CHECK(period.from >= 0 && period.from < 1440 && period.until <= 1440);
  }
}

void FuzzQueue(const Json& object) {
  TAHOMA_CHECK(!QueueTreeText({{"items", {object, object}}}, QueueColumns::kWide).empty());
  const auto queue = ParseQueue(object);
  if (!queue.ok() || !queue->spec->invalid.empty()) return;
  const QueueSpec& spec = *queue->spec;
  TAHOMA_CHECK(spec.parent != spec.name && spec.weight >= 1);
  for (const auto& [type, chips] : spec.guaranteed) {
    const auto limit = spec.limit.find(type);
    TAHOMA_CHECK(chips >= 0 && (limit == spec.limit.end() || chips <= limit->second));
  }
  for (const auto& [type, chips] : spec.lending_limit) {
    TAHOMA_CHECK(chips <= spec.guaranteed.at(type));
  }
  for (const auto& time : {spec.half_life, spec.max_runtime, spec.default_max_runtime}) {
    TAHOMA_CHECK(!time || (time->count() > 0 && time->count() <= 6'000'000'000));
  }
}

void FuzzWindow(const Json& object) {
  const auto parsed = ParseWindow(object);
  if (!parsed.ok()) return;
  const WindowSpec& window = *parsed->spec;
  if (!window.invalid.empty()) {
    TAHOMA_CHECK(PhaseAt(window, {}) == WindowPhase::kInvalid);
    return;
  }
  TAHOMA_CHECK(window.from < window.until && window.warning.count() > 0);
  TAHOMA_CHECK(!window.nodes.empty() || !window.ultra_servers.empty());
  TAHOMA_CHECK(PhaseAt(window, window.from) == WindowPhase::kActive);
  TAHOMA_CHECK(PhaseAt(window, window.until) == WindowPhase::kOver);
}

// Returns the status as it reads when it is written.
DefragmentationStatus WrittenAndRead(const DefragmentationStatus& status) {
  const auto shared = std::make_shared<const DefragmentationStatus>(status);
  Json object = tahoma::ParseJson(
      RenderDefragmentationStatus({.name = "n", .uid = "u", .base_version = {}, .status = shared})
          .Text());
  object["metadata"]["name"] = "n";
  return (*ParseDefragmentation(object))->status;
}

void FuzzDefragmentation(const Json& object) {
  TAHOMA_CHECK(DefragmentationsText({{"items", {object, object}}}).size() > 1);
  const auto fact = ParseDefragmentation(object);
  if (!fact.ok()) return;
  const DefragmentationStatus written = WrittenAndRead((*fact)->status);
  TAHOMA_CHECK(WrittenAndRead(written) == written);
  if (!(*fact)->spec_error.empty()) return;
  const DefragmentationSpec& spec = (*fact)->spec;
  TAHOMA_CHECK(spec.max_moves >= 1 && spec.moves_per_hour >= 1 && spec.keep_for.count() >= 0);
  TAHOMA_CHECK(spec.for_gang || WantedBy(spec).has_value());
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (input.empty()) return;
  const Json object = tahoma::TryParseJson(input.substr(1));
  if (object.is_discarded()) return;
  constexpr unsigned char kQueue = 'q', kDefragmentation = 'd';
  if (static_cast<unsigned char>(input[0]) == kQueue) return FuzzQueue(object);
  constexpr unsigned char kQueueCalendar = 'k';
  if (static_cast<unsigned char>(input[0]) == kQueueCalendar) return FuzzQueueCalendar(object);
  constexpr unsigned char kWindow = 'w';
  if (static_cast<unsigned char>(input[0]) == kWindow) return FuzzWindow(object);
  if (static_cast<unsigned char>(input[0]) == kDefragmentation) return FuzzDefragmentation(object);
  constexpr std::size_t kKinds = std::size(kRequestKinds);
  const auto kind = static_cast<std::size_t>(static_cast<unsigned char>(input[0])) % (kKinds + 1);
  if (kind == kKinds) return FuzzBlock(object);
  FuzzRequest(kRequestKinds[kind], object);
}
