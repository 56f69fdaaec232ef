#include "tests/sim/controller_host.h"

#include <algorithm>
#include <utility>

#include "controller/core/journal/block_record.h"
#include "controller/core/journal/usage_record.h"
#include "tests/sim/queue_checks.h"
#include "tests/sim/window_checks.h"

namespace tahoma::simulation {

using controller::ApiResult;
using controller::ApiWrite;
using controller::WriteKind;

namespace {

// A late request may still be carried out for this long after its time-out.
constexpr std::chrono::seconds kLateMost{30};
constexpr std::chrono::seconds kRequestTimeout{10};

ApiResult NoAnswer(const ApiWrite& write) {
  return ReadAnswer(write, absl::UnavailableError("timed out"));
}

bool IsNotice(const ApiWrite& write) {
  return TargetOf(write.kind()) == controller::WriteTarget::kPeople;
}

// Returns the path of the claim or pod that the write is about.
std::string PathOf(const ApiWrite& write) {
  const auto pod_path = [](const auto& one) {
    return fmt::format("/api/v1/namespaces/{}/pods/{}", one.decision->key.ns, one.pod().name);
  };
  if (const auto* claim = std::get_if<controller::ClaimWrite>(&write.what)) {
    return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                       claim->decision->key.ns, claim->claim().name);
  }
  if (const auto* pod = std::get_if<controller::PodWrite>(&write.what)) return pod_path(*pod);
  return pod_path(std::get<controller::PodDeletion>(write.what));
}

}  // namespace

void ControllerHost::After(Era era, Duration delay, std::function<void()> action) {
  world_.events.After(
      delay, Urgency::kNormal,
      [this, era, number = this->*era, action = std::move(action)] { Run(era, number, action); });
}

void ControllerHost::Run(Era era, std::uint64_t number, const std::function<void()>& action) {
  if (number != this->*era) return;
  const Duration now = world_.events.elapsed();
  if (now >= stalled_until_) return action();
  world_.events.After(stalled_until_ - now, Urgency::kNormal,
                      [this, era, number, action] { Run(era, number, action); });
}

void ControllerHost::Start() {
  if (running_ || !api_.up()) return;
  running_ = true;
  if (disk_.store() == nullptr && !disk_.Open().ok()) return Die("its disk cannot be read");
  world_.Mix(name_);
  world_.Mix("controller starts");
  if (world_.swarm.one_process) {
    if (!Begin()) Die("its journal cannot be read");
    return;
  }
  // A new disk is another data folder: another identity (controller/run/identity.h).
  election_ = std::make_unique<kube::LeaderElection>(
      kube::LeaderElectionOptions{.ns = "default",
                                  .name = "tahoma-controller",
                                  .identity = fmt::format("{}-{}", name_, disk_.number())});
  StepElection();
}

bool ControllerHost::Leads() const {
  return election_ != nullptr && election_->IsLeader(world_.clock.MonotonicNow());
}

void ControllerHost::StepElection() {
  using Action = kube::LeaderElection::Action;
  const MonotonicTime now = world_.clock.MonotonicNow();
  const kube::LeaderElection::Step step = election_->Next(now, world_.clock.WallNow());
  Duration pause = world_.Latency();
  if (step.action == Action::kWait) {
    pause = std::clamp<Duration>(step.until - now, std::chrono::milliseconds(1),
                                 std::chrono::milliseconds(500));
  } else if (step.action == Action::kRead) {
    election_->OnRead(client_.Get(kube::kLeases, {"default", "tahoma-controller"}), now);
  } else {
    const auto lease = ParseJson(step.lease);
    election_->OnWritten(step.action == Action::kCreate
                             ? client_.Create(kube::kLeases, "default", lease)
                             : client_.Update(kube::kLeases, lease),
                         now);
  }
  if (election_->ConsumeHistoryLost() && up()) LoseHistory("the lease went back");
  // The program checks its lease five times a second; until then core and publishers go on.
  if (!Leads() && up()) {
    const Duration look = world_.Between(Duration(0), std::chrono::milliseconds(200));
    return After(&ControllerHost::process_, look, [this] { Die("the lease was lost"); });
  }
  if (Leads() && !up() && !Begin()) return Die("its journal cannot be read");
  After(&ControllerHost::process_, pause, [this] { StepElection(); });
}

