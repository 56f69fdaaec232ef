#include "controller/core/queue/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "controller/core/facts/asked_gang.h"
#include "controller/plan/decision.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::chrono::hours kHour{1};

GangRef RefOf(const GangMove& move) { return {move.gang, false}; }

bool IsOver(MoveState state) { return state != MoveState::kPlanned && state != MoveState::kMoving; }

// Returns the whole chips of the placement, by node.
std::vector<NodeChips> ChipsOfPlacement(const Placement& placement, const GangSpec& gang,
                                        const ClusterState& cluster, WallTime now) {
  std::map<std::string, std::uint16_t> by_node;
  for (const auto& holding : placement.Holdings(gang, now)) {
    for (const Holding::HeldDevice& device : holding->devices) {
      const auto id = cluster.FindNode(device.node);
      if (device.admin_access || !id || cluster.node(*id).node == nullptr) continue;
      by_node[device.node] |= cluster.node(*id).node->ChipsNamed(device.device);
    }
  }
  std::vector<NodeChips> chips;
  for (const auto& [node, mask] : by_node) chips.push_back({.node = node, .chips = mask});
  return chips;
}

// Returns the promise of those chips, as far as their nodes exist.
std::shared_ptr<const Promise> PromiseOfChips(const std::vector<NodeChips>& chips,
                                              const std::string& name, const std::string& holder,
                                              const std::string& place,
                                              const ClusterState& cluster) {
  auto promise = std::make_shared<Promise>();
  promise->kind = PromiseKind::kMove;
  promise->holder = holder;
  promise->place = place;
  for (const NodeChips& one : chips) {
    const auto id = cluster.FindNode(one.node);
    if (!id || cluster.node(*id).node == nullptr) continue;
    const Node& node = *cluster.node(*id).node;
    auto holding = std::make_shared<Holding>();
    holding->claim_uid = fmt::format("kept for {} on {}", name, one.node);
    holding->holder = "what is kept for " + holder;
    for (int chip = 0; chip < kChipsPerNode; ++chip) {
      const std::uint16_t device = node.family->devices->chips[static_cast<std::size_t>(chip)];
      if ((one.chips >> chip & 1) == 0 || device == NodeTemplate::kNone) continue;
      holding->devices.push_back({node.name, node.device(device).name});
    }
    promise->holdings.push_back(std::move(holding));
  }
  return promise;
}

// Returns why nobody could begin on the chips now, or whoever has the claims of `own`; "" when
// somebody could.
std::string TroubleWith(const std::vector<NodeChips>& chips, const ClusterState& cluster,
                        const GangDecision* own = nullptr) {
  const auto is_own = [&](const Holding& holding) {
    return own != nullptr && std::ranges::find(own->claims, holding.claim_uid,
                                               &DecidedClaim::uid) != own->claims.end();
  };
  for (const NodeChips& one : chips) {
    const auto id = cluster.FindNode(one.node);
    if (!id || cluster.node(*id).node == nullptr) return "node " + one.node + " is gone";
    const NodeState& node = cluster.node(*id);
    if (!node.node->schedulable()) return "node " + one.node + " takes no pods";
    if (node.domain.valid()) {
      const auto present = static_cast<std::uint16_t>(cluster.domain(node.domain).present >>
                                                      (kChipsPerNode * node.z));
      if ((one.chips & ~present) != 0) return "chips of node " + one.node + " do not work";
    }
    for (const auto& holding : node.holdings) {
      if ((ChipsOf(*holding, *node.node) & one.chips) == 0 || is_own(*holding)) continue;
      return fmt::format("{} has chips of node {}", holding->holder, one.node);
    }
  }
  return "";
}

std::string NameOfMove(const std::string& object, const GangMove& move) {
  return fmt::format("defragmentation {}: {}", object, ToString(move.gang));
}

std::string NameOfWanted(const std::string& object) { return "defragmentation " + object; }

// Says how many moves are done: "2 of 3 gangs have moved".
std::string Progress(const DefragmentationStatus& status) {
  const auto moved = std::ranges::count(status.moves, MoveState::kMoved, &GangMove::state);
  return fmt::format("{} of {} gangs have moved", moved, status.moves.size());
}

}  // namespace

