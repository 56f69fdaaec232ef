#include "controller/core/queue/promises.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "controller/core/journal/usage_record.h"
#include "controller/core/queue/queue_lines.h"
#include "controller/plan/decision.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

GangRef HolderOf(const GangSpec& gang) { return {gang.key, gang.single_pod}; }

// Returns the node of that name; nullopt when it does not exist now.
std::optional<NodeId> NodeIn(const ClusterState& cluster, const std::string& name) {
  const std::optional<NodeId> id = cluster.FindNode(name);
  return id && cluster.node(*id).node != nullptr ? id : std::nullopt;
}

// Calls f(node, chips) for the chips of our driver's devices that the holding has on each node.
template <typename F>
void ForEachNode(const Holding& holding, const ClusterState& cluster, F&& f) {
  std::vector<NodeId> seen;
  for (const Holding::HeldDevice& device : holding.devices) {
    const std::optional<NodeId> id = NodeIn(cluster, device.node);
    if (!id || std::ranges::find(seen, *id) != seen.end()) continue;
    seen.push_back(*id);
    f(*id, ChipsOf(holding, *cluster.node(*id).node));
  }
}

// Returns whether all nodes of the holding exist, and its chips work.
bool IsThere(const Holding& holding, const ClusterState& cluster) {
  for (const Holding::HeldDevice& device : holding.devices) {
    if (!NodeIn(cluster, device.node)) return false;
  }
  bool there = true;
  ForEachNode(holding, cluster, [&](NodeId id, std::uint16_t chips) {
    const NodeState& node = cluster.node(id);
    if (!node.domain.valid()) return;  // a node without a place on a torus
    const auto present =
        static_cast<std::uint16_t>(cluster.domain(node.domain).present >> (kChipsPerNode * node.z));
    there = there && (chips & ~present) == 0;
  });
  return there;
}

// The cores that a holding occupies of a node, by chip.
struct CoreUse {
  std::array<std::uint8_t, kChipsPerNode> cores{};
  std::array<std::uint8_t, kChipsPerNode> lnc{};  // 0: the whole chip
};

CoreUse CoresOf(const Holding& holding, const Node& node) {
  CoreUse use;
  for (const Holding::HeldDevice& device : holding.devices) {
    if (device.admin_access || device.node != node.name) continue;
    const DeviceRole role = node.RoleNamed(device.device);
    if (role.kind == DeviceKind::kNode) use.cores.fill(0xff);
    if (role.kind == DeviceKind::kChip) use.cores[role.chip] = 0xff;
    if (role.kind != DeviceKind::kCore) continue;
    use.cores[role.chip] |= role.cores;
    use.lnc[role.chip] = role.lnc;
  }
  return use;
}

// Returns whether only one of the holdings can have its devices of the node: they share a core, or
// a chip whose cores they want in two sizes.
bool ExcludeEachOther(const Holding& a, const Holding& b, const Node& node) {
  const CoreUse of_a = CoresOf(a, node);
  const CoreUse of_b = CoresOf(b, node);
  for (std::size_t chip = 0; chip < of_a.cores.size(); ++chip) {
    if (of_a.cores[chip] == 0 || of_b.cores[chip] == 0) continue;
    if ((of_a.cores[chip] & of_b.cores[chip]) != 0 || of_a.lnc[chip] != of_b.lnc[chip]) return true;
  }
  return false;
}

// Returns when the hardware of the promise is free of others as far as is known: the earliest time
// of all when it is free, WallTime::max() without a known time.
WallTime FreeAt(const Promise& promise, const ClusterState& cluster) {
  WallTime free_at = WallTime::min();
  for (const auto& holding : promise.holdings) {
    ForEachNode(*holding, cluster, [&](NodeId id, std::uint16_t chips) {
      const NodeState& node = cluster.node(id);
      for (const auto& other : node.holdings) {
        if ((ChipsOf(*other, *node.node) & chips) == 0) continue;
        if (!ExcludeEachOther(*holding, *other, *node.node)) continue;
        free_at = std::max(free_at, other->end.value_or(WallTime::max()));
      }
    });
  }
  return free_at;
}

// Returns whether a holding of the promise excludes the other holding on the node.
bool Excludes(const Promise& promise, const Holding& other, const Node& node) {
  return std::ranges::any_of(promise.holdings, [&](const auto& holding) {
    return ExcludeEachOther(*holding, other, node);
  });
}

