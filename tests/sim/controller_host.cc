#include "tests/sim/controller_host.h"

#include <algorithm>
#include <utility>

#include "controller/ingest/parse.h"

namespace tahoma::simulation {

using controller::ApiResult;
using controller::ApiWrite;
using controller::WriteKind;

namespace {

// How long after its time-out a late request may still be carried out.
constexpr std::chrono::seconds kLateMost{30};
constexpr std::chrono::seconds kRequestTimeout{10};

const controller::AnswerParsers& Parsers() {
  static const controller::AnswerParsers kParsers{.claim = controller::ParseClaimState,
                                                  .pod = controller::ParsePod};
  return kParsers;
}

ApiResult NoAnswer(const ApiWrite& write) {
  return ReadAnswer(write, absl::UnavailableError("timed out"), Parsers());
}

bool IsNotice(const ApiWrite& write) { return write.kind >= WriteKind::kGangStatus; }

}  // namespace

void ControllerHost::Start() {
  if (up() || !api_.up()) return;
  if (!Open()) {
    Die("its journal cannot be read");
    return;
  }
  world_.Mix("controller starts");
  const std::size_t watches = ingest_->StartStepping();
  watch_waits_.assign(watches, false);
  WakeWatches();
  WakeCore(std::chrono::milliseconds(1));
}

bool ControllerHost::Open() {
  if (disk_.store() == nullptr && !disk_.Open().ok()) return false;
  journal_ = std::make_unique<controller::RocksJournal>(*disk_.store());
  planner_ = std::make_unique<controller::Planner>();
  core_ = std::make_unique<controller::Core>(
      [this](const controller::ClusterState& view, const controller::Queue& queue, WallTime now) {
        return Plan(view, queue, now);
      },
      controller::CoreOptions{.journal_beside_api = world_.swarm.one_process});
  const absl::Status loaded =
      journal_->Load([this](controller::Sequence sequence, std::string_view bytes) {
        return core_->Restore(sequence, bytes);
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
      [](std::chrono::milliseconds) { return false; }, [](const std::string&) {});
  return true;
}

void ControllerHost::Die(std::string_view why) {
  world_.Mix(why);
  world_.Meet(fmt::format("controller died: {}", why));
  ++life_;
  ingest_.reset();
  core_.reset();
  planner_.reset();
  journal_.reset();
  commands_.clear();
  core_at_.reset();
  if (on_death) on_death();
}

void ControllerHost::WakeWatches() {
  if (!up()) return;
  for (std::size_t i = 0; i < watch_waits_.size(); ++i) {
    if (watch_waits_[i]) continue;
    watch_waits_[i] = true;
    // Now and then one watch is far behind the others.
    const Duration delay = world_.Happens(10)
                               ? world_.Between(std::chrono::seconds(0), std::chrono::seconds(5))
                               : world_.Latency();
    world_.events.After(delay, Urgency::kNormal, [this, i, life = life_] {
      if (life == life_) StepWatch(i);
    });
  }
}

void ControllerHost::StepWatch(std::size_t watch) {
  watch_waits_[watch] = false;
  const absl::Status status = ingest_->Step(watch);
  world_.Mix(status.ok() ? "watch" : "watch broken");
  // After a list the watch begins where the list ended; after a failure it is listed anew.
  if (watch_waits_[watch]) return;
  if (!status.ok()) {
    watch_waits_[watch] = true;
    world_.events.After(world_.Between(std::chrono::milliseconds(50), std::chrono::seconds(2)),
                        Urgency::kNormal, [this, watch, life = life_] {
                          if (life == life_) StepWatch(watch);
                        });
  }
}

void ControllerHost::WakeCore(Duration delay) {
  const Duration when = world_.events.elapsed() + delay;
  if (core_at_ && *core_at_ <= when) return;
  core_at_ = when;
  world_.events.After(delay, Urgency::kNormal, [this, when, life = life_] {
    if (life == life_ && core_at_ == when) StepCore();
  });
}

void ControllerHost::StepCore() {
  core_at_.reset();
  Death death = Death::kNo;
  if (world_.Happens(world_.swarm.crash)) death = static_cast<Death>(1 + world_.rng.Below(3));
  const controller::Now now{world_.clock.WallNow(), world_.clock.MonotonicNow()};
  controller::StepOutput out = core_->Step(std::exchange(commands_, {}), now);
  ShowDecisions(out.journal);
  if (death == Death::kBeforeJournal) return Die("before the journal was written");
  if (world_.plant != Plant::kForgetJournal && !journal_->Write(out.journal).ok()) {
    return Die("the journal could not be written");
  }
  if (death == Death::kAfterJournal) return Die("after the journal was written");
  std::size_t sent = out.writes.size();
  if (death == Death::kAmongWrites) sent = world_.rng.Below(sent + 1);
  for (std::size_t i = 0; i < sent; ++i) Issue(std::move(out.writes[i]));
  if (death == Death::kAmongWrites) return Die("among its writes");
  if (out.wake) {
    WakeCore(std::max<Duration>(*out.wake - now.monotonic, std::chrono::milliseconds(1)));
  }
}

std::vector<controller::Decision> ControllerHost::Plan(const controller::ClusterState& view,
                                                       const controller::Queue& queue,
                                                       WallTime now) {
  if (world_.plant != Plant::kForgetHolding) return planner_->Plan(view, queue, now);
  std::string forgotten;
  view.ForEachHolding([&](const controller::Holding& holding) { forgotten = holding.claim_uid; });
  controller::ClusterState blind = view;
  blind.Release(forgotten);
  return planner_->Plan(blind, queue, now);
}

void ControllerHost::ShowDecisions(const controller::JournalBatch& batch) {
  for (const controller::JournalEntry& entry : batch.put) {
    const auto record = controller::DecodeRecord(entry.bytes);
    if (!record.ok()) return world_.Fail("a record that was just made cannot be read");
    world_.Mix(entry.bytes);
    if (const auto* prepared = std::get_if<controller::GangPrepared>(&*record)) {
      watcher_.OnDecided(*prepared->decision, *core_->snapshot()->cluster);
    } else if (const auto* undoing = std::get_if<controller::GangUndoing>(&*record)) {
      world_.Meet("gang undone");
      if (world_.verbose) fmt::print("undoing run {}: {}\n", undoing->run, undoing->reason);
    } else if (std::holds_alternative<controller::GangBound>(*record)) {
      world_.Meet("gang bound");
    }
  }
}

// Writes of a planted mistake, which are answered as done and not carried out.
bool ControllerHost::Faked(const ApiWrite& write) {
  if (world_.plant == Plant::kNeverDeallocate) return write.kind == WriteKind::kDeallocate;
  return world_.plant == Plant::kSkipAllocation && write.kind == WriteKind::kAllocate;
}

void ControllerHost::Issue(ApiWrite write) {
  const std::uint64_t life = life_;
  const Duration there = world_.Latency();
  const auto shared = std::make_shared<const ApiWrite>(std::move(write));
  const auto alive = [this, life] { return life == life_; };
  if (Faked(*shared)) {
    ApiResult done = NoAnswer(*shared);
    done.outcome = controller::WriteOutcome::kDone;
    auto state = std::make_shared<controller::ClaimFact>(*shared->base);
    state->allocation = nullptr;
    state->reserved_for.clear();
    if (shared->kind == WriteKind::kAllocate) {
      const auto& claim = shared->decision->claims[shared->index];
      state->allocation = std::make_shared<const controller::Allocation>(claim.allocation);
      for (const std::uint32_t pod : claim.consumers) {
        state->reserved_for.push_back({.api_group = "",
                                       .resource = "pods",
                                       .name = shared->decision->pods[pod].name,
                                       .uid = shared->decision->pods[pod].uid});
      }
    }
    done.claim = std::move(state);
    return Tell(std::move(done));
  }
  if (!IsNotice(*shared) && world_.Happens(world_.swarm.late_request)) {
    world_.Meet("late request");
    const Duration late = kRequestTimeout + world_.Between(Duration(0), kLateMost);
    const int process = api_.life();
    world_.events.After(kRequestTimeout, Urgency::kNormal, [this, shared, alive] {
      if (alive()) Tell(NoAnswer(*shared));
    });
    world_.events.After(late, Urgency::kNormal, [this, shared, process] {
      if (!world_.swarm.one_process || process == api_.life()) Carry(*shared, Fate::kGood, false);
    });
    return;
  }
  Fate fate = Fate::kGood;
  if (world_.Happens(world_.swarm.lose_request)) {
    fate = Fate::kRequestLost;
  } else if (world_.Happens(world_.swarm.lose_answer)) {
    fate = Fate::kAnswerLost;
  }
  const int process = api_.life();
  world_.events.After(there, Urgency::kNormal, [this, shared, fate, process, alive] {
    if (world_.swarm.one_process && process != api_.life()) return;  // it died with its sender
    Carry(*shared, fate, alive());
  });
}

void ControllerHost::Carry(const ApiWrite& write, Fate fate, bool tell) {
  if (world_.Happens(world_.swarm.touch_object)) Touch(write, false);
  if (world_.Happens(world_.swarm.delete_object)) Touch(write, true);
  if (write.kind == WriteKind::kEvent) {
    (void)link_.SendWith(RenderEvent(*write.event, EventName(*write.event), 1), fate);
    return;
  }
  const bool arrives = fate != Fate::kRequestLost;
  absl::StatusOr<kube::Response> answer =
      link_.SendWith(Render(write), arrives ? Fate::kGood : Fate::kRequestLost);
  // What was carried out counts, whether or not the controller hears of it.
  if (write.kind == WriteKind::kBind && answer.ok() && answer->status < 300) {
    watcher_.OnBound(*write.decision, write.index);
  }
  if (fate == Fate::kAnswerLost) answer = absl::UnavailableError("connection reset");
  ApiResult result = ReadAnswer(write, answer, Parsers());
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
  if (IsNotice(write) || !api_.up()) return;
  const bool claim = write.kind <= WriteKind::kRemoveFinalizer;
  const auto& decision = *write.decision;
  const std::string target =
      claim ? fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                          decision.key.ns, decision.claims[write.index].name)
            : fmt::format("/api/v1/namespaces/{}/pods/{}", decision.key.ns,
                          decision.pods[write.index].name);
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

void ControllerHost::Tell(ApiResult result) {
  commands_.push_back(std::move(result));
  WakeCore(world_.Latency());
}

}  // namespace tahoma::simulation
