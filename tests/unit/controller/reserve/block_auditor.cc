#include "tests/unit/controller/reserve/block_auditor.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace tahoma::controller {
namespace {

// Returns the slots whose capacity a block has.
SlotRange HeldSlots(const Block& block) {
  SlotRange slots = block.slots();
  if (block.terms.binding == BindingMode::kAtPurchase) slots.first = SlotOf(block.created);
  return slots;
}

bool HasBegun(BlockState state) {
  return state == BlockState::kActive || state == BlockState::kUnavailable;
}

bool IsLegalStep(BlockState before, BlockState after) {
  if (before == after) return true;
  switch (before) {
    case BlockState::kPaymentPending:
      return after == BlockState::kScheduled || after == BlockState::kPaymentFailed;
    case BlockState::kScheduled:
      return after == BlockState::kActive || after == BlockState::kFailed;
    case BlockState::kActive:
      return after == BlockState::kUnavailable || after == BlockState::kExpired;
    case BlockState::kUnavailable:
      return after == BlockState::kActive || after == BlockState::kExpired;
    case BlockState::kPaymentFailed:
    case BlockState::kExpired:
    case BlockState::kFailed:
      return false;
  }
  return false;
}

// The price by the minute, to the millionth, with halves up.
std::int64_t ExactFee(Money rate, int count, WallTime start, WallTime end) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(end - start).count();
  return (rate.millionths * count * minutes * 2 + 60) / 120;
}

}  // namespace

void BlockAuditor::Check(bool holds, const Block& block, const char* rule) {
  if (holds) return;
  violations_.push_back(fmt::format("{} ({}, {} to {}): {}", block.reservation,
                                    StateName(block.state), FormatTime(block.start()),
                                    FormatTime(block.end), rule));
}

std::size_t BlockAuditor::Follow(BlockBook& book) {
  const std::vector<BlockChange> changes = book.TakeChanges();
  for (const BlockChange& change : changes) Take(book, change);
  return changes.size();
}

void BlockAuditor::Take(const BlockBook& book, const BlockChange& change) {
  const Block& after = *change.block;
  auto& before = journal_[after.reservation];
  CheckOnce(change);
  MoveHeld(before.get(), after);
  MoveRights(before.get(), after);
  if (before == nullptr) {
    CheckFirst(book, after);
  } else {
    CheckStep(book, *before, after);
    CheckFee(*before, after);
  }
  before = change.block;
  ++changes_;
}

// Checks that an event of a block's life happens only once.
void BlockAuditor::CheckOnce(const BlockChange& change) {
  std::string what;
  switch (change.news) {
    case BlockNews::kPurchased:
    case BlockNews::kPaid:
    case BlockNews::kPaymentFailed:
    case BlockNews::kDelivered:
    case BlockNews::kExpired:
    case BlockNews::kFailed:
      what = NewsName(change.news);
      break;
    case BlockNews::kWarned:  // once for each end
      what = fmt::format("warned of {}", FormatTime(change.block->end));
      break;
    default:
      return;
  }
  Check(done_[change.block->reservation].insert(what).second, *change.block, "it happened again");
}

void BlockAuditor::OnForgotten(const std::string& reservation) {
  journal_.erase(reservation);
  done_.erase(reservation);
}

void BlockAuditor::CheckFirst(const BlockBook& book, const Block& block) {
  Check(block.state == BlockState::kPaymentPending, block, "a block begins with its payment");
  Check(block.start() >= block.created, block, "it begins before it was bought");
  CheckQuota(block, block.slots());
  CheckRoom(book, block, HeldSlots(block));
}

