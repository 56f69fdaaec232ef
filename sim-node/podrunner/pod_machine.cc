#include "sim-node/podrunner/pod_machine.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// A failed start shows its own reason this long, then the back-off's reason. The kubelet shows the
// first reason for a sync of the pod, about a second.
constexpr std::chrono::seconds kReasonShown{1};

bool IsImageFailure(std::string_view reason) { return reason == "ErrImagePull"; }

}  // namespace

PodMachine::PodMachine(PodSpec spec, const PodHistory& history, Addresses addresses)
    : spec_(std::move(spec)),
      addresses_(std::move(addresses)),
      former_conditions_(history.conditions) {
  init_count_ = spec_.init_containers.size();
  for (const auto* list :
       {&spec_.init_containers, &spec_.containers, &spec_.ephemeral_containers}) {
    for (const ContainerSpec& container : *list) {
      containers_.push_back({.spec = container,
                             .init = list == &spec_.init_containers,
                             .ephemeral = list == &spec_.ephemeral_containers});
      Container& made = containers_.back();
      made.waiting_reason = init_count_ == 0 ? "ContainerCreating" : "PodInitializing";
      Restore(history, made);
    }
  }
  start_time_ = history.start_time;
  held_ = history.holds_claims;
  reason_ = history.reason;
  message_ = history.message;
  if (history.phase == "Succeeded" || history.phase == "Failed") {
    phase_ = history.phase;
    restored_end_ = true;
  }
}

void PodMachine::Restore(const PodHistory& history, Container& container) {
  const auto found = history.containers.find(container.spec.name);
  if (found == history.containers.end()) return;
  const PodHistory::Container& was = found->second;
  container.restarts = was.restarts;
  container.container_id = was.container_id;
  if (was.was_running) {
    // The former runner is gone and has taken its containers along (see Sweep).
    container.state = ContainerState::kTerminated;
    container.current =
        Termination{.exit = {.code = 137, .signal = 9},
                    .reason = "ContainerStatusUnknown",
                    .message = "the container ended with the node's last pod runner",
                    .started = was.started,
                    .finished = was.started,
                    .container_id = was.container_id};
  } else if (was.terminated) {
    container.state = ContainerState::kTerminated;
    container.current = was.terminated;
  }
}

PodMachine::Container* PodMachine::Find(std::string_view name) {
  for (Container& container : containers_) {
    if (container.spec.name == name) return &container;
  }
  return nullptr;
}

const PodMachine::Container* PodMachine::Find(std::string_view name) const {
  for (const Container& container : containers_) {
    if (container.spec.name == name) return &container;
  }
  return nullptr;
}

std::string_view PodMachine::phase() const { return phase_; }

bool PodMachine::stopped() const {
  return std::none_of(containers_.begin(), containers_.end(), [](const Container& container) {
    return container.state == ContainerState::kStarting ||
           container.state == ContainerState::kRunning;
  });
}

int PodMachine::restarts(std::string_view container) const {
  const Container* found = Find(container);
  return found == nullptr ? 0 : found->restarts;
}

std::set<std::string> PodMachine::awaited() const {
  std::set<std::string> names;
  for (const Container& container : containers_) {
    const bool waits =
        container.state == ContainerState::kWaiting || container.state == ContainerState::kStarting;
    if (waits && container.last) names.insert(container.spec.name);
  }
  return names;
}

PodActions PodMachine::DrainActions(WallTime now) {
  Advance(now);
  RefreshPhase();
  RefreshConditions(now);
  return std::exchange(actions_, {});
}

PodActions PodMachine::Start(WallTime now) {
  if (!start_time_) start_time_ = now;
  for (Container& container : containers_) {
    if (container.current && container.current->finished < container.current->started) {
      container.current->finished = now;
    }
  }
  // The pod ended before this runner began; its containers are not run again.
  if (restored_end_) Enter(Stage::kUnpreparing);
  if (spec_.deletion_grace) return OnDeletion(*spec_.deletion_grace, now);
  return DrainActions(now);
}

PodActions PodMachine::OnPrepared(WallTime now) {
  if (stage_ != Stage::kPreparing) return {};
  asked_ = false;
  retry_at_.reset();  // another pod's try may have helped meanwhile
  retry_delay_ = {};
  Enter(Stage::kInitializing);
  return DrainActions(now);
}

PodActions PodMachine::OnPrepareFailed(std::string_view message, WallTime now) {
  if (stage_ != Stage::kPreparing) return {};
  RetryClaims("FailedPrepareDynamicResources", message, now);
  return DrainActions(now);
}