// One call of Step.
struct Moves::Turn {
  const MoveSources& from;
  WallTime now;
  bool planned = false;  // one plan in a step is enough
};

void Moves::OnObject(const std::shared_ptr<const DefragmentationFact>& fact) {
  const auto known = entries_.find(fact->name);
  if (known != entries_.end() && known->second.fact->uid != fact->uid) {
    // It was deleted and made anew between two looks.
    promises_.GiveUpPlace(NameOfWanted(fact->name));
    for (const GangMove& move : known->second.status.moves) {
      promises_.GiveUpPlace(NameOfMove(fact->name, move));
    }
    open_.erase(fact->name);
    keeping_.erase(fact->name);
    entries_.erase(known);
  }
  const auto [entry, added] = entries_.try_emplace(fact->name);
  const bool wishes = added || entry->second.fact->generation != fact->generation;
  entry->second.fact = fact;
  if (added) {
    entry->second.status = fact->status;
    entry->second.shown = true;
    for (const GangMove& move : fact->status.moves) {
      if (move.start) starts_.insert(*move.start);
      const bool in_vain = move.state == MoveState::kFailed && runs_.Find(RefOf(move)) == nullptr;
      if (in_vain || move.state == MoveState::kMoving) first_.insert(RefOf(move));
    }
  }
  const bool dry =
      added && fact->status.phase == DefragmentationPhase::kPlanned && !fact->spec.apply;
  if (IsOver(entry->second.status.phase)) {
    keeping_.insert(fact->name);
  } else if (wishes && !dry) {
    open_.insert(fact->name);
  }
}

void Moves::OnObjectGone(const std::string& name, const std::string& uid) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.fact->uid != uid) return;
  found->second.gone = true;
  if (found->second.status.phase == DefragmentationPhase::kMoving) {
    open_.insert(name);
  } else {
    open_.erase(name);
    keeping_.insert(name);
  }
}

void Moves::OnShown(const std::string& name, const DefragmentationStatus& status) {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.status == status) found->second.shown = true;
}

std::vector<std::pair<std::string, Moves::Status>> Moves::DrainShown() {
  std::vector<std::pair<std::string, Status>> shown;
  for (const std::string& name : std::exchange(changed_, {})) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.gone) continue;
    shown.emplace_back(name, std::make_shared<const DefragmentationStatus>(found->second.status));
  }
  return shown;
}

// Lets the status be written.
void Moves::Change(Entry& entry) {
  entry.status.observed_generation = entry.fact->generation;
  entry.shown = entry.gone;  // nobody waits for a write to an object that is gone
  changed_.insert(entry.fact->name);
}

void Moves::Step(const MoveSources& from, WallTime now) {
  wake_.reset();
  if (open_.empty() && keeping_.empty()) return;
  Turn turn{.from = from, .now = now};
  while (!starts_.empty() && *starts_.begin() + kHour <= now) starts_.erase(starts_.begin());
  for (const auto* names : {&open_, &keeping_}) {
    for (const std::string& name : *names) {
      if (Entry& entry = entries_.at(name); !entry.kept) RestoreKept(entry, turn);
    }
  }
  for (const std::string& name : std::set<std::string>(keeping_)) {
    EndKeeping(entries_.at(name), now);
  }
  const auto oldest = Oldest();
  for (const std::string& name : std::set<std::string>(open_)) {
    Entry& entry = entries_.at(name);
    if (oldest != entries_.end() && name == oldest->first) continue;
    if (!entry.fact->spec.apply || !entry.fact->spec_error.empty() || entry.fact->spec.abort) {
      Advance(entry, turn);
      continue;
    }
    const std::string message = fmt::format("waits for Defragmentation {}", oldest->first);
    if (entry.status.message == message) continue;
    entry.status.phase = DefragmentationPhase::kTurn;
    entry.status.message = message;
    Change(entry);
  }
  if (oldest != entries_.end()) Advance(oldest->second, turn);
}

