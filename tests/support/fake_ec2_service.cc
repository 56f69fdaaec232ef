#include "tests/support/fake_ec2_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tahoma::controller::ec2 {
namespace {

using std::chrono::hours;

constexpr char kZone[] = "us-east-2a";
constexpr char kZoneId[] = "use2-az1";
constexpr int kInstancesOfBlock = 4;

// 2026-11-21T11:30:00Z
WallTime Start() {
  return WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 21)) + hours(11) +
         std::chrono::minutes(30);
}

template <typename T>
absl::Status VisitRows(const std::map<std::string, T>& rows, const Selection& selection,
                       const Visit<T>& visit) {
  for (auto at = rows.upper_bound(selection.after); at != rows.end(); ++at) {
    if (!selection.ids.empty() && !std::ranges::binary_search(selection.ids, at->first)) continue;
    if (!visit(at->first, at->second)) break;
  }
  return absl::OkStatus();
}

Ec2Offering OfferOf(const OfferingSearch& search, int number) {
  const WallTime start = Start() + hours(24 * number);
  Ec2Offering offer{.id = fmt::format("cb-{:017}", number),
                    .instance_type = "trn2u.48xlarge",
                    .availability_zone = kZone,
                    .instance_count = 4 * search.ultraserver_count.value_or(1),
                    .start = start,
                    .end = start + hours(search.duration_hours),
                    .duration_hours = search.duration_hours,
                    .upfront_fee = fmt::format("{}.26", 858 * number)};
  if (search.ultraserver_type.empty()) {
    offer.instance_type = search.instance_types.front();
    offer.instance_count = search.instance_count.value_or(1);
  } else {
    offer.ultraserver_type = search.ultraserver_type;
    offer.ultraserver_count = search.ultraserver_count;
  }
  if (number == 2) {
    offer.duration_minutes = 37;
    offer.segments = {{.instance_type = offer.instance_type,
                       .availability_zone = kZone,
                       .availability_zone_id = kZoneId,
                       .instance_count = offer.instance_count,
                       .start = start,
                       .end = offer.end,
                       .duration_hours = search.duration_hours,
                       .duration_minutes = 37,
                       .upfront_fee = offer.upfront_fee}};
  }
  return offer;
}

}  // namespace

FakeEc2Service::FakeEc2Service(int blocks) {
  const MutexLock lock(mutex_);
  for (int i = 1; i <= blocks; ++i) {
    Add(i, {.name = "stock", .name_space = "stock", .account = "111122223333"},
        {{.key = "team", .value = i % 2 == 0 ? "research" : "serving"},
         {.key = "note", .value = fmt::format("<block> & \"{}\"", i)}});
  }
}

void FakeEc2Service::Add(int number, const Caller& owner, std::vector<Tag> tags) {
  const bool ultraserver = number % 2 == 0;
  const std::string block = fmt::format("cb-{:017}", number);
  const std::string reservation = fmt::format("cr-{:017}", number);
  const std::string type = ultraserver ? "trn2u.48xlarge" : "trn2.48xlarge";
  const std::string state = number % 3 == 0 ? "scheduled" : "active";
  const WallTime start = Start() + hours(24 * number);
  blocks_[block] = {.id = block,
                    .ultraserver_type = ultraserver ? "u-trn2x64" : "",
                    .availability_zone = kZone,
                    .availability_zone_id = kZoneId,
                    .reservation_ids = {reservation},
                    .start = start,
                    .end = start + hours(24),
                    .created = Start(),
                    .state = state,
                    .tags = tags};
  reservations_[reservation] = {
      .id = reservation,
      .owner_id = owner.account,
      .arn = fmt::format("arn:aws:ec2:us-east-2:{}:capacity-reservation/{}", owner.account,
                         reservation),
      .availability_zone = kZone,
      .availability_zone_id = kZoneId,
      .instance_type = type,
      .total_instance_count = kInstancesOfBlock,
      .available_instance_count = kInstancesOfBlock - 1,
      .state = state,
      .start = start,
      .end = start + hours(24),
      .created = Start(),
      .tags = std::move(tags),
      .allocations = {{.type = "used", .count = 1}},
      .unused_reservation_billing_owner_id = owner.account,
      .block_id = block};
  statuses_[block] = {.block_id = block,
                      .interconnect_status = ultraserver ? "ok" : "",
                      .total_capacity = kInstancesOfBlock,
                      .available_capacity = kInstancesOfBlock - 1,
                      .unavailable_capacity = 1,
                      .reservations = {{.reservation_id = reservation,
                                        .total_capacity = kInstancesOfBlock,
                                        .available_capacity = kInstancesOfBlock - 1,
                                        .unavailable_capacity = 1}}};
  for (int i = 0; i < kInstancesOfBlock; ++i) {
    const std::string id = fmt::format("i-{:013}{:04}", number, i);
    instances_[id] = {
        .instance_id = id,
        .instance_type = type,
        .group_name = number == 1 ? "ring" : "",
        .network_nodes = {"nn-1", fmt::format("nn-2{}", number), fmt::format("nn-3{}", number)},
        .availability_zone = kZone,
        .zone_id = kZoneId,
        .block_id = ultraserver ? block : ""};
  }
}

