#include "controller/core/queue/queue_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <tuple>

#include "controller/core/queue/queue_entry.h"
#include "controller/core/queue/queue_lines.h"

namespace tahoma::controller {
namespace {

// Less than this many eighths of chips on average is no use.
constexpr double kNoUse = 0.001;

constexpr std::array<std::string_view, 2> kKueueLabels = {"kueue.x-k8s.io/queue-name",
                                                          "kueue.x-k8s.io/local-queue-name"};
constexpr std::array<std::string_view, 2> kVolcanoLabels = {"scheduling.volcano.sh/queue-name",
                                                            "volcano.sh/queue-name"};

template <std::size_t n>
void AddValues(const kube::Labels& labels, const std::array<std::string_view, n>& names,
               std::vector<std::string>& values) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(labels, name, &kube::Labels::value_type::first);
    if (found != labels.end()) values.push_back(found->second);
  }
}

Readiness WaitsFor(GangReason reason, std::string message) {
  Readiness ready;
  ready.reason = reason;
  ready.message = std::move(message);
  return ready;
}

// Returns until when the run cannot be ended for others.
WallTime UnendingUntil(const GangDecision& decision) {
  return decision.preemptible ? kEndsAtOnce : decision.end.value_or(WallTime::max());
}

Eighths Negative(Eighths amount) {
  for (auto& [type, eighths] : amount) eighths = -eighths;
  return amount;
}

double Rounded(double value, double parts) { return std::round(value * parts) / parts; }

// Returns whole chips: a part of a chip counts whole.
ChipCounts ChipsOf(const Eighths& eighths) {
  ChipCounts chips;
  for (const auto& [type, count] : eighths) {
    chips[type] = (count + kEighthsOfChip - 1) / kEighthsOfChip;
  }
  return chips;
}

}  // namespace

void QueueKeeper::Restore(Sequence sequence, QueueUseRecord record) {
  use_.entries[record.queue] = sequence;
  use_.restored[std::move(record.queue)] = record.use;
}

bool QueueKeeper::Follow(WallTime now) {
  const bool objects = std::exchange(changed_, false);
  const bool changed = calendars_.Follow(now, objects) || objects;
  if (changed) {
    // With the first object all runs begin to count, and with the last they cease to.
    if (facts_.queues.empty() == tree().any()) touched_.insert(with_run_.begin(), with_run_.end());
    Rebuild(now);
  }
  for (const GangRef& ref : std::exchange(touched_, {})) TakeRun(ref, now);
  if (changed) FindDrained();
  return changed;
}

// Takes the objects as they are. Queues without an object stay while gangs of theirs run, or begin
// to (`other`).
void QueueKeeper::Rebuild(WallTime now, const std::string& other) {
  std::set<std::string> others;
  if (!other.empty()) others.insert(other);
  for (const auto& [ref, held] : held_) others.insert(held.queue);
  shares_.SetTree(QueueTree(calendars_.specs(), others), now);
  SetComing(others, now);
  WarnBy(now);
  for (auto one = use_.restored.begin(); one != use_.restored.end();) {
    const bool known = tree().any() && tree().IndexOf(one->first).has_value();
    if (known) shares_.SetUse(one->first, one->second);
    one = known ? use_.restored.erase(one) : std::next(one);
  }
  waiting_.in.clear();
  for (const auto& [ref, queue] : waiting_.queue_of) CountWaiting(queue, 1);
  for (const QueueTree::Node& node : tree().nodes()) to_show_.insert(node.name);
  views_.ForEach([this](const std::string& name, const auto&) { to_show_.insert(name); });
}

// Lets gangs that cannot be ended be held against the numbers that calendars bring.
void QueueKeeper::SetComing(const std::set<std::string>& others, WallTime now) {
  if (!tree().any() || calendars_.coming().empty()) return;
  std::vector<ComingBounds> coming;
  for (const QueueCalendars::Change& change : calendars_.coming()) {
    coming.push_back(
        {.at = change.at,
         .why = change.why,
         .tree = QueueTree(SpecsAfter(facts_.queues, change, calendars_.specs()), others)});
  }
  shares_.SetComing(std::move(coming), now);
  for (const auto& [ref, held] : held_) {
    if (!tree().IndexOf(held.queue)) continue;
    shares_.ChangeComing(held.queue, held.amount, UnendingUntil(*held.decision), now);
  }
}

