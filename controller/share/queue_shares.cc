#include "controller/share/queue_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

constexpr std::int64_t kEighths = 8;       // of a chip
constexpr std::int64_t kNone = INT64_MIN;  // no bound, or not known
// More chips than any fleet has: sums of a few cannot overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 40;

std::int64_t At(const std::vector<std::int64_t>& values, std::size_t i, std::int64_t absent) {
  return i < values.size() ? values[i] : absent;
}

std::int64_t& Grown(std::vector<std::int64_t>& values, std::size_t i, std::int64_t absent) {
  if (values.size() <= i) values.resize(i + 1, absent);
  return values[i];
}

std::int64_t EighthsOf(std::int64_t chips) {
  return std::clamp<std::int64_t>(chips, 0, kMost) * kEighths;
}

// Returns the number of chips, for people: "63", "0.5".
std::string ChipsText(std::int64_t eighths) {
  return fmt::format("{}", static_cast<double>(eighths) / kEighths);
}

// Returns the part of an average that is left after the time.
double LeftAfter(std::chrono::nanoseconds time, std::chrono::seconds half_life) {
  const auto nanoseconds = static_cast<double>(std::max<std::int64_t>(time.count(), 0));
  return std::exp2(-nanoseconds / (static_cast<double>(half_life.count()) * 1e9));
}

}  // namespace

std::size_t QueueShares::TypeOf(const std::string& type) {
  const auto [found, added] = type_index_.try_emplace(type, types_.size());
  if (added) types_.push_back(type);
  return found->second;
}

std::size_t QueueShares::NodeOf(const std::string& queue) const {
  const std::optional<std::size_t> node = tree_.IndexOf(queue);
  TAHOMA_CHECK(node.has_value());  // else the gang would be counted nowhere
  return *node;
}

QueueShares::ByType QueueShares::BoundsOf(const ChipCounts& counts) {
  ByType bounds;
  for (const auto& [type, chips] : counts) Grown(bounds, TypeOf(type), kNone) = EighthsOf(chips);
  return bounds;
}

// A queue in trouble has no bounds: no gang starts there, and others are not bound.
void QueueShares::ReadBounds(const QueueTree::Node& node, Row& row) {
  row.guaranteed = BoundsOf(node.guaranteed);
  if (node.spec == nullptr || !node.serves) {
    limits_ = limits_ || !node.serves;
    return;
  }
  const QueueSpec& spec = *node.spec;
  row.limit = BoundsOf(spec.limit);
  row.borrowing = BoundsOf(spec.borrowing_limit);
  row.lending = BoundsOf(spec.lending_limit);
  limits_ = limits_ || !row.limit.empty() || !row.borrowing.empty() || !row.lending.empty() ||
            spec.most_running || spec.stop != QueueStop::kNo;
}

void QueueShares::SetTree(QueueTree tree, WallTime now) {
  TAHOMA_CHECK(charged_.empty());  // else charges could not be taken back
  const QueueTree before = std::exchange(tree_, std::move(tree));
  const std::vector<Row> rows = std::exchange(rows_, std::vector<Row>(tree_.nodes().size()));
  coming_.clear();
  limits_ = false;
  top_needs_.clear();
  for (const QueueTree::Node& node : tree_.nodes()) fallen_.insert(node.name);
  for (std::size_t i = 0; i < rows_.size(); ++i) ReadBounds(tree_.nodes()[i], rows_[i]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const QueueTree::Node& was = before.nodes()[i];
    const std::optional<std::size_t> node = tree_.IndexOf(was.name);
    if (!node) continue;
    Row& row = rows_[*node];
    row.all.average = AverageAt(rows[i].all, was, now);
    row.own.average = AverageAt(rows[i].own, was, now);
    row.all.as_of = row.own.as_of = now;
    row.all.known = rows[i].all.known;
    row.own.known = rows[i].own.known;
    row.own.held = rows[i].own.held;
    row.own.total = rows[i].own.total;
    row.own.running = rows[i].own.running;
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) AddAccounts(rows_[i], i, now);
  const std::vector<std::size_t>& order = tree_.from_above();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (std::size_t type = 0; type < types_.size(); ++type) UpdateNeeds(*node, type);
  }
}

