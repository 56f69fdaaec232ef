#include "controller/reserve/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// docs/reference/capacity-blocks.md#states
constexpr std::array<std::pair<BlockState, std::string_view>, 7> kStates = {{
    {BlockState::kPaymentPending, "payment-pending"},
    {BlockState::kPaymentFailed, "payment-failed"},
    {BlockState::kScheduled, "scheduled"},
    {BlockState::kActive, "active"},
    {BlockState::kUnavailable, "unavailable"},
    {BlockState::kExpired, "expired"},
    {BlockState::kFailed, "failed"},
}};

}  // namespace

std::string_view StateName(BlockState state) {
  for (const auto& [value, name] : kStates) {
    if (value == state) return name;
  }
  TAHOMA_CHECK(false);
  return "";
}

std::optional<BlockState> ParseState(std::string_view name) {
  for (const auto& [value, text] : kStates) {
    if (text == name) return value;
  }
  return std::nullopt;
}

std::string_view StateName(ExtensionState state) {
  switch (state) {
    case ExtensionState::kPaymentPending:
      return "payment-pending";
    case ExtensionState::kPaymentFailed:
      return "payment-failed";
    case ExtensionState::kPaymentSucceeded:
      return "payment-succeeded";
  }
  return "";
}

std::string WhyNotCancelled(std::string_view state, std::string_view end) {
  return fmt::format("a Capacity Block cannot be cancelled: it is {} and ends {}", state, end);
}

bool HoldsCapacity(BlockState state) {
  switch (state) {
    case BlockState::kPaymentPending:
    case BlockState::kScheduled:
    case BlockState::kActive:
    case BlockState::kUnavailable:
      return true;
    case BlockState::kPaymentFailed:
    case BlockState::kExpired:
    case BlockState::kFailed:
      return false;
  }
  return false;
}

bool IsDelivered(BlockState state) {
  return state == BlockState::kActive || state == BlockState::kUnavailable;
}

const Extension* Block::pending_extension() const {
  for (const Extension& extension : extensions) {
    if (extension.state == ExtensionState::kPaymentPending) return &extension;
  }
  return nullptr;
}

SlotRange Block::slots() const {
  const Extension* pending = pending_extension();
  return SlotsOf(start(), pending == nullptr ? end : pending->end);
}

Money Block::fee() const {
  Money sum = bought.fee();
  for (const Extension& extension : extensions) {
    if (extension.state == ExtensionState::kPaymentSucceeded) sum += extension.fee;
  }
  return sum;
}

WallTime WarningOf(const Block& block) {
  constexpr auto kSpread = std::chrono::seconds(kWarningSpread);
  std::int64_t spread = 0;  // the id's digits are a digest's
  for (const char c : block.reservation) spread = (spread * 31 + c) % kSpread.count();
  return block.reclaim() - kWarningLead - std::chrono::seconds(spread);
}

std::optional<Due> NextDue(const Block& block) {
  std::optional<Due> next;
  const auto consider = [&](WallTime when, DueKind kind) {
    const Due due{when, kind};
    if (!next || due < *next) next = due;
  };
  if (const Extension* pending = block.pending_extension();
      pending != nullptr && HoldsCapacity(block.state)) {
    consider(pending->payment.due(), DueKind::kExtensionSettles);
  }
  switch (block.state) {
    case BlockState::kPaymentPending:
      consider(block.payment.due(), DueKind::kPaymentSettles);
      break;
    case BlockState::kScheduled:
      if (block.waits()) {
        consider(std::min(block.start() + kDeliveryGrace, block.reclaim()), DueKind::kGiveUp);
      } else if (block.hosts.empty()) {
        // A block bought or paid late is bound as soon as it is paid.
        consider(std::max(block.start() - kBindingLead, block.payment.due()), DueKind::kBind);
      } else {
        consider(block.start(), DueKind::kDeliver);
      }
      break;
    case BlockState::kActive:
    case BlockState::kUnavailable:
      if (!block.warned) {
        consider(WarningOf(block), DueKind::kWarn);
      } else if (!block.reclaiming && block.pending_extension() == nullptr) {
        // An extension under way may make the reclaim unnecessary.
        consider(block.reclaim(), DueKind::kReclaim);
      }
      consider(block.end, DueKind::kExpire);
      break;
    case BlockState::kPaymentFailed:
    case BlockState::kExpired:
    case BlockState::kFailed:
      break;
  }
  return next;
}

WallTime LatestMoment(const Block& block) {
  WallTime latest = std::max(block.created, block.bound.value_or(block.created));
  if (block.delivered) latest = std::max(latest, *block.delivered);
  if (block.state == BlockState::kExpired) latest = std::max(latest, block.end);
  if (block.usage.total() > 0) latest = std::max(latest, block.usage.as_of);
  for (const Extension& extension : block.extensions) {
    latest = std::max(latest, extension.purchased);
  }
  return latest;
}

absl::Status CheckConsistency(const Block& block) {
  const auto lost = [&](std::string_view what) {
    return DataLoss("Capacity Block {} of {}: {}", block.reservation, ToString(block.key), what);
  };
  if (block.reservation.empty() || block.key.ns.empty() || block.key.name.empty()) {
    return lost("it has no name");
  }
  if (block.bought.product == nullptr) return lost("its product is not sold here");
  WallTime end = block.bought.end;
  int pending = 0;
  for (const Extension& extension : block.extensions) {
    if (!IsBoundary(extension.end) || extension.start < block.bought.end ||
        extension.end <= extension.start) {
      return lost("an extension of it has no end");
    }
    if (extension.state == ExtensionState::kPaymentSucceeded) end = extension.end;
    if (extension.state == ExtensionState::kPaymentPending) {
      ++pending;
      if (extension.payment.deadline > block.end)
        return lost("an extension of it is paid too late");
    }
  }
  if (!IsBoundary(block.bought.end) || block.end != end || pending > 1 ||
      block.created > block.start() || block.start() >= block.bought.end ||
      block.start() > block.created + kHorizon || block.slots().size() > kDaysMost + 1) {
    return lost("its times contradict each other");
  }
  // A scheduled block is bound when it is paid: paid after its start, it would wait beyond its end.
  const bool is_paid_before_start =
      block.state == BlockState::kPaymentPending || block.state == BlockState::kScheduled;
  if (is_paid_before_start && block.payment.deadline > block.start()) {
    return lost("it is paid too late");
  }
  int count = 0;
  for (const CellShare& share : block.cells) {
    if (share.hosts < 1) return lost("it has an empty cell");
    count += share.hosts;
  }
  if (count != block.bought.count) return lost("its cells do not make up what was bought");
  const std::set<std::string_view> hosts(block.hosts.begin(), block.hosts.end());
  const bool delivered = IsDelivered(block.state);
  if (hosts.size() != block.hosts.size() || std::ssize(hosts) > count ||
      (delivered && std::ssize(hosts) != count && block.trouble.empty()) ||
      (!HoldsCapacity(block.state) && !hosts.empty())) {
    return lost("its hosts are not those of such a block");
  }
  return absl::OkStatus();
}

}  // namespace tahoma::controller
