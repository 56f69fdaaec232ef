#include "controller/run/core_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// A first list of a large fleet is many commands; watches wait when there are more.
constexpr std::size_t kQueueMost = 1U << 20U;
constexpr std::size_t kCommandsPerStep = 4096;
// The loop looks at the clock at least this often.
constexpr std::chrono::milliseconds kIdle{1000};
constexpr std::chrono::milliseconds kJournalAgain{1000};
// More than a step takes at any measured size, and more than a request with its time-out.
constexpr std::chrono::seconds kCoreStillMost{60};
constexpr std::chrono::seconds kRequestMost{90};
constexpr std::chrono::seconds kOrderMost{30};

CoreOptions CoreOptionsOf(const CoreLoopOptions& options) {
  CoreOptions core = options.core;
  if (options.term) core.term = options.term();
  return core;
}

// The next leader may have decided something else by now.
absl::Status LeadsNoMore() {
  return Unavailable(
      "the controller leads no more: the order may have been carried out, and repeating it with "
      "the same token is safe");
}

}  // namespace

CoreLoop::CoreLoop(kube::Transport& transport, Journal& journal, const Clock& clock,
                   CoreLoopOptions options)
    : transport_(transport),
      journal_(journal),
      clock_(clock),
      options_(std::move(options)),
      core_([this](const ClusterState& view, const Queue& queue, WallTime now,
                   Explaining explaining) { return planner_.Plan(view, queue, now, explaining); },
            CoreOptionsOf(options_)),
      queue_(kQueueMost),
      snapshot_(core_.snapshot()) {}

absl::Status CoreLoop::Start() {
  TAHOMA_RETURN_IF_ERROR(journal_.Load([this](Sequence sequence, std::string_view bytes) {
    return core_.Restore(sequence, bytes);
  }));
  publisher_ =
      std::make_unique<Publisher>(transport_, clock_, options_.publisher,
                                  [this](ApiResult result) { queue_.Push(std::move(result)); });
  ingest_ = std::make_unique<Ingest>(
      transport_, options_.scheduler_names,
      [this](Command command) { queue_.Push(std::move(command)); }, sleeper_,
      Rng(SeedFromMachine()), options_.log, [this](const std::string& why) { LoseHistory(why); });
  Beat();
  thread_ = std::thread([this] { Run(); });
  {
    const MutexLock lock(mutex_);
    started_ = true;
  }
  ingest_->Start();
  topology_ = std::make_unique<TopologyPublisher>(
      transport_, clock_,
      TopologyPublisherOptions{.snapshot = [this] { return snapshot(); },
                               .may_send = options_.publisher.may_send,
                               .log = options_.log});
  topology_->Start();
  projections_ = std::make_unique<BlockProjections>(
      transport_, clock_, sleeper_, Rng(SeedFromMachine()),
      BlockProjectionsOptions{.snapshot = [this] { return snapshot(); },
                              .own_namespace = options_.own_namespace,
                              .may_send = options_.publisher.may_send,
                              .log = options_.log});
  projections_->Start();
  return absl::OkStatus();
}

void CoreLoop::Stop() {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  changed_.NotifyAll();
  sleeper_.Interrupt();
  queue_.Close();
  topology_.reset();
  if (thread_.joinable()) thread_.join();
  if (ingest_ != nullptr) ingest_->Stop();
  projections_.reset();
  publisher_.reset();
}

void CoreLoop::Run() {
  std::optional<MonotonicTime> wake;
  while (!queue_.closed()) {
    std::chrono::nanoseconds timeout = kIdle;
    if (wake) {
      timeout = std::clamp<std::chrono::nanoseconds>(*wake - clock_.MonotonicNow(),
                                                     std::chrono::nanoseconds(0), kIdle);
    }
    Beat();
    std::vector<Command> commands = queue_.PopAllFor(kCommandsPerStep, timeout);
    // A watch reports a lost history before it pushes the new objects.
    if (!health().ok()) return;
    const Now now{clock_.WallNow(), clock_.MonotonicNow()};
    const std::size_t wanted = commands.size();
    const std::shared_ptr<const Snapshot> before = core_.snapshot();
    StepOutput out = core_.Step(commands, now);
    const std::chrono::nanoseconds took = clock_.MonotonicNow() - now.monotonic;
    wake = out.wake;
    if (const absl::Status written = WriteJournal(out.journal); !written.ok()) {
      options_.log(fmt::format("the journal cannot be written: {}", Message(written)));
      const MutexLock lock(mutex_);
      failure_ = Annotate(written, "the journal cannot be written");
      changed_.NotifyAll();
      return;
    }
    if (wanted != 0 || !out.writes.empty() || !out.journal.empty()) {
      const MutexLock lock(mutex_);
      snapshot_ = core_.snapshot();
    }
    Give(std::move(out.answers));
    publisher_->Publish(std::move(out.writes));
    Report(*before, took);
  }
}