absl::StatusOr<Reservation> FakeEc2Service::ReservationNamed(const std::string& id) {
  const auto found = reservations_.find(id);
  if (found != reservations_.end()) return found->second;
  return Refuse(kReservationNotFound, "there is no '{}'", id);
}

absl::StatusOr<std::vector<Ec2Offering>> FakeEc2Service::FindOfferings(
    const Caller& caller, const OfferingSearch& search) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  search_ = search;
  if (search.duration_hours % 24 != 0) {
    return Refuse(kInvalidParameterValue, "CapacityDurationHours is {}; multiples of 24 are legal",
                  search.duration_hours);
  }
  std::vector<Ec2Offering> offers;
  for (int i = 1; i <= kOffersOfSearch; ++i) offers.push_back(OfferOf(search, i));
  return offers;
}

absl::StatusOr<BlockPurchased> FakeEc2Service::PurchaseBlock(const Caller& caller,
                                                             const BlockPurchase& purchase) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  purchase_ = purchase;
  if (purchase.offering_id == kSoldOffering) {
    return Refuse(kOfferingExpired, "the offering is sold; search again");
  }
  if (purchase.offering_id > fmt::format("cb-{:017}", kOffersOfSearch)) {
    return Refuse(kOfferingNotFound, "there is no offering '{}'", purchase.offering_id);
  }
  if (purchase.dry_run) return BlockPurchased{};
  std::string& block = block_of_token_[caller.account + purchase.client_token];
  if (block.empty() || purchase.client_token.empty()) {
    const int number = static_cast<int>(blocks_.size()) + 1;
    Add(number, caller, purchase.tags);
    block = fmt::format("cb-{:017}", number);
    ++purchases_;
  }
  return BlockPurchased{.reservations = {reservations_.at(blocks_.at(block).reservation_ids[0])},
                        .blocks = {blocks_.at(block)}};
}

absl::StatusOr<std::vector<ExtensionOffering>> FakeEc2Service::FindExtensionOfferings(
    const Caller& caller, const ExtensionSearch& search) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  const auto reservation = ReservationNamed(search.reservation_id);
  if (!reservation.ok()) return reservation.status();
  std::vector<ExtensionOffering> offers;
  for (int i = 1; i <= 3; ++i) {
    offers.push_back({.id = fmt::format("cbe-{:017}", i),
                      .instance_type = reservation->instance_type,
                      .instance_count = reservation->total_instance_count,
                      .availability_zone = kZone,
                      .availability_zone_id = kZoneId,
                      .start = reservation->start,
                      .extension_start = reservation->end,
                      .extension_end = reservation->end + hours(search.duration_hours),
                      .duration_hours = search.duration_hours,
                      .upfront_fee = "858.26"});
  }
  return offers;
}

absl::StatusOr<std::vector<Extension>> FakeEc2Service::PurchaseExtension(
    const Caller& caller, const ExtensionPurchase& purchase) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  const auto reservation = ReservationNamed(purchase.reservation_id);
  if (!reservation.ok()) return reservation.status();
  if (purchase.dry_run) return std::vector<Extension>();
  const std::string key = fmt::format("{}/{:04}", purchase.reservation_id, extensions_.size());
  extensions_[key] = {.reservation_id = purchase.reservation_id,
                      .instance_type = reservation->instance_type,
                      .instance_count = reservation->total_instance_count,
                      .availability_zone = kZone,
                      .availability_zone_id = kZoneId,
                      .offering_id = purchase.offering_id,
                      .duration_hours = 24,
                      .status = "payment-pending",
                      .purchased = Start(),
                      .start = reservation->end,
                      .end = reservation->end + hours(24),
                      .upfront_fee = "858.26"};
  return std::vector<Extension>{extensions_[key]};
}

