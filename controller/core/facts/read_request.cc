#include "controller/core/facts/read_request.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "controller/core/facts/read_facts.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

using json = Json;
using kube::Field;

constexpr int kInstancesMost = 1'000'000;
constexpr int kWindowMost = 182;
constexpr int kWeeksMost = 8;
constexpr int kOccurrencesMost = 8;
constexpr std::size_t kBlocksMost = 64;

WallTime TimeOf(Field field) {
  if (!field.has_value()) return {};
  const auto time = ParseTime(field.Text());
  if (!time.ok()) field.Fail("must be a time in UTC, such as 2026-12-01T11:30:00Z");
  return time.value_or(WallTime{});
}

Money MoneyOf(Field field) {
  if (!field.has_value()) return {};
  const auto money = ParseMoney(field.Text());
  if (!money.ok()) field.Fail("must be an amount, such as 858.26");
  return money.value_or(Money{});
}

int IntIn(Field field, int least, int most, int otherwise) {
  const std::int64_t number = field.Int(otherwise);
  if (number < least || number > most) {
    field.Fail(fmt::format("is {}, must be {} to {}", number, least, most));
  }
  return static_cast<int>(std::clamp<std::int64_t>(number, least, most));
}

// ---- What is asked -----------------------------------------------------------------------------

ExtensionRequest ExtensionOf(Field spec) {
  ExtensionRequest request{
      .block = std::string(spec.At("capacityBlockName").Text()),
      .reservation = std::string(spec.At("capacityReservationId").Text()),
      .offering_id = std::string(spec.At("capacityBlockExtensionOfferingId").Text()),
      .token = std::string(spec.At("clientToken").Text())};
  if (const Field hours = spec.At("capacityBlockExtensionDurationHours"); hours.has_value()) {
    request.hours = hours.Int();
  }
  if (request.block.empty() == request.reservation.empty()) {
    spec.Fail("must have either capacityBlockName or capacityReservationId");
  }
  if (request.offering_id.empty() != request.hours.has_value()) {
    spec.Fail(
        "must have either capacityBlockExtensionOfferingId or "
        "capacityBlockExtensionDurationHours");
  }
  return request;
}

QuotaRequest QuotaOf(Field spec) {
  QuotaRequest quota{
      .instances = IntIn(spec.At("instances"), 0, kInstancesMost, Quota{}.instances),
      .window_days = IntIn(spec.At("averageWindowDays"), 1, kWindowMost, Quota{}.window_days)};
  if (const Field average = spec.At("averageInstances"); average.has_value()) {
    quota.average = IntIn(average, 0, kInstancesMost, 0);
  }
  return quota;
}

// Reads the search of a series or of an entry of the waitlist; CheckQuery says what is legal.
OfferingQuery QueryOf(Field spec) {
  OfferingQuery query{.instance_type = std::string(spec.At("instanceType").Text()),
                      .ultraserver_type = std::string(spec.At("ultraserverType").Text()),
                      .any_cell = spec.At("anyCell").Bool(),
                      .order = OfferingOrder::kStart};
  const auto number = [&](const char* name, std::optional<std::int64_t>& value) {
    if (const Field field = spec.At(name); field.has_value()) value = field.Int();
  };
  number("instanceCount", query.instance_count);
  number("ultraserverCount", query.ultraserver_count);
  number("capacityDurationHours", query.duration_hours);
  if (const Field start = spec.At("startDateRange"); start.has_value()) {
    query.start_date_range = TimeOf(start);
  }
  if (const Field zone = spec.At("availabilityZone"); zone.has_value()) {
    query.zones.emplace_back(zone.Text());
  }
  return query;
}

Tags TagsOf(Field spec) {
  Tags tags;
  spec.At("tags").Entries(
      [&](const std::string& name, Field value) { tags.emplace_back(name, value.Text()); });
  return tags;
}

std::string PlatformOf(Field spec) {
  const Field platform = spec.At("instancePlatform");
  return platform.has_value() ? std::string(platform.Text()) : SeriesRequest{}.platform;
}

// A series of offerings that a search has answered with.
SeriesRequest NamedSeriesOf(Field spec) {
  SeriesRequest request{.platform = PlatformOf(spec), .tags = TagsOf(spec)};
  for (const Field id : spec.At("capacityBlockOfferingIds").Items(kOccurrencesMost)) {
    request.offering_ids.emplace_back(id.Text());
  }
  request.occurrences = static_cast<int>(request.offering_ids.size());
  if (request.occurrences == 0) spec.At("capacityBlockOfferingIds").Fail("must name offerings");
  for (const char* other :
       {"occurrences", "capacityDurationHours", "instanceType", "instanceCount", "ultraserverType",
        "ultraserverCount", "startDateRange", "availabilityZone", "anyCell"}) {
    if (spec.At(other).has_value()) {
      spec.At(other).Fail("must not be set with capacityBlockOfferingIds");
    }
  }
  return request;
}

SeriesRequest SeriesOf(Field spec) {
  if (spec.At("capacityBlockOfferingIds").has_value()) return NamedSeriesOf(spec);
  return {.query = QueryOf(spec),
          .every_weeks = IntIn(spec.At("everyWeeks"), 1, kWeeksMost, SeriesRequest{}.every_weeks),
          .occurrences =
              IntIn(spec.Required("occurrences"), 1, kOccurrencesMost, SeriesRequest{}.occurrences),
          .platform = PlatformOf(spec),
          .tags = TagsOf(spec)};
}