void QueueShares::SetComing(std::vector<ComingBounds> coming, WallTime now) {
  TAHOMA_CHECK(charged_.empty());
  coming_.clear();
  for (ComingBounds& one : coming) {
    Later& later = coming_.emplace_back();
    later.at = one.at;
    later.why = std::move(one.why);
    later.shares.emplace_back().SetTree(std::move(one.tree), now);
  }
}

void QueueShares::ChangeComing(const std::string& queue, const Eighths& more, WallTime until,
                               WallTime now) {
  for (Later& later : coming_) {
    if (later.at < until) {
      later.shares.front().Count(queue, more, 0, now, now);
      continue;
    }
    for (const auto& [type, eighths] : more) later.leaving[type] += eighths;
  }
}

// Adds what the queue's own gangs hold to the queue and those above.
void QueueShares::AddAccounts(const Row& from, std::size_t node, WallTime now) {
  if (from.own.total == 0 && from.own.running == 0) return;
  for (const std::size_t above : tree_.PathOf(node)) {
    Account& all = rows_[above].all;
    for (std::size_t type = 0; type < from.own.held.size(); ++type) {
      Grown(all.held, type, 0) += from.own.held[type];
    }
    all.total += from.own.total;
    all.running += from.own.running;
    all.as_of = now;
  }
}

void QueueShares::SetFree(const std::string& type, std::int64_t chips) {
  Grown(free_, TypeOf(type), kNone) = EighthsOf(chips);
}

std::vector<std::string> QueueShares::FleetTypes() const {
  std::vector<std::string> types;
  for (std::size_t type = 0; type < free_.size(); ++type) {
    if (free_[type] != kNone) types.push_back(types_[type]);
  }
  return types;
}

double QueueShares::AverageAt(const Account& account, const QueueTree::Node& node, WallTime now) {
  if (now <= account.as_of) return account.average;  // time does not go back
  const auto held = static_cast<double>(account.total);
  return held + (account.average - held) * LeftAfter(now - account.as_of, node.half_life);
}

void QueueShares::ChangeAccount(Account& account, const QueueTree::Node& node, const Eighths& more,
                                std::int64_t gangs, WallTime since, WallTime now) {
  account.average = AverageAt(account, node, now);
  account.as_of = std::max(account.as_of, now);
  std::int64_t sum = 0;
  for (const auto& [type, eighths] : more) {
    std::int64_t& held = Grown(account.held, TypeOf(type), 0);
    held += eighths;
    TAHOMA_CHECK(held >= 0);  // a gang was taken back twice
    sum += eighths;
  }
  account.total += sum;
  account.running += gangs;
  TAHOMA_CHECK(account.running >= 0);
  since = std::max(since, account.known);
  if (since >= account.as_of) return;
  account.average +=
      static_cast<double>(sum) * (1 - LeftAfter(account.as_of - since, node.half_life));
}

void QueueShares::Change(const std::string& queue, const Eighths& more, std::int64_t gangs,
                         WallTime since, WallTime now) {
  Count(queue, more, gangs, since, now);
  const bool less =
      gangs < 0 || std::ranges::any_of(more, [](const auto& one) { return one.second < 0; });
  if (!less) return;
  for (const std::size_t above : tree_.PathOf(NodeOf(queue))) {
    fallen_.insert(tree_.nodes()[above].name);
  }
}

void QueueShares::Count(const std::string& queue, const Eighths& more, std::int64_t gangs,
                        WallTime since, WallTime now) {
  const std::size_t node = NodeOf(queue);
  ChangeAccount(rows_[node].own, tree_.nodes()[node], more, gangs, since, now);
  for (std::size_t above = node; above != QueueTree::kNoParent;
       above = tree_.nodes()[above].parent) {
    ChangeAccount(rows_[above].all, tree_.nodes()[above], more, gangs, since, now);
    for (const auto& [type, eighths] : more) UpdateNeeds(above, TypeOf(type));
  }
}

