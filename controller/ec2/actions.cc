#include "controller/ec2/actions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "controller/ec2/caller_identity.h"
#include "controller/ec2/filter.h"
#include "controller/ec2/fixed_blocks.h"
#include "controller/ec2/page.h"
#include "controller/ec2/place_actions.h"
#include "controller/ec2/reservation_actions.h"
#include "controller/ec2/tag_actions.h"
#include "controller/ec2/xml.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

using Strings = std::vector<std::string>;
template <typename T>
using Fields = std::vector<FilterField<T>>;

const Fields<Ec2Block>& BlockFields() {
  static const Fields<Ec2Block> fields = {
      {"capacity-block-id", [](const Ec2Block& b) { return Strings{b.id}; }},
      {"ultraserver-type",
       [](const Ec2Block& b) {
         return b.ultraserver_type.empty() ? Strings{"instances"}
                                           : Strings{"ultraservers", b.ultraserver_type};
       }},
      {"availability-zone", [](const Ec2Block& b) { return Strings{b.availability_zone}; }},
      {"start-date", [](const Ec2Block& b) { return Strings{FormatMilliTime(b.start)}; }},
      {"end-date", [](const Ec2Block& b) { return Strings{FormatMilliTime(b.end)}; }},
      {"create-date", [](const Ec2Block& b) { return Strings{FormatMilliTime(b.created)}; }},
      {"state", [](const Ec2Block& b) { return Strings{b.state}; }},
      {"tags",
       [](const Ec2Block& b) {
         Strings values;
         for (const Tag& tag : b.tags) values.push_back(tag.key + "=" + tag.value);
         return values;
       }},
  };
  return fields;
}

const Fields<BlockStatus>& BlockStatusFields() {
  static const Fields<BlockStatus> fields = {
      {"interconnect-status",
       [](const BlockStatus& s) {
         return s.interconnect_status.empty() ? Strings() : Strings{s.interconnect_status};
       }},
  };
  return fields;
}

const Fields<Extension>& ExtensionFields() {
  static const Fields<Extension> fields = {
      {"availability-zone", [](const Extension& e) { return Strings{e.availability_zone}; }},
      {"availability-zone-id", [](const Extension& e) { return Strings{e.availability_zone_id}; }},
      {"capacity-block-extension-offering-id",
       [](const Extension& e) { return Strings{e.offering_id}; }},
      {"capacity-block-extension-status", [](const Extension& e) { return Strings{e.status}; }},
      {"capacity-reservation-id", [](const Extension& e) { return Strings{e.reservation_id}; }},
      {"instance-type", [](const Extension& e) { return Strings{e.instance_type}; }},
  };
  return fields;
}

const Fields<Reservation>& ReservationFields() {
  static const Fields<Reservation> fields = {
      {"instance-type", [](const Reservation& r) { return Strings{r.instance_type}; }},
      {"owner-id", [](const Reservation& r) { return Strings{r.owner_id}; }},
      {"instance-platform", [](const Reservation& r) { return Strings{r.instance_platform}; }},
      {"availability-zone", [](const Reservation& r) { return Strings{r.availability_zone}; }},
      {"tenancy", [](const Reservation& r) { return Strings{r.tenancy}; }},
      // No block is on an Outpost or in a placement group.
      {"outpost-arn", [](const Reservation&) { return Strings(); }},
      {"placement-group-arn", [](const Reservation&) { return Strings(); }},
      {"state", [](const Reservation& r) { return Strings{r.state}; }},
      {"start-date", [](const Reservation& r) { return Strings{FormatMilliTime(r.start)}; }},
      {"end-date", [](const Reservation& r) { return Strings{FormatMilliTime(r.end)}; }},
      {"end-date-type", [](const Reservation& r) { return Strings{r.end_date_type}; }},
      {"instance-match-criteria",
       [](const Reservation& r) { return Strings{r.instance_match_criteria}; }},
  };
  return fields;
}

const Fields<InstanceTopology>& InstanceFields() {
  static const Fields<InstanceTopology> fields = {
      {"availability-zone", [](const InstanceTopology& i) { return Strings{i.availability_zone}; }},
      {"instance-type", [](const InstanceTopology& i) { return Strings{i.instance_type}; }},
      {"zone-id", [](const InstanceTopology& i) { return Strings{i.zone_id}; }},
  };
  return fields;
}

// The parts of a Describe request for stored rows.
struct Listing {
  std::vector<std::string> ids;
  std::vector<Filter> filters;
  PageRequest page;
};

template <typename T>
Listing ReadListing(const Call& call, const IdList& ids, const Fields<T>& fields) {
  constexpr bool kTagged = requires(const T& row) { row.tags; };
  return {.ids = ReadIds(call.reader, ids, kIdsMost),
          .filters = ReadFilters(call.reader, NamesOf(fields), kTagged),
          .page = ReadPage(call.reader, call.binding)};
}