WaitlistRequest WaitlistOf(Field spec) {
  WaitlistRequest request{.query = QueryOf(spec),
                          .block = std::string(spec.At("capacityBlockName").Text()),
                          .platform = PlatformOf(spec),
                          .tags = TagsOf(spec)};
  if (const Field end = spec.At("endDateRange"); end.has_value()) {
    request.query.end_date_range = TimeOf(end);
  }
  if (const Field most = spec.At("maxUpfrontFee"); most.has_value()) {
    request.fee_most = MoneyOf(most);
  }
  const std::string_view action = spec.At("action").Text();
  request.buy = action.empty() || action == "Buy";
  if (!request.buy && action != "Notify") {
    spec.At("action").Fail(fmt::format("is {}, must be Buy or Notify", action));
  }
  return request;
}

RequestSpec SpecOf(RequestKind kind, Field spec) {
  switch (kind) {
    case RequestKind::kQuota:
      return QuotaOf(spec);
    case RequestKind::kExtension:
      return ExtensionOf(spec);
    case RequestKind::kSeries:
      return SeriesOf(spec);
    case RequestKind::kWaitlistEntry:
      return WaitlistOf(spec);
  }
  TAHOMA_CHECK(false);
  return {};
}

// ---- What is shown -----------------------------------------------------------------------------

RequestResult ExtensionShown(Field status) {
  if (!status.At("capacityReservationId").has_value()) return {};
  return ExtensionResult{
      .block = std::string(status.At("capacityBlockName").Text()),
      .reservation = std::string(status.At("capacityReservationId").Text()),
      .offering_id = std::string(status.At("capacityBlockExtensionOfferingId").Text()),
      .instance_type = std::string(status.At("instanceType").Text()),
      .instances = status.At("instanceCount").Int32(),
      .zone = std::string(status.At("availabilityZone").Text()),
      .hours = status.At("capacityBlockExtensionDurationHours").Int(),
      .purchased = TimeOf(status.At("capacityBlockExtensionPurchaseDate")),
      .start = TimeOf(status.At("capacityBlockExtensionStartDate")),
      .end = TimeOf(status.At("capacityBlockExtensionEndDate")),
      .fee = MoneyOf(status.At("upfrontFee"))};
}

RequestResult QuotaShown(Field status) {
  if (!status.At("peakInstances").has_value()) return {};
  return QuotaUse{.limits = QuotaOf(status.At("limits")),
                  .today = status.At("instancesToday").Int32(),
                  .peak = status.At("peakInstances").Int32(),
                  .peak_at = TimeOf(status.At("peakDate")),
                  .instance_days = status.At("instanceDays").Int()};
}

BoughtBlock BlockShown(Field block) {
  return {.name = std::string(block.At("capacityBlockName").Text()),
          .reservation = std::string(block.At("capacityReservationId").Text()),
          .start = TimeOf(block.At("startDate")),
          .end = TimeOf(block.At("endDate")),
          .fee = MoneyOf(block.At("upfrontFee")),
          .record = std::string(block.At("record").Text())};
}

RequestResult SeriesShown(Field status) {
  if (!status.At("capacityBlocks").has_value()) return {};
  SeriesResult result{.fee = MoneyOf(status.At("upfrontFee"))};
  for (const Field block : status.At("capacityBlocks").Items(kBlocksMost)) {
    result.blocks.push_back(BlockShown(block));
  }
  return result;
}

RequestResult WaitlistShown(Field status) {
  if (!status.At("capacityBlockOfferingId").has_value()) return {};
  WaitlistResult result{.offering_id = std::string(status.At("capacityBlockOfferingId").Text())};
  if (status.At("capacityBlockName").has_value()) result.block = BlockShown(status);
  return result;
}

RequestResult ResultShown(RequestKind kind, Field status) {
  switch (kind) {
    case RequestKind::kQuota:
      return QuotaShown(status);
    case RequestKind::kExtension:
      return ExtensionShown(status);
    case RequestKind::kSeries:
      return SeriesShown(status);
    case RequestKind::kWaitlistEntry:
      return WaitlistShown(status);
  }
  TAHOMA_CHECK(false);
  return {};
}

std::optional<RequestStatus> StatusOf(RequestKind kind, const json& object) {
  kube::Reading reading(object);
  const Field status = reading.root().At("status");
  if (!status.has_value()) return std::nullopt;
  RequestStatus shown{.generation = status.At("observedGeneration").Int(),
                      .state = std::string(status.At("state").Text()),
                      .reason = std::string(status.At("reason").Text()),
                      .message = std::string(status.At("message").Text())};
  for (const Field condition : status.At("conditions").Items()) {
    shown.since = TimeOf(condition.At("lastTransitionTime"));
  }
  shown.result = ResultShown(kind, status);
  return shown;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RequestFact>> ParseRequest(RequestKind kind,
                                                                const json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  auto fact = std::make_shared<RequestFact>();
  fact->key = {kind, std::move(metadata.ns), std::move(metadata.name)};
  fact->uid = std::move(metadata.uid);
  fact->resource_version = std::move(metadata.resource_version);
  fact->generation = metadata.generation;
  fact->deleting = metadata.deleting;
  fact->created = metadata.created;
  fact->status = StatusOf(kind, object);
  fact->shown = StatusDigest(object);
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf(KindName(kind)));
  kube::Reading spec_reading(object);
  fact->spec = SpecOf(kind, spec_reading.root().At("spec"));
  if (!spec_reading.status().ok()) fact->spec_error = Message(spec_reading.status());
  return fact;
}

}  // namespace tahoma::controller