void QueueShares::Charge(const std::string& queue, const Eighths& more, std::int64_t gangs,
                         WallTime now, WallTime until) {
  Count(queue, more, gangs, now, now);
  ChangeComing(queue, more, until, now);
  TakeFree(more, 1);
  charged_.push_back({.queue = queue, .amount = more, .gangs = gangs, .until = until});
}

// Takes the chips from those that are free in a known fleet.
void QueueShares::TakeFree(const Eighths& amount, int sign) {
  for (const auto& [type, eighths] : amount) {
    std::int64_t& free = Grown(free_, TypeOf(type), kNone);
    if (free != kNone) free -= sign * eighths;
  }
}

void QueueShares::RollBack(WallTime now) {
  for (Charged& one : std::exchange(charged_, {})) {
    TakeFree(one.amount, -1);
    for (auto& [type, eighths] : one.amount) eighths = -eighths;
    Count(one.queue, one.amount, -one.gangs, now, now);
    ChangeComing(one.queue, one.amount, one.until, now);
  }
}

void QueueShares::SetUse(const std::string& queue, const QueueUse& use) {
  Row& row = rows_[NodeOf(queue)];
  row.all.average = use.used;
  row.own.average = use.own;
  row.all.as_of = row.own.as_of = row.all.known = row.own.known = use.as_of;
}

// Brings up to date what others must leave free for the queue; what its children need is known.
void QueueShares::UpdateNeeds(std::size_t node, std::size_t type) {
  Row& row = rows_[node];
  const std::int64_t guaranteed = At(row.guaranteed, type, kNone);
  const std::int64_t lending = At(row.lending, type, kNone);
  std::int64_t needs = At(row.child_needs, type, 0);
  if (guaranteed != kNone && lending != kNone) {
    needs = std::max(needs, guaranteed - lending - At(row.all.held, type, 0));
  }
  const std::int64_t before = At(row.needs, type, 0);
  if (needs == before) return;
  Grown(row.needs, type, 0) = needs;
  const std::size_t parent = tree_.nodes()[node].parent;
  ByType& sum = parent == QueueTree::kNoParent ? top_needs_ : rows_[parent].child_needs;
  Grown(sum, type, 0) += needs - before;
}

// Returns what the siblings must be left.
std::int64_t QueueShares::OthersNeed(const Sibling& of) const {
  const std::size_t parent = tree_.nodes()[of.node].parent;
  const ByType& sum = parent == QueueTree::kNoParent ? top_needs_ : rows_[parent].child_needs;
  return At(sum, of.type, 0) - At(rows_[of.node].needs, of.type, 0);
}

std::optional<QueueDenial> QueueShares::Stopped(std::size_t node) const {
  const QueueTree::Node& queue = tree_.nodes()[node];
  if (!queue.serves) {
    return QueueDenial{.kind = QueueDenial::Kind::kStopped,
                       .by = queue.name,
                       .message = fmt::format("queue {}: {}", queue.name, queue.message)};
  }
  if (queue.spec == nullptr || queue.spec->stop == QueueStop::kNo) return std::nullopt;
  return QueueDenial{
      .kind = QueueDenial::Kind::kStopped,
      .by = queue.name,
      .message = fmt::format("queue {} is stopped: {}", queue.name,
                             queue.spec->stop == QueueStop::kHold ? "Hold" : "Drain")};
}

std::optional<QueueDenial> QueueShares::TooMany(std::size_t node, std::int64_t gangs) const {
  const QueueTree::Node& queue = tree_.nodes()[node];
  if (queue.spec == nullptr || !queue.spec->most_running || gangs <= 0) return std::nullopt;
  const std::int64_t running = rows_[node].all.running;
  if (running + gangs <= *queue.spec->most_running) return std::nullopt;
  return QueueDenial{.kind = QueueDenial::Kind::kLimit,
                     .by = queue.name,
                     .message = fmt::format("queue {} runs {} gangs of at most {}", queue.name,
                                            running, *queue.spec->most_running)};
}