// Returns whether both promise the same hardware at some time.
bool Overlap(const Promise& a, const Promise& b, const ClusterState& cluster) {
  if (a.from >= b.until || b.from >= a.until) return false;
  absl::flat_hash_map<NodeId, std::uint16_t> chips_of_a;
  for (const auto& holding : a.holdings) {
    ForEachNode(*holding, cluster,
                [&](NodeId id, std::uint16_t chips) { chips_of_a[id] |= chips; });
  }
  bool shared = false;
  for (const auto& holding : b.holdings) {
    ForEachNode(*holding, cluster, [&](NodeId id, std::uint16_t chips) {
      const auto found = chips_of_a.find(id);
      if (shared || found == chips_of_a.end() || (found->second & chips) == 0) return;
      shared = Excludes(a, *holding, *cluster.node(id).node);
    });
  }
  return shared;
}

std::vector<DomainId> DomainsOf(const Promise& promise, const ClusterState& cluster) {
  std::set<DomainId> domains;
  for (const auto& holding : promise.holdings) {
    ForEachNode(*holding, cluster, [&](NodeId id, std::uint16_t) {
      if (cluster.node(id).domain.valid()) domains.insert(cluster.node(id).domain);
    });
  }
  return {domains.begin(), domains.end()};
}

// Returns how many chips the gang asks for, roughly: a core counts as a chip.
std::int64_t ChipsAsked(const GangSpec& gang) {
  std::int64_t chips = 0;
  for (const MemberSpec& member : gang.members) {
    for (const ClaimSpec& claim : member.claims) {
      for (const auto& request : claim.requests) chips += request.alternatives.front().count;
    }
  }
  return std::max({chips, LeastChips(gang), std::int64_t{1}});
}

// Returns whether the waiting gang could have a pod on a node of the placement.
bool CouldUse(const GangSpec& waiting, const Placement& placement, const ClusterState& cluster) {
  return std::ranges::any_of(placement.members, [&](const MemberPlacement& placed) {
    const std::optional<NodeId> id = NodeIn(cluster, placed.node);
    return id && std::ranges::any_of(waiting.members, [&](const MemberSpec& member) {
             return member.node.Admits(*cluster.node(*id).node);
           });
  });
}

std::shared_ptr<const Promise> PromiseOf(const GangSpec& gang, const Timeline::Start& start,
                                         WallTime now) {
  Promise promise;
  const bool known = start.when != End::kUnknown;
  promise.kind = known ? PromiseKind::kStart : PromiseKind::kPatience;
  SetHolder(gang, promise);
  promise.place = start.placement.ToString();
  if (known) {
    promise.from = std::max(start.when, now);
    if (gang.max_runtime) promise.until = EndOf(promise.from, *gang.max_runtime);
  }
  promise.holdings = PromisedHoldings(gang, start.placement, now);
  return std::make_shared<const Promise>(std::move(promise));
}

}  // namespace

std::vector<std::shared_ptr<const Holding>> PromisedHoldings(const GangSpec& gang,
                                                             const Placement& placement,
                                                             WallTime now) {
  std::vector<std::shared_ptr<const Holding>> holdings = placement.Holdings(gang, now);
  for (auto& holding : holdings) {
    Holding kept = *holding;
    // Pods of several gangs may use one claim, and each gang is promised devices for the claim.
    kept.claim_uid = "kept for " + kept.holder + ", " + kept.claim_uid;
    kept.holder = "what is promised to " + kept.holder;
    kept.end.reset();
    holding = std::make_shared<const Holding>(std::move(kept));
  }
  return holdings;
}

// Returns whether what the holder of an entry is promised binds a gang without a promise. Hardware
// that others end for is nobody else's.
bool Promises::Precedes(const ServicePlace& holder, const Entry& entry, const ServicePlace& place,
                        const GangSpec& gang) const {
  if (holder < place) return true;
  if (!gang.reservation.empty()) return false;
  const bool ends_others = entry.promise != nullptr && entry.promise->kind == PromiseKind::kPreempt;
  return ends_others || (by_queue_ && entry.gang->queue != gang.queue);
}

// Returns how many fixed promises begin before the gang has gone.
std::size_t Promises::FixedBefore(WallTime gone) const {
  const auto end = std::ranges::lower_bound(fixed_.all, gone, {},
                                            [](const auto& promise) { return promise->from; });
  return static_cast<std::size_t>(end - fixed_.all.begin());
}

