#include "controller/admin/promises.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/core/blocks/block_hosts.h"

namespace tahoma::controller {
namespace {

void SortByKey(std::vector<HurtBlock>& hurt) {
  std::sort(hurt.begin(), hurt.end(),
            [](const HurtBlock& a, const HurtBlock& b) { return a.block->key < b.block->key; });
}

bool Has(const Block& block, const std::string& host) {
  return HoldsCapacity(block.state) &&
         std::find(block.hosts.begin(), block.hosts.end(), host) != block.hosts.end();
}

// Returns the slots from today on in which the pool has no host left for a failure.
std::vector<Slot> ShortSlots(const TimeProfile& profile, PoolId pool) {
  std::vector<Slot> slots;
  const Slot today = profile.today();
  const std::vector<int> free = profile.FreeIn(pool, {today, today + kSlotsAhead});
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i] + profile.supply(pool).spare < 1) slots.push_back(today + static_cast<Slot>(i));
  }
  return slots;
}

}  // namespace

std::vector<HurtBlock> HurtByCordon(const Snapshot& snapshot, DomainId host, WallTime now) {
  std::vector<HurtBlock> hurt;
  const auto state = HostOf(*snapshot.cluster, host);
  if (!state || !state->healthy) return hurt;
  TimeProfile profile = snapshot.profile;
  profile.AdvanceTo(SlotOf(now));
  std::vector<Slot> shortage;
  if (const auto pool = profile.Find(state->pool)) shortage = ShortSlots(profile, *pool);
  snapshot.block_list.ForEach([&](const std::string&, const std::shared_ptr<const Block>& block) {
    if (Has(*block, state->name)) {
      hurt.push_back(
          {block, fmt::format("Capacity Block {} has {}", ToString(block->key), state->name)});
      return;
    }
    if (!HoldsCapacity(block->state) || shortage.empty()) return;
    const bool there =
        std::any_of(block->cells.begin(), block->cells.end(),
                    [&](const auto& share) { return PoolOf(*block, share.cell) == state->pool; });
    const SlotRange slots = block->slots();
    const auto first = std::lower_bound(shortage.begin(), shortage.end(), slots.first);
    if (!there || first == shortage.end() || *first >= slots.last) return;
    hurt.push_back(
        {block, fmt::format("of the hosts that are sold in {} none would be left over on {}, when "
                            "Capacity Block {} has some",
                            state->pool.cell.empty() ? state->pool.zone : state->pool.cell,
                            FormatTime(StartOf(*first)), ToString(block->key))});
  });
  SortByKey(hurt);
  return hurt;
}

std::vector<HurtBlock> HurtByDrain(const Snapshot& snapshot, DomainId host, WallTime now) {
  std::vector<HurtBlock> hurt = HurtByCordon(snapshot, host, now);
  const std::string& name = snapshot.cluster->domain(host).name;
  snapshot.block_list.ForEach([&](const std::string&, const std::shared_ptr<const Block>& block) {
    const bool known = std::any_of(hurt.begin(), hurt.end(),
                                   [&](const HurtBlock& other) { return other.block == block; });
    if (known || !Has(*block, name) || !IsDelivered(block->state)) return;
    hurt.push_back({block, fmt::format("gangs of Capacity Block {} may run on {}",
                                       ToString(block->key), name)});
  });
  SortByKey(hurt);
  return hurt;
}

}  // namespace tahoma::controller
