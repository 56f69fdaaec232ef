// Blocks that another leader has sold and published.

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "controller/reserve/book.h"
#include "lib/base/status.h"

namespace tahoma::controller {

void BlockBook::Lead(std::int64_t term) {
  // A lower term means that the lease was made anew, or that the API was restored from a backup.
  version_.term = term >= version_.term ? term : version_.term + 1;
}

void BlockBook::Adopt(std::vector<Block> blocks, const Refused& refused) {
  // The latest first: an older block then finds its lost hosts taken.
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.version > b.version; });
  // All blocks are checked before any is put, because hosts move from block to block.
  std::vector<Block> sound;
  for (Block& block : blocks) {
    absl::Status may = CheckConsistency(block);
    if (may.ok()) may = MakeRoomFor(block);
    may.ok() ? sound.push_back(std::move(block)) : refused(block, may);
  }
  for (Block& block : sound) {
    if (!Rivals(block).empty()) {
      refused(block, DataLoss("Capacity Block {} is there twice", block.reservation));
      continue;
    }
    MoveTimeTo(LatestMoment(block));
    version_ = std::max(version_, block.version);
    ResolveHosts(block);
    if (!block.hosts.empty() || IsDelivered(block.state)) touched_.insert(block.reservation);
    Put(std::make_shared<const Block>(std::move(block)));
  }
}

bool BlockBook::HasRoomFor(const Block& block) const {
  if (!HoldsCapacity(block.state)) return true;
  SlotRange more = BookedSlots(block);
  const auto known = Find(block.reservation);
  // Hosts and start are as bought; only the end may be later.
  if (known != nullptr && HoldsCapacity(known->state)) more.first = BookedSlots(*known).last;
  more.first = std::max(more.first, profile_.today());
  return more.empty() ||
         std::all_of(block.cells.begin(), block.cells.end(), [&](const CellShare& share) {
           const auto pool = profile_.Find(PoolOf(block, share.cell));
           return pool && profile_.LeastFree(*pool, more) >= share.hosts;
         });
}

std::vector<std::shared_ptr<const Block>> BlockBook::Rivals(const Block& block) const {
  std::vector<std::shared_ptr<const Block>> rivals;
  const auto add = [&](std::shared_ptr<const Block> rival) {
    if (rival == nullptr || std::find(rivals.begin(), rivals.end(), rival) != rivals.end()) return;
    rivals.push_back(std::move(rival));
  };
  add(Find(block.reservation));
  add(FindByKey(block.key));
  if (block.token.empty()) return rivals;
  const auto bought = by_token_.find(TokenKey(block.key.ns, block.token));
  if (bought != by_token_.end()) add(bought->second);
  return rivals;
}

// Erases the blocks that the block replaces. Refused when a rival is as new as the block.
absl::Status BlockBook::MakeRoomFor(const Block& block) {
  const auto before = Rivals(block);
  for (const auto& other : before) {
    if (other->version >= block.version) {
      return DataLoss("Capacity Block {} of {} is there already, by a later change",
                      other->reservation, ToString(other->key));
    }
  }
  for (const auto& other : before) Erase(*other);
  return absl::OkStatus();
}

// Leaves each host of the block to it, or to the block that has the host by a later change.
void BlockBook::ResolveHosts(Block& block) {
  if (!HoldsCapacity(block.state)) return;
  const HostBinding binding = BindingOf(block);
  std::vector<std::string> taken;
  std::erase_if(block.hosts, [&](const std::string& host) {
    const std::vector<HostBinding> others = hosts_.BindingsOf(host);
    const bool later = std::any_of(others.begin(), others.end(), [&](const HostBinding& other) {
      return other.Overlaps(binding) && Find(other.reservation)->version > block.version;
    });
    if (later) taken.push_back(host);
    return later;
  });
  for (const std::string& host : block.hosts) TakeHost(host, block);
  if (taken.empty()) return;
  block.trouble = fmt::format("{} went to other blocks", fmt::join(taken, ", "));
  NotePools(block);
}

// Takes the host from older blocks.
void BlockBook::TakeHost(const std::string& host, const Block& block) {
  const HostBinding binding = BindingOf(block);
  const std::vector<HostBinding> others = hosts_.BindingsOf(host);
  for (const HostBinding& other : others) {
    if (!other.Overlaps(binding)) continue;
    Block without = *Find(other.reservation);
    std::erase(without.hosts, host);
    without.trouble = fmt::format("{} went to {}", host, block.reservation);
    touched_.insert(without.reservation);
    NotePools(without);
    std::string message = without.trouble;
    Change(std::move(without), BlockNews::kDegraded, std::move(message), now_);
  }
}

}  // namespace tahoma::controller
