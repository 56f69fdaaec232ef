#include "controller/core/blocks/usage_meter.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tahoma::controller {
namespace {

// The chips of a node by who has them; a chip with several counts once.
struct NodeUse {
  std::uint16_t used = 0;
  std::uint16_t lent = 0;
  std::array<std::optional<WallTime>, kChipsPerNode> since;  // nullopt: not known
};

NodeUse UseOf(const NodeState& node) {
  NodeUse use;
  std::uint16_t unknown = 0;  // chips that somebody has had since nobody knows when
  for (const auto& holding : node.holdings) {
    const std::uint16_t chips = ChipsOf(*holding, *node.node);
    (holding->borrows() ? use.lent : use.used) |= chips;
    if (!holding->since) unknown |= chips;
    for (std::size_t chip = 0; holding->since && chip < kChipsPerNode; ++chip) {
      if ((chips >> chip & 1) == 0) continue;
      use.since[chip] = std::min(use.since[chip].value_or(*holding->since), *holding->since);
    }
  }
  for (std::size_t chip = 0; chip < kChipsPerNode; ++chip) {
    if ((unknown >> chip & 1) != 0) use.since[chip].reset();
  }
  use.lent &= static_cast<std::uint16_t>(~use.used);
  return use;
}

// Calls f(use, healthy chips) for each node of the host.
template <typename F>
void ForEachNode(const ClusterState& cluster, const std::string& host, F&& f) {
  const auto id = cluster.FindDomain(host);
  if (!id) return;
  const DomainState& domain = cluster.domain(*id);
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const NodeState& node = cluster.node(domain.nodes[z]);
    if (node.node == nullptr) continue;
    f(UseOf(node), static_cast<std::uint16_t>(domain.present >> (16 * z)));
  }
}

// Takes back, for chips that were not used yet from `from` on, the time until they were.
void ForgetEarlierUse(const ClusterState& cluster, const std::string& host, const BlockTime& time,
                      WallTime from, WallTime to, ChipTally& chip_ms) {
  ForEachNode(cluster, host, [&](const NodeUse& use, std::uint16_t) {
    for (std::size_t chip = 0; chip < kChipsPerNode; ++chip) {
      if (!use.since[chip]) continue;
      const WallTime since = std::min(time.ToBlock(*use.since[chip]), to);
      if (since <= from) continue;
      const std::int64_t early = MillisecondsOf(since) - MillisecondsOf(from);
      const bool used = (use.used >> chip & 1) != 0;
      (used ? chip_ms.used : chip_ms.lent) -= early;
      chip_ms.idle += early;
    }
  });
}

}  // namespace

ChipTally TallyOf(const ClusterState& cluster, const std::string& host, const Product& product) {
  ChipTally tally;
  ForEachNode(cluster, host, [&](const NodeUse& use, std::uint16_t healthy) {
    const auto idle = static_cast<std::uint16_t>(healthy & ~(use.used | use.lent));
    tally.used += std::popcount(use.used);
    tally.lent += std::popcount(use.lent);
    tally.idle += std::popcount(idle);
  });
  tally.lost = std::int64_t{product.instances} * product.chips - tally.total();
  return tally;
}

void UsageMeter::Restore(const Block& block) {
  if (!IsDelivered(block.state)) {
    if (block.usage.total() > 0) {
      live_.Put(block.reservation, {.usage = block.usage, .chips = {}, .end = block.end});
    }
    return;
  }
  restored_[block.reservation] = block;
}

void UsageMeter::Follow(const Block& block, const ClusterState& cluster, WallTime when) {
  const bool known = followed_.contains(block.reservation);
  if (!IsDelivered(block.state)) {
    if (known) Stop(block.reservation);
    return;
  }
  if (restored_.contains(block.reservation)) Update(cluster, when);
  LiveUsage live;
  Followed& followed = followed_[block.reservation];
  if (const LiveUsage* before = live_.Find(block.reservation)) {
    live = *before;
  } else {
    // What was not delivered at the start was lost until it was.
    live.usage = block.usage;
    live.usage.Add({.lost = block.chips()}, when);
  }
  live.usage.Add(live.chips, std::min(when, live.end));
  live.end = block.end;
  followed.product = &block.product();
  if (followed.hosts != block.hosts) {
    for (const std::string& host : followed.hosts) block_of_host_.erase(host);
    for (const std::string& host : block.hosts) block_of_host_[host] = block.reservation;
    followed.hosts = block.hosts;
    followed.tallies.clear();
    CountHosts(block.reservation, followed, live, cluster);
  }
  live_.Put(block.reservation, live);
  changed_.insert(block.reservation);
}