Promises::Bound Promises::BindingFixed(const GangSpec& gang, WallTime now) const {
  return {.gangs = {}, .fixed = FixedBefore(GoneFrom(gang, now))};
}

Promises::Bound Promises::BegunFixed(WallTime now) const {
  return {.gangs = {}, .fixed = FixedBefore(EndOf(now, std::chrono::seconds(1)))};
}

const ClusterState& Promises::FleetWithFixed(const ClusterState& cluster, std::size_t count) const {
  auto& fleets = fixed_.fleets;
  auto found = std::ranges::find(fleets, count, [](const auto& known) { return known.first; });
  if (found == fleets.end()) {
    if (fleets.size() < kFleetsMost) fleets.emplace_back();
    found = std::prev(fleets.end());  // the one that was not asked for longest
    found->first = count;
  }
  std::rotate(fleets.begin(), found, std::next(found));
  return fleets.front().second.Of(cluster, KeptFleet::List(fixed_.all).first(count));
}

// Returns whether a fixed promise on the same domains keeps the gang from that promise.
bool Promises::MeetsFixed(const Entry& entry, const Promise& promise, WallTime now) const {
  if (fixed_.all.empty()) return false;
  return std::ranges::any_of(entry.domains, [&](DomainId domain) {
    const auto those = fixed_.in_domain.find(domain);
    return those != fixed_.in_domain.end() &&
           std::ranges::any_of(those->second, [&](const auto& fixed) {
             return Binds(*fixed, *entry.gang, std::max(now, promise.from));
           });
  });
}

void Promises::SetFixed(std::vector<FixedPromise> fixed, const ClusterState& cluster,
                        WallTime now) {
  std::ranges::stable_sort(fixed, {}, [](const auto& one) { return one.promise->from; });
  auto gone = std::exchange(fixed_.domains, {});
  fixed_.all.clear();
  std::set<ServicePlace> near;  // gangs with a promise on a domain of a new fixed promise
  for (FixedPromise& one : fixed) {
    fixed_.all.push_back(one.promise);
    const bool known = gone.erase(one.promise) > 0;
    for (const DomainId domain : one.domains) {
      if (known) break;
      fixed_.in_domain[domain].push_back(one.promise);
      const auto those = in_domain_.find(domain);
      if (those != in_domain_.end()) near.insert(those->second.begin(), those->second.end());
    }
    fixed_.domains[one.promise] = std::move(one.domains);
  }
  may_improve_ = may_improve_ || !gone.empty();
  for (const auto& [promise, domains] : gone) {
    for (const DomainId domain : domains) {
      freed_.insert(domain);
      FixedList& those = fixed_.in_domain.at(domain);
      std::erase(those, promise);
      if (those.empty()) fixed_.in_domain.erase(domain);
    }
  }
  for (const ServicePlace& place : near) {
    Entry& entry = entries_.at(place);
    if (entry.promise == nullptr || entry.promise->kind == PromiseKind::kPreempt) continue;
    if (!MeetsFixed(entry, *entry.promise, now)) continue;
    Set(entry, nullptr, cluster);
    Search(place, entry, cluster, now);
  }
}

bool Promises::IsFor(const KeptPlace& kept, const GangRef& ref, const GangSpec& gang) {
  if (kept.holder == ref) return true;
  return kept.open_to != 0 && LeastChips(gang) == kept.open_to * gang.slices;
}

Promises::Bound Promises::Binding(const ServicePlace& place, const GangSpec& gang,
                                  WallTime now) const {
  Bound bound = BindingFixed(gang, now);
  std::vector<std::uint64_t>& binding = bound.gangs;
  const auto own = entries_.find(place);
  bool promised = own != entries_.end() && own->second.promise != nullptr;
  for (const auto& [name, numbered] : kept_places_) {
    const KeptPlace& kept = numbered.place;
    promised = promised || kept.holder == place.gang;
    if (IsFor(kept, place.gang, gang) || !gang.reservation.empty()) continue;
    if (Meets(*kept.promise, now, gang.max_runtime)) binding.push_back(numbered.number);
  }
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const Promise* promise = entry->second.promise.get();
    if (promise == nullptr || entry == own) continue;
    if (!promised && !Precedes(entry->first, entry->second, place, gang)) continue;
    if (Meets(*promise, now, gang.max_runtime)) binding.push_back(entry->second.number);
  }
  std::ranges::sort(binding);
  return bound;
}

