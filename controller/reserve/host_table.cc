#include "controller/reserve/host_table.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {
namespace {

// Ranks of hosts for a block; the lowest are taken first.
constexpr int kOwners = 0;
constexpr int kOthers = 1;
constexpr int kIdle = 2;
constexpr int kLent = 3;
constexpr int kUnfit = 4;

bool IsBoundAt(const std::vector<HostBinding>& bindings, WallTime time) {
  return std::any_of(bindings.begin(), bindings.end(), [&](const HostBinding& binding) {
    return binding.start <= time && time < binding.end;
  });
}

}  // namespace

HostTable::Entry* HostTable::FindEntry(const std::string& name) {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : &found->second;
}

const HostTable::Entry* HostTable::FindEntry(const std::string& name) const {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : &found->second;
}

const HostState* HostTable::Find(const std::string& name) const {
  const Entry* entry = FindEntry(name);
  return entry == nullptr || !entry->state ? nullptr : &*entry->state;
}

void HostTable::Put(HostState state, WallTime now) {
  Entry& entry = hosts_[state.name];
  if (entry.state == state) return;
  if (entry.state && entry.state->pool != state.pool) {
    Remove(state.name, now);
    return Put(std::move(state), now);
  }
  PoolHosts& hosts = by_pool_[state.pool];
  hosts.names.insert(state.name);
  hosts.healthy += (state.healthy ? 1 : 0) - (entry.state && entry.state->healthy ? 1 : 0);
  SetSupply(state.pool, hosts);
  entry.state = std::move(state);
  RecountOccupation(entry, now);
}

const std::set<std::string>& HostTable::NamesIn(const Pool& pool) const {
  static const std::set<std::string> kNone;
  const auto found = by_pool_.find(pool);
  return found == by_pool_.end() ? kNone : found->second.names;
}

void HostTable::Remove(const std::string& name, WallTime now) {
  Entry* entry = FindEntry(name);
  if (entry == nullptr || !entry->state) return;
  const Pool pool = entry->state->pool;
  entry->state->held = false;
  RecountOccupation(*entry, now);
  PoolHosts& hosts = by_pool_[pool];
  hosts.names.erase(name);
  hosts.healthy -= entry->state->healthy ? 1 : 0;
  SetSupply(pool, hosts);
  entry->state.reset();
  ForgetIfUnused(name);
}

void HostTable::ForgetIfUnused(const std::string& name) {
  const auto found = hosts_.find(name);
  if (found != hosts_.end() && !found->second.state && found->second.bindings.empty()) {
    hosts_.erase(found);
  }
}

void HostTable::OnNewDay(WallTime now) {
  for (auto& [name, entry] : hosts_) {
    if (entry.state && entry.occupied_until) RecountOccupation(entry, now);
  }
}

void HostTable::SetSupply(const Pool& pool, const PoolHosts& hosts) {
  Supply supply{.healthy = hosts.healthy};
  if (options_.one_spare_in > 0) {
    supply.spare = static_cast<int>(hosts.names.size()) / options_.one_spare_in;
  }
  profile_.SetSupply(profile_.IdOf(pool), supply);
}

// A healthy host that is in use, and is not bound to a block now, is not for sale until the use
// ends.
void HostTable::RecountOccupation(Entry& entry, WallTime now) {
  std::optional<Slot> until;
  const HostState& state = *entry.state;
  if (state.held && state.healthy && !IsBoundAt(entry.bindings, now)) {
    until = TimeProfile::kForEver;
    if (state.held_until) {
      const WallTime end = std::max(*state.held_until, now);
      until = IsBoundary(end) ? SlotOf(end) : SlotOf(end) + 1;
      until = std::max(*until, profile_.today() + 1);
    }
  }
  if (until == entry.occupied_until) return;
  const PoolId pool = profile_.IdOf(state.pool);
  if (entry.occupied_until) profile_.Vacate(pool, *entry.occupied_until, 1);
  entry.occupied_until = until;
  if (until) entry.occupied_until = profile_.Occupy(pool, *until, 1);
}

int HostTable::RankOf(const Entry& entry, const HostBinding& binding, WallTime now) {
  const HostState& state = *entry.state;
  if (!state.healthy) return kUnfit;
  // Whatever runs there was to have ended by the start.
  if (binding.start <= now && state.held && state.held_by != binding.owner) return kUnfit;
  int rank = entry.occupied_until ? kOthers : state.lent ? kLent : kIdle;
  for (const HostBinding& other : entry.bindings) {
    if (other.reservation == binding.reservation) return kUnfit;
    if (other.Overlaps(binding)) return kUnfit;
    if (other.end == binding.start) rank = other.owner == binding.owner ? kOwners : kOthers;
  }
  if (entry.occupied_until && (!state.held_until || *state.held_until > binding.start)) {
    return kUnfit;
  }
  return rank;
}

std::vector<std::string> HostTable::Choose(const Pool& pool, int count, const HostBinding& binding,
                                           WallTime now) const {
  std::vector<std::pair<int, std::string_view>> candidates;
  if (count <= 0) return {};
  if (const auto names = by_pool_.find(pool); names != by_pool_.end()) {
    for (const std::string& name : names->second.names) {
      const int rank = RankOf(hosts_.at(name), binding, now);
      if (rank != kUnfit) candidates.emplace_back(rank, name);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<std::string> chosen;
  for (const auto& [rank, name] : candidates) {
    if (chosen.size() == static_cast<std::size_t>(count)) break;
    chosen.emplace_back(name);
  }
  return chosen;
}

bool HostTable::CanChoose(const std::string& name, const HostBinding& binding, WallTime now) const {
  const Entry* entry = FindEntry(name);
  return entry != nullptr && entry->state && RankOf(*entry, binding, now) != kUnfit;
}

void HostTable::Bind(const std::string& name, HostBinding binding, WallTime now) {
  Entry& entry = hosts_[name];
  const auto place = std::upper_bound(
      entry.bindings.begin(), entry.bindings.end(), binding,
      [](const HostBinding& a, const HostBinding& b) { return a.start < b.start; });
  entry.bindings.insert(place, std::move(binding));
  if (entry.state) RecountOccupation(entry, now);
}

void HostTable::Unbind(const std::string& name, std::string_view reservation, WallTime now) {
  Entry* entry = FindEntry(name);
  if (entry == nullptr) return;
  std::erase_if(entry->bindings,
                [&](const HostBinding& binding) { return binding.reservation == reservation; });
  if (entry->state) RecountOccupation(*entry, now);
  ForgetIfUnused(name);
}

const std::vector<HostBinding>& HostTable::BindingsOf(const std::string& name) const {
  static const std::vector<HostBinding> kNone;
  const Entry* entry = FindEntry(name);
  return entry == nullptr ? kNone : entry->bindings;
}

bool HostTable::IsReady(const std::string& name, const HostBinding& binding, WallTime now) const {
  const Entry* entry = FindEntry(name);
  if (entry == nullptr || !entry->state || !entry->state->healthy) return false;
  const bool taken =
      std::any_of(entry->bindings.begin(), entry->bindings.end(), [&](const HostBinding& other) {
        return other.reservation != binding.reservation && other.start <= now && now < other.end;
      });
  return !taken && (!entry->state->held || entry->state->held_by == binding.owner);
}

}  // namespace tahoma::controller