template <typename T>
using VisitRows = absl::Status (Ec2Service::*)(const Caller&, const Selection&, const Visit<T>&);

// Fills a page of the rows that pass. With `keys`, ids of that kind are the rows' keys, and one
// that is asked for and not there is refused.
template <typename T>
absl::StatusOr<Page<T>> PageOf(const Call& call, const Listing& listing, VisitRows<T> visit_rows,
                               const IdList* keys, const std::function<bool(const T&)>& passes) {
  Page<T> page(listing.page);
  const bool by_id = keys != nullptr && !listing.ids.empty();
  std::set<std::string, std::less<>> missing;
  if (by_id) missing.insert(listing.ids.begin(), listing.ids.end());
  // The rows of asked ids are few, and all must be looked at to know which do not exist.
  Selection selection{.ids = listing.ids, .after = by_id ? "" : listing.page.after};
  TAHOMA_RETURN_IF_ERROR(
      (call.service.*visit_rows)(call.caller, selection, [&](std::string_view key, const T& row) {
        if (const auto found = missing.find(key); found != missing.end()) missing.erase(found);
        return !passes(row) || page.Offer(key, row) || by_id;
      }));
  if (missing.empty()) return page;
  return UnknownIds(*keys, missing);
}

template <typename T>
std::function<bool(const T&)> Passing(const Listing& listing, const Fields<T>& fields) {
  return [&](const T& row) { return MatchesAll(listing.filters, row, fields); };
}

// A page of offerings, which are made anew for each request: their places are their keys.
template <typename T>
Page<T> PageOfOffers(const PageRequest& request, const std::vector<T>& offers) {
  Page<T> page(request);
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (!page.Offer(fmt::format("{:08}", i), offers[i])) break;
  }
  return page;
}

std::string TokenOf(std::string token, const Call& call) {
  if (!token.empty()) return token;
  return std::string(call.attempts_id.empty() ? call.signature : call.attempts_id);
}

absl::StatusOr<std::string> DescribeOfferings(const Call& call) {
  const OfferingSearch search = ReadOfferingSearch(call.reader);
  const PageRequest page = ReadPage(call.reader, call.binding);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<Ec2Offering> found,
                          call.service.FindOfferings(call.caller, search));
  return OfferingsAnswer(call.head, PageOfOffers(page, found));
}

absl::StatusOr<std::string> PurchaseBlock(const Call& call) {
  BlockPurchase purchase = ReadBlockPurchase(call.reader);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  purchase.client_token = TokenOf(std::move(purchase.client_token), call);
  purchase.signature = call.signature;
  purchase.dry_run = call.dry_run;
  TAHOMA_ASSIGN_OR_RETURN(const BlockPurchased purchased,
                          call.service.PurchaseBlock(call.caller, purchase));
  return PurchaseAnswer(call.head, purchased);
}

absl::StatusOr<std::string> DescribeBlocks(const Call& call) {
  const Fields<Ec2Block>& fields = BlockFields();
  const Listing listing = ReadListing(call, kBlockIds, fields);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const auto page, PageOf<Ec2Block>(call, listing, &Ec2Service::VisitBlocks,
                                                            &kBlockIds, Passing(listing, fields)));
  return BlocksAnswer(call.head, page);
}

absl::StatusOr<std::string> DescribeBlockStatus(const Call& call) {
  const Fields<BlockStatus>& fields = BlockStatusFields();
  const Listing listing = ReadListing(call, kBlockIds, fields);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const auto page,
                          PageOf<BlockStatus>(call, listing, &Ec2Service::VisitBlockStatuses,
                                              &kBlockIds, Passing(listing, fields)));
  return BlockStatusesAnswer(call.head, page);
}

absl::StatusOr<std::string> DescribeExtensionOfferings(const Call& call) {
  const ExtensionSearch search = ReadExtensionSearch(call.reader);
  const PageRequest page = ReadPage(call.reader, call.binding);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<ExtensionOffering> found,
                          call.service.FindExtensionOfferings(call.caller, search));
  return ExtensionOfferingsAnswer(call.head, PageOfOffers(page, found));
}

absl::StatusOr<std::string> PurchaseExtension(const Call& call) {
  ExtensionPurchase purchase = ReadExtensionPurchase(call.reader);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  purchase.client_token = TokenOf(std::move(purchase.client_token), call);
  purchase.dry_run = call.dry_run;
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<Extension> extensions,
                          call.service.PurchaseExtension(call.caller, purchase));
  return ExtensionPurchaseAnswer(call.head, extensions);
}

