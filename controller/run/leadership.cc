#include "controller/run/leadership.h"

#include <algorithm>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The longest delay until the end of a lease is noticed.
constexpr std::chrono::milliseconds kLook{500};

bool IsWrite(const kube::LeaderElection::Step& step) {
  using Action = kube::LeaderElection::Action;
  return step.action == Action::kCreate || step.action == Action::kUpdate;
}

}  // namespace

Leadership::Leadership(kube::Transport& transport, const Clock& clock,
                       kube::LeaderElectionOptions options,
                       std::function<void(const std::string& line)> log,
                       std::function<void()> history_lost)
    : clock_(clock),
      ns_(options.ns),
      name_(options.name),
      log_(std::move(log)),
      history_lost_(std::move(history_lost)),
      client_(transport, sleeper_, Rng(SeedFromMachine()), {.attempts = 1}),
      election_(std::move(options)),
      thread_([this] { Run(); }) {}

Leadership::~Leadership() {
  sleeper_.Interrupt();
  thread_.join();
  const auto freed = election_.Release(clock_.MonotonicNow(), clock_.WallNow());
  if (!freed) return;
  const auto lease = TryParseJson(*freed);
  if (!client_.Update(kube::kLeases, lease).ok()) log_("the lease could not be given up");
}

bool Leadership::Wait(std::chrono::milliseconds timeout) {
  const auto deadline = CondVar::In(timeout);
  const MutexLock lock(mutex_);
  while (!led_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return led_;
}

void Leadership::Run() {
  bool led = false;
  for (;;) {
    const kube::LeaderElection::Step step = election_.Next(clock_.MonotonicNow(), clock_.WallNow());
    std::chrono::nanoseconds pause{0};
    if (step.action == kube::LeaderElection::Action::kWait) {
      pause = std::clamp<std::chrono::nanoseconds>(step.until - clock_.MonotonicNow(),
                                                   std::chrono::nanoseconds(0), kLook);
    } else {
      Act(step);
    }
    const bool history_lost = election_.ConsumeHistoryLost();
    // Said before `leading` ends, and taken back after the write has been answered: whoever asks
    // `lost` between the two must not end.
    if (history_lost && election_.holder().empty()) regaining_ = true;
    term_ = election_.term();
    leads_until_ = election_.leads_until().value_or(MonotonicTime::min());
    if (IsWrite(step)) regaining_ = false;
    if (history_lost && history_lost_) history_lost_();
    const bool leads = leading();
    if (leads != std::exchange(led, leads)) {
      log_(leads ? fmt::format("leading: lease {}/{}", ns_, name_)
                 : fmt::format("lease {}/{} lost to {}", ns_, name_, election_.holder()));
      const MutexLock lock(mutex_);
      led_ = leads;
      changed_.NotifyAll();
    }
    if (!sleeper_.Sleep(pause)) return;
  }
}

void Leadership::Act(const kube::LeaderElection::Step& step) {
  using Action = kube::LeaderElection::Action;
  if (step.action == Action::kRead) {
    election_.OnRead(client_.Get(kube::kLeases, {ns_, name_}), clock_.MonotonicNow());
    return;
  }
  const auto lease = TryParseJson(step.lease);
  const auto written = step.action == Action::kCreate ? client_.Create(kube::kLeases, ns_, lease)
                                                      : client_.Update(kube::kLeases, lease);
  election_.OnWritten(written, clock_.MonotonicNow());
}

}  // namespace tahoma::controller