// `before` and `after` are one block, before and after a change.
void BlockAuditor::CheckStep(const BlockBook& book, const Block& before, const Block& after) {
  Check(before.version < after.version, after, "its version is not a later one");
  Block same = after;
  same.version = before.version;
  Check(!(before == same), after, "nothing has changed");
  Check(IsLegalStep(before.state, after.state), after, "there is no such step between states");
  Check(before.key == after.key && before.token == after.token && before.bought == after.bought &&
            before.cells == after.cells && before.block_ids == after.block_ids &&
            before.created == after.created && before.payment == after.payment &&
            before.offering_id == after.offering_id,
        after, "what was bought has changed");
  Check(!before.delivered || before.delivered == after.delivered, after, "delivered again");
  Check(!before.bound || before.bound == after.bound, after, "bound again");
  Check(HoldsCapacity(before.state) || before.hosts == after.hosts, after, "it has risen");
  Check(after.extensions.size() >= before.extensions.size() &&
            after.extensions.size() <= before.extensions.size() + 1,
        after, "an extension was lost");
  WallTime end = after.bought.end;
  for (std::size_t i = 0; i < after.extensions.size(); ++i) {
    const Extension& extension = after.extensions[i];
    if (extension.state == ExtensionState::kPaymentSucceeded) end = extension.end;
    if (i == before.extensions.size()) {
      CheckRoom(book, after, SlotsOf(extension.start, extension.end));
      CheckQuota(after, SlotsOf(extension.start, extension.end));
    } else {
      const ExtensionState old = before.extensions[i].state;
      Check(old == extension.state || old == ExtensionState::kPaymentPending, after,
            "an extension was settled twice");
    }
  }
  Check(after.end == end, after, "its end is not that of its extensions");
  Check(after.end - after.start() <= kSlotLength * kDaysMost, after, "it is too long");
}

// Sold capacity must have been free: nothing else was sold since, and no hardware failed.
void BlockAuditor::CheckRoom(const BlockBook& book, const Block& block, SlotRange slots) {
  if (!HoldsCapacity(block.state)) return;
  for (const CellShare& share : block.cells) {
    const auto pool = book.profile().Find(PoolOf(block, share.cell));
    if (!pool) return Check(false, block, "its cell is not known");
    for (Slot slot = std::max(slots.first, book.profile().today()); slot < slots.last; ++slot) {
      Check(book.profile().Free(*pool, slot) >= 0, block, "it was sold beyond the capacity");
    }
  }
}

void BlockAuditor::CheckQuota(const Block& block, SlotRange slots) {
  const auto quota = quotas_.find(block.key.ns);
  const int most = quota == quotas_.end() ? 256 : quota->second.instances;
  std::map<Slot, int>& held = held_[block.key.ns];
  for (Slot slot = slots.first; slot < slots.last; ++slot) {
    Check(held[slot] <= most, block, "its owner has more than the quota");
  }
}

void BlockAuditor::CheckFee(const Block& before, const Block& after) {
  const auto sum = [](const Block& block) {
    std::int64_t fee =
        ExactFee(block.bought.rate, block.bought.count, block.start(), block.bought.end);
    for (const Extension& extension : block.extensions) {
      if (extension.state != ExtensionState::kPaymentSucceeded) continue;
      fee += ExactFee(block.bought.rate, block.bought.count, extension.start, extension.end);
    }
    return fee;
  };
  Check(after.fee().millionths == sum(after), after, "its fee is not the rate times its time");
  if (before.state == BlockState::kPaymentPending && after.state == BlockState::kScheduled) {
    turnover_ += Money{sum(after)};
  } else {
    turnover_ += Money{sum(after) - sum(before)};
  }
}

// Counts the instances of an owner in each slot.
void BlockAuditor::MoveHeld(const Block* before, const Block& after) {
  const bool same = before != nullptr && before->slots().first == after.slots().first &&
                    before->slots().last == after.slots().last &&
                    HoldsCapacity(before->state) == HoldsCapacity(after.state);
  if (same) return;
  const auto count = [this](const Block& block, int sign) {
    if (!HoldsCapacity(block.state)) return;
    std::map<Slot, int>& held = held_[block.key.ns];
    const SlotRange slots = block.slots();
    for (Slot slot = slots.first; slot < slots.last; ++slot) {
      if ((held[slot] += sign * block.bought.instances()) == 0) held.erase(slot);
    }
  };
  if (before != nullptr) count(*before, -1);
  count(after, 1);
}