// Returns the object that is carried out: one that moves gangs already, else the oldest.
Moves::Entries::iterator Moves::Oldest() {
  auto oldest = entries_.end();
  const auto rank = [](const Entries::iterator& at) {
    const Entry& entry = at->second;
    return std::tuple(entry.status.phase != DefragmentationPhase::kMoving, entry.fact->created,
                      at->first);
  };
  for (const std::string& name : open_) {
    const auto at = entries_.find(name);
    const Entry& entry = at->second;
    const bool moves = entry.status.phase == DefragmentationPhase::kMoving;
    if (!moves && (!entry.fact->spec.apply || !entry.fact->spec_error.empty())) continue;
    if (oldest == entries_.end() || rank(at) < rank(oldest)) oldest = at;
  }
  return oldest;
}

// Keeps again what an earlier process kept.
void Moves::RestoreKept(Entry& entry, const Turn& turn) {
  entry.kept = true;
  const DefragmentationStatus& status = entry.status;
  const std::string& name = entry.fact->name;
  const bool kept = status.phase == DefragmentationPhase::kMoving ||
                    (status.phase == DefragmentationPhase::kDone && status.kept_until);
  if (!kept || status.chips.empty()) return;
  KeptPlace wanted{.promise =
                       PromiseOfChips(status.chips, NameOfWanted(name), Describe(entry.fact->spec),
                                      status.place, turn.from.cluster)};
  if (entry.fact->spec.for_gang) wanted.holder = GangRef{*entry.fact->spec.for_gang, false};
  if (status.phase == DefragmentationPhase::kDone && !wanted.holder) {
    const auto gang = WantedOf(entry, turn);
    if (gang != nullptr) wanted.open_to = LeastChips(*gang) / gang->slices;
  }
  promises_.KeepPlace(NameOfWanted(name), std::move(wanted), turn.from.cluster, turn.now);
  for (const GangMove& move : status.moves) {
    if (IsOver(move.state)) continue;
    const std::string holder = "gang " + ToString(move.gang);
    promises_.KeepPlace(NameOfMove(name, move),
                        {.promise = PromiseOfChips(move.chips, NameOfMove(name, move), holder,
                                                   move.to, turn.from.cluster),
                         .holder = RefOf(move)},
                        turn.from.cluster, turn.now);
  }
}

// Gives the free place back when its time is over, or when the gang has taken the place.
void Moves::EndKeeping(Entry& entry, WallTime now) {
  const std::string name = entry.fact->name;
  const auto& gang = entry.fact->spec.for_gang;
  const GangRun* run = gang ? runs_.Find({*gang, false}) : nullptr;
  const bool taken = run != nullptr && run->phase() == RunPhase::kBound;
  const auto& until = entry.status.kept_until;
  const bool ends = taken || entry.gone || entry.fact->spec.abort;
  if (until && *until > now && !ends) return WakeAt(*until);
  promises_.GiveUpPlace(NameOfWanted(name));
  keeping_.erase(name);
  if (entry.gone) entries_.erase(name);
}

void Moves::Advance(Entry& entry, Turn& turn) {
  DefragmentationStatus& status = entry.status;
  const bool moves = status.phase == DefragmentationPhase::kMoving;
  if (!moves && !entry.fact->spec_error.empty()) {
    return Finish(entry, DefragmentationPhase::kFailed, entry.fact->spec_error, turn.now);
  }
  if (entry.gone || entry.fact->spec.abort) Stop(entry, turn.now);
  if (IsOver(status.phase)) return;
  if (!entry.fact->spec.apply && !moves) return PlanDry(entry, turn);
  if (!moves) return PlanMovesOf(entry, turn, "");
  const auto next =
      std::ranges::find_if(status.moves, [](const GangMove& move) { return !IsOver(move.state); });
  if (next == status.moves.end()) return Complete(entry, turn);
  next->state == MoveState::kMoving ? Follow(entry, *next, turn) : Begin(entry, *next, turn);
}

