#include "controller/reserve/host_uses.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace tahoma::controller {
namespace {

// A host while hosts are kept for blocks.
struct Candidate {
  std::string_view name;
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
  // Returns when the last known block ends; nullopt without a block.
  std::optional<WallTime> LastEnd() const {
    std::optional<WallTime> last;
    for (const auto& [from, to] : taken) last = std::max(last.value_or(to), to);
    return last;
  }
  WallTime LastStart() const {
    WallTime last = WallTime::min();
    for (const auto& [from, to] : taken) last = std::max(last, from);
    return last;
  }
  // Returns from when on only blocks use the host; nullopt when the end of its gangs is not known.
  // Gangs of a block end with the block.
  std::optional<WallTime> FreeFrom() const {
    if (!state->held || !use.reservation.empty()) return WallTime::min();
    return state->held_until;
  }
};

// The hosts of a pool while hosts are kept, block by block in the order of the blocks' starts.
//
// The keeper finds a host without a scan: hosts with an earlier block are sorted by the block's
// end, all others by name. Hosts that cannot serve yet wait until a block begins late enough.
class Keeper {
 public:
  explicit Keeper(std::vector<Candidate>& hosts) : hosts_(hosts) {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const Candidate& host = hosts_[i];
      const std::optional<WallTime> free = host.FreeFrom();
      if (!host.state->healthy || !free) continue;
      waiting_.push({std::max(*free, host.LastStart()), i});
      if (host.use.kept_from) early_.push_back(i);
    }
  }

  void KeepFor(const Block& block, int share) {
    while (!waiting_.empty() && waiting_.top().first <= block.start()) {
      Add(waiting_.top().second);
      waiting_.pop();
    }
    for (; share > 0; --share) {
      const std::optional<std::size_t> found = Find(block.start());
      if (!found) break;
      hosts_[*found].Keep(block.start(), block.end);
      Add(*found);
    }
    if (share > 0) KeepBetween(block, share);
  }

 private:
  // The order of hosts with an earlier block: the shortest gap first, then unlent, then in use,
  // then by name.
  using Place = std::tuple<std::chrono::nanoseconds, bool, bool, std::size_t>;
  using Fresh = std::tuple<bool, bool, std::size_t>;

  void Add(std::size_t index) {
    const Candidate& host = hosts_[index];
    const Fresh fresh{host.state->lent, !host.state->held, index};
    if (const auto last = host.LastEnd()) {
      ended_.insert(std::tuple_cat(std::tuple(-last->time_since_epoch()), fresh));
    } else {
      fresh_.insert(fresh);
    }
  }

  // Returns the best host for a block that begins at `start`, and takes the host out of the order.
  std::optional<std::size_t> Find(WallTime start) {
    const auto ended = ended_.lower_bound({-start.time_since_epoch(), false, false, 0});
    std::size_t found = 0;
    if (ended != ended_.end()) {
      found = std::get<std::size_t>(*ended);
      ended_.erase(ended);
    } else if (!fresh_.empty()) {
      found = std::get<std::size_t>(*fresh_.begin());
      fresh_.erase(fresh_.begin());
    } else {
      return std::nullopt;
    }
    return found;
  }

  // A host that was bound early to a later block may have room before that block.
  void KeepBetween(const Block& block, int share) {
    for (const std::size_t index : early_) {
      if (share == 0) return;
      Candidate& host = hosts_[index];
      if (host.LastStart() <= block.start() || *host.FreeFrom() > block.start() ||
          host.Overlaps(block.start(), block.end)) {
        continue;
      }
      host.Keep(block.start(), block.end);
      --share;
    }
  }

  using Waiting = std::pair<WallTime, std::size_t>;

  std::vector<Candidate>& hosts_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::vector<std::size_t> early_;  // hosts that are bound to a block which has not begun
  std::set<Place> ended_;
  std::set<Fresh> fresh_;
};

// Keeps idle hosts as spares for the sold blocks, hosts without a loan first.
void KeepSpares(std::vector<Candidate>& hosts, int spares) {
  for (const bool lent : {false, true}) {
    for (auto host = hosts.rbegin(); host != hosts.rend() && spares > 0; ++host) {
      const HostState& state = *host->state;
      if (!state.healthy || state.held || state.lent != lent || host->use != BlockUse{}) continue;
      host->use.spare = true;
      --spares;
    }
  }
}

// Returns how many hosts of the pool each block has, by reservation, and notes the uses of these
// hosts.
std::map<std::string_view, int> TakeBound(const std::vector<const Block*>& blocks,
                                          std::vector<Candidate>& hosts) {
  std::map<std::string_view, int> bound;
  for (const Block* block : blocks) {
    for (const std::string& name : block->hosts) {
      const auto host = std::lower_bound(
          hosts.begin(), hosts.end(), name,
          [](const Candidate& candidate, const std::string& key) { return candidate.name < key; });
      if (host == hosts.end() || host->name != name) continue;
      ++bound[block->reservation];
      if (!IsDelivered(block->state)) {
        host->Keep(block->start(), block->end);
        continue;
      }
      host->taken.emplace_back(block->start(), block->end);
      host->use.reservation = block->reservation;
      if (block->terms.lend_idle && !block->reclaiming) host->use.lent_until = block->reclaim();
    }
  }
  return bound;
}

}  // namespace

std::map<std::string, BlockUse> PlanUses(const HostTable& hosts, const Pool& pool,
                                         std::vector<const Block*> blocks, int spares) {
  std::vector<Candidate> candidates;
  for (const std::string& name : hosts.NamesIn(pool)) {
    candidates.push_back({.name = name, .state = hosts.Find(name), .taken = {}, .use = {}});
  }
  std::sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) {
    return std::tie(a->bought.start, a->reservation) < std::tie(b->bought.start, b->reservation);
  });
  const std::map<std::string_view, int> bound = TakeBound(blocks, candidates);
  Keeper keeper(candidates);
  int sold = 0;
  for (const Block* block : blocks) {
    for (const CellShare& share : block->cells) {
      if (share.cell != pool.cell) continue;
      sold += share.hosts;
      const auto has = bound.find(block->reservation);
      const int missing = share.hosts - (has == bound.end() ? 0 : has->second);
      if (!IsDelivered(block->state) && missing > 0) keeper.KeepFor(*block, missing);
    }
  }
  KeepSpares(candidates, std::min(spares, sold));
  std::map<std::string, BlockUse> uses;
  for (Candidate& host : candidates) {
    uses.emplace_hint(uses.end(), host.name, std::move(host.use));
  }
  return uses;
}

}  // namespace tahoma::controller
