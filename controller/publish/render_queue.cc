#include "controller/publish/render_queue.h"

#include <string>
#include <string_view>
#include <utility>

#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/facts/queue_object.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using json = Json;

// A list, because a merge patch replaces a list as a whole: of a map, types from before would stay.
json ChipsJson(const ChipCounts& chips) {
  json list = json::array();
  for (const auto& [type, count] : chips) {
    if (count != 0) list.push_back({{"instanceType", type}, {"chips", count}});
  }
  return list;
}

json ConditionJson(std::string_view type, bool holds, std::string_view reason, std::string message,
                   std::int64_t observed_generation, WallTime since) {
  return {{"type", type},
          {"status", holds ? "True" : "False"},
          {"reason", reason},
          {"message", std::move(message)},
          {"observedGeneration", observed_generation},
          {"lastTransitionTime", FormatTime(since)}};
}

std::string_view StopMessage(QueueStop stop) {
  switch (stop) {
    case QueueStop::kNo:
      return "";
    case QueueStop::kHold:
      return "spec.stop is Hold: no gang starts, running ones go on";
    case QueueStop::kDrain:
      return "spec.stop is Drain: no gang starts, running ones are ended";
  }
  return "";
}

}  // namespace

kube::Request RenderQueueCalendarStatus(const QueueCalendarStatusWrite& write) {
  const QueueCalendarStatus& status = *write.status;
  json conditions = json::array(
      {ConditionJson("Ready", status.trouble == CalendarTrouble::kNone, ToString(status.trouble),
                     status.message, status.observed_generation, status.ready_since)});
  json body = {{"observedGeneration", status.observed_generation},
               {"period", status.period},
               {"nextChange", nullptr},
               {"conditions", std::move(conditions)}};
  if (status.next_change) body["nextChange"] = FormatTime(*status.next_change);
  return kube::PatchRequest(kQueueCalendars, {"", write.name}, kube::PatchType::kMerge,
                            {{"metadata", {{"uid", write.uid}}}, {"status", std::move(body)}},
                            {.subresource = "status"});
}

kube::Request RenderQueueStatus(const QueueStatusWrite& write) {
  const QueueStatus& status = *write.status;
  const bool stops = status.stop != QueueStop::kNo;
  json conditions = json::array(
      {ConditionJson("Ready", status.trouble == QueueTrouble::kNone, ToString(status.trouble),
                     status.message, status.observed_generation, status.ready_since),
       ConditionJson("Stopped", stops, stops ? ToString(status.stop) : "NotStopped",
                     std::string(StopMessage(status.stop)), status.observed_generation,
                     status.stopped_since)});
  json body = {{"observedGeneration", status.observed_generation},
               {"waiting", status.waiting},
               {"running", status.running},
               {"held", ChipsJson(status.held)},
               {"borrowed", ChipsJson(status.borrowed)},
               {"heldChips", TotalOf(status.held)},
               {"guaranteedChips", status.guaranteed_chips},
               {"period", status.period},
               {"nextChange", nullptr},
               {"usedChipHours", status.used_chip_hours},
               {"sharePercent", status.share_percent},
               {"usedSharePercent", status.used_share_percent},
               {"place", status.place},
               {"conditions", std::move(conditions)}};
  if (status.next_change) body["nextChange"] = FormatTime(*status.next_change);
  return kube::PatchRequest(kQueues, {"", write.name}, kube::PatchType::kMerge,
                            {{"metadata", {{"uid", write.uid}}}, {"status", std::move(body)}},
                            {.subresource = "status"});
}

}  // namespace tahoma::controller