// Begins no more moves. The move under way goes on.
void Moves::Stop(Entry& entry, WallTime now) {
  DefragmentationStatus& status = entry.status;
  const std::string name = entry.fact->name;
  for (GangMove& move : status.moves) {
    if (move.state == MoveState::kPlanned) EndMove(entry, move, MoveState::kCancelled, now);
  }
  promises_.GiveUpPlace(NameOfWanted(name));
  const bool goes_on =
      std::ranges::find(status.moves, MoveState::kMoving, &GangMove::state) != status.moves.end();
  const std::string why = entry.gone ? "the object was deleted" : "spec.abort";
  if (!goes_on) {
    return Finish(entry, DefragmentationPhase::kAborted,
                  fmt::format("{}: {}", why, Progress(status)), now);
  }
  const std::string message = why + ": no other gang moves, and the last completes its move";
  if (status.message == message) return;
  status.message = message;
  Change(entry);
}

std::shared_ptr<const GangSpec> Moves::WantedOf(const Entry& entry, const Turn& turn) const {
  const DefragmentationSpec& spec = entry.fact->spec;
  if (spec.for_gang) return turn.from.waiting({*spec.for_gang, false});
  const auto gang = GangOfRequest(*WantedBy(spec), {"defragmentation", entry.fact->name});
  return gang.ok() ? *gang : nullptr;
}

absl::StatusOr<MovePlan> Moves::PlanOf(const Entry& entry, const Turn& turn) const {
  const DefragmentationSpec& spec = entry.fact->spec;
  const std::shared_ptr<const GangSpec> wanted = WantedOf(entry, turn);
  if (wanted == nullptr) {
    return FailedPrecondition("gang {} does not wait for hardware",
                              ToString(spec.for_gang.value_or(GangKey{})));
  }
  ClusterState fleet = turn.from.cluster;
  const auto own = spec.for_gang ? promises_.Find({*spec.for_gang, false}) : nullptr;
  for (const auto& promise : promises_.All()) {
    if (promise != own) HoldPromises(std::span(&promise, 1), fleet);
  }
  const auto over = std::ranges::count_if(entry.status.moves,
                                          [](const GangMove& move) { return IsOver(move.state); });
  const auto left = std::max<std::int64_t>(0, spec.max_moves - over);
  return PlanMovesIn(fleet, turn.from.runs(),
                     {.gang = wanted,
                      .gains_ultra_servers = spec.ultra_servers.has_value(),
                      .moves_most = static_cast<std::size_t>(left)},
                     turn.now, plan_);
}

// Shows the plan. Moves that were made stay in the status.
void Moves::TakePlan(Entry& entry, const MovePlan& plan, const Turn& turn) {
  DefragmentationStatus& status = entry.status;
  const std::shared_ptr<const GangSpec> wanted = WantedOf(entry, turn);
  TAHOMA_CHECK(wanted != nullptr);  // the plan is for that gang
  std::erase_if(status.moves, [](const GangMove& move) { return !IsOver(move.state); });
  status.place = plan.wanted.ToString();
  status.chips = ChipsOfPlacement(plan.wanted, *wanted, turn.from.cluster, turn.now);
  for (const PlannedMove& planned : plan.moves) {
    status.moves.push_back(
        {.gang = planned.run->gang.key,
         .run = planned.run->run,
         .from = planned.run->from,
         .to = planned.to.ToString(),
         .chips = ChipsOfPlacement(planned.to, *planned.run->spec, turn.from.cluster, turn.now),
         .lost = planned.work});
  }
  status.lost = 0;
  for (const GangMove& move : status.moves) status.lost += move.lost;
}

void Moves::PlanDry(Entry& entry, Turn& turn) {
  if (turn.planned) return WakeAt(turn.now);
  turn.planned = true;
  const auto plan = PlanOf(entry, turn);
  if (!plan.ok()) {
    return Finish(entry, DefragmentationPhase::kFailed, std::string(Message(plan.status())),
                  turn.now);
  }
  TakePlan(entry, *plan, turn);
  entry.status.phase = DefragmentationPhase::kPlanned;
  entry.status.message = plan->moves.empty() ? "the place is free: nothing has to move"
                                             : fmt::format(
                                                   "{} gangs would move; spec.apply moves "
                                                   "them",
                                                   plan->moves.size());
  open_.erase(entry.fact->name);
  Change(entry);
}