void UsageMeter::CountHosts(const std::string& reservation, Followed& followed, LiveUsage& live,
                            const ClusterState& cluster) {
  live.chips = {};
  for (const std::string& host : followed.hosts) {
    block_of_host_[host] = reservation;
    const ChipTally tally = TallyOf(cluster, host, *followed.product);
    followed.tallies[host] = tally;
    live.chips += tally;
  }
}

// Counts what its hosts were used for up to its end, and no further.
void UsageMeter::Stop(const std::string& reservation) {
  Followed& followed = followed_.at(reservation);
  LiveUsage live = *live_.Find(reservation);
  live.usage.Add(live.chips, live.end);
  live.chips = {};
  live_.Put(reservation, live);
  for (const std::string& host : followed.hosts) {
    const auto block = block_of_host_.find(host);
    if (block != block_of_host_.end() && block->second == reservation) block_of_host_.erase(block);
  }
  SetDue(reservation, followed, std::nullopt);
  followed_.erase(reservation);
  changed_.insert(reservation);
}

void UsageMeter::Forget(const std::string& reservation) {
  if (followed_.contains(reservation)) Stop(reservation);
  changed_.erase(reservation);
  restored_.erase(reservation);
  live_.Erase(reservation);
}

void UsageMeter::Update(const ClusterState& cluster, WallTime now) {
  for (const auto& [reservation, block] : std::exchange(restored_, {})) {
    Followed& followed = followed_[reservation];
    followed.product = &block.product();
    followed.hosts = block.hosts;
    followed.recorded = block.usage.as_of;
    LiveUsage live{.usage = block.usage, .chips = {}, .end = block.end};
    CountHosts(reservation, followed, live, cluster);
    const WallTime to = std::min(now, block.end);
    live.usage.Add(live.chips, to);
    for (const std::string& host : block.hosts) {
      ForgetEarlierUse(cluster, host, time_, block.usage.as_of, to, live.usage.chip_ms);
    }
    live_.Put(reservation, live);
    changed_.insert(reservation);
  }
  ClusterState::ForEachChangedDomain(seen_, cluster, [&](DomainId id) {
    // A host whose id another has now, or nobody, has changed as well.
    for (const ClusterState* state : {&std::as_const(seen_), &cluster}) {
      if (id.value() >= state->domain_count()) continue;
      const auto block = block_of_host_.find(state->domain(id).name);
      if (block == block_of_host_.end()) continue;
      const std::string& reservation = block->second;
      Followed& followed = followed_.at(reservation);
      ChipTally& tally = followed.tallies[block->first];
      const ChipTally next = TallyOf(cluster, block->first, *followed.product);
      if (next == tally) continue;
      LiveUsage live = *live_.Find(reservation);
      live.usage.Add(live.chips, std::min(now, live.end));
      live.chips += -tally;
      live.chips += next;
      tally = next;
      live_.Put(reservation, live);
      const WallTime due = std::max(followed.recorded + kRecordEvery, now);
      if (!followed.due || due < *followed.due) SetDue(reservation, followed, due);
    }
  });
  seen_ = cluster;
}

void UsageMeter::SetDue(const std::string& reservation, Followed& followed,
                        std::optional<WallTime> due) {
  if (followed.due) dues_.erase({*followed.due, reservation});
  followed.due = due;
  if (due) dues_.insert({*due, reservation});
}

std::vector<std::pair<std::string, BlockUsage>> UsageMeter::DrainRecords(WallTime now) {
  while (!dues_.empty() && dues_.begin()->first <= now) {
    changed_.insert(dues_.begin()->second);
    followed_.at(dues_.begin()->second).due.reset();
    dues_.erase(dues_.begin());
  }
  std::vector<std::pair<std::string, BlockUsage>> records;
  for (const std::string& reservation : std::exchange(changed_, {})) {
    const LiveUsage* live = live_.Find(reservation);
    if (live == nullptr) continue;
    records.emplace_back(reservation, live->UpTo(now));
    const auto followed = followed_.find(reservation);
    if (followed == followed_.end()) continue;
    followed->second.recorded = now;
    SetDue(reservation, followed->second, now + kRefreshEvery);
  }
  return records;
}

std::optional<WallTime> UsageMeter::wake() const {
  if (dues_.empty()) return std::nullopt;
  return dues_.begin()->first;
}

}  // namespace tahoma::controller