void QueueKeeper::WarnBy(std::optional<WallTime> when) {
  if (when) warn_ = std::min(warn_.value_or(*when), *when);
}

// Finds the gangs that calendars may end soon. Holders of chips change all the time: the search is
// made once in kShowEvery for them.
void QueueKeeper::FindWarnings(WallTime now) {
  if (!warn_ || now < *warn_) return;
  warn_.reset();
  warnings_.Find(held_, shares_, calendars_, now);
  WarnBy(warnings_.wake());
}

void QueueKeeper::FindDrained() {
  for (const auto& [ref, held] : held_) {
    for (const std::size_t above : tree().PathOf(*tree().IndexOf(held.queue))) {
      const auto& spec = tree().nodes()[above].spec;
      if (spec == nullptr || spec->stop != QueueStop::kDrain) continue;
      to_end_.emplace_back(held.run, fmt::format("queue {} is drained", spec->name));
      break;
    }
  }
  std::ranges::sort(to_end_);
}

// Returns the queue in which the run holds chips. A run that was taken over from the API may name
// the queue of Kueue or Volcano.
std::string QueueKeeper::QueueOf(const GangRun& run) const {
  const std::string& named = run.decision().queue;
  if (named.empty()) return kDefaultQueue;  // decisions of earlier versions name none
  if (facts_.queues.contains(named)) return named;
  std::string mapped = tree().QueueFor({.ns = {}, .kueue = {named}, .volcano = {named}});
  return mapped == kDefaultQueue ? named : mapped;
}

Eighths QueueKeeper::AmountOf(const GangRun& run) const {
  Eighths amount;
  const std::vector<DecidedClaim>& claims = run.decision().claims;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].allocated_before || run.claim_released(i)) continue;
    Holding holding;
    HoldDevicesOf(claims[i].allocation, holding);
    AddEighths(holding, cluster_, amount);
  }
  return amount;
}

void QueueKeeper::TakeRun(const GangRef& ref, WallTime now) {
  if (warnings_.open()) WarnBy(now + kShowEvery);
  const GangRun* run = runs_.Find(ref);
  if (run == nullptr) {
    with_run_.erase(ref);
  } else {
    with_run_.insert(ref);
  }
  const bool counts = run != nullptr && tree().any() && run->decision().reservation.empty();
  auto held = held_.find(ref);
  if (held != held_.end() && (!counts || held->second.run != run->id())) {
    GiveBack(held->second, now);
    held_.erase(held);
    held = held_.end();
  }
  if (!counts) return;
  std::size_t released = 0;
  for (std::size_t i = 0; i < run->decision().claims.size(); ++i) {
    released += run->claim_released(i) ? 1U : 0U;
  }
  Held next{.run = run->id(),
            .queue = held == held_.end() ? QueueOf(*run) : held->second.queue,
            .amount = {},
            .decision = run->shared_decision(),
            .released = released};
  if (held == held_.end()) {
    next.amount = AmountOf(*run);
    return Begin(ref, std::move(next), now);
  }
  if (held->second.decision == next.decision && held->second.released == released) return;
  next.amount = AmountOf(*run);
  Eighths more = next.amount;
  for (const auto& [type, eighths] : held->second.amount) more[type] -= eighths;
  std::erase_if(more, [](const auto& one) { return one.second == 0; });
  if (!more.empty()) {
    shares_.Change(next.queue, more, 0, now, now);
    MarkPath(next.queue, true);
  }
  shares_.ChangeComing(next.queue, Negative(held->second.amount),
                       UnendingUntil(*held->second.decision), now);
  shares_.ChangeComing(next.queue, next.amount, UnendingUntil(*next.decision), now);
  held->second = std::move(next);
}