// Plans all moves that are left, and keeps their places.
void Moves::PlanMovesOf(Entry& entry, Turn& turn, const std::string& because) {
  DefragmentationStatus& status = entry.status;
  const std::string name = entry.fact->name;
  if (!because.empty()) {
    for (GangMove& move : status.moves) {
      if (!IsOver(move.state)) promises_.GiveUpPlace(NameOfMove(name, move));
    }
    promises_.GiveUpPlace(NameOfWanted(name));
    // UltraServers that are clear by now would not count as gained in a new plan.
    const bool some_clear =
        entry.fact->spec.ultra_servers.value_or(1) > 1 &&
        std::ranges::find(status.moves, MoveState::kMoved, &GangMove::state) != status.moves.end();
    if (some_clear) {
      return Finish(entry, DefragmentationPhase::kFailed,
                    fmt::format("{}; {}: ask again for what is left", because, Progress(status)),
                    turn.now);
    }
    if (entry.plans >= kPlansMost) {
      return Finish(entry, DefragmentationPhase::kFailed,
                    fmt::format("{}; it was planned {} times", because, entry.plans), turn.now);
    }
  }
  if (turn.planned) return WakeAt(turn.now);
  turn.planned = true;
  ++entry.plans;
  const auto plan = PlanOf(entry, turn);
  if (!plan.ok()) {
    const std::string why(Message(plan.status()));
    return Finish(entry, DefragmentationPhase::kFailed,
                  because.empty() ? why : fmt::format("{}, and {}", because, why), turn.now);
  }
  TakePlan(entry, *plan, turn);
  status.phase = DefragmentationPhase::kMoving;
  if (!status.start) status.start = turn.now;
  status.message = because.empty()
                       ? Progress(status)
                       : fmt::format("planned anew, as {}: {}", because, Progress(status));
  RestoreKept(entry, turn);
  Change(entry);
  WakeAt(turn.now);
}

std::optional<WallTime> Moves::NextStart(const Entry& entry, WallTime now) const {
  const auto most = static_cast<std::size_t>(entry.fact->spec.moves_per_hour);
  if (starts_.size() < most) return std::nullopt;
  const WallTime next = *std::prev(starts_.end(), static_cast<std::ptrdiff_t>(most)) + kHour;
  return next > now ? std::optional(next) : std::nullopt;
}

// Lets the move begin: its status is written first.
void Moves::Begin(Entry& entry, GangMove& move, Turn& turn) {
  if (entry.plan_at && *entry.plan_at > turn.now) return WakeAt(*entry.plan_at);
  if (const auto& gang = entry.fact->spec.for_gang; gang && runs_.Find({*gang, false}) != nullptr) {
    return EndMove(entry, move, MoveState::kCancelled, turn.now);  // the gang has a place
  }
  if (const auto next = NextStart(entry, turn.now)) return WakeAt(*next);
  const GangRun* run = runs_.Find(RefOf(move));
  if (run == nullptr || run->id() != move.run || run->ending()) {
    return EndMove(entry, move, MoveState::kGone, turn.now);
  }
  const auto movable = turn.from.run_of(RefOf(move));
  std::string why = movable == nullptr ? "is not bound" : StaysBecause(*movable, turn.now);
  if (!why.empty()) {
    why = fmt::format("gang {} {}", ToString(move.gang), why);
  } else if (why = TroubleWith(move.chips, turn.from.cluster, &run->decision()); !why.empty()) {
    why = fmt::format("of the place for gang {} {}", ToString(move.gang), why);
  }
  if (!why.empty()) {
    if (turn.planned) return WakeAt(turn.now);
    entry.plan_at = turn.now + kPlanPause;
    return PlanMovesOf(entry, turn, why);
  }
  move.state = MoveState::kMoving;
  move.start = turn.now;
  starts_.insert(turn.now);
  first_.insert(RefOf(move));
  entry.status.message =
      fmt::format("gang {} moves: {}", ToString(move.gang), Progress(entry.status));
  Change(entry);
}

