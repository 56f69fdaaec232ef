#include "controller/reserve/block.h"

#include <algorithm>
#include <array>

#include "lib/base/check.h"

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
        consider(std::min(block.start() + kDeliveryGrace, block.end), DueKind::kGiveUp);
      } else if (block.hosts.empty()) {
        consider(block.start() - kBindingLead, DueKind::kBind);
      } else {
        consider(block.start(), DueKind::kDeliver);
      }
      break;
    case BlockState::kActive:
    case BlockState::kUnavailable:
      if (!block.warned) consider(block.reclaim() - kWarningLead, DueKind::kWarn);
      consider(block.end, DueKind::kExpire);
      break;
    case BlockState::kPaymentFailed:
    case BlockState::kExpired:
    case BlockState::kFailed:
      break;
  }
  return next;
}

}  // namespace tahoma::controller