// Returns the first bound that so many eighths more of the type would break. `free` of the type are
// free now.
std::optional<QueueDenial> QueueShares::Beyond(std::size_t queue, std::size_t type,
                                               std::int64_t more, std::int64_t free) const {
  std::int64_t kept = 0;  // for others
  bool takes = true;      // from others, at this level
  const auto deny = [&](QueueDenial::Kind kind, const std::string& by, std::string why) {
    return QueueDenial{
        .kind = kind,
        .by = by,
        .message = fmt::format("{} chips of {} more: {}", ChipsText(more), types_[type], why)};
  };
  for (std::size_t node = queue; node != QueueTree::kNoParent; node = tree_.nodes()[node].parent) {
    const Row& row = rows_[node];
    const std::string& name = tree_.nodes()[node].name;
    const std::int64_t now = At(row.all.held, type, 0);
    const std::int64_t guaranteed = std::max<std::int64_t>(At(row.guaranteed, type, kNone), 0);
    const std::int64_t limit = At(row.limit, type, kNone);
    const std::int64_t borrowing = At(row.borrowing, type, kNone);
    if (limit != kNone && now + more > limit) {
      return deny(
          QueueDenial::Kind::kLimit, name,
          fmt::format("queue {} holds {} of at most {}", name, ChipsText(now), ChipsText(limit)));
    }
    if (borrowing != kNone && now + more > guaranteed + borrowing) {
      return deny(QueueDenial::Kind::kLimit, name,
                  fmt::format("queue {} holds {} of its {} and at most {} that are borrowed", name,
                              ChipsText(now), ChipsText(guaranteed), ChipsText(borrowing)));
    }
    takes = takes && now + more > guaranteed;
    if (takes) kept += OthersNeed({.node = node, .type = type});
  }
  free = std::max<std::int64_t>(free, 0);
  if (kept == 0 || free - more >= kept) return std::nullopt;
  return deny(QueueDenial::Kind::kLent, "",
              fmt::format("{} are free, and {} are kept for other queues", ChipsText(free),
                          ChipsText(kept)));
}

// Returns the first bound that the gang would break in a coming moment of the gang's run.
std::optional<QueueDenial> QueueShares::BeyondLater(const std::string& queue, const Eighths& gang,
                                                    WallTime until) const {
  for (const Later& later : coming_) {
    if (later.at >= until) break;
    for (const auto& [type, eighths] : gang) {
      const auto index = later.shares.front().type_index_.find(type);
      if (index == later.shares.front().type_index_.end() || eighths <= 0) continue;
      const auto known = type_index_.find(type);
      const std::int64_t free =
          known == type_index_.end() ? kNone : At(free_, known->second, kNone);
      const auto leaving = later.leaving.find(type);
      auto denial = later.shares.front().Beyond(
          later.shares.front().NodeOf(queue), index->second, eighths,
          std::max<std::int64_t>(free, 0) + (leaving == later.leaving.end() ? 0 : leaving->second));
      if (!denial) continue;
      denial->kind = QueueDenial::Kind::kComing;
      denial->by = "";
      denial->message += fmt::format(" when {} on {}, and the gang cannot be ended before",
                                     later.why, FormatTime(later.at));
      return denial;
    }
  }
  return std::nullopt;
}

