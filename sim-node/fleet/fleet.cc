#include "sim-node/fleet/fleet.h"

#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using std::chrono::nanoseconds;

constexpr kube::RetryOptions kPauses = {
    .attempts = 0, .first = std::chrono::milliseconds(100), .longest = std::chrono::seconds(5)};
// Somebody else wrote at the same moment.
constexpr std::chrono::seconds kAfterConflict{1};
constexpr std::chrono::seconds kAfterRefusal{30};
// A node counts as lost when its lease was not renewed for 40 s (kube::kNodeLeaseDuration), by the
// clock of whoever watches leases.
constexpr std::chrono::seconds kMayBeLost{30};

}  // namespace

Fleet::Fleet(FleetOptions options, Ports ports)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      nodes_(options_.plan, ports_.transport, ports_.clock),
      schedule_({.nodes = options_.plan.nodes,
                 .lease_period = options_.lease_period,
                 .resync_period = options_.resync_period},
                ports_.clock.MonotonicNow()),
      progress_(options_.plan.nodes, options_.lease_period, ports_.clock.MonotonicNow()) {}

void Fleet::Start() {
  Rng rng(ports_.seed);
  for (int i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this, seed = rng.Next()] { Work(Rng(seed)); });
  }
}

void Fleet::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (ports_.interrupt) ports_.interrupt();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::Status Fleet::Do(const FleetTask& task, std::size_t& slices) {
  if (task.work == FleetWork::kRenewLease) {
    const bool look = task.silent >= kMayBeLost;
    return nodes_.RenewLease(task.node,
                             look ? VirtualNodes::Look::kNodeToo : VirtualNodes::Look::kLeaseOnly);
  }
  const auto ensured = nodes_.Ensure(
      task.node, task.first ? VirtualNodes::Known::kNothing : VirtualNodes::Known::kMade);
  if (ensured.ok()) slices = *ensured;
  return ensured.status();
}

bool Fleet::Settle(const FleetTask& task, const absl::Status& status, std::size_t slices) {
  const MonotonicTime now = ports_.clock.MonotonicNow();
  const bool answered = kube::OutcomeOf(status) != kube::Outcome::kRetryLater;
  if (status.ok()) {
    schedule_.Finish(task, now);
    if (task.work == FleetWork::kRenewLease) {
      progress_.CountRenewal(task.late);
    } else {
      progress_.CountEnsured(task.first, slices);
    }
  } else if (!stopping_) {
    nanoseconds after = kAfterRefusal;
    if (kube::OutcomeOf(status) == kube::Outcome::kConflict) after = kAfterConflict;
    if (!answered) after = nanoseconds(0);
    schedule_.PutBack(task, now + after);
    progress_.CountFailure(status);
  }
  for (const FleetProgress::Line& line : progress_.Tell(now)) {
    const auto& say = line.warning ? ports_.warn : ports_.log;
    if (say) say(line.text);
  }
  return answered;
}

void Fleet::WaitForWork() {
  const std::optional<MonotonicTime> next = schedule_.next();
  if (!next) {
    changed_.Wait(mutex_);  // all tasks are under way; who finishes one tells
  } else {
    changed_.WaitUntil(mutex_, CondVar::In(*next - ports_.clock.MonotonicNow()));
  }
}

void Fleet::Pause(nanoseconds duration) {
  const auto deadline = CondVar::In(duration);
  while (!stopping_ && CondVar::In(nanoseconds(0)) < deadline) changed_.WaitUntil(mutex_, deadline);
}

void Fleet::Work(Rng rng) {
  int failures = 0;
  MutexLock lock(mutex_);
  while (!stopping_) {
    const MonotonicTime now = ports_.clock.MonotonicNow();
    const std::optional<FleetTask> task = schedule_.PopDue(now);
    if (!task) {
      WaitForWork();
      continue;
    }
    if (schedule_.next().value_or(now + kMayBeLost) <= now) changed_.NotifyOne();  // more is due
    lock.Unlock();
    std::size_t slices = 0;
    const absl::Status status = Do(*task, slices);
    lock.Lock();
    const bool answered = Settle(*task, status, slices);
    failures = answered ? 0 : failures + 1;
    if (!answered) Pause(kube::Backoff(kPauses, failures, rng));
    if (!progress_.is_complete() || std::exchange(looked_beyond_, true)) continue;
    lock.Unlock();
    LookBeyond();
    lock.Lock();
  }
}

void Fleet::LookBeyond() {
  const std::string beyond = nodes_.FirstBeyond();
  if (beyond.empty() || !ports_.warn) return;
  ports_.warn(fmt::format(
      "node {} and perhaps more are of a larger fleet of this name; nobody renews their leases any "
      "more: delete them, or ask for so many nodes again",
      beyond));
}

std::size_t Fleet::RunDue() {
  std::size_t done = 0;
  MutexLock lock(mutex_);
  while (const auto task = schedule_.PopDue(ports_.clock.MonotonicNow())) {
    lock.Unlock();
    std::size_t slices = 0;
    const absl::Status status = Do(*task, slices);
    lock.Lock();
    if (!Settle(*task, status, slices)) break;
    if (status.ok()) ++done;
  }
  return done;
}

bool Fleet::is_complete() const {
  const MutexLock lock(mutex_);
  return progress_.is_complete();
}

FleetProgress::Counts Fleet::counts() const {
  const MutexLock lock(mutex_);
  return progress_.counts();
}

}  // namespace tahoma::sim