void QueueKeeper::Begin(const GangRef& ref, Held held, WallTime now) {
  const std::string queue = held.queue;
  const std::optional<WallTime> placed = held.decision->placed;
  const Eighths amount = held.amount;
  const WallTime until = UnendingUntil(*held.decision);
  if (!tree().IndexOf(queue)) Rebuild(now, queue);  // the queue has no object, but a gang by now
  held_.insert_or_assign(ref, std::move(held));
  shares_.ChangeComing(queue, amount, until, now);
  shares_.Change(queue, amount, 1, std::min(placed.value_or(now), now), now);
  MarkPath(queue, !placed);
}

void QueueKeeper::GiveBack(const Held& held, WallTime now) {
  const Eighths less = Negative(held.amount);
  shares_.Change(held.queue, less, -1, now, now);
  shares_.ChangeComing(held.queue, less, UnendingUntil(*held.decision), now);
  MarkPath(held.queue, true);
}

// Lets the queue and those above be shown, and be recorded where the decisions do not tell all.
void QueueKeeper::MarkPath(const std::string& queue, bool record) {
  const std::optional<std::size_t> node = tree().IndexOf(queue);
  if (!node) return;
  for (const std::size_t above : tree().PathOf(*node)) {
    to_show_.insert(tree().nodes()[above].name);
    if (record) use_.due.insert(tree().nodes()[above].name);
  }
}

QueueAsk QueueKeeper::AskOf(const GangRef& ref, const GangSpec& gang) const {
  QueueAsk ask{.ns = ref.key.ns};
  const auto fact = ref.single ? nullptr : facts_.gangs.Find(ref.key);
  if (fact != nullptr) ask.queue = fact->queue;
  for (const MemberSpec& member : gang.members) {
    const auto pod = facts_.pods.Find(member.pod);
    if (pod == nullptr) continue;
    AddValues(pod->labels, kKueueLabels, ask.kueue);
    AddValues(pod->labels, kVolcanoLabels, ask.volcano);
    if (!ask.kueue.empty() || !ask.volcano.empty()) break;  // the first pod with a label tells
  }
  return ask;
}

Readiness QueueKeeper::Admit(const GangRef& ref, Readiness ready) {
  ForgetBeyond(ref);
  if (ready.spec == nullptr || !tree().any() || !ready.spec->block.empty()) return ready;
  const std::string name = tree().QueueFor(AskOf(ref, *ready.spec));
  auto spec = std::make_shared<GangSpec>(*ready.spec);
  if (auto refusal = EnterQueue(tree(), name, *spec)) {
    return WaitsFor(refusal->reason, std::move(refusal->message));
  }
  const auto known = waiting_.queue_of.find(ref);
  const bool waits = known != waiting_.queue_of.end() && known->second == name;
  std::string full;
  const auto refusal = waits ? std::nullopt
                             : RefuseWhereFull(
                                   tree(), name,
                                   [this](const std::string& queue) {
                                     const auto in = waiting_.in.find(queue);
                                     return in == waiting_.in.end() ? 0 : in->second;
                                   },
                                   &full);
  if (refusal) {
    const std::pair<WallTime, GangRef> place{spec->created, ref};
    waiting_.beyond.insert_or_assign(ref, Beyond{.queue = full, .place = place});
    waiting_.beyond_of[full].insert(place);
    return WaitsFor(refusal->reason, refusal->message);
  }
  ready.spec = std::move(spec);
  return ready;
}

void QueueKeeper::Waits(const GangRef& ref, const Readiness& ready) {
  const bool counts = ready.spec != nullptr && tree().any() && ready.spec->block.empty() &&
                      tree().IndexOf(ready.spec->queue).has_value();
  const auto known = waiting_.queue_of.find(ref);
  if (known != waiting_.queue_of.end() && counts && known->second == ready.spec->queue) return;
  Leave(ref);
  if (!counts) return;
  waiting_.queue_of[ref] = ready.spec->queue;
  CountWaiting(ready.spec->queue, 1);
}

void QueueKeeper::WaitsNoMore(const GangRef& ref) {
  ForgetBeyond(ref);
  Leave(ref);
}

void QueueKeeper::Leave(const GangRef& ref) {
  const auto known = waiting_.queue_of.find(ref);
  if (known == waiting_.queue_of.end()) return;
  const std::string queue = std::move(known->second);
  waiting_.queue_of.erase(known);
  CountWaiting(queue, -1);
}