std::optional<QueueDenial> QueueShares::MayStart(const std::string& queue, const Eighths& gang,
                                                 std::int64_t gangs, WallTime until) const {
  if (!limits_) return BeyondLater(queue, gang, until);
  const std::size_t first = NodeOf(queue);
  for (std::size_t node = first; node != QueueTree::kNoParent; node = tree_.nodes()[node].parent) {
    if (auto denial = Stopped(node)) return denial;
    if (auto denial = TooMany(node, gangs)) return denial;
  }
  for (const auto& [type, eighths] : gang) {
    const auto index = type_index_.find(type);
    if (index == type_index_.end() || eighths <= 0) continue;  // nobody bounds the type
    const std::int64_t free = At(free_, index->second, 0);
    if (auto denial = Beyond(first, index->second, eighths, free)) return denial;
  }
  return BeyondLater(queue, gang, until);
}

bool QueueShares::MayReclaim(const std::string& queue, const Eighths& need,
                             const std::string& from) const {
  const auto taker = tree_.IndexOf(queue);
  const auto holder = tree_.IndexOf(from);
  if (!taker || !holder) return false;
  std::vector<std::size_t> mine = tree_.PathOf(*taker);
  std::vector<std::size_t> others = tree_.PathOf(*holder);
  while (!mine.empty() && !others.empty() && mine.back() == others.back()) {
    mine.pop_back();
    others.pop_back();
  }
  if (mine.empty() || others.empty()) return false;  // a queue is above the other
  const Row& taking = rows_[mine.back()];
  const Row& holding = rows_[others.back()];
  bool beyond = false;
  for (const auto& [name, eighths] : need) {
    const auto found = type_index_.find(name);
    if (found == type_index_.end()) return false;  // nobody is guaranteed the type
    const std::size_t type = found->second;
    if (At(taking.all.held, type, 0) + eighths > At(taking.guaranteed, type, kNone)) return false;
    const std::int64_t own = std::max<std::int64_t>(At(holding.guaranteed, type, kNone), 0);
    beyond = beyond || At(holding.all.held, type, 0) > own;
  }
  return beyond;
}

QueueUse QueueShares::UseOf(const std::string& queue, WallTime now) const {
  const std::size_t node = NodeOf(queue);
  const Row& row = rows_[node];
  return {.as_of = std::max(now, row.all.as_of),
          .used = AverageAt(row.all, tree_.nodes()[node], now),
          .own = AverageAt(row.own, tree_.nodes()[node], now)};
}

double QueueShares::UsedChips(const std::string& queue, WallTime now) const {
  return UseOf(queue, now).used / kEighths;
}

Eighths QueueShares::HeldOf(const std::string& queue) const {
  Eighths held;
  const Account& all = rows_[NodeOf(queue)].all;
  for (std::size_t type = 0; type < all.held.size(); ++type) {
    if (all.held[type] != 0) held[types_[type]] = all.held[type];
  }
  return held;
}

std::int64_t QueueShares::RunningIn(const std::string& queue) const {
  return rows_[NodeOf(queue)].all.running;
}

// Returns the average a sixteenth of the half-life later, when all held chips stay held: held chips
// count at once, but little beside chip-hours. If held chips counted as much as the average, a
// queue of few large gangs would get too much: such a queue holds little whenever its turn comes.
double QueueShares::ForeseenOf(const Account& account, const QueueTree::Node& node, WallTime now) {
  const double kept = std::exp2(-1.0 / 16);
  return AverageAt(account, node, now) * kept + static_cast<double>(account.total) * (1 - kept);
}

QueueShares::Rank QueueShares::RankOf(std::size_t node, WallTime now) const {
  const QueueTree::Node& queue = tree_.nodes()[node];
  const Row& row = rows_[node];
  Rank rank{.guaranteed = true,
            .use = ForeseenOf(row.all, queue, now) / static_cast<double>(queue.weight)};
  for (std::size_t type = 0; type < row.guaranteed.size() && rank.guaranteed; ++type) {
    rank.guaranteed = row.guaranteed[type] <= At(row.all.held, type, 0);
  }
  return rank;
}

QueueShares::Rank QueueShares::RankOfOwn(std::size_t node, WallTime now) const {
  return {.guaranteed = true, .use = ForeseenOf(rows_[node].own, tree_.nodes()[node], now)};
}

}  // namespace tahoma::controller
