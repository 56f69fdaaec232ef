#include "controller/reserve/host_uses.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace tahoma::controller {
namespace {

// A host while hosts are kept for blocks.
struct Candidate {
  const HostState* state = nullptr;
  std::vector<std::pair<WallTime, WallTime>> taken;  // by blocks
  BlockUse use;

  void Keep(WallTime start, WallTime end) {
    taken.emplace_back(start, end);
    if (!use.kept_from || start < *use.kept_from) use.kept_from = start;
  }
  bool Overlaps(WallTime start, WallTime end) const {
    return std::any_of(taken.begin(), taken.end(), [&](const auto& other) {
      return other.first < end && start < other.second;
    });
  }
  // Returns when the last block before `start` ends; nullopt when there is none.
  std::optional<WallTime> LastEnd(WallTime start) const {
    std::optional<WallTime> last;
    for (const auto& [from, to] : taken) {
      if (to <= start) last = std::max(last.value_or(to), to);
    }
    return last;
  }
};

// Returns whether the host can be kept for a block, as it looks now. What runs in a block has ended
// when that ends.
bool CanServe(const Candidate& host, const Block& block) {
  if (!host.state->healthy || host.Overlaps(block.start(), block.end)) return false;
  if (!host.state->held || !host.use.reservation.empty()) return true;
  return host.state->held_until && *host.state->held_until <= block.start();
}

// Keeps hosts for the block's share in the pool.
void KeepFor(const Block& block, int share, std::map<std::string, Candidate>& hosts) {
  using Rank = std::tuple<bool, WallTime, bool, std::string_view>;
  std::vector<std::pair<Rank, Candidate*>> ranked;
  for (auto& [name, host] : hosts) {
    if (!CanServe(host, block)) continue;
    const std::optional<WallTime> last = host.LastEnd(block.start());
    // The shorter the gap after the block before, the better.
    const WallTime gap(last ? block.start() - *last : std::chrono::nanoseconds(0));
    ranked.push_back({Rank{!last.has_value(), gap, !host.state->held, name}, &host});
  }
  const auto wanted = std::min<std::size_t>(ranked.size(), static_cast<std::size_t>(share));
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(wanted),
                    ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < wanted; ++i) ranked[i].second->Keep(block.start(), block.end);
}

}  // namespace

std::map<std::string, BlockUse> PlanUses(const HostTable& hosts, const Pool& pool,
                                         std::vector<std::shared_ptr<const Block>> blocks) {
  std::map<std::string, Candidate> candidates;
  for (const std::string& name : hosts.NamesIn(pool)) {
    candidates[name].state = hosts.Find(name);
  }
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
    return std::tie(a->bought.start, a->reservation) < std::tie(b->bought.start, b->reservation);
  });
  std::map<std::string, int> bound;  // hosts of the pool that a block has, by reservation
  for (const auto& block : blocks) {
    for (const std::string& name : block->hosts) {
      const auto host = candidates.find(name);
      if (host == candidates.end()) continue;
      ++bound[block->reservation];
      if (IsDelivered(block->state)) {
        host->second.use.reservation = block->reservation;
        host->second.taken.emplace_back(block->start(), block->end);
      } else {
        host->second.Keep(block->start(), block->end);
      }
    }
  }
  for (const auto& block : blocks) {
    for (const CellShare& share : block->cells) {
      const int missing = share.hosts - bound[block->reservation];
      if (share.cell != pool.cell || IsDelivered(block->state) || missing <= 0) continue;
      KeepFor(*block, missing, candidates);
    }
  }
  std::map<std::string, BlockUse> uses;
  for (auto& [name, host] : candidates) uses[name] = std::move(host.use);
  return uses;
}

}  // namespace tahoma::controller