bool ControllerHost::Begin() {
  world_.Mix("controller begins");
  journal_ = std::make_unique<controller::RocksJournal>(*disk_.store());
  planner_ = std::make_unique<controller::Planner>();
  controller::CoreOptions options{.journal_beside_api = world_.swarm.one_process};
  options.blocks.payment.delay =
      std::chrono::duration_cast<std::chrono::seconds>(world_.swarm.payment_delay);
  options.keep_for_successor = std::chrono::seconds(30);  // over before a world is at rest
  options.term = election_ == nullptr ? 0 : election_->term();
  core_ = std::make_unique<controller::Core>(
      [this](const controller::ClusterState& view, const controller::Queue& queue, WallTime now,
             controller::Explaining explaining) { return Plan(view, queue, now, explaining); },
      std::move(options));
  watcher_.OnBegin(name_);
  const absl::Status loaded =
      journal_->Load([this](controller::Sequence sequence, std::string_view bytes) {
        return core_->Restore(sequence, Counted(bytes));
      });
  if (absl::IsDataLoss(loaded)) {
    world_.Fail("the journal does not come back: {}",
                std::string_view(loaded.message().data(), loaded.message().size()));
  }
  if (!loaded.ok()) return false;
  ingest_ = std::make_unique<controller::Ingest>(
      link_, std::vector<std::string>{"tahoma"},
      [this](controller::Command command) {
        commands_.push_back(std::move(command));
        WakeCore(world_.Latency());
      },
      no_sleep_, Rng(0), [](const std::string&) {},
      [this](const std::string& why) { LoseHistory(why); });
  if (world_.swarm.queues) {
    for (const auto& queue : QueuesOfWorlds()) {
      auto told = std::make_shared<controller::QueueSpec>(*queue);
      if (world_.plant == Plant::kForgetLimit) {
        told->limit.clear();
        told->most_running.reset();
      }
      commands_.push_back(controller::QueueSeen{std::move(told)});
    }
  }
  if (world_.swarm.calendars) {
    commands_.push_back(controller::QueueCalendarSeen{CalendarOfWorlds()});
  }
  if (world_.swarm.windows) {
    for (auto& window : WindowsOfWorlds()) {
      commands_.push_back(controller::WindowSeen{.window = window});
    }
  }
  watch_waits_.assign(ingest_->StartStepping(), false);
  WakeWatches();
  WakeCore(std::chrono::milliseconds(1));
  return true;
}

// Returns the entry of the journal; with the planted mistake a sum of use that has too much.
std::string ControllerHost::Counted(std::string_view bytes) const {
  const bool is_sum = controller::IsUsageEntry(bytes) && !controller::IsQueueUseEntry(bytes);
  if (world_.plant != Plant::kCountTwice || !is_sum) return std::string(bytes);
  auto usage = controller::DecodeUsage(bytes);
  if (!usage.ok()) return std::string(bytes);
  for (auto& one : usage->sum.types) one.eighth_ms *= 2;
  return controller::EncodeUsage(*usage);
}

// As in controller/run/cluster_loop.cc.
void ControllerHost::LoseHistory(std::string_view why) {
  if (std::exchange(history_lost_, true)) return;
  world_.Meet("read anew");
  if (world_.verbose) fmt::print("{} reads everything anew: {}\n", name_, why);
  After(&ControllerHost::life_, world_.Between(Duration(0), std::chrono::milliseconds(200)),
        [this] {
          End();
          if (!Begin()) Die("its journal cannot be read");
        });
}

void ControllerHost::End() {
  ++life_;
  history_lost_ = false;
  ingest_.reset();
  core_.reset();
  planner_.reset();
  journal_.reset();
  commands_.clear();
  orders_.clear();
  core_at_.reset();
}

void ControllerHost::Die(std::string_view why) {
  world_.Mix(why);
  world_.Meet(fmt::format("controller died: {}", why));
  running_ = false;
  ++process_;
  stalled_until_ = Duration(0);
  election_.reset();
  End();
  if (on_death) on_death();
}

void ControllerHost::WakeWatches() {
  if (!up()) return;
  for (std::size_t i = 0; i < watch_waits_.size(); ++i) {
    if (watch_waits_[i]) continue;
    watch_waits_[i] = true;
    // Now and then a watch is far behind the others.
    const Duration delay = world_.Happens(10)
                               ? world_.Between(std::chrono::seconds(0), std::chrono::seconds(5))
                               : world_.Latency();
    After(&ControllerHost::life_, delay, [this, i] { StepWatch(i); });
  }
}