ClusterState Promises::ViewOf(const ClusterState& cluster, const Bound& binding) const {
  ClusterState view = binding.fixed == 0 ? cluster : FleetWithFixed(cluster, binding.fixed);
  for (const std::uint64_t number : binding.gangs) {
    for (const auto& holding : by_number_.at(number)->holdings) view.Hold(holding);
  }
  return view;
}

bool Promises::Wants(const ServicePlace& place) const {
  if (place_of_.contains(place.gang)) return false;
  return !full() || place < entries_.rbegin()->first;
}

// Gives the gang a promise in place of the last; nullptr: none.
void Promises::Set(Entry& entry, std::shared_ptr<const Promise> promise,
                   const ClusterState& cluster) {
  const ServicePlace place = PlaceOf(HolderOf(*entry.gang), *entry.gang);
  if (entry.promise != nullptr) {
    by_number_.erase(entry.number);
    for (const DomainId domain : entry.domains) {
      freed_.insert(domain);
      auto& those = in_domain_[domain];
      those.erase(place);
      if (those.empty()) in_domain_.erase(domain);
    }
    entry.domains.clear();
  }
  entry.promise = std::move(promise);
  entry.due.reset();
  if (entry.promise == nullptr) return;
  entry.number = ++numbers_;
  by_number_[entry.number] = entry.promise;
  entry.domains = DomainsOf(*entry.promise, cluster);
  for (const DomainId domain : entry.domains) in_domain_[domain].insert(place);
}

// Returns the future with the promises that bind the gang.
Timeline Promises::TimelineOf(const Entry& entry, const ServicePlace& place,
                              const ClusterState& cluster, WallTime now) const {
  TimelineParts parts{.fleet = cluster, .now = now, .release = {}};
  parts.ends.reserve(runs_.by_end().size());
  for (const auto& [when, run] : runs_.by_end()) parts.ends.push_back({.when = when, .what = run});
  parts.release = [this](std::uint64_t run, ClusterState& fleet) {
    ReleaseDecided(runs_.FindRun(run)->decision(), fleet);
  };
  parts.held = BindingFixed(*entry.gang, now).fixed;
  if (parts.held > 0) parts.fleet = FleetWithFixed(cluster, parts.held);
  parts.promises = fixed_.all;
  const bool behind_too = entry.promise != nullptr;
  for (const auto& [other, kept] : entries_) {
    if (kept.promise == nullptr || other == place) continue;
    if (!behind_too && !Precedes(other, kept, place, *entry.gang)) continue;
    parts.promises.push_back(kept.promise);
  }
  for (const auto& [name, numbered] : kept_places_) {
    if (IsFor(numbered.place, place.gang, *entry.gang)) continue;
    parts.promises.push_back(numbered.place.promise);
  }
  return Timeline(std::move(parts));
}

// Promises the gang the earliest start that is known.
void Promises::Search(const ServicePlace& place, Entry& entry, const ClusterState& cluster,
                      WallTime now) {
  const auto start = TimelineOf(entry, place, cluster, now).FindEarliest(entry.gang, plan_);
  if (!start) return Set(entry, nullptr, cluster);
  Set(entry, PromiseOf(*entry.gang, *start, now), cluster);
  Reconcile(place, entry, cluster, now);
}

// Keeps the promises of gangs behind apart from the gang's: a small overlap moves them on, a large
// overlap finds them other places.
void Promises::Reconcile(const ServicePlace& place, const Entry& entry, const ClusterState& cluster,
                         WallTime now) {
  std::set<ServicePlace> behind;
  for (const DomainId domain : entry.domains) {
    const auto& those = in_domain_.at(domain);
    behind.insert(those.upper_bound(place), those.end());
  }
  const std::shared_ptr<const Promise> own = entry.promise;
  std::vector<ServicePlace> searched;
  for (const ServicePlace& other : behind) {
    Entry& next = entries_.at(other);
    if (next.promise == nullptr || next.promise->kind != PromiseKind::kStart) continue;
    if (!Overlap(*next.promise, *own, cluster)) continue;
    if (own->until != WallTime::max() && own->from <= next.promise->from &&
        own->until - next.promise->from <= kMovedMost) {
      MoveOn(other, next, own->until, cluster, now);
      continue;
    }
    Set(next, nullptr, cluster);
    searched.push_back(other);
  }
  for (const ServicePlace& other : searched) Search(other, entries_.at(other), cluster, now);
}

