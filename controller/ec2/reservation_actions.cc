#include "controller/ec2/reservation_actions.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "controller/ec2/error.h"
#include "controller/ec2/filter.h"
#include "controller/ec2/page.h"
#include "controller/ec2/requests.h"
#include "controller/ec2/tree.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

// EC2's bounds of the topology's pages and ids.
constexpr std::size_t kTopologyRowsMost = 10;

constexpr std::array kTopologyFilters = {TreeFilter{"availability-zone", "availabilityZone"},
                                         TreeFilter{"instance-type", "instanceType"}};

std::int64_t UsedOf(const Reservation& reservation) {
  std::int64_t used = 0;
  for (const Allocation& allocation : reservation.allocations) {
    if (allocation.type == "used") used += allocation.count;
  }
  return used;
}

}  // namespace

absl::StatusOr<std::string> GetReservationUsage(const Call& call) {
  Reader& reader = call.reader;
  const std::string id = ReadReservationId(reader);
  // The answer is the owner's use alone: one row, and every page has room for one.
  ReadPage(reader, call.binding);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  std::optional<Reservation> found;
  TAHOMA_RETURN_IF_ERROR(call.service.VisitReservations(
      call.caller, {.ids = {id}}, [&](std::string_view, const Reservation& reservation) {
        found = reservation;
        return false;
      }));
  if (!found) return UnknownIds(kReservationIds, {id});
  const Tree usage = {{"accountId", found->owner_id}, {"usedInstanceCount", UsedOf(*found)}};
  return TreeAnswer(call.head, {{"capacityReservationId", found->id},
                                {"instanceType", found->instance_type},
                                {"totalInstanceCount", found->total_instance_count},
                                {"availableInstanceCount", found->available_instance_count},
                                {"state", found->state},
                                {"instanceUsageSet", Tree::array({usage})}});
}

absl::StatusOr<std::string> DescribeReservationTopology(const Call& call) {
  Reader& reader = call.reader;
  const std::vector<std::string> ids = ReadIds(reader, kReservationIds, kTopologyRowsMost);
  const std::vector<Filter> filters = ReadFilters(reader, NamesOf(kTopologyFilters), false);
  PageRequest request = ReadPage(reader, call.binding, kTopologyRowsMost, kTopologyRowsMost);
  // Selected reservations come in one page: a reservation has a row for each of its UltraServers.
  if (!ids.empty()) request.rows_most = kPageRowsMost;
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TreePage page(request, filters, kTopologyFilters);
  TAHOMA_RETURN_IF_ERROR(call.service.VisitReservationTopology(
      call.caller, {.ids = ids}, [&](std::string_view key, const ReservationTopology& row) {
        const Tree block = row.block_id.empty() ? Tree(nullptr) : Tree(row.block_id);
        return page.Offer(key, {{"capacityReservationId", row.reservation_id},
                                {"capacityBlockId", block},
                                {"state", row.state},
                                {"instanceType", row.instance_type},
                                {"networkNodeSet", row.network_nodes},
                                {"availabilityZoneId", row.availability_zone_id},
                                {"availabilityZone", row.availability_zone}});
      }));
  return page.Answer(call.head, "capacityReservationSet");
}

}  // namespace tahoma::controller::ec2