void ControllerHost::StepWatch(std::size_t watch) {
  watch_waits_[watch] = false;
  const absl::Status status = ingest_->Step(watch);
  world_.Mix(status.ok() ? "watch" : "watch broken");
  // After a list the watch begins at the list's version; after a failure the watch lists anew.
  if (watch_waits_[watch]) return;
  if (!status.ok()) {
    watch_waits_[watch] = true;
    After(&ControllerHost::life_,
          world_.Between(std::chrono::milliseconds(50), std::chrono::seconds(2)),
          [this, watch] { StepWatch(watch); });
  }
}

void ControllerHost::WakeCore(Duration delay) {
  const Duration when = world_.events.elapsed() + delay;
  if (core_at_ && *core_at_ <= when) return;
  core_at_ = when;
  After(&ControllerHost::life_, delay, [this, when] {
    if (core_at_ == when) StepCore();
  });
}

void ControllerHost::StepCore() {
  core_at_.reset();
  if (history_lost_) return;
  Death death = Death::kNo;
  if (world_.Happens(world_.swarm.crash)) death = static_cast<Death>(1 + world_.rng.Below(3));
  const Now now{world_.ControllersNow(), world_.clock.MonotonicNow()};
  controller::StepOutput out = core_->Step(std::exchange(commands_, {}), now);
  ShowDecisions(out.journal);
  if (death == Death::kBeforeJournal) return Die("before the journal was written");
  if (world_.plant != Plant::kForgetJournal && !journal_->Write(out.journal).ok()) {
    return Die("the journal could not be written");
  }
  if (MaySend()) watcher_.OnStep(name_, *core_->snapshot());
  if (death == Death::kAfterJournal) return Die("after the journal was written");
  Give(out.answers);
  std::size_t sent = out.writes.size();
  if (death == Death::kAmongWrites) sent = world_.rng.Below(sent + 1);
  for (std::size_t i = 0; i < sent; ++i) {
    const auto write = std::make_shared<const ApiWrite>(std::move(out.writes[i]));
    death == Death::kAmongWrites ? Send(write) : Issue(write);
  }
  if (death == Death::kAmongWrites) return Die("among its writes");
  if (out.wake) {
    WakeCore(std::max<Duration>(*out.wake - now.monotonic, std::chrono::milliseconds(1)));
  }
}

void ControllerHost::Order(
    std::variant<controller::PurchaseOrder, controller::ExtensionOrder> order, OnAnswer answer) {
  if (!up()) return answer(absl::UnavailableError("it does not lead"));
  orders_[++last_ticket_] = std::move(answer);
  commands_.push_back(controller::BlockOrder{last_ticket_, std::move(order)});
  WakeCore(world_.Latency());
}

// As in controller/run/core_loop.cc; an answer may be lost on its way.
void ControllerHost::Give(const std::vector<controller::OrderAnswer>& answers) {
  for (const controller::OrderAnswer& answer : answers) {
    const auto waiting = orders_.find(answer.ticket);
    if (waiting == orders_.end()) continue;
    const OnAnswer tell = std::move(waiting->second);
    orders_.erase(waiting);
    if (world_.Happens(world_.swarm.lose_answer)) continue;
    if (!MaySend()) {
      tell(absl::UnavailableError("it leads no more"));
    } else {
      tell(answer.block);
    }
  }
}

std::vector<controller::Decision> ControllerHost::Plan(const controller::ClusterState& view,
                                                       const controller::Queue& queue, WallTime now,
                                                       controller::Explaining explaining) {
  if (world_.plant == Plant::kForgetPromise) {
    return planner_->Plan(WithoutPromises(view), queue, now, explaining);
  }
  if (world_.plant != Plant::kForgetHolding) {
    return planner_->Plan(view, queue, now, explaining);
  }
  std::string forgotten;
  view.ForEachHolding([&](const controller::Holding& holding) {
    forgotten = std::max(forgotten, holding.claim_uid);
  });
  controller::ClusterState blind = view;
  blind.Release(forgotten);
  return planner_->Plan(blind, queue, now, explaining);
}

