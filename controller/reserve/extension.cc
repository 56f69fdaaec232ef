#include "controller/reserve/extension.h"

#include <chrono>

#include "controller/reserve/refusal.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// docs/reference/capacity-blocks.md#extensions
constexpr std::chrono::hours kExtensionLead{1};
constexpr std::chrono::hours kExtensionAhead{57 * 24};

}  // namespace

absl::Status CheckExtension(const TimeProfile& profile, const Block& block, WallTime end,
                            WallTime now) {
  if (!HoldsCapacity(block.state) || block.state == BlockState::kPaymentPending) {
    return Refuse(kReservationState, "{} is {}; only a scheduled or active block can be extended",
                  block.reservation, StateName(block.state));
  }
  if (block.pending_extension() != nullptr) {
    return Refuse(kReservationState, "an extension of {} waits for its payment", block.reservation);
  }
  if (now > block.end - kExtensionLead || now < block.end - kExtensionAhead) {
    return Refuse(kReservationState, "{} ends {}; it can be extended from {} to {}",
                  block.reservation, FormatTime(block.end), FormatTime(block.end - kExtensionAhead),
                  FormatTime(block.end - kExtensionLead));
  }
  const SlotRange slots = SlotsOf(block.end, end);
  if (end - block.start() > kSlotLength * kDaysMost) {
    return Refuse(kInvalidParameterValue,
                  "{} would last longer than {} days with its extensions; it may end {} at the "
                  "latest",
                  block.reservation, kDaysMost,
                  FormatTime(StartOf(SlotOf(block.start() + kSlotLength * kDaysMost))));
  }
  for (const CellShare& share : block.cells) {
    const auto pool = profile.Find(PoolOf(block, share.cell));
    if (!pool || profile.LeastFree(*pool, slots) < share.hosts) {
      return Refuse(kInsufficientCapacity, "no capacity for {} from {} to {}", block.reservation,
                    FormatTime(block.end), FormatTime(end));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ExtensionOffering> OfferExtension(const TimeProfile& profile,
                                                 const PriceList& prices, const Block& block,
                                                 std::int64_t hours, WallTime now) {
  if (!IsLegalDuration(hours)) {
    return Refuse(kInvalidParameterValue, "CapacityBlockExtensionDurationHours {}: must be {}",
                  hours, LegalHoursText());
  }
  const WallTime end = block.end + std::chrono::hours(hours);
  TAHOMA_RETURN_IF_ERROR(CheckExtension(profile, block, end, now));
  return ExtensionOffering{.reservation = block.reservation,
                           .start = block.end,
                           .end = end,
                           .rate = prices.RateOf(block.product()),
                           .count = block.bought.count};
}

}  // namespace tahoma::controller
