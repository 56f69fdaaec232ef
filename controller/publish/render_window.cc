#include "controller/publish/render_window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>

#include "controller/core/facts/window_object.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using json = Json;

json WindowConditionJson(std::string_view type, bool holds, std::string_view reason,
                         std::string message, const WindowStatus& status, WallTime since) {
  return {{"type", type},
          {"status", holds ? "True" : "False"},
          {"reason", reason},
          {"message", std::move(message)},
          {"observedGeneration", status.observed_generation},
          {"lastTransitionTime", FormatTime(since)}};
}

json ReadyJson(const WindowStatus& status) {
  const bool invalid = status.phase == WindowPhase::kInvalid;
  std::string message = status.invalid;
  if (!invalid && status.missing > 0) {
    message = fmt::format("{} {} no node: {}{}; the hardware is kept when it comes", status.missing,
                          status.missing == 1 ? "name has" : "names have",
                          fmt::join(status.missing_names, ", "),
                          status.missing > std::ssize(status.missing_names) ? ", …" : "");
  }
  const std::string_view reason = invalid ? "Invalid" : status.missing > 0 ? "Missing" : "Ready";
  return WindowConditionJson("Ready", status.ready(), reason, std::move(message), status,
                             status.ready_since);
}

json DrainedJson(const WindowStatus& status) {
  std::string message;
  if (!status.drained()) {
    message = fmt::format("{} {} devices there: {}{}", status.gangs,
                          status.gangs == 1 ? "gang has" : "gangs have",
                          fmt::join(status.gang_names, ", "),
                          status.gangs > std::ssize(status.gang_names) ? ", …" : "");
  }
  return WindowConditionJson("Drained", status.drained(), status.drained() ? "NoGangs" : "GangsRun",
                             std::move(message), status, status.drained_since);
}

}  // namespace

kube::Request RenderWindowStatus(const WindowStatusWrite& write) {
  const WindowStatus& status = *write.status;
  json body = {{"observedGeneration", status.observed_generation},
               {"phase", ToString(status.phase)},
               {"nodes", status.nodes},
               {"gangs", status.gangs},
               {"gangNames", status.gang_names},
               {"missing", status.missing},
               {"missingNames", status.missing_names},
               {"capacityBlocks", status.blocks},
               {"conditions", json::array({ReadyJson(status), DrainedJson(status)})}};
  return kube::PatchRequest(kMaintenanceWindows, {"", write.name}, kube::PatchType::kMerge,
                            {{"metadata", {{"uid", write.uid}}}, {"status", std::move(body)}},
                            {.subresource = "status"});
}

}  // namespace tahoma::controller