absl::Status FakeEc2Service::VisitBlocks(const Caller& caller, const Selection& selection,
                                         const Visit<Ec2Block>& visit) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  return VisitRows(blocks_, selection, visit);
}

absl::Status FakeEc2Service::VisitBlockStatuses(const Caller& caller, const Selection& selection,
                                                const Visit<BlockStatus>& visit) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  return VisitRows(statuses_, selection, visit);
}

absl::Status FakeEc2Service::VisitReservations(const Caller& caller, const Selection& selection,
                                               const Visit<Reservation>& visit) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  return VisitRows(reservations_, selection, visit);
}

absl::Status FakeEc2Service::VisitInstances(const Caller& caller, const Selection& selection,
                                            const Visit<InstanceTopology>& visit) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  return VisitRows(instances_, selection, visit);
}

absl::Status FakeEc2Service::VisitExtensions(const Caller& caller, const Selection& selection,
                                             const Visit<Extension>& visit) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  for (const std::string& id : selection.ids) {
    if (const auto reservation = ReservationNamed(id); !reservation.ok()) {
      return reservation.status();
    }
  }
  for (auto at = extensions_.upper_bound(selection.after); at != extensions_.end(); ++at) {
    const std::string& id = at->second.reservation_id;
    if (!selection.ids.empty() && !std::ranges::binary_search(selection.ids, id)) continue;
    if (!visit(at->first, at->second)) break;
  }
  return absl::OkStatus();
}

absl::Status FakeEc2Service::VisitReservationTopology(const Caller& caller,
                                                      const Selection& selection,
                                                      const Visit<ReservationTopology>& visit) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  for (const std::string& id : selection.ids) {
    if (const auto reservation = ReservationNamed(id); !reservation.ok()) {
      return reservation.status();
    }
  }
  std::map<std::string, ReservationTopology> rows;
  for (const auto& [id, reservation] : reservations_) {
    const bool ultraserver = reservation.instance_type == "trn2u.48xlarge";
    rows[id] = {.reservation_id = id,
                .block_id = ultraserver ? reservation.block_id : "",
                .state = reservation.state,
                .instance_type = reservation.instance_type,
                .network_nodes = {"nn-1", "nn-2" + id.substr(id.size() - 1)},
                .availability_zone = kZone,
                .availability_zone_id = kZoneId};
  }
  return VisitRows(rows, selection, visit);
}

absl::StatusOr<std::vector<OfferedType>> FakeEc2Service::FindOfferedTypes(const Caller& caller) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  return std::vector<OfferedType>{{"inf2.xlarge", "us-east-2b", "use2-az2"},
                                  {"trn1.32xlarge", "us-west-2a", "usw2-az1"},
                                  {"trn2.3xlarge", kZone, kZoneId},
                                  {"trn2.48xlarge", kZone, kZoneId},
                                  {"trn2.48xlarge", "us-east-2b", "use2-az2"},
                                  {"trn2u.48xlarge", kZone, kZoneId}};
}

absl::Status FakeEc2Service::ChangeTags(const Caller& caller,
                                        const std::vector<std::string>& reservations,
                                        const TagChange& change) {
  const MutexLock lock(mutex_);
  caller_ = caller;
  for (const std::string& id : reservations) {
    Reservation& reservation = reservations_.at(id);
    const auto tags = ApplyTagChange(reservation.tags, change);
    if (!tags.ok()) return tags.status();
    reservation.tags = *tags;
    blocks_.at(reservation.block_id).tags = *tags;
  }
  return absl::OkStatus();
}

Caller FakeEc2Service::last_caller() const {
  const MutexLock lock(mutex_);
  return caller_;
}

OfferingSearch FakeEc2Service::last_search() const {
  const MutexLock lock(mutex_);
  return search_;
}

BlockPurchase FakeEc2Service::last_purchase() const {
  const MutexLock lock(mutex_);
  return purchase_;
}

int FakeEc2Service::purchases() const {
  const MutexLock lock(mutex_);
  return purchases_;
}

}  // namespace tahoma::controller::ec2
