#include "controller/ec2/fixed_blocks.h"

#include <cstdint>
#include <limits>
#include <string_view>

#include "controller/ec2/error.h"
#include "controller/ec2/requests.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

// Refuses what cannot be done to the caller's reservation, and whose is not there.
absl::Status RefuseChange(const Call& call, std::string_view change) {
  const std::string id = ReadReservationId(call.reader);
  TAHOMA_RETURN_IF_ERROR(call.reader.Finish());
  if (!call.caller.may_buy) {
    return Refuse(kUnauthorizedOperation,
                  "{} may not call {}: it takes an access key whose role is edit or admin",
                  call.caller.name, call.head.action);
  }
  bool found = false;
  TAHOMA_RETURN_IF_ERROR(call.service.VisitReservations(call.caller, {.ids = {id}},
                                                        [&](std::string_view, const Reservation&) {
                                                          found = true;
                                                          return false;
                                                        }));
  if (!found) return UnknownIds(kReservationIds, {id});
  return Refuse(kOperationNotPermitted,
                "{} is a Capacity Block, which cannot be {}; it ends at its end date, and "
                "PurchaseCapacityBlockExtension lets it end later",
                id, change);
}

}  // namespace

absl::StatusOr<std::string> CancelReservation(const Call& call) {
  for (const char* name : {"ApplyCancellationCharges", "QuoteId"}) call.reader.Text(name);
  return RefuseChange(call, "cancelled");
}

absl::StatusOr<std::string> ModifyReservation(const Call& call) {
  constexpr std::int64_t kCountMost = std::numeric_limits<std::int32_t>::max();
  Reader& reader = call.reader;
  reader.Number("InstanceCount", 1, kCountMost);
  for (const char* name : {"EndDate", "StartDate"}) reader.Time(name);
  for (const char* name : {"Accept", "AcceptModificationTerms"}) reader.Flag(name);
  for (const char* name : {"AdditionalInfo", "EndDateType", "InstanceMatchCriteria", "QuoteId"}) {
    reader.Text(name);
  }
  return RefuseChange(call, "changed");
}

}  // namespace tahoma::controller::ec2