// Checks that no host belongs to two blocks at a time.
void BlockAuditor::MoveRights(const Block* before, const Block& after) {
  if (before != nullptr && before->hosts == after.hosts && before->end == after.end) return;
  for (std::size_t i = 0; before != nullptr && i < before->hosts.size(); ++i) {
    std::erase_if(rights_[before->hosts[i]],
                  [&](const Right& right) { return right.reservation == after.reservation; });
  }
  const bool early = after.terms.binding == BindingMode::kAtPurchase;
  const Right right{after.reservation, early ? after.created : after.start(), after.end};
  for (const std::string& host : after.hosts) {
    std::vector<Right>& others = rights_[host];
    for (const Right& other : others) {
      Check(other.end <= right.start || right.end <= other.start, after,
            "a host of it is another block's");
    }
    others.push_back(right);
  }
}

// Whatever is due has been done.
void BlockAuditor::CheckTimes(const Block& block, WallTime now) {
  using std::chrono::minutes;
  const auto taken_back = block.end - minutes(block.product().ultra_server ? 60 : 30);
  Check(!HoldsCapacity(block.state) || now < block.end, block, "it is over");
  Check(block.hosts.size() <= static_cast<std::size_t>(block.bought.count), block,
        "it has too many hosts");
  for (const Extension& extension : block.extensions) {
    Check(extension.state != ExtensionState::kPaymentPending || now < extension.start - minutes(35),
          block, "an extension of it should have failed");
  }
  if (block.state == BlockState::kPaymentPending) {
    Check(now < block.start() - minutes(5) && now < block.created + std::chrono::hours(12), block,
          "its payment should have failed");
  } else if (block.state == BlockState::kScheduled && block.waits()) {
    Check(now < block.start() + minutes(60) && now < taken_back, block, "it waits for too long");
  } else if (block.state == BlockState::kScheduled) {
    Check(now < block.start(), block, "it should have begun");
    Check(now < block.start() - minutes(10) || !block.hosts.empty(), block,
          "it should have been bound");
  } else if (HasBegun(block.state)) {
    Check(block.hosts.size() == static_cast<std::size_t>(block.bought.count), block,
          "it has too few hosts");
    Check(block.warned || now < taken_back - minutes(10), block, "it should have been warned");
    const bool lost = std::none_of(block.hosts.begin(), block.hosts.end(), [&](const auto& name) {
      const auto host = hosts_.find(name);
      return host != hosts_.end() && host->second.healthy &&
             std::any_of(block.cells.begin(), block.cells.end(), [&](const CellShare& share) {
               return host->second.pool == PoolOf(block, share.cell);
             });
    });
    Check(lost == (block.state == BlockState::kUnavailable), block,
          "unavailable is what has lost all of its hosts");
  }
}

// Checks that the book wakes for the first due, and for nothing that is done.
void BlockAuditor::CheckWake(const BlockBook& book) {
  std::optional<WallTime> next;
  for (const auto& [reservation, block] : journal_) {
    const auto due = NextDue(*block);
    if (due && (!next || due->when < *next)) next = due->when;
  }
  if (book.wake() != next) violations_.push_back("the book wakes at another time than is due");
  if (book.wake() && *book.wake() <= book.now())
    violations_.push_back("the book wakes in the past");
}