void ControllerHost::ShowDecisions(const controller::JournalBatch& batch) {
  for (const controller::JournalEntry& entry : batch.put) {
    if (controller::IsBlockEntry(entry.bytes) || controller::IsUsageEntry(entry.bytes)) {
      world_.Mix(entry.bytes);
      continue;
    }
    const auto record = controller::DecodeRecord(entry.bytes);
    if (!record.ok()) return world_.Fail("a record that was just made cannot be read");
    world_.Mix(entry.bytes);
    if (const auto* prepared = std::get_if<controller::GangPrepared>(&*record)) {
      if (!MaySend()) continue;  // the controller does not know yet that it leads no more
      watcher_.OnDecided(*prepared->decision, *core_->snapshot()->cluster);
      watcher_.OnPlaced(*prepared->decision, *core_->snapshot());
    } else if (const auto* undoing = std::get_if<controller::GangUndoing>(&*record)) {
      world_.Meet("gang undone");
      watcher_.OnUndoing(*undoing);
      if (world_.verbose) fmt::print("undoing run {}: {}\n", undoing->run, undoing->reason);
      if (undoing->reason == controller::GangRuns::kGivenToOthers && api_.rollbacks() == 0) {
        world_.Fail("run {} is undone for others, and no backup was restored", undoing->run);
      }
    } else if (std::holds_alternative<controller::GangBound>(*record)) {
      world_.Meet("gang bound");
    }
  }
}

controller::ClusterState ControllerHost::WithoutPromises(const controller::ClusterState& view) {
  std::vector<std::string> kept;
  view.ForEachHolding([&](const controller::Holding& holding) {
    if (holding.claim_uid.starts_with("kept for ")) kept.push_back(holding.claim_uid);
  });
  controller::ClusterState blind = view;
  for (const std::string& uid : kept) blind.Release(uid);
  return blind;
}

// Writes of a planted mistake: answered as done, but not carried out.
bool ControllerHost::Faked(const ApiWrite& write) {
  if (world_.plant == Plant::kNeverDeallocate) return write.kind() == WriteKind::kDeallocate;
  if (world_.plant == Plant::kNoFence) return write.kind() == WriteKind::kRemoveFinalizer;
  if (world_.plant == Plant::kSkipBlockStatus) return write.kind() == WriteKind::kBlockStatus;
  return world_.plant == Plant::kSkipAllocation && write.kind() == WriteKind::kAllocate;
}

void ControllerHost::Fake(const ApiWrite& faked) {
  ApiResult done = NoAnswer(faked);
  done.outcome = controller::WriteOutcome::kDone;
  if (done.kind == WriteKind::kBlockStatus) return Tell(std::move(done));
  const auto& write = std::get<controller::ClaimWrite>(faked.what);
  auto state = std::make_shared<controller::ClaimFact>(*write.base);
  state->allocation = nullptr;
  state->reserved_for.clear();
  if (write.kind == WriteKind::kRemoveFinalizer) state->protected_by_finalizer = false;
  if (write.kind == WriteKind::kAllocate) {
    const auto& claim = write.claim();
    state->allocation = std::make_shared<const controller::Allocation>(claim.allocation);
    for (const std::uint32_t pod : claim.consumers) {
      state->reserved_for.push_back({.api_group = "",
                                     .resource = "pods",
                                     .name = write.decision->pods[pod].name,
                                     .uid = write.decision->pods[pod].uid});
    }
  }
  done.claim = std::move(state);
  Tell(std::move(done));
}

void ControllerHost::BindEarly(const controller::ClaimWrite& allocate) {
  for (const std::uint32_t pod : allocate.claim().consumers) {
    const controller::PodWrite bind{WriteKind::kBind, allocate.run, pod, allocate.decision};
    Carry({.attempt = 0, .what = bind}, Fate::kGood, false);
  }
}

bool ControllerHost::MaySend() const {
  return world_.swarm.one_process || Leads() || world_.plant == Plant::kIgnoreLease;
}

// The publishers take the write from their queue some time later.
void ControllerHost::Issue(const std::shared_ptr<const ApiWrite>& write) {
  After(&ControllerHost::life_, world_.Latency() / 4, [this, write] { Send(write); });
}

void ControllerHost::Send(const std::shared_ptr<const ApiWrite>& shared) {
  if (!MaySend()) return Tell(NoAnswer(*shared));
  if (Faked(*shared)) return Fake(*shared);
  if (world_.plant == Plant::kBindEarly && shared->kind() == WriteKind::kAllocate) {
    BindEarly(std::get<controller::ClaimWrite>(shared->what));
  }
  const std::uint64_t life = life_;
  const int rollbacks = api_.rollbacks();
  const int process = api_.life();
  const auto alive = [this, life] { return life == life_; };
  const auto arrives = [this, rollbacks, process] {
    // The request died with its sender, or its connection ended.
    return rollbacks == api_.rollbacks() && (!world_.swarm.one_process || process == api_.life());
  };
  if (!IsNotice(*shared) && world_.Happens(world_.swarm.late_request)) {
    world_.Meet("late request");
    const Duration late = kRequestTimeout + world_.Between(Duration(0), kLateMost);
    world_.events.After(kRequestTimeout, Urgency::kNormal, [this, shared, alive] {
      if (alive()) Tell(NoAnswer(*shared));
    });
    world_.events.After(late, Urgency::kNormal, [this, shared, arrives] {
      if (arrives()) Carry(*shared, Fate::kGood, false);
    });
    return;
  }
  Fate fate = Fate::kGood;
  if (world_.Happens(world_.swarm.lose_request)) {
    fate = Fate::kRequestLost;
  } else if (world_.Happens(world_.swarm.lose_answer)) {
    fate = Fate::kAnswerLost;
  }
  world_.events.After(world_.Latency(), Urgency::kNormal, [this, shared, fate, arrives, alive] {
    if (arrives()) return Carry(*shared, fate, alive());
    if (alive()) Tell(NoAnswer(*shared));
  });
}