void Moves::Follow(Entry& entry, GangMove& move, const Turn& turn) {
  const GangRef ref = RefOf(move);
  const auto gang = runs_.facts().gangs.Find(move.gang);
  if (gang == nullptr || gang->deleting) return EndMove(entry, move, MoveState::kGone, turn.now);
  const GangRun* run = runs_.Find(ref);
  const bool old = run != nullptr && run->id() == move.run;
  if (run != nullptr && !old) return FollowNext(entry, move, *run, turn);
  if (old && !run->ending() && !entry.shown) return;  // the write is under way
  if (old && !run->ending()) {
    runs_.End(run->id(), EndCause::kMoved,
              fmt::format("it moves from {} to {} for {} (Defragmentation {})", move.from, move.to,
                          Describe(entry.fact->spec), entry.fact->name));
  }
  const std::chrono::seconds grace = old ? run->decision().grace : std::chrono::seconds(0);
  const WallTime late = move.start.value_or(turn.now) + kMoveMost + grace;
  if (turn.now < late) return WakeAt(late);
  EndMove(entry, move, MoveState::kFailed, turn.now);
}

// Follows the gang's next run.
void Moves::FollowNext(Entry& entry, GangMove& move, const GangRun& run, const Turn& turn) {
  if (run.phase() == RunPhase::kBound) {
    if (const auto at = turn.from.run_of(RefOf(move))) move.to = at->from;
    return EndMove(entry, move, MoveState::kMoved, turn.now);
  }
  const WallTime late = move.start.value_or(turn.now) + kMoveMost;
  if (turn.now < late) return WakeAt(late);
  EndMove(entry, move, MoveState::kFailed, turn.now);
}

void Moves::EndMove(Entry& entry, GangMove& move, MoveState state, WallTime now) {
  move.state = state;
  move.end = now;
  promises_.GiveUpPlace(NameOfMove(entry.fact->name, move));
  if (state != MoveState::kFailed) first_.erase(RefOf(move));
  entry.status.message = Progress(entry.status);
  Change(entry);
  WakeAt(now);
  if (state != MoveState::kFailed) return;
  const std::string why = fmt::format("gang {} was ended for its move and is not bound again; {}",
                                      ToString(move.gang), Progress(entry.status));
  for (GangMove& other : entry.status.moves) {
    if (other.state == MoveState::kPlanned) EndMove(entry, other, MoveState::kCancelled, now);
  }
  Finish(entry, DefragmentationPhase::kFailed, why, now);
}

// All moves are over. Waits until the place is free.
void Moves::Complete(Entry& entry, const Turn& turn) {
  DefragmentationStatus& status = entry.status;
  const auto& gang = entry.fact->spec.for_gang;
  const bool runs = gang && runs_.Find({*gang, false}) != nullptr;
  if (entry.gone || entry.fact->spec.abort) return;
  if (const std::string why = TroubleWith(status.chips, turn.from.cluster); !runs && !why.empty()) {
    const auto last = std::ranges::max_element(status.moves, {}, &GangMove::end);
    const WallTime since =
        last == status.moves.end() ? status.start.value_or(turn.now) : last->end.value_or(turn.now);
    if (turn.now < since + kMoveMost) return WakeAt(since + kMoveMost);
    return Finish(entry, DefragmentationPhase::kFailed,
                  fmt::format("{}; of the place {}", Progress(status), why), turn.now);
  }
  status.kept_until = turn.now + entry.fact->spec.keep_for;
  status.phase = DefragmentationPhase::kDone;
  RestoreKept(entry, turn);
  Finish(entry, DefragmentationPhase::kDone,
         fmt::format("{}; {} is free", Progress(status), status.place), turn.now);
}

void Moves::Finish(Entry& entry, DefragmentationPhase phase, std::string message, WallTime now) {
  entry.status.phase = phase;
  entry.status.message = std::move(message);
  entry.status.end = now;
  if (phase != DefragmentationPhase::kDone) {
    promises_.GiveUpPlace(NameOfWanted(entry.fact->name));
    entry.status.kept_until.reset();
  }
  open_.erase(entry.fact->name);
  keeping_.insert(entry.fact->name);
  Change(entry);
  WakeAt(now);
}

}  // namespace tahoma::controller