// Counts a gang more or less in the queue and above. For one that leaves the first of those comes
// in for whom there was no room.
void QueueKeeper::CountWaiting(const std::string& queue, int sign) {
  const std::optional<std::size_t> node = tree().IndexOf(queue);
  if (!node) return;
  for (const std::size_t above : tree().PathOf(*node)) {
    const std::string& name = tree().nodes()[above].name;
    waiting_.in[name] += sign;
    to_show_.insert(name);
    const auto beyond = waiting_.beyond_of.find(name);
    if (sign < 0 && beyond != waiting_.beyond_of.end())
      waiting_.let_in.insert(beyond->second.begin()->second);
  }
}

void QueueKeeper::ForgetBeyond(const GangRef& ref) {
  const auto known = waiting_.beyond.find(ref);
  if (known == waiting_.beyond.end()) return;
  auto& all = waiting_.beyond_of.at(known->second.queue);
  all.erase(known->second.place);
  if (all.empty()) waiting_.beyond_of.erase(known->second.queue);
  waiting_.beyond.erase(known);
}

void QueueKeeper::Update(WallTime now, JournalBuffer& journal) {
  for (const GangRef& ref : std::exchange(touched_, {})) TakeRun(ref, now);
  FindWarnings(now);
  if (now >= use_.all_at + kRecordEvery) {
    RecordAll(journal, now);
    use_.all_at = now;
  }
  for (const std::string& queue : std::exchange(use_.due, {})) Record(queue, now, journal);
  if (!tree().any() && views_.size() == 0) return to_show_.clear();
  const bool news = !to_show_.empty();
  for (const std::string& queue : std::exchange(to_show_, {})) ShowCounts(queue);
  stale_ = stale_ || news;
  if (now < shown_ + (stale_ ? kShowEvery : kShowTimeEvery)) return;
  ShowOrder(now);
  shown_ = now;
  stale_ = false;
}

// Marks the queues with some use to be recorded, and drops the records of the others.
void QueueKeeper::RecordAll(JournalBuffer& journal, WallTime now) {
  if (tree().any()) {
    for (const QueueTree::Node& node : tree().nodes()) {
      if (shares_.UseOf(node.name, now).used >= kNoUse) use_.due.insert(node.name);
    }
  }
  for (auto entry = use_.entries.begin(); entry != use_.entries.end();) {
    const auto next = std::next(entry);
    if (!use_.due.contains(entry->first)) {
      journal.Drop(entry->second);
      use_.restored.erase(entry->first);
      use_.entries.erase(entry);
    }
    entry = next;
  }
}

void QueueKeeper::Record(const std::string& queue, WallTime now, JournalBuffer& journal) {
  if (!tree().IndexOf(queue)) return;
  const auto entry = use_.entries.find(queue);
  if (entry != use_.entries.end()) journal.Drop(entry->second);
  use_.entries[queue] =
      journal.Add(EncodeQueueUse({.queue = queue, .use = shares_.UseOf(queue, now)}));
}

std::optional<WallTime> QueueKeeper::wake() const {
  if (!tree().any()) return calendars_.wake();
  const WallTime show = shown_ + (stale_ ? kShowEvery : kShowTimeEvery);
  WallTime wake = std::min(show, use_.all_at + kRecordEvery);
  if (const auto change = calendars_.wake()) wake = std::min(wake, *change);
  if (warn_) wake = std::min(wake, *warn_);
  return wake;
}

// Names a period whose numbers are in the queue's trouble, as the end of a sentence.
std::string QueueKeeper::BlameFor(const QueueTree::Node& node) const {
  const bool by_numbers =
      node.trouble == QueueTrouble::kInvalid || node.trouble == QueueTrouble::kGuarantees;
  if (!by_numbers) return "";
  const auto blame = [&](const std::string& queue) -> std::string {
    const PeriodInForce* period = calendars_.PeriodOf(queue);
    if (period == nullptr) return "";
    return fmt::format(" ({} gives queue {} its numbers)", period->Describe(), queue);
  };
  std::string text = blame(node.name);
  for (std::size_t i = 0; i < node.children.size() && text.empty(); ++i) {
    text = blame(tree().nodes()[node.children[i]].name);
  }
  return text;
}

