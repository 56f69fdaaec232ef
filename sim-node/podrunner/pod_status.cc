// Converts a PodMachine to the pod's status in the API (phase, conditions, container statuses), and
// back.

#include <algorithm>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "sim-node/podrunner/pod_machine.h"

namespace tahoma::sim {
namespace {

using json = Json;

json TerminationJson(const Termination& ended) {
  json made = {{"exitCode", ended.exit.code},
               {"reason", ended.reason},
               {"startedAt", FormatTime(ended.started)},
               {"finishedAt", FormatTime(ended.finished)}};
  if (ended.exit.signal != 0) made["signal"] = ended.exit.signal;
  if (!ended.message.empty()) made["message"] = ended.message;
  if (!ended.container_id.empty()) made["containerID"] = ended.container_id;
  return made;
}

using kube::ListAt;
using kube::StringAt;
using kube::ValueAt;

std::string TextAt(const json& object, std::string_view key) {
  return std::string(StringAt(object, {key}));
}

int NumberAt(const json& object, std::string_view key) {
  return static_cast<int>(kube::IntAt(object, {key}));
}

WallTime TimeAt(const json& object, std::string_view key) {
  return ParseTime(StringAt(object, {key})).value_or(WallTime{});
}

bool IsObject(const json* value) { return value != nullptr && value->is_object(); }

Termination ParseTermination(const json& object) {
  return {.exit = {.code = NumberAt(object, "exitCode"), .signal = NumberAt(object, "signal")},
          .reason = TextAt(object, "reason"),
          .message = TextAt(object, "message"),
          .started = TimeAt(object, "startedAt"),
          .finished = TimeAt(object, "finishedAt"),
          .container_id = TextAt(object, "containerID")};
}

PodHistory::Container ParseContainerHistory(const json& status) {
  // Anybody may write a status; a count of its kind can neither be negative nor overflow here.
  constexpr int kMostRestarts = 1'000'000'000;
  PodHistory::Container container{
      .restarts = std::clamp(NumberAt(status, "restartCount"), 0, kMostRestarts),
      .container_id = TextAt(status, "containerID")};
  for (const char* which : {"lastState", "state"}) {
    if (const json* ended = ValueAt(status, {which, "terminated"}); IsObject(ended)) {
      container.terminated = ParseTermination(*ended);
    }
    if (const json* running = ValueAt(status, {which, "running"}); IsObject(running)) {
      container.was_running = true;
      container.started = TimeAt(*running, "startedAt");
    }
  }
  return container;
}

std::map<std::string, PodHistory::Condition> ParseConditions(const json& status) {
  std::map<std::string, PodHistory::Condition> conditions;
  for (const json& entry : ListAt(status, {"conditions"})) {
    const absl::StatusOr<WallTime> since = ParseTime(StringAt(entry, {"lastTransitionTime"}));
    if (!since.ok()) continue;
    conditions[TextAt(entry, "type")] = {.met = StringAt(entry, {"status"}) == "True",
                                         .since = *since};
  }
  return conditions;
}

bool IsEmpty(const json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

json WithoutEmptyMembers(const json& value) {
  if (!value.is_structured()) return value;
  json kept = value.is_array() ? json::array() : json::object();
  if (value.is_array()) {
    for (const json& item : value) kept.push_back(WithoutEmptyMembers(item));
    return kept;
  }
  for (const auto& [key, member] : value.items()) {
    json made = WithoutEmptyMembers(member);
    if (!IsEmpty(made)) kept[key] = std::move(made);
  }
  return kept;
}

}  // namespace

bool ShowsStatus(const json& pod, const json& written) {
  const auto status = pod.find("status");
  const json shown = WithoutEmptyMembers(status == pod.end() ? json::object() : *status);
  if (!shown.is_object()) return false;
  const json wanted = WithoutEmptyMembers(written);
  for (const auto& [key, value] : wanted.items()) {
    const auto found = shown.find(key);
    if (found == shown.end()) return false;
    if (key != "conditions") {
      if (*found != value) return false;
      continue;
    }
    for (const json& condition : value) {
      if (std::find(found->begin(), found->end(), condition) == found->end()) return false;
    }
  }
  return true;
}

PodHistory ParseHistory(const json& pod) {
  PodHistory history;
  const json* status = ValueAt(pod, {"status"});
  if (!IsObject(status)) return history;
  history.phase = TextAt(*status, "phase");
  history.reason = TextAt(*status, "reason");
  history.message = TextAt(*status, "message");
  const absl::StatusOr<WallTime> start = ParseTime(StringAt(*status, {"startTime"}));
  if (start.ok()) history.start_time = *start;
  history.conditions = ParseConditions(*status);
  for (const char* key :
       {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    for (const json& entry : ListAt(*status, {key})) {
      if (entry.is_object()) {
        history.containers[TextAt(entry, "name")] = ParseContainerHistory(entry);
      }
    }
  }
  return history;
}

// While containers run or may run again. A pod's phase only becomes final once its claims are
// unprepared: whoever frees the devices acts on the phase (kubelet SyncTerminatingPod).
std::string PodMachine::PhaseOfContainers() const {
  bool waiting = false;
  for (const Container& container : containers_) {
    if (container.ephemeral) continue;
    const bool pending =
        container.state == ContainerState::kWaiting || container.state == ContainerState::kStarting;
    if (container.init) {
      const bool done =
          container.state == ContainerState::kTerminated && container.current->exit.code == 0;
      if (!done) return "Pending";
      continue;
    }
    if (pending && !container.last) waiting = true;
  }
  return waiting ? "Pending" : "Running";
}

void PodMachine::RefreshPhase() {
  if (restored_end_ || stage_ == Stage::kUnpreparing) return;
  if (stage_ != Stage::kEnded && stage_ != Stage::kRemoved) {
    phase_ = PhaseOfContainers();
    return;
  }
  const bool succeeded =
      reason_.empty() &&
      std::all_of(containers_.begin(), containers_.end(), [](const Container& container) {
        return container.ephemeral || (container.state == ContainerState::kTerminated &&
                                       container.current->exit.code == 0);
      });
  phase_ = succeeded ? "Succeeded" : "Failed";
}

std::vector<std::string> PodMachine::UnreadyContainers() const {
  std::vector<std::string> unready;
  for (const Container& container : containers_) {
    if (container.init || container.ephemeral) continue;
    if (container.state != ContainerState::kRunning) {
      unready.push_back(container.spec.name);
    }
  }
  return unready;
}

void PodMachine::SetCondition(const std::string& type, bool met, std::string reason,
                              std::string message, WallTime now) {
  const auto [at, added] = conditions_.try_emplace(type);
  Condition& condition = at->second;
  if (added || condition.met != met) condition.since = now;
  // A condition that is as it was has not changed with the runner (kubelet
  // updateLastTransitionTime).
  const auto former = former_conditions_.find(type);
  if (added && former != former_conditions_.end() && former->second.met == met) {
    condition.since = former->second.since;
  }
  condition.met = met;
  condition.reason = std::move(reason);
  condition.message = std::move(message);
}

void PodMachine::RefreshConditions(WallTime now) {
  SetCondition("PodScheduled", true, {}, {}, now);
  SetCondition("PodReadyToStartContainers", stage_ != Stage::kPreparing && active(), {}, {}, now);
  std::vector<std::string> uninitialized;
  for (const Container& container : containers_) {
    const bool done = container.state == ContainerState::kTerminated && container.current &&
                      container.current->exit.code == 0;
    if (container.init && !done) uninitialized.push_back(container.spec.name);
  }
  if (uninitialized.empty()) {
    SetCondition("Initialized", true, phase_ == "Succeeded" ? "PodCompleted" : "", {}, now);
  } else {
    SetCondition(
        "Initialized", false, "ContainersNotInitialized",
        fmt::format("containers with incomplete status: [{}]", fmt::join(uninitialized, " ")), now);
  }
  const std::vector<std::string> unready = UnreadyContainers();
  std::string reason;
  std::string message;
  if (phase_ == "Succeeded") {
    reason = "PodCompleted";
  } else if (phase_ == "Failed") {
    reason = "PodFailed";
  } else if (!unready.empty()) {
    reason = "ContainersNotReady";
    message = fmt::format("containers with unready status: [{}]", fmt::join(unready, " "));
  }
  const bool ready = unready.empty() && active();
  SetCondition("ContainersReady", ready, reason, message, now);
  SetCondition("Ready", ready, reason, message, now);
}

json PodMachine::ContainerStatus(const Container& container) const {
  json state = json::object();
  switch (container.state) {
    case ContainerState::kWaiting:
    case ContainerState::kStarting:
      state["waiting"] = {{"reason", container.waiting_reason}};
      if (!container.waiting_message.empty()) {
        state["waiting"]["message"] = container.waiting_message;
      }
      break;
    case ContainerState::kRunning:
      state["running"] = {{"startedAt", FormatTime(container.started)}};
      break;
    case ContainerState::kTerminated:
      state["terminated"] = TerminationJson(*container.current);
      break;
  }
  const bool running = container.state == ContainerState::kRunning;
  const bool done = container.state == ContainerState::kTerminated && container.init &&
                    container.current->exit.code == 0;
  json status = {{"name", container.spec.name},
                 {"image", container.spec.image},
                 {"imageID", container.container_id.empty() ? "" : container.spec.image},
                 {"ready", running ? !container.init && !container.ephemeral : done},
                 {"restartCount", container.restarts - (container.uncounted ? 1 : 0)},
                 {"state", std::move(state)},
                 {"lastState", json::object()}};
  if (!container.ephemeral) status["started"] = running;
  if (container.last) status["lastState"]["terminated"] = TerminationJson(*container.last);
  if (!container.container_id.empty()) status["containerID"] = container.container_id;
  return status;
}

json PodMachine::Status() const {
  json conditions = json::array();
  for (const auto& [type, condition] : conditions_) {
    json made = {{"type", type},
                 {"status", condition.met ? "True" : "False"},
                 {"lastProbeTime", nullptr},
                 {"lastTransitionTime", FormatTime(condition.since)}};
    if (!condition.reason.empty()) made["reason"] = condition.reason;
    if (!condition.message.empty()) made["message"] = condition.message;
    conditions.push_back(std::move(made));
  }
  json status = {{"phase", phase_},
                 {"conditions", std::move(conditions)},
                 {"hostIP", addresses_.host_ip},
                 {"hostIPs", json::array({json{{"ip", addresses_.host_ip}}})},
                 {"podIP", addresses_.pod_ip},
                 {"podIPs", json::array({json{{"ip", addresses_.pod_ip}}})},
                 {"containerStatuses", json::array()}};
  if (start_time_) status["startTime"] = FormatTime(*start_time_);
  if (!reason_.empty()) status["reason"] = reason_;
  if (!message_.empty()) status["message"] = message_;
  for (const Container& container : containers_) {
    const char* others = container.ephemeral ? "ephemeralContainerStatuses" : "containerStatuses";
    json& list = status[container.init ? "initContainerStatuses" : others];
    list.push_back(ContainerStatus(container));
  }
  return status;
}

}  // namespace tahoma::sim
