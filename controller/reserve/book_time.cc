// The changes that time and hardware make to Capacity Blocks.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "controller/reserve/book.h"
#include "controller/reserve/host_uses.h"
#include "lib/base/check.h"

namespace tahoma::controller {

void BlockBook::MoveTimeTo(WallTime now) {
  if (now <= now_) return;
  now_ = now;
  const Slot today = SlotOf(now);
  if (today == profile_.today()) return;
  profile_.AdvanceTo(today);
  ChangeQuotas().AdvanceTo(today);
  hosts_.OnNewDay(now);
}

void BlockBook::Advance(WallTime now) {
  now = std::max(now, now_);
  do {
    DoTimers(now);
    MoveTimeTo(now);
    RecheckTouched(now);
    RetryWaiting(now);
  } while (IsDueBy(now));  // a block delivered late may be due for its warning
}

bool BlockBook::IsDueBy(WallTime now) const {
  const std::optional<Due> first = dues_.FirstDue();
  return first && first->when <= now;
}

void BlockBook::DoTimers(WallTime now) {
  std::optional<WallTime> moment;  // of the due being done
  while (IsDueBy(now)) {
    const auto [due, reservation] = dues_.First();
    // Before time goes on, and before a waiting block gives up, hosts that came back go to the
    // waiting blocks.
    if (!changed_pools_.empty() &&
        (due.kind == DueKind::kGiveUp || (moment && due.when > *moment))) {
      RetryWaiting(moment.value_or(due.when));
      continue;
    }
    MoveTimeTo(due.when);
    moment = due.when;
    Do(due, *Find(reservation));
    TAHOMA_CHECK(!dues_.Has(due, reservation));  // otherwise the loop would not end
  }
}

void BlockBook::RecheckTouched(WallTime now) {
  for (const std::string& reservation : std::exchange(touched_, {})) {
    if (const auto block = Find(reservation)) Recheck(*block, now);
  }
}

std::optional<WallTime> BlockBook::wake() const {
  if (!changed_pools_.empty() || !touched_.empty()) return now_;
  const std::optional<Due> first = dues_.FirstDue();
  return first ? std::optional(first->when) : std::nullopt;
}

void BlockBook::NotePools(const Block& block) {
  for (const CellShare& share : block.cells) {
    changed_pools_.insert(profile_.IdOf(PoolOf(block, share.cell)));
  }
}

void BlockBook::Do(const Due& due, const Block& block) {
  switch (due.kind) {
    case DueKind::kWarn:
      return Warn(block, due.when);
    case DueKind::kExtensionSettles:
      return SettleExtension(block, due.when);
    case DueKind::kReclaim:
      return Reclaim(block, due.when);
    case DueKind::kExpire:
      return Expire(block, due.when);
    case DueKind::kPaymentSettles:
      return SettlePayment(block, due.when);
    case DueKind::kBind:
    case DueKind::kDeliver:
      return Fill(block, due.when);
    case DueKind::kGiveUp:
      return GiveUp(block, due.when);
  }
}

void BlockBook::SettlePayment(Block block, WallTime when) {
  if (block.payment.pays()) {
    block.state = BlockState::kScheduled;
    // Hosts that were chosen at the purchase may have failed meanwhile.
    if (!block.hosts.empty()) touched_.insert(block.reservation);
    return Change(std::move(block), BlockNews::kPaid, "it is paid", when);
  }
  block.state = BlockState::kPaymentFailed;
  block.hosts.clear();
  NotePools(block);
  std::string message =
      fmt::format("it was not paid by {}; its capacity is for sale again", FormatTime(when));
  Change(std::move(block), BlockNews::kPaymentFailed, std::move(message), when);
}

void BlockBook::SettleExtension(Block block, WallTime when) {
  const auto pending = std::find_if(block.extensions.begin(), block.extensions.end(),
                                    [](const Extension& extension) {
                                      return extension.state == ExtensionState::kPaymentPending;
                                    });
  TAHOMA_CHECK(pending != block.extensions.end());
  if (!pending->payment.pays()) {
    pending->state = ExtensionState::kPaymentFailed;
    std::string message = fmt::format("the extension to {} was not paid; it ends {}",
                                      FormatTime(pending->end), FormatTime(block.end));
    return Change(std::move(block), BlockNews::kExtensionFailed, std::move(message), when);
  }
  pending->state = ExtensionState::kPaymentSucceeded;
  block.end = pending->end;
  block.warned = block.reclaiming = false;
  std::string message = fmt::format("it ends {} now", FormatTime(block.end));
  Change(std::move(block), BlockNews::kExtended, std::move(message), when);
}

void BlockBook::Warn(Block block, WallTime when) {
  block.warned = true;
  std::string message = fmt::format("its hardware is taken back from {} on; it ends {}",
                                    FormatTime(block.reclaim()), FormatTime(block.end));
  Change(std::move(block), BlockNews::kWarned, std::move(message), when);
}

void BlockBook::Reclaim(Block block, WallTime when) {
  HandOver(block, when);
  block.reclaiming = true;
  std::string message =
      fmt::format("its hardware is taken back; it ends {}", FormatTime(block.end));
  Change(std::move(block), BlockNews::kReclaimed, std::move(message), when);
}

// Binds blocks of the same owner that begin at this block's end to this block's hosts: programs
// there may go on.
void BlockBook::HandOver(const Block& block, WallTime when) {
  const auto found = to_bind_.find(std::pair(block.key.ns, SlotOf(block.end)));
  if (found == to_bind_.end()) return;
  const std::set<std::string> heirs = found->second;
  std::vector<std::string> left = SortHosts(block, when).fit;
  for (const std::string& reservation : heirs) {
    Block heir = *Find(reservation);
    if (&heir.product() != &block.product() || heir.bought.zone != block.bought.zone) continue;
    const HostBinding binding = BindingOf(heir);
    std::vector<std::string> rest = left;  // left if the heir gets all its hosts
    for (const CellShare& share : heir.cells) {
      int wanted = share.hosts;
      std::erase_if(rest, [&](const std::string& host) {
        if (wanted == 0 || hosts_.Find(host)->pool.cell != share.cell) return false;
        if (!hosts_.CanChoose(host, binding, when)) return false;  // bound to another block by then
        --wanted;
        heir.hosts.push_back(host);
        return true;
      });
    }
    if (std::ssize(heir.hosts) != heir.bought.count) continue;
    left = std::move(rest);
    heir.bound = when;
    std::string message = fmt::format("it goes on on {}", fmt::join(heir.hosts, ", "));
    Change(std::move(heir), BlockNews::kBound, std::move(message), when);
  }
}

std::map<std::string, BlockUse> BlockBook::TakeUses() {
  std::map<std::string, BlockUse> uses;
  for (const PoolId pool : std::exchange(unplanned_, {})) {
    const auto in_pool = in_pool_.find(pool);
    if (in_pool == in_pool_.end()) continue;  // no block was ever sold there
    std::vector<const Block*> blocks(in_pool->second.begin(), in_pool->second.end());
    uses.merge(
        PlanUses(hosts_, profile_.pool(pool), std::move(blocks), profile_.supply(pool).spare));
    if (in_pool->second.empty()) in_pool_.erase(in_pool);
  }
  return uses;
}

void BlockBook::Expire(Block block, WallTime when) {
  block.state = BlockState::kExpired;
  block.trouble.clear();
  block.hosts.clear();
  NotePools(block);
  Change(std::move(block), BlockNews::kExpired, "its time is over", when);
}

void BlockBook::GiveUp(Block block, WallTime when) {
  block.state = BlockState::kFailed;
  for (Extension& extension : block.extensions) {
    if (extension.state == ExtensionState::kPaymentPending) {
      extension.state = ExtensionState::kPaymentFailed;
    }
  }
  block.hosts.clear();
  NotePools(block);
  std::string message = fmt::format(
      "its hardware could not be delivered by {}: {}; {} USD are due "
      "to its owner",
      FormatTime(when), block.trouble, block.fee().ToString());
  Change(std::move(block), BlockNews::kFailed, std::move(message), when);
}

// Adds hosts to `kept`, cell by cell, as many as there are, up to the number sold.
std::vector<std::string> BlockBook::AddHosts(const Block& block, std::vector<std::string> kept,
                                             WallTime from, WallTime now) const {
  std::map<std::string, int> in_cell;
  for (const std::string& name : kept) {
    if (const HostState* host = hosts_.Find(name)) ++in_cell[host->pool.cell];
  }
  for (const CellShare& share : block.cells) {
    const std::vector<std::string> added = hosts_.Choose(
        PoolOf(block, share.cell), share.hosts - in_cell[share.cell],
        {.reservation = block.reservation, .owner = block.key.ns, .start = from, .end = block.end},
        now);
    kept.insert(kept.end(), added.begin(), added.end());
  }
  return kept;
}

// Returns whether the host can serve the block: healthy, and from the block's start on without
// gangs of others.
bool BlockBook::Fits(const Block& block, const HostState* host, WallTime when) const {
  if (host == nullptr || !host->healthy) return false;
  if (block.state != BlockState::kScheduled || when < block.start()) return true;
  return hosts_.IsReady(host->name,
                        {.reservation = block.reservation,
                         .owner = block.key.ns,
                         .start = block.start(),
                         .end = block.end},
                        when);
}

// Sorts the hosts of a block by whether they fit. A host that has moved to another pool does not
// fit, because it counts there.
BlockBook::Sorted BlockBook::SortHosts(const Block& block, WallTime when) const {
  std::map<std::string_view, int> room;
  for (const CellShare& share : block.cells) room[share.cell] = share.hosts;
  Sorted sorted;
  for (const std::string& name : block.hosts) {
    const HostState* host = hosts_.Find(name);
    const bool fits = Fits(block, host, when) && host->pool == PoolOf(block, host->pool.cell) &&
                      --room[host->pool.cell] >= 0;
    (fits ? sorted.fit : sorted.unfit).push_back(name);
  }
  return sorted;
}

// Binds a block to hosts before its start, and delivers the block from then on. The block waits
// when there are too few hosts.
void BlockBook::Fill(Block block, WallTime when) {
  const bool begun = when >= block.start();
  const bool at_purchase = block.terms.binding == BindingMode::kAtPurchase;
  std::vector<std::string> hosts = AddHosts(block, SortHosts(block, when).fit,
                                            begun || at_purchase ? when : block.start(), when);
  const auto lent = std::count_if(hosts.begin(), hosts.end(), [&](const std::string& host) {
    return begun && hosts_.Find(host)->lent;
  });
  if (std::ssize(hosts) - lent < block.bought.count) {
    std::string trouble = fmt::format("{} of {} hosts are free and healthy",
                                      std::ssize(hosts) - lent, block.bought.count);
    if (lent > 0) {
      trouble += fmt::format("; {} more {} lent to preemptible gangs, which are being ended", lent,
                             lent == 1 ? "is" : "are");
    }
    if (trouble == block.trouble && hosts == block.hosts) return;
    block.trouble = trouble;
    block.hosts = std::move(hosts);
    return Change(std::move(block), BlockNews::kUndelivered, std::move(trouble), when);
  }
  if (!begun && hosts == block.hosts && block.trouble.empty()) return;
  block.hosts = std::move(hosts);
  block.trouble.clear();
  if (!block.bound) block.bound = when;
  std::string message = fmt::format("on {}", fmt::join(block.hosts, ", "));
  if (!begun) return Change(std::move(block), BlockNews::kBound, std::move(message), when);
  block.state = BlockState::kActive;
  block.delivered = when;
  Change(std::move(block), BlockNews::kDelivered, std::move(message), when);
}

// Puts healthy hosts of the same cells in the place of failed hosts, as far as there are any;
// returns the names of the new hosts. Failed hosts stay bound as far as the block still lacks
// hosts: they may recover.
std::vector<std::string> BlockBook::ReplaceFailed(Block& block, Sorted& sorted,
                                                  WallTime when) const {
  std::vector<std::string> hosts = AddHosts(block, sorted.fit, when, when);
  std::vector<std::string> added(hosts.begin() + std::ssize(sorted.fit), hosts.end());
  if (added.empty()) return added;
  std::map<std::string_view, int> room;
  for (const CellShare& share : block.cells) room[share.cell] = share.hosts;
  for (const std::string& name : hosts) --room[hosts_.Find(name)->pool.cell];
  // Failed hosts stay in this order: hosts that may recover in their place, hosts that left the
  // fleet (their pool is unknown), hosts that moved to another pool, hosts of a full cell.
  const auto rank_of = [&](const std::string& name) {
    const HostState* host = hosts_.Find(name);
    if (host == nullptr) return 1;
    if (host->pool != PoolOf(block, host->pool.cell)) return 2;
    return --room[host->pool.cell] >= 0 ? 0 : 3;
  };
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : sorted.unfit) ranked.emplace_back(rank_of(name), name);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> stay;
  for (const auto& [rank, name] : ranked) {
    if (std::ssize(hosts) + std::ssize(stay) < block.bought.count) stay.push_back(name);
  }
  sorted = {.fit = hosts, .unfit = stay};
  block.hosts = std::move(hosts);
  block.hosts.insert(block.hosts.end(), stay.begin(), stay.end());
  return added;
}

