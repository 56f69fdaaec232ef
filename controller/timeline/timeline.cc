#include "controller/timeline/timeline.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "controller/model/gang_rules.h"

namespace tahoma::controller {
namespace {

// So many moments are looked at in order; from then on each step is kStrides times longer.
constexpr std::size_t kInOrderMost = 10;
constexpr std::size_t kStrides = 4;

GangBoxes BoxesOfSpec(const GangSpec& gang) {
  return BoxesOf({.members = std::ssize(gang.members),
                  .shape = gang.shape_text,
                  .chips = gang.chips,
                  .slices = gang.slices});
}

// Returns whether enough boxes are free where the gang may run: far cheaper than a failed plan.
bool MayHaveRoom(const ClusterState& fleet, const GangSpec& gang, WallTime when) {
  const GangBoxes boxes = BoxesOfSpec(gang);
  if (boxes.shapes.empty()) return true;
  std::int64_t left = std::int64_t{gang.slices} * boxes.per_slice;
  const int together = boxes.shapes.front().chip_count();
  for (std::size_t i = 0; i < fleet.domain_count() && left > 0; ++i) {
    const DomainState& domain = fleet.domain(DomainId(i));
    if (BlocksAdmit(domain, gang, when)) left -= std::popcount(domain.free) / together;
  }
  return left <= 0;
}

}  // namespace

std::int64_t LeastChips(const GangSpec& gang) {
  const GangBoxes boxes = BoxesOfSpec(gang);
  if (boxes.shapes.empty()) return 0;
  return std::int64_t{gang.slices} * boxes.per_slice * boxes.shapes.front().chip_count();
}

Timeline::Timeline(TimelineParts parts) : parts_(std::move(parts)) {
  const std::vector<End>& ends = parts_.ends;
  std::vector<WallTime> times;
  for (const End& end : ends) {
    if (end.when != End::kUnknown) times.push_back(std::max(end.when, parts_.now));
  }
  for (const auto& promise : parts_.promises) {
    if (promise->until != WallTime::max()) times.push_back(std::max(promise->until, parts_.now));
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::size_t next = 0;
  for (const WallTime when : times) {
    while (next < ends.size() && ends[next].when <= when) ++next;
    points_.push_back({.when = when, .ends = next});
  }
  known_ = points_.size();
  while (next < ends.size()) points_.push_back({.when = End::kUnknown, .ends = ++next});
}

Timeline::Moment Timeline::Begin() const {
  Moment moment{
      .fleet = parts_.fleet, .ends = 0, .kept = std::vector<bool>(parts_.promises.size())};
  std::fill_n(moment.kept.begin(), parts_.held, true);
  return moment;
}

// Beyond all known times a promise without an end holds, and maintenance that binds now: the next
// run may end at any time.
bool Timeline::HoldsAt(const Promise& promise, WallTime when, const GangSpec& gang) const {
  if (when != End::kUnknown) return Binds(promise, gang, when);
  if (promise.kind == PromiseKind::kMaintenance) return Binds(promise, gang, parts_.now);
  return promise.until == WallTime::max();
}

// Makes a later moment of an earlier.
void Timeline::Move(Moment& moment, const Point& to, const GangSpec& gang) const {
  for (; moment.ends < to.ends; ++moment.ends) {
    parts_.release(parts_.ends[moment.ends].what, moment.fleet);
  }
  if (parts_.keep) parts_.keep(to.when, moment.fleet);
  for (std::size_t i = 0; i < parts_.promises.size(); ++i) {
    const Promise& promise = *parts_.promises[i];
    const bool holds = HoldsAt(promise, to.when, gang);
    if (holds == moment.kept[i]) continue;
    moment.kept[i] = holds;
    for (const auto& holding : promise.holdings) {
      if (holds)
        moment.fleet.Hold(holding);
      else
        moment.fleet.Release(holding->claim_uid);
    }
  }
}

std::optional<Timeline::Start> Timeline::Look(const Moment& moment, const Point& at,
                                              const std::shared_ptr<const GangSpec>& gang,
                                              const PlanFunction& plan) const {
  // A plan needs a time for the rules of blocks: now, where the time is not known.
  const WallTime when = at.when == End::kUnknown ? parts_.now : at.when;
  if (!MayHaveRoom(moment.fleet, *gang, when)) return std::nullopt;
  std::vector<Decision> decisions = plan(moment.fleet, {gang}, when, Explaining::kNone);
  if (!decisions.front().placement) return std::nullopt;
  return Start{.when = at.when,
               .exact = false,
               .placement = *std::move(decisions.front().placement),
               .fleet = moment.fleet};
}

// Returns how many moments are certainly too early for so many chips: even with all ended hardware
// healthy and nothing kept.
std::size_t Timeline::TooEarlyFor(std::int64_t chips) const {
  if (chips == 0 || !parts_.chips || parts_.held > 0) return 0;
  auto free = static_cast<std::int64_t>(parts_.fleet.Count().free);
  std::size_t ends = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    for (; ends < points_[i].ends; ++ends) free += parts_.chips(parts_.ends[ends].what);
    if (free >= chips) return i;
  }
  return points_.size();
}

std::optional<Timeline::Start> Timeline::FindEarliest(const std::shared_ptr<const GangSpec>& gang,
                                                      const PlanFunction& plan,
                                                      Beyond beyond) const {
  const std::size_t count = beyond == Beyond::kKnown ? known_ : points_.size();
  Moment known = Begin();  // the latest moment that was too early
  int looks = 0;
  const auto try_at = [&](std::size_t i, bool exact) -> std::optional<Start> {
    ++looks;
    Moment moment = known;
    Move(moment, points_[i], *gang);
    std::optional<Start> start = Look(moment, points_[i], gang, plan);
    if (start)
      start->exact = exact;
    else
      known = std::move(moment);
    return start;
  };
  std::size_t below = std::min(count, TooEarlyFor(LeastChips(*gang)));
  const std::size_t in_order = std::min(count, below + kInOrderMost);
  for (; below < in_order; ++below) {
    if (auto found = try_at(below, true)) return found;
  }
  std::optional<Start> found;
  std::size_t above = below;
  for (std::size_t step = kInOrderMost; !found && below < count; step *= kStrides) {
    above = std::min(below + step, count - 1);
    found = try_at(above, false);
    if (!found) below = above + 1;
  }
  while (found && below < above && looks < kLooksMost) {
    const std::size_t middle = below + (above - below) / 2;
    if (auto earlier = try_at(middle, false)) {
      found = std::move(earlier);
      above = middle;
    } else {
      below = middle + 1;
    }
  }
  return found;
}

std::optional<Timeline::Start> Timeline::FindBefore(WallTime when,
                                                    const std::shared_ptr<const GangSpec>& gang,
                                                    const PlanFunction& plan) const {
  std::size_t i = 0;
  while (i < known_ && points_[i].when < when) ++i;
  if (i == 0) return std::nullopt;
  Moment moment = Begin();
  Move(moment, points_[i - 1], *gang);
  return Look(moment, points_[i - 1], gang, plan);
}

}  // namespace tahoma::controller