// Lets the promised time begin later, at the same place.
void Promises::MoveOn(const ServicePlace& place, Entry& entry, WallTime from,
                      const ClusterState& cluster, WallTime now) {
  Promise moved = *entry.promise;
  if (moved.until != WallTime::max()) moved.until += from - moved.from;
  if (!moved.first_from) moved.first_from = moved.from;
  moved.from = from;
  if (MeetsFixed(entry, moved, now)) {
    Set(entry, nullptr, cluster);
    return Search(place, entry, cluster, now);
  }
  for (const DomainId domain : entry.domains) {
    for (const ServicePlace& other : in_domain_.at(domain)) {
      if (place <= other) break;
      const Promise& before = *entries_.at(other).promise;
      if (moved.until - kPromiseGrain <= before.from || !Overlap(before, moved, cluster)) continue;
      Set(entry, nullptr, cluster);  // a gang before would begin later
      return Search(place, entry, cluster, now);
    }
  }
  Set(entry, std::make_shared<const Promise>(std::move(moved)), cluster);
  Reconcile(place, entry, cluster, now);
}

void Promises::SetGang(Entry& entry, const std::shared_ptr<const GangSpec>& gang) {
  entry.gang = gang;
  const std::int64_t hours = gang->patience.value_or(ChipsAsked(*gang) * kPatience.count());
  const std::chrono::duration<double> hour = std::chrono::hours(1);
  entry.passing.most = static_cast<double>(hours * kEighthsOfChip) * hour.count();
}

// Makes room for one entry more, if those behind that place have one to give.
bool Promises::MakeRoomFor(const ServicePlace& place) {
  if (!full()) return true;
  const auto last = std::prev(entries_.end());
  if (last->first < place) return false;
  OnSettled(last->first.gang);
  return true;
}

void Promises::OnBlocked(const std::shared_ptr<const GangSpec>& gang, const ClusterState& cluster,
                         WallTime now) {
  const GangRef ref = HolderOf(*gang);
  const ServicePlace place = PlaceOf(ref, *gang);
  const auto known = place_of_.find(ref);
  if (known != place_of_.end() && known->second != place) OnSettled(ref);
  const auto found = entries_.find(place);
  if (found == entries_.end()) {
    if (!MakeRoomFor(place)) return;
    place_of_[ref] = place;
    Entry& entry = entries_[place];
    SetGang(entry, gang);
    entry.passing.at = now;
    return Search(place, entry, cluster, now);
  }
  Entry& entry = found->second;
  SetGang(entry, gang);
  if (entry.promise == nullptr) return Search(place, entry, cluster, now);
  const bool was_due = entry.promise->from <= now;
  if (was_due && FreeAt(*entry.promise, cluster) == WallTime::min()) {
    Set(entry, nullptr, cluster);  // all of the place is free, and is not enough
    return Search(place, entry, cluster, now);
  }
  if (!was_due && now - improved_ >= kImprovePause) Improve(place, entry, cluster, now);
}

void Promises::OnSettled(const GangRef& ref) {
  const auto place = place_of_.find(ref);
  if (place == place_of_.end()) return;
  const auto entry = entries_.find(place->second);
  Set(entry->second, nullptr, seen_);
  entries_.erase(entry);
  place_of_.erase(place);
}

bool Promises::Keep(const std::shared_ptr<const GangSpec>& gang, Promise promise) {
  const GangRef ref = HolderOf(*gang);
  const ServicePlace place = PlaceOf(ref, *gang);
  const auto known = place_of_.find(ref);
  if (known != place_of_.end() && known->second != place) OnSettled(ref);
  if (!entries_.contains(place) && !MakeRoomFor(place)) return false;
  place_of_[ref] = place;
  Entry& entry = entries_[place];
  SetGang(entry, gang);
  Set(entry, std::make_shared<const Promise>(std::move(promise)), seen_);
  return true;
}