// Looks again at a block whose hosts or terms have changed.
void BlockBook::Recheck(Block block, WallTime when) {
  if (block.state == BlockState::kScheduled && !block.hosts.empty() && !block.waits()) {
    // From the start on the block is active, or waits.
    return Fill(std::move(block), when);
  }
  if (!IsDelivered(block.state)) return;
  Sorted sorted = SortHosts(block, when);
  std::vector<std::string> gone = sorted.unfit;
  std::vector<std::string> added;
  const auto lacks = [&block] { return block.bought.count - std::ssize(block.hosts); };
  if ((!gone.empty() || lacks() > 0) && block.replaces()) {
    added = ReplaceFailed(block, sorted, when);
  }
  std::string trouble;
  if (!sorted.unfit.empty()) {
    trouble = fmt::format("{} of {} hosts failed: {}", sorted.unfit.size(), block.bought.count,
                          fmt::join(sorted.unfit, ", "));
  } else if (lacks() > 0) {
    trouble = fmt::format("it lacks {} of {} hosts", lacks(), block.bought.count);
  }
  const bool asks = block.replacing && !trouble.empty();
  if (trouble == block.trouble && added.empty() && asks == block.replacing) return;
  block.replacing = asks;
  block.trouble = trouble;
  block.state = sorted.fit.empty() ? BlockState::kUnavailable : BlockState::kActive;
  if (!added.empty()) {
    std::erase_if(gone, [&](const std::string& host) {
      return std::find(sorted.unfit.begin(), sorted.unfit.end(), host) != sorted.unfit.end();
    });
    std::string message =
        fmt::format("{} took the place of {}", fmt::join(added, ", "),
                    gone.empty() ? "what it lacked" : fmt::format("{}", fmt::join(gone, ", ")));
    return Change(std::move(block), BlockNews::kReplaced, std::move(message), when);
  }
  if (trouble.empty()) {
    return Change(std::move(block), BlockNews::kRecovered, "all of its hosts are healthy again",
                  when);
  }
  Change(std::move(block), BlockNews::kDegraded, std::move(trouble), when);
}

// Gives hosts of the changed pools to the blocks that want hosts, the earliest start first.
void BlockBook::RetryWaiting(WallTime now) {
  std::set<std::pair<WallTime, std::string>> waiting;
  for (const PoolId pool : std::exchange(changed_pools_, {})) {
    const auto here = waiting_.find(pool);
    if (here == waiting_.end()) continue;
    for (const std::string& reservation : here->second) {
      waiting.emplace(Find(reservation)->start(), reservation);
    }
  }
  for (const auto& [start, reservation] : waiting) {
    const auto block = Find(reservation);
    block->waits() ? Fill(*block, now) : Recheck(*block, now);
  }
}

}  // namespace tahoma::controller