// Adds the hosts in use outside of blocks. A host of a waiting block counts until the block
// changes: the book sells less than there is, never more. `doubtful` counts such hosts.
void BlockAuditor::CountOccupied(const TimeProfile& profile, WallTime now, Table& table,
                                 std::vector<int>& doubtful) const {
  const Slot today = profile.today();
  for (const auto& [name, host] : hosts_) {
    if (!host.healthy || !host.held) continue;
    const std::size_t pool = profile.Find(host.pool)->value();
    bool in_block = false;
    if (const auto rights = rights_.find(name); rights != rights_.end()) {
      for (const Right& right : rights->second) {
        if (right.start > now || now >= right.end) continue;
        in_block = true;
        doubtful[pool] += journal_.at(right.reservation)->waits() ? 1 : 0;
      }
    }
    if (in_block) continue;
    Slot until = today + kSlotsAhead;
    if (host.held_until) {
      const Slot slot = SlotOf(*host.held_until);
      until = std::clamp(IsBoundary(*host.held_until) ? slot : slot + 1, today + 1, until);
    }
    std::vector<int>& row = table[pool];
    for (Slot slot = today; slot < until; ++slot) ++row[static_cast<std::size_t>(slot - today)];
  }
}

// Counts booked, occupied and healthy hosts again, and compares.
void BlockAuditor::CheckCounts(const BlockBook& book) {
  const TimeProfile& profile = book.profile();
  const Slot today = profile.today();
  Table booked(profile.pool_count(), std::vector<int>(kSlotsAhead, 0));
  for (const auto& [reservation, block] : journal_) {
    if (!HoldsCapacity(block->state)) continue;
    const SlotRange slots = HeldSlots(*block);
    for (const CellShare& share : block->cells) {
      std::vector<int>& row = booked[profile.Find(PoolOf(*block, share.cell))->value()];
      for (Slot slot = std::max(slots.first, today); slot < slots.last; ++slot) {
        row[static_cast<std::size_t>(slot - today)] += share.hosts;
      }
    }
  }
  Table used = booked;
  std::vector<int> doubtful(profile.pool_count(), 0);
  CountOccupied(profile, book.now(), used, doubtful);
  std::vector<int> healthy(profile.pool_count(), 0);
  for (const auto& [name, host] : hosts_) {
    healthy[profile.Find(host.pool)->value()] += host.healthy ? 1 : 0;
  }
  for (std::size_t pool = 0; pool < booked.size(); ++pool) {
    const Supply& supply = profile.supply(PoolId(pool));
    const std::vector<int> free = profile.FreeIn(PoolId(pool), {today, today + kSlotsAhead});
    bool same = supply.healthy == healthy[pool];
    for (std::size_t i = 0; i < free.size(); ++i) {
      const int missing = supply.healthy - supply.spare - used[pool][i] - free[i];
      same = same && missing >= 0 && missing <= doubtful[pool] &&
             profile.Booked(PoolId(pool), today + static_cast<Slot>(i)) == booked[pool][i];
    }
    if (!same) {
      violations_.push_back(fmt::format("the counts of cell {} are not its blocks' and hosts'",
                                        profile.pool(PoolId(pool)).cell));
    }
  }
}

void BlockAuditor::Audit(const BlockBook& book) {
  if (book.blocks().size() != journal_.size()) {
    violations_.push_back(fmt::format("{} blocks are there, {} are in the journal",
                                      book.blocks().size(), journal_.size()));
  }
  // Compared by address: looking each up by its id would take a third of an audit.
  std::vector<const Block*> kept;
  book.blocks().ForEach([&](const std::string& reservation, const auto& block) {
    Check(block->reservation == reservation, *block, "it is found by another id");
    kept.push_back(block.get());
  });
  std::sort(kept.begin(), kept.end(), std::less<>());
  for (auto& [reservation, block] : journal_) {
    if (!std::binary_search(kept.begin(), kept.end(), block.get(), std::less<>())) {
      auto other = book.Find(reservation);
      if (other == nullptr || *other != *block) {
        Check(false, *block, "it is not as the journal has it");
        continue;
      }
      block = std::move(other);  // of a restart
    }
    Check(book.FindByKey(block->key) == block, *block, "it is not found by its name");
    CheckTimes(*block, book.now());
  }
  CheckWake(book);
  CheckCounts(book);
}

}  // namespace tahoma::controller