void Promises::KeepPlace(const std::string& name, KeptPlace what, const ClusterState& cluster,
                         WallTime now) {
  GiveUpPlace(name);
  NumberedPlace& numbered = kept_places_[name];
  numbered.place = std::move(what);
  const KeptPlace& kept = numbered.place;
  numbered.number = ++numbers_;
  by_number_[numbered.number] = kept.promise;
  numbered.domains = DomainsOf(*kept.promise, cluster);
  std::vector<ServicePlace> moved;
  for (auto& [place, entry] : entries_) {
    if (entry.promise == nullptr || entry.promise->kind == PromiseKind::kPreempt) continue;
    if (IsFor(kept, place.gang, *entry.gang) || !Overlap(*entry.promise, *kept.promise, cluster)) {
      continue;
    }
    Set(entry, nullptr, cluster);
    moved.push_back(place);
  }
  for (const ServicePlace& place : moved) Search(place, entries_.at(place), cluster, now);
}

void Promises::GiveUpPlace(const std::string& name) {
  const auto found = kept_places_.find(name);
  if (found == kept_places_.end()) return;
  by_number_.erase(found->second.number);
  freed_.insert(found->second.domains.begin(), found->second.domains.end());
  may_improve_ = true;
  kept_places_.erase(found);
}

void Promises::Improve(const ServicePlace& place, Entry& entry, const ClusterState& cluster,
                       WallTime now) {
  const Timeline timeline = TimelineOf(entry, place, cluster, now);
  if (!timeline.FindBefore(entry.promise->from, entry.gang, plan_)) return;
  const auto start = timeline.FindEarliest(entry.gang, plan_);
  if (start && start->when < entry.promise->from) {
    Set(entry, PromiseOf(*entry.gang, *start, now), cluster);
  }
}

// Looks at the first gang, and at some others in turn.
void Promises::ImproveSome(const ClusterState& cluster, WallTime now) {
  const auto is_early = [&](const Entry& entry) {
    return entry.promise != nullptr && entry.promise->kind == PromiseKind::kStart &&
           entry.promise->from > now;
  };
  auto first = entries_.begin();
  auto next = improved_last_ ? entries_.upper_bound(*improved_last_) : first;
  for (std::size_t i = 0; i < std::min(kImproveMost, entries_.size()); ++i) {
    if (next == entries_.end()) next = entries_.begin();
    const auto turn = i == 0 ? first : next++;
    improved_last_ = turn->first;
    if (is_early(turn->second)) Improve(turn->first, turn->second, cluster, now);
  }
}

// Finds another start for the gang, if its promise cannot be kept.
void Promises::Mend(const ServicePlace& place, Entry& entry, const ClusterState& cluster,
                    WallTime now) {
  if (entry.promise == nullptr || entry.promise->kind == PromiseKind::kPreempt) return;
  const bool there = std::ranges::all_of(
      entry.promise->holdings, [&](const auto& holding) { return IsThere(*holding, cluster); });
  const WallTime from = std::max(entry.promise->from, now);
  const WallTime free_at = FreeAt(*entry.promise, cluster);
  const bool late = entry.promise->kind == PromiseKind::kStart && free_at > from;
  if (there && !late) return;
  if (there && free_at != WallTime::max() && free_at - from <= kMovedMost) {
    return MoveOn(place, entry, free_at, cluster, now);
  }
  Set(entry, nullptr, cluster);
  Search(place, entry, cluster, now);
}

// Wakes the gangs whose time has come. A gang that does not begin for a minute on free hardware, as
// its queue may hold no more, keeps the hardware no longer.
void Promises::TellDue(const ClusterState& cluster, WallTime now) {
  std::vector<GangRef> given_up;
  for (auto& [place, entry] : entries_) {
    if (entry.promise == nullptr || entry.promise->from > now) continue;
    if (entry.due) {
      if (now - *entry.due >= kPromiseGrain) given_up.push_back(place.gang);
      continue;
    }
    if (FreeAt(*entry.promise, cluster) != WallTime::min()) continue;
    // The gang begins now, and so ends later.
    const bool late = entry.promise->kind == PromiseKind::kStart && entry.promise->from < now;
    if (late) MoveOn(place, entry, now, cluster, now);
    if (entry.promise == nullptr || entry.promise->from > now) continue;
    entry.due = now;
    due_.push_back(place.gang);
  }
  for (const GangRef& ref : given_up) OnSettled(ref);
}