PodActions PodMachine::OnUnprepared(WallTime now) {
  if (stage_ != Stage::kUnpreparing) return {};
  asked_ = false;
  held_ = false;
  return DrainActions(now);
}

PodActions PodMachine::OnUnprepareFailed(std::string_view message, WallTime now) {
  if (stage_ != Stage::kUnpreparing) return {};
  RetryClaims("FailedUnprepareDynamicResources", message, now);
  return DrainActions(now);
}

void PodMachine::RetryClaims(std::string_view reason, std::string_view message, WallTime now) {
  asked_ = false;
  retry_delay_ = retry_delay_.count() == 0
                     ? kFirstPrepareRetry
                     : std::min<std::chrono::nanoseconds>(2 * retry_delay_, kMaxPrepareRetry);
  retry_at_ = now + retry_delay_;
  actions_.push_back(
      RecordEvent{.warning = true, .reason = std::string(reason), .message = std::string(message)});
}

PodActions PodMachine::OnStarted(std::string_view name, int attempt, std::string_view container_id,
                                 WallTime now) {
  Container* container = Find(name);
  if (container == nullptr || container->state != ContainerState::kStarting ||
      attempt != container->restarts) {
    return {};
  }
  container->state = ContainerState::kRunning;
  container->uncounted = false;
  container->started = now;
  container->container_id = container_id;
  container->waiting_reason.clear();
  container->waiting_message.clear();
  container->failed_starts = {};
  actions_.push_back(RecordEvent{
      .reason = "Started", .message = fmt::format("Started container {}", container->spec.name)});
  return DrainActions(now);
}

PodActions PodMachine::OnStartFailed(std::string_view name, int attempt, StartFailure failure,
                                     WallTime now) {
  Container* container = Find(name);
  if (container == nullptr || container->state != ContainerState::kStarting ||
      attempt != container->restarts) {
    return {};
  }
  container->state = ContainerState::kWaiting;
  container->retry_at = now + Lengthen(container->failed_starts, now, now);
  container->reason_fades = now + kReasonShown;
  container->waiting_reason = failure.reason;
  container->waiting_message = failure.message;
  actions_.push_back(
      RecordEvent{.warning = true, .reason = "Failed", .message = std::move(failure.message)});
  return DrainActions(now);
}

PodActions PodMachine::OnExited(std::string_view name, int attempt, Exit exit, WallTime now) {
  Container* container = Find(name);
  if (container == nullptr || container->state != ContainerState::kRunning ||
      attempt != container->restarts) {
    return {};
  }
  container->state = ContainerState::kTerminated;
  container->current = Termination{.exit = exit,
                                   .reason = exit.code == 0 ? "Completed" : "Error",
                                   .message = {},
                                   .started = container->started,
                                   .finished = now,
                                   .container_id = container->container_id};
  container->retry_at.reset();
  return DrainActions(now);
}

PodActions PodMachine::OnDeletion(std::chrono::seconds grace, WallTime now) {
  deleting_ = true;
  Stop(grace, now);
  return DrainActions(now);
}

PodActions PodMachine::OnListed(bool deleting, WallTime now) {
  if (gone_) return {};
  deleting_ = deleting;
  if (stage_ == Stage::kRemoved) stage_ = Stage::kEnded;
  return DrainActions(now);
}

PodActions PodMachine::OnGone(WallTime now) {
  gone_ = true;
  deleting_ = true;
  Stop(std::chrono::seconds(0), now);
  return DrainActions(now);
}

PodActions PodMachine::OnNodeShutdown(std::chrono::seconds grace, WallTime now) {
  if (active()) {
    reason_ = "Terminated";
    message_ = "Pod was terminated in response to imminent node shutdown.";
    Stop(grace, now);
  }
  return DrainActions(now);
}

PodActions PodMachine::OnActiveDeadline(std::optional<std::chrono::seconds> deadline,
                                        WallTime now) {
  spec_.active_deadline = deadline;
  return DrainActions(now);
}

PodActions PodMachine::OnEphemeralContainers(const PodSpec& shown, WallTime now) {
  const std::size_t before = containers_.size();
  for (const ContainerSpec& container : shown.ephemeral_containers) {
    if (Find(container.name) != nullptr) continue;
    spec_.ephemeral_containers.push_back(container);
    spec_.stdin_uses[container.name] = shown.stdin_uses.at(container.name);
    containers_.push_back(
        {.spec = container, .ephemeral = true, .waiting_reason = "ContainerCreating"});
  }
  return containers_.size() == before ? PodActions() : DrainActions(now);
}