// Shows how many gangs and chips a queue has. Numbers that change with time stay.
void QueueKeeper::ShowCounts(const std::string& queue) {
  const std::optional<std::size_t> index = tree().IndexOf(queue);
  if (!index) {
    views_.Erase(queue);
    return;
  }
  const QueueTree::Node& node = tree().nodes()[*index];
  const auto* known = views_.Find(queue);
  QueueView view = known == nullptr ? QueueView() : **known;
  view.spec = node.spec;
  view.name = queue;
  view.trouble = node.trouble;
  view.message = node.message + BlameFor(node);
  const PeriodInForce* period = calendars_.PeriodOf(queue);
  view.period = period == nullptr ? "" : period->calendar->name + "/" + period->get().name;
  view.next_change = calendars_.NextChangeFor(queue);
  const auto waiting = waiting_.in.find(queue);
  view.waiting = waiting == waiting_.in.end() ? 0 : waiting->second;
  view.running = shares_.RunningIn(queue);
  const Eighths held = shares_.HeldOf(queue);
  view.held = ChipsOf(held);
  view.held_eighths = held;
  view.borrowed.clear();
  for (const auto& [type, chips] : view.held) {
    const auto own = node.guaranteed.find(type);
    const std::int64_t beyond = chips - (own == node.guaranteed.end() ? 0 : own->second);
    if (beyond > 0) view.borrowed[type] = beyond;
  }
  PutView(std::move(view));
}

void QueueKeeper::PutView(QueueView view) {
  const bool shown = tree().any() && (view.spec != nullptr || view.waiting > 0 || view.running > 0);
  const std::string name = view.name;
  const auto* known = views_.Find(name);
  if (!shown) {
    views_.Erase(name);
  } else if (known == nullptr || **known != view) {
    views_.Put(name, std::make_shared<const QueueView>(std::move(view)));
  }
}

// Shows use, parts and places of all queues.
void QueueKeeper::ShowOrder(WallTime now) {
  std::vector<std::size_t> top;
  for (std::size_t i = 0; i < tree().nodes().size(); ++i) {
    const QueueTree::Node& node = tree().nodes()[i];
    if (node.parent == QueueTree::kNoParent) top.push_back(i);
    if (!node.children.empty()) ShowSiblings(node.children, now);
  }
  ShowSiblings(top, now);
}

void QueueKeeper::ShowSiblings(const std::vector<std::size_t>& siblings, WallTime now) {
  double use = 0;
  double weights = 0;
  std::vector<std::tuple<bool, double, std::string>> order;  // of those with gangs that wait
  for (const std::size_t i : siblings) {
    const QueueTree::Node& node = tree().nodes()[i];
    use += shares_.UsedChips(node.name, now);
    weights += static_cast<double>(node.weight);
    const auto waiting = waiting_.in.find(node.name);
    if (waiting == waiting_.in.end() || waiting->second == 0) continue;
    const QueueShares::Rank rank = shares_.RankOf(i, now);
    order.emplace_back(rank.guaranteed, rank.use, node.name);
  }
  std::ranges::sort(order);
  std::map<std::string, int> places;
  for (const auto& [guaranteed, rank, name] : order) {
    const int place = static_cast<int>(places.size()) + 1;
    places[name] = place;
  }
  for (const std::size_t i : siblings) {
    const QueueTree::Node& node = tree().nodes()[i];
    const auto* known = views_.Find(node.name);
    if (known == nullptr) continue;
    const double chips = shares_.UsedChips(node.name, now);
    const double hours = static_cast<double>(node.half_life.count()) / 3600 / std::log(2.0);
    QueueView view = **known;
    view.used_chip_hours = Rounded(chips * hours, 10);
    view.share = Rounded(static_cast<double>(node.weight) / weights, 10'000);
    view.used_share = use > 0 ? Rounded(chips / use, 10'000) : 0;
    const auto place = places.find(node.name);
    view.place = place == places.end() ? 0 : place->second;
    PutView(std::move(view));
  }
}

}  // namespace tahoma::controller