void Promises::Step(const ClusterState& cluster, WallTime now) {
  std::set<ServicePlace> changed;
  ClusterState::ForEachChangedDomain(seen_, cluster, [&](DomainId id) {
    const auto those = in_domain_.find(id);
    if (those != in_domain_.end()) changed.insert(those->second.begin(), those->second.end());
    may_improve_ = true;
  });
  seen_ = cluster;
  for (const ServicePlace& place : changed) Mend(place, entries_.at(place), cluster, now);
  TellDue(cluster, now);
  for (auto& [place, entry] : entries_) {
    const auto end = PatienceEnd(entry);
    if (end && *end <= now) EndPatience(place, entry, cluster, now);
  }
  if (!may_improve_ || (now >= improved_ && now - improved_ < kImprovePause)) return;
  may_improve_ = false;
  improved_ = now;
  ImproveSome(cluster, now);
}

void Promises::CountUntil(Passing& passing, WallTime now) {
  if (now > passing.at) {
    const std::chrono::duration<double> ran = now - passing.at;
    passing.done += static_cast<double>(passing.rate) * ran.count();
  }
  passing.at = now;
}

void Promises::OnBegun(const GangSpec& gang, const Placement& placement,
                       const ClusterState& cluster, WallTime now) {
  const GangRef ref = HolderOf(gang);
  std::optional<std::int64_t> eighths;
  const ServicePlace begun = PlaceOf(ref, gang);
  for (auto& [place, entry] : entries_) {
    if (entry.promise != nullptr || !Precedes(place, entry, begun, gang)) continue;
    if (!CouldUse(*entry.gang, placement, cluster)) continue;
    if (!eighths) {
      eighths = 0;
      for (const auto& [type, more] : EighthsOf(placement.Holdings(gang, now), cluster)) {
        *eighths += more;
      }
    }
    CountUntil(entry.passing, now);
    if (entry.passing.gangs.emplace(ref, *eighths).second) entry.passing.rate += *eighths;
  }
  OnSettled(ref);
}

void Promises::OnRun(const GangRef& ref, WallTime now) {
  if (runs_.Find(ref) != nullptr) return;
  for (auto& [place, entry] : entries_) {
    const auto passed = entry.passing.gangs.find(ref);
    if (passed == entry.passing.gangs.end()) continue;
    CountUntil(entry.passing, now);
    entry.passing.rate -= passed->second;
    entry.passing.gangs.erase(passed);
  }
}

// Returns when the gang's patience ends; nullopt while nothing passes the gang.
std::optional<WallTime> Promises::PatienceEnd(const Entry& entry) const {
  if (entry.promise != nullptr) return std::nullopt;
  const Passing& passing = entry.passing;
  if (passing.done >= passing.most) return passing.at;
  if (passing.rate == 0) return std::nullopt;
  const std::chrono::duration<double> left((passing.most - passing.done) /
                                           static_cast<double>(passing.rate));
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return passing.at + std::chrono::duration_cast<std::chrono::nanoseconds>(left);
}

// Keeps for the gang the place where others have run longest.
void Promises::EndPatience(const ServicePlace& place, Entry& entry, const ClusterState& cluster,
                           WallTime now) {
  const auto start = TimelineOf(entry, place, cluster, now)
                         .FindEarliest(entry.gang, plan_, Timeline::Beyond::kUnknown);
  entry.passing = Passing{.gangs = {}, .most = entry.passing.most, .at = now};
  if (start) Set(entry, PromiseOf(*entry.gang, *start, now), cluster);
}

std::shared_ptr<const Promise> Promises::Find(const GangRef& ref) const {
  const auto place = place_of_.find(ref);
  return place == place_of_.end() ? nullptr : entries_.at(place->second).promise;
}

std::vector<std::shared_ptr<const Promise>> Promises::All() const {
  std::vector<std::shared_ptr<const Promise>> all = fixed_.all;
  for (const auto& [place, entry] : entries_) {
    if (entry.promise != nullptr) all.push_back(entry.promise);
  }
  for (const auto& [name, numbered] : kept_places_) all.push_back(numbered.place.promise);
  return all;
}

std::optional<WallTime> Promises::wake(WallTime now) const {
  std::optional<WallTime> wake;
  for (const auto& [place, entry] : entries_) {
    std::optional<WallTime> next = PatienceEnd(entry);
    const bool awaits = entry.promise != nullptr && entry.promise->kind == PromiseKind::kStart;
    if (awaits && entry.promise->from > now) next = entry.promise->from;
    if (entry.due) next = *entry.due + kPromiseGrain;
    if (next && (!wake || *next < *wake)) wake = next;
  }
  return wake;
}

}  // namespace tahoma::controller