// Tells people of a step, after the writes that others wait for.
void CoreLoop::Report(const Snapshot& before, std::chrono::nanoseconds took) {
  const std::shared_ptr<const Snapshot> after = core_.snapshot();
  const DecisionLog& log = after->decisions;
  for (std::uint64_t id = std::max(before.decisions.end(), log.first()); id < log.end(); ++id) {
    if (options_.decided) options_.decided(log.at(id));
  }
  const std::uint64_t gangs = after->counters.plans - before.counters.plans;
  if (gangs > 0 && options_.planned) options_.planned(gangs, took);
}

absl::StatusOr<std::shared_ptr<const Block>> CoreLoop::Order(
    std::variant<PurchaseOrder, ExtensionOrder> order) {
  std::uint64_t ticket = 0;
  {
    const MutexLock lock(mutex_);
    if (!started_ || stopping_ || no_orders_) return Unavailable("the controller is not leading");
    if (journal_waits_) {
      return Unavailable("the journal cannot be written now, so nothing was done; ask again later");
    }
    ticket = ++last_ticket_;
    orders_[ticket] = std::nullopt;
  }
  queue_.Push(BlockOrder{ticket, std::move(order)});
  const auto deadline = CondVar::In(kOrderMost);
  const MutexLock lock(mutex_);
  while (!orders_.at(ticket) && !stopping_ && !no_orders_ && !journal_waits_ && failure_.ok() &&
         changed_.WaitUntil(mutex_, deadline)) {
  }
  const std::optional<OrderAnswer> answer = std::move(orders_.at(ticket));
  orders_.erase(ticket);
  if (answer) return answer->block;
  if (no_orders_) return LeadsNoMore();
  if (journal_waits_) {
    return Unavailable(
        "the journal cannot be written now; the order may be carried out when it can, and "
        "repeating "
        "it with the same token is safe");
  }
  return Unavailable(
      "the order was not answered within {} s; it may be carried out yet, and repeating it with "
      "the same token is safe",
      std::chrono::duration_cast<std::chrono::seconds>(kOrderMost).count());
}

void CoreLoop::EndOrders() {
  const MutexLock lock(mutex_);
  no_orders_ = true;
  changed_.NotifyAll();
}

void CoreLoop::Give(std::vector<OrderAnswer> answers) {
  if (answers.empty()) return;
  if (options_.publisher.may_send && !options_.publisher.may_send()) {
    for (OrderAnswer& answer : answers) answer.block = LeadsNoMore();
  }
  const MutexLock lock(mutex_);
  for (OrderAnswer& answer : answers) {
    const auto waiting = orders_.find(answer.ticket);
    if (waiting != orders_.end()) waiting->second = std::move(answer);
  }
  changed_.NotifyAll();
}

void CoreLoop::LoseHistory(const std::string& why) {
  // An API on the journal's disk cannot be restored alone, under a program that runs.
  if (options_.core.journal_beside_api) return;
  const MutexLock lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = Aborted("the API was restored from a backup: {}", why);
  changed_.NotifyAll();
}

void CoreLoop::Beat() { beat_ = clock_.MonotonicNow().time_since_epoch().count(); }

// Callers who wait for an order are told that the journal waits, and need not wait, too.
void CoreLoop::SetJournalWaits(bool waits) {
  const MutexLock lock(mutex_);
  journal_waits_ = waits;
  changed_.NotifyAll();
}

// A refused batch has left nothing in the store (store.h), and nothing of the batch was published.
absl::Status CoreLoop::WriteJournal(const JournalBatch& batch) {
  absl::Status written = journal_.Write(batch);
  if (!options_.wait_for_journal || !absl::IsUnavailable(written)) return written;
  options_.log(fmt::format("decisions wait for the journal: {}", Message(written)));
  SetJournalWaits(true);
  while (absl::IsUnavailable(written) && sleeper_.Sleep(kJournalAgain)) {
    Beat();
    written = journal_.Write(batch);
  }
  SetJournalWaits(false);
  return written;
}

std::string CoreLoop::CoreTrouble() const {
  const MutexLock lock(mutex_);
  if (!started_) return "";
  if (!failure_.ok()) return "it has stopped";
  const auto still = clock_.MonotonicNow().time_since_epoch() - std::chrono::nanoseconds(beat_);
  if (still < kCoreStillMost) return "";
  return fmt::format("it has not moved for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(still).count());
}

std::string CoreLoop::PublisherTrouble() const {
  const MutexLock lock(mutex_);
  if (!started_ || stopping_) return "";
  const std::chrono::nanoseconds longest = publisher_->LongestWait();
  if (longest < kRequestMost) return "";
  return fmt::format("a request to the API has had no answer for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(longest).count());
}

std::shared_ptr<const Snapshot> CoreLoop::snapshot() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

absl::Status CoreLoop::health() const {
  const MutexLock lock(mutex_);
  return failure_;
}

absl::Status CoreLoop::WaitForFailure(std::chrono::milliseconds timeout) {
  const auto deadline = CondVar::In(timeout);
  const MutexLock lock(mutex_);
  while (!stopping_ && failure_.ok() && changed_.WaitUntil(mutex_, deadline)) {
  }
  return failure_;
}

}  // namespace tahoma::controller