PodActions PodMachine::OnTick(WallTime now) { return DrainActions(now); }

// Changes to a later stage. Only OnListed goes back.
void PodMachine::Enter(Stage next) {
  TAHOMA_CHECK(next > stage_);
  // A running container would lose its devices to another pod.
  TAHOMA_CHECK(next != Stage::kUnpreparing || stopped());
  stage_ = next;
}

// Starts no more containers; running containers get SIGTERM and, after `grace`, SIGKILL.
void PodMachine::Stop(std::chrono::seconds grace, WallTime now) {
  if (active()) {
    asked_ = false;
    retry_at_.reset();
    retry_delay_ = {};
    Enter(Stage::kStopping);
  }
  if (stage_ != Stage::kStopping) return;
  const WallTime deadline = now + grace;
  if (!kill_at_ || deadline < *kill_at_) kill_at_ = deadline;
}

void PodMachine::Advance(WallTime now) {
  if (active() && spec_.active_deadline && start_time_ &&
      now >= *start_time_ + *spec_.active_deadline) {
    reason_ = "DeadlineExceeded";
    message_ = "Pod was active on the node longer than the specified deadline";
    Stop(spec_.grace, now);
  }
  FadeReasons(now);
  if (stage_ == Stage::kPreparing) AdvancePreparing(now);
  if (stage_ == Stage::kInitializing) AdvanceInitializing(now);
  if (stage_ == Stage::kRunning) AdvanceRunning(now);
  BeginEphemeral(now);
  if (stage_ == Stage::kStopping) AdvanceStopping(now);
  if (stage_ == Stage::kUnpreparing) {
    if (!held_) {
      Enter(Stage::kEnded);
    } else if (!asked_ && (!retry_at_ || now >= *retry_at_)) {
      asked_ = true;
      retry_at_.reset();
      actions_.push_back(UnprepareClaims{});
    }
  }
  if (stage_ == Stage::kEnded && deleting_) {
    Enter(Stage::kRemoved);
    if (!gone_) actions_.push_back(RemovePod{});
  }
}

void PodMachine::AdvancePreparing(WallTime now) {
  if (spec_.claims.empty()) {
    Enter(Stage::kInitializing);
    return;
  }
  if (asked_ || (retry_at_ && now < *retry_at_)) return;
  asked_ = true;
  held_ = true;
  retry_at_.reset();
  actions_.push_back(PrepareClaims{});
}

void PodMachine::AdvanceInitializing(WallTime now) {
  for (std::size_t i = 0; i < init_count_; ++i) {
    Container& container = containers_[i];
    const bool ended = container.state == ContainerState::kTerminated;
    if (ended && container.current->exit.code == 0) continue;
    if (ended && spec_.restart_policy == RestartPolicy::kNever) {
      Stop(spec_.grace, now);
      return;
    }
    BeginWhenDue(container, now);
    return;
  }
  Enter(Stage::kRunning);
}

void PodMachine::AdvanceRunning(WallTime now) {
  bool all_over = true;
  for (Container& container : containers_) {
    if (container.init || container.ephemeral) continue;
    if (container.state != ContainerState::kTerminated || MayRestart(container)) {
      all_over = false;
      BeginWhenDue(container, now);
    }
  }
  if (!all_over) return;
  if (stopped()) {
    Enter(Stage::kUnpreparing);
  } else {
    Stop(spec_.grace,
         now);  // ephemeral containers end with the others (kubelet SyncTerminatingPod)
  }
}

void PodMachine::BeginEphemeral(WallTime now) {
  if (!active() || stage_ == Stage::kPreparing) return;
  for (Container& container : containers_) {
    if (container.ephemeral && container.state == ContainerState::kWaiting) {
      BeginWhenDue(container, now);
    }
  }
}

void PodMachine::AdvanceStopping(WallTime now) {
  const bool kill = kill_at_ && now >= *kill_at_;
  for (Container& container : containers_) {
    if (container.state != ContainerState::kRunning) continue;
    bool& sent = kill ? container.kill_sent : container.term_sent;
    if (sent) continue;
    sent = true;
    actions_.push_back(SignalContainer{
        .container = container.spec.name, .attempt = container.restarts, .kill = kill});
  }
  if (!stopped()) return;
  // Nothing will start any more: containers that ran before show their end (kubelet
  // ShouldContainerBeRestarted, false from the deletion on).
  for (Container& container : containers_) {
    if (container.state != ContainerState::kWaiting || !container.last) continue;
    container.current = std::exchange(container.last, std::nullopt);
    container.state = ContainerState::kTerminated;
  }
  Enter(Stage::kUnpreparing);
}