absl::StatusOr<std::string> DescribeExtensionHistory(const Call& call) {
  const Fields<Extension>& fields = ExtensionFields();
  const Listing listing = ReadListing(call, kReservationIds, fields);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const auto page,
                          PageOf<Extension>(call, listing, &Ec2Service::VisitExtensions, nullptr,
                                            Passing(listing, fields)));
  return ExtensionHistoryAnswer(call.head, page);
}

absl::StatusOr<std::string> DescribeReservations(const Call& call) {
  const Fields<Reservation>& fields = ReservationFields();
  const Listing listing = ReadListing(call, kReservationIds, fields);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const auto page,
                          PageOf<Reservation>(call, listing, &Ec2Service::VisitReservations,
                                              &kReservationIds, Passing(listing, fields)));
  return ReservationsAnswer(call.head, page);
}

absl::StatusOr<std::string> DescribeInstances(const Call& call) {
  // EC2 pages topology in smaller pieces than the rest.
  constexpr std::size_t kRowsUsual = 20;
  constexpr std::size_t kRowsMost = 100;
  constexpr std::size_t kNamesMost = 100;
  Reader& reader = call.reader;
  const Fields<InstanceTopology>& fields = InstanceFields();
  const Strings groups = reader.Texts("GroupName", kNamesMost);
  const Listing listing = {
      .ids = ReadIds(reader, kInstanceIds, kNamesMost),
      .filters = ReadFilters(reader, NamesOf(fields), false),
      .page = ReadPage(reader, call.binding, reader.Has("InstanceId") ? kRowsMost : kRowsUsual,
                       kRowsMost)};
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  const auto passes = [&](const InstanceTopology& instance) {
    if (!groups.empty() && std::ranges::find(groups, instance.group_name) == groups.end()) {
      return false;
    }
    return MatchesAll(listing.filters, instance, fields);
  };
  TAHOMA_ASSIGN_OR_RETURN(
      const auto page,
      PageOf<InstanceTopology>(call, listing, &Ec2Service::VisitInstances, &kInstanceIds, passes));
  return InstancesAnswer(call.head, page);
}

constexpr std::array kActions = {
    Action{"CancelCapacityReservation", {}, &CancelReservation},
    Action{"CreateTags", "capacityblocks", &CreateTags, "patch"},
    Action{"DeleteTags", "capacityblocks", &DeleteTags, "patch"},
    Action{"DescribeAvailabilityZones", {}, &DescribeZones},
    Action{"DescribeCapacityBlockExtensionHistory", {}, &DescribeExtensionHistory},
    Action{"DescribeCapacityBlockExtensionOfferings", {}, &DescribeExtensionOfferings},
    Action{"DescribeCapacityBlockOfferings", {}, &DescribeOfferings},
    Action{"DescribeCapacityBlockStatus", {}, &DescribeBlockStatus},
    Action{"DescribeCapacityBlocks", {}, &DescribeBlocks},
    Action{"DescribeCapacityReservationTopology", {}, &DescribeReservationTopology},
    Action{"DescribeCapacityReservations", {}, &DescribeReservations},
    Action{"DescribeInstanceTopology", {}, &DescribeInstances},
    Action{"DescribeInstanceTypeOfferings", {}, &DescribeTypeOfferings},
    Action{"DescribeInstanceTypes", {}, &DescribeTypes},
    Action{"DescribeRegions", {}, &DescribeRegions},
    Action{"DescribeTags", {}, &DescribeTags},
    Action{"GetCallerIdentity", {}, &GetCallerIdentity, "create", true},
    Action{"GetCapacityReservationUsage", {}, &GetReservationUsage},
    Action{"ModifyCapacityReservation", {}, &ModifyReservation},
    Action{"PurchaseCapacityBlock", "capacityblocks", &PurchaseBlock},
    Action{"PurchaseCapacityBlockExtension", "capacityblockextensions", &PurchaseExtension},
};

}  // namespace

absl::Status MayGoOn(const Call& call) {
  TAHOMA_RETURN_IF_ERROR(call.reader.Finish());
  const Action* action = FindAction(call.head.action);
  if (action->buys.empty() || call.caller.may_buy) return absl::OkStatus();
  return Refuse(kUnauthorizedOperation,
                "{} may not call {}: it takes an access key whose role is edit or admin",
                call.caller.name, call.head.action);
}

const Action* FindAction(std::string_view name) {
  const auto found = std::ranges::find(kActions, name, &Action::name);
  return found == kActions.end() ? nullptr : &*found;
}

std::vector<std::string_view> ActionNames() {
  std::vector<std::string_view> names;
  for (const Action& action : kActions) {
    if (!action.of_sts) names.push_back(action.name);
  }
  return names;
}

}  // namespace tahoma::controller::ec2