void ControllerHost::Carry(const ApiWrite& write, Fate fate, bool tell) {
  if (world_.Happens(world_.swarm.touch_object)) Touch(write, false);
  if (world_.Happens(world_.swarm.delete_object)) Touch(write, true);
  if (const auto* event = std::get_if<controller::EventNote>(&write.what)) {
    (void)link_.SendWith(RenderEvent(*event, EventName(*event), 1), fate);
    return;
  }
  const bool is_odd = world_.Happens(world_.swarm.odd_answer);
  const bool arrives = fate != Fate::kRequestLost && !(is_odd && world_.rng.Chance(1, 2));
  const kube::Request request = Render(write);
  if (auto shown = ResultIfShown(write, request)) {
    if (tell) Tell(*std::move(shown));
    return;
  }
  absl::StatusOr<kube::Response> answer =
      link_.SendWith(request, arrives ? Fate::kGood : Fate::kRequestLost);
  // A write that was carried out counts, whether or not the controller hears of the result.
  if (write.kind() == WriteKind::kBind && answer.ok() && answer->status < 300) {
    const auto& bind = std::get<controller::PodWrite>(write.what);
    watcher_.OnBound(*bind.decision, bind.index);
  }
  if (fate == Fate::kAnswerLost) answer = absl::UnavailableError("connection reset");
  if (is_odd) answer = link_.OddAnswer();
  ApiResult result = ReadAnswer(write, answer);
  if (!tell) return;
  world_.events.After(world_.Latency(), Urgency::kNormal,
                      [this, result = std::move(result), life = life_] {
                        if (life != life_) return;
                        if (world_.Happens(world_.swarm.repeat_answer)) Tell(result);
                        Tell(result);
                      });
}

// Somebody else changes or deletes the object just before our write arrives.
void ControllerHost::Touch(const ApiWrite& write, bool to_delete) {
  const controller::WriteTarget of = TargetOf(write.kind());
  if (!api_.up()) return;
  if (of == controller::WriteTarget::kBlock) {
    return TouchBlock(controller::ResultOf(write), to_delete);
  }
  if (of != controller::WriteTarget::kClaim && of != controller::WriteTarget::kPod) return;
  const std::string target = PathOf(write);
  if (to_delete) {
    world_.Meet("deleted under a write");
    (void)api_.Call("DELETE", target);
    return;
  }
  (void)api_.Call(
      "PATCH", target,
      {{"metadata", {{"annotations", {{"sim/touched", std::to_string(world_.rng.Below(1000))}}}}}},
      "application/merge-patch+json");
}

void ControllerHost::TouchBlock(const ApiResult& block, bool to_delete) {
  const std::string target = fmt::format(
      "/apis/tahoma.dev/v1alpha1/namespaces/{}/capacityblocks/{}", block.ns, block.name);
  if (!to_delete && world_.rng.Chance(1, 2)) {
    world_.Meet("status written by hand");
    const char* state = world_.rng.Chance(1, 2) ? "active" : "expired";
    (void)api_.Call("PATCH", target + "/status",
                    {{"status", {{"state", state}, {"endDate", "2030-01-01T11:30:00Z"}}}},
                    "application/merge-patch+json");
    return;
  }
  if (!to_delete) {
    (void)api_.Call("PATCH", target,
                    {{"spec", {{"tags", {{"touched", std::to_string(world_.rng.Below(1000))}}}}}},
                    "application/merge-patch+json");
    return;
  }
  world_.Meet("block deleted under a write");
  if (api_.Call("DELETE", target).status == 200) watcher_.OnBlockDeleted(block.name);
}

void ControllerHost::Tell(ApiResult result) {
  commands_.push_back(std::move(result));
  WakeCore(world_.Latency());
}

}  // namespace tahoma::simulation