bool PodMachine::MayRestart(const Container& container) const {
  switch (spec_.restart_policy) {
    case RestartPolicy::kAlways:
      return true;
    case RestartPolicy::kOnFailure:
      return container.current && container.current->exit.code != 0;
    case RestartPolicy::kNever:
      return false;
  }
  return false;
}

// `event` is the time of the failure. After a long time without a failure the delay begins anew.
std::chrono::nanoseconds PodMachine::Lengthen(BackOff& back_off, WallTime event, WallTime now) {
  if (back_off.delay.count() == 0 || event - back_off.updated > kBackOffReset) {
    back_off.delay = kFirstBackOff;
  } else {
    back_off.delay = std::min<std::chrono::nanoseconds>(2 * back_off.delay, kMaxBackOff);
  }
  back_off.updated = now;
  return back_off.delay;
}

// The first crash restarts at once and arms 10 s; a crash while armed waits, counted from its end.
void PodMachine::BeginWhenDue(Container& container, WallTime now) {
  if (container.state == ContainerState::kWaiting) {
    if (container.retry_at && now < *container.retry_at) return;
    TAHOMA_CHECK(!container.again || container.last.has_value());  // a restart follows an end
    if (container.again) Lengthen(container.crashes, container.last->finished, now);
    Begin(container);
    return;
  }
  if (container.state != ContainerState::kTerminated) return;
  TAHOMA_CHECK(container.current.has_value());
  container.last = std::exchange(container.current, std::nullopt);
  container.state = ContainerState::kWaiting;
  container.again = true;
  const WallTime finished = container.last->finished;
  const BackOff& crashes = container.crashes;
  const bool armed = crashes.delay.count() != 0 && finished - crashes.updated <= kBackOffReset;
  if (armed && now < finished + crashes.delay) {
    WaitForBackOff(container, finished + crashes.delay);
    return;
  }
  Lengthen(container.crashes, finished, now);
  Begin(container);
}

void PodMachine::WaitForBackOff(Container& container, WallTime until) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(container.crashes.delay).count();
  const std::string wait = seconds >= 60 ? fmt::format("{}m{}s", seconds / 60, seconds % 60)
                                         : fmt::format("{}s", seconds);
  container.retry_at = until;
  container.waiting_reason = "CrashLoopBackOff";
  container.waiting_message =
      fmt::format("back-off {} restarting failed container={} pod={}_{}({})", wait,
                  container.spec.name, spec_.name, spec_.name_space, spec_.uid);
  actions_.push_back(
      RecordEvent{.warning = true,
                  .reason = "BackOff",
                  .message = fmt::format("Back-off restarting failed container {} in pod {}",
                                         container.spec.name, spec_.full_name())});
}

void PodMachine::Begin(Container& container) {
  // A second process would share the devices of the first, and a process after Stop gets no signal.
  TAHOMA_CHECK(container.state == ContainerState::kWaiting && active());
  if (container.again) {
    container.restarts += 1;
    container.uncounted = true;
  }
  container.again = false;
  container.retry_at.reset();
  container.reason_fades.reset();
  container.state = ContainerState::kStarting;
  container.waiting_reason = "ContainerCreating";
  container.waiting_message.clear();
  actions_.push_back(
      StartContainer{.container = container.spec.name, .attempt = container.restarts});
}

void PodMachine::FadeReasons(WallTime now) {
  for (Container& container : containers_) {
    if (!container.reason_fades || now < *container.reason_fades) continue;
    container.reason_fades.reset();
    if (IsImageFailure(container.waiting_reason)) {
      container.waiting_reason = "ImagePullBackOff";
      container.waiting_message = fmt::format("Back-off pulling image \"{}\": {}",
                                              container.spec.image, container.waiting_message);
    }
  }
}

std::optional<WallTime> PodMachine::NextDeadline() const {
  std::optional<WallTime> next;
  const auto consider = [&next](const std::optional<WallTime>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(retry_at_);
  if (active() && spec_.active_deadline && start_time_) {
    consider(*start_time_ + *spec_.active_deadline);
  }
  for (const Container& container : containers_) {
    if (active()) consider(container.retry_at);
    if (active()) consider(container.reason_fades);
    if (stage_ == Stage::kStopping && container.state == ContainerState::kRunning &&
        !container.kill_sent) {
      consider(kill_at_);
    }
  }
  return next;
}

}  // namespace tahoma::sim
