// What time and hardware do to Capacity Blocks.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "controller/reserve/book.h"
#include "lib/base/check.h"

namespace tahoma::controller {

void BlockBook::MoveTimeTo(WallTime now) {
  if (now <= now_) return;
  now_ = now;
  const Slot today = SlotOf(now);
  if (today == profile_.today()) return;
  profile_.AdvanceTo(today);
  quotas_.AdvanceTo(today);
  hosts_.OnNewDay(now);
}

void BlockBook::Advance(WallTime now) {
  now = std::max(now, now_);
  while (!timers_.empty() && std::get<Due>(*timers_.begin()).when <= now) {
    const auto [due, reservation] = *timers_.begin();
    MoveTimeTo(due.when);
    Do(due, *Find(reservation));
    TAHOMA_CHECK(!timers_.contains({due, reservation}));  // or it would be done for ever
  }
  MoveTimeTo(now);
  for (const std::string& reservation : std::exchange(touched_, {})) {
    if (const auto block = Find(reservation)) Recheck(*block, now);
  }
  RetryWaiting(now);
}

std::optional<WallTime> BlockBook::wake() const {
  if (hosts_changed_ || !touched_.empty()) return now_;
  if (timers_.empty()) return std::nullopt;
  return std::get<Due>(*timers_.begin()).when;
}

void BlockBook::Do(const Due& due, const Block& block) {
  switch (due.kind) {
    case DueKind::kWarn:
      return Warn(block, due.when);
    case DueKind::kExtensionSettles:
      return SettleExtension(block, due.when);
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
    return Change(std::move(block), BlockNews::kPaid, "it is paid", when);
  }
  block.state = BlockState::kPaymentFailed;
  block.hosts.clear();
  hosts_changed_ = true;
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
  block.warned = false;
  std::string message = fmt::format("it ends {} now", FormatTime(block.end));
  Change(std::move(block), BlockNews::kExtended, std::move(message), when);
}

void BlockBook::Warn(Block block, WallTime when) {
  block.warned = true;
  std::string message = fmt::format("its hardware is taken back from {} on; it ends {}",
                                    FormatTime(block.reclaim()), FormatTime(block.end));
  Change(std::move(block), BlockNews::kWarned, std::move(message), when);
}

void BlockBook::Expire(Block block, WallTime when) {
  block.state = BlockState::kExpired;
  block.trouble.clear();
  block.hosts.clear();
  hosts_changed_ = true;
  Change(std::move(block), BlockNews::kExpired, "its time is over", when);
}

void BlockBook::GiveUp(Block block, WallTime when) {
  block.state = BlockState::kFailed;
  block.hosts.clear();
  hosts_changed_ = true;
  std::string message = fmt::format(
      "its hardware could not be delivered by {}: {}; {} USD are due "
      "to its owner",
      FormatTime(when), block.trouble, block.fee().ToString());
  Change(std::move(block), BlockNews::kFailed, std::move(message), when);
}

// Adds hosts to those that are kept, cell by cell, as many as there are up to what was sold.
std::vector<std::string> BlockBook::AddHosts(const Block& block, std::vector<std::string> kept,
                                             WallTime from) const {
  std::map<std::string, int> in_cell;
  for (const std::string& name : kept) {
    if (const HostState* host = hosts_.Find(name)) ++in_cell[host->pool.cell];
  }
  for (const CellShare& share : block.cells) {
    const Pool pool{.product = &block.product(), .zone = block.bought.zone, .cell = share.cell};
    const std::vector<std::string> added = hosts_.Choose(
        pool, share.hosts - in_cell[share.cell],
        {.reservation = block.reservation, .owner = block.key.ns, .start = from, .end = block.end});
    kept.insert(kept.end(), added.begin(), added.end());
  }
  return kept;
}

// Returns whether a host of the block does: before its start it has to be healthy, from then on
// nothing of others may run there, too.
bool BlockBook::Fits(const Block& block, const std::string& host, WallTime when) const {
  const HostState* state = hosts_.Find(host);
  if (state == nullptr || !state->healthy) return false;
  if (block.state != BlockState::kScheduled || when < block.start()) return true;
  return hosts_.IsReady(host,
                        {.reservation = block.reservation,
                         .owner = block.key.ns,
                         .start = block.start(),
                         .end = block.end},
                        when);
}

// Binds a block to hosts before its start and delivers it from then on; it waits when there are not
// enough hosts.
void BlockBook::Fill(Block block, WallTime when) {
  const bool begun = when >= block.start();
  const bool at_purchase = block.terms.binding == BindingMode::kAtPurchase;
  const auto fits = [&](const std::string& host) { return Fits(block, host, when); };
  std::vector<std::string> hosts;
  std::copy_if(block.hosts.begin(), block.hosts.end(), std::back_inserter(hosts), fits);
  hosts = AddHosts(block, std::move(hosts), begun || at_purchase ? when : block.start());
  const auto ready = std::count_if(hosts.begin(), hosts.end(), fits);
  if (ready < block.bought.count) {
    std::string trouble =
        fmt::format("{} of {} hosts are free and healthy", ready, block.bought.count);
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

// Looks again at a block whose hosts, or terms, have changed.
void BlockBook::Recheck(Block block, WallTime when) {
  if (block.state == BlockState::kScheduled && !block.hosts.empty() && !block.waits()) {
    // From its start on it is active, or waits.
    return Fill(std::move(block), when);
  }
  if (block.state != BlockState::kActive && block.state != BlockState::kUnavailable) return;
  std::vector<std::string> healthy, failed;
  for (const std::string& host : block.hosts) {
    (Fits(block, host, when) ? healthy : failed).push_back(host);
  }
  BlockNews news = BlockNews::kDegraded;
  std::string message;
  if (!failed.empty() && block.terms.replace == ReplacePolicy::kAutomatic) {
    std::vector<std::string> hosts = AddHosts(block, healthy, when);
    const std::vector<std::string> added(
        hosts.begin() + static_cast<std::ptrdiff_t>(healthy.size()), hosts.end());
    if (!added.empty()) {
      // Those that nobody replaces stay: they may recover.
      hosts.insert(hosts.end(), failed.begin() + static_cast<std::ptrdiff_t>(added.size()),
                   failed.end());
      message =
          fmt::format("{} took the place of {}", fmt::join(added, ", "),
                      fmt::join(failed.begin(),
                                failed.begin() + static_cast<std::ptrdiff_t>(added.size()), ", "));
      failed.erase(failed.begin(), failed.begin() + static_cast<std::ptrdiff_t>(added.size()));
      healthy.insert(healthy.end(), added.begin(), added.end());
      block.hosts = std::move(hosts);
      news = BlockNews::kReplaced;
    }
  }
  std::string trouble;
  if (!failed.empty()) {
    trouble = fmt::format("{} of {} hosts failed: {}", failed.size(), block.hosts.size(),
                          fmt::join(failed, ", "));
  }
  if (trouble == block.trouble && news != BlockNews::kReplaced) return;
  if (trouble.empty() && news != BlockNews::kReplaced) news = BlockNews::kRecovered;
  if (message.empty()) message = trouble.empty() ? "all of its hosts are healthy again" : trouble;
  block.trouble = std::move(trouble);
  block.state = healthy.empty() ? BlockState::kUnavailable : BlockState::kActive;
  Change(std::move(block), news, std::move(message), when);
}

// Gives what hardware there is to those that want it, the earliest start first.
void BlockBook::RetryWaiting(WallTime now) {
  if (!std::exchange(hosts_changed_, false)) return;
  std::vector<std::pair<WallTime, std::string>> waiting;
  for (const std::string& reservation : waiting_) {
    waiting.emplace_back(Find(reservation)->start(), reservation);
  }
  std::sort(waiting.begin(), waiting.end());
  for (const auto& [start, reservation] : waiting) {
    const auto block = Find(reservation);
    block->waits() ? Fill(*block, now) : Recheck(*block, now);
  }
}

}  // namespace tahoma::controller
