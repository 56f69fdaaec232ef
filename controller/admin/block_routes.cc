#include "controller/admin/block_routes.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/admin/answer.h"
#include "controller/admin/usage_report.h"
#include "controller/reserve/extension.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "controller/reserve/segments.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kOfferingsMost = 1000;
// As many as EC2 answers with by default.
constexpr std::int64_t kOfferingsUsual = 6;
constexpr char kNotKnownYet[] = "the fleet is not known yet; ask again";

const Permission kBuy{.verb = "create", .group = "tahoma.dev", .resource = "capacityblocks"};

// A caller who may see the blocks of a namespace may see the offerings; the search names the
// namespace.
const Permission kSearch{
    .verb = "get", .group = "tahoma.dev", .resource = "capacityblockofferings"};

Schema OfferingSchema() {
  return ObjectOf({{"capacityBlockOfferingId", Text("By which it is bought.")},
                   {"ultraserverType?", Text("Of a block of UltraServers.")},
                   {"ultraserverCount?", Integer(1, kHostsMost, "How many of them.")},
                   {"instanceType", Text("Of its instances.")},
                   {"instanceCount", Integer(1, 4L * kHostsMost, "How many instances.")},
                   {"availabilityZone", Text("Where it is.")},
                   {"startDate", Time("When it begins.")},
                   {"endDate", Time("When it ends.")},
                   {"capacityBlockDurationHours", Integer(0, 24L * kDaysMost, "Whole hours.")},
                   {"capacityBlockDurationMinutes", Integer(0, 59, "The minutes that remain.")},
                   {"upfrontFee", Text("The price of all of it, such as 1234.50.")},
                   {"currencyCode", Word({"USD"}, "Of the price.")},
                   {"tenancy", Word({"default"}, "As EC2 has it.")}},
                  "Time on hardware that can be bought.");
}

std::vector<std::string> StateNames() {
  std::vector<std::string> names;
  for (const BlockState state :
       {BlockState::kPaymentPending, BlockState::kPaymentFailed, BlockState::kScheduled,
        BlockState::kActive, BlockState::kUnavailable, BlockState::kExpired, BlockState::kFailed}) {
    names.emplace_back(StateName(state));
  }
  return names;
}

Schema BlockSchema() {
  return ObjectOf(
      {{"namespace", Text("Its owner.")},
       {"name", Text("The CapacityBlock's name.")},
       {"reason?", Text("EC2's code, when it was not bought.")},
       {"message?", Text("Why it was not bought, or is not as it was promised.", kLongTextMost)},
       {"state?", Word(StateNames(), "What has become of it.")},
       {"capacityReservationId?", Text("By which it is used.")},
       {"capacityBlockIds?", ListOf(Text("An id."), "One, or one for each UltraServer.")},
       {"ultraserverType?", Text("Of a block of UltraServers.")},
       {"instanceType?", Text("Of its instances.")},
       {"count?", Integer(1, kHostsMost, "Instances, or UltraServers.")},
       {"totalInstanceCount?", Integer(1, 4L * kHostsMost, "Instances that were bought.")},
       {"availableInstanceCount?", Integer(0, 4L * kHostsMost, "Those that are free.")},
       {"unavailableInstanceCount?", Integer(0, 4L * kHostsMost, "Those that do not work.")},
       {"interconnectStatus?", Word({"ok", "impaired", "insufficient-data"}, "Of its links.")},
       {"availabilityZone?", Text("Where it is.")},
       {"createDate?", Time("When it was bought.")},
       {"startDate?", Time("When it begins.")},
       {"endDate?", Time("When it ends.")},
       {"reclaimDate?", Time("When its hardware is taken back.")},
       {"upfrontFee?", Text("The price, with extensions.")},
       {"currencyCode?", Word({"USD"}, "Of the price.")},
       {"hosts?", ListOf(Text("A host."), "Its hardware, while it has any.")}},
      "A Capacity Block, or a CapacityBlock that was not bought: then only the first four.");
}

Schema ExtensionOfferingSchema() {
  return ObjectOf({{"capacityBlockExtensionOfferingId", Text("By which EC2's API buys it.")},
                   {"capacityBlockExtensionDurationHours", Integer(1, 24L * kDaysMost, "Whole.")},
                   {"startDate", Time("The end of the block as it is.")},
                   {"endDate", Time("Its end after that.")},
                   {"upfrontFee", Text("The price.")},
                   {"currencyCode", Word({"USD"}, "Of the price.")}},
                  "More time for a block.");
}

Schema SplitSchema() {
  return ObjectOf({{"availabilityZone", Text("Where.")},
                   {"startDate", Time("When the first segment begins.")},
                   {"endDate", Time("When the last segment ends.")},
                   {"capacityBlockDurationHours", Integer(0, INT32_MAX, "Of all segments.")},
                   {"upfrontFee", Text("The price of all.")},
                   {"currencyCode", Word({"USD"}, "Of the price.")},
                   {"segments", ListOf(Named("Offering"),
                                       "Each is bought by its id; a CapacityBlockSeries "
                                       "buys all of them or none.")}},
                  "Several pieces of time that make up what was asked for.");
}

Schema ShortageSchema() {
  return ObjectOf({{"code", Word({"NoCapacity", "InstanceLimitExceeded"}, "The reason.")},
                   {"availabilityZone", Text("Where.")},
                   {"most", Integer(0, INT32_MAX, "Hosts that can be had.")},
                   {"missing", Integer(0, INT32_MAX, "Hosts that are missing.")},
                   {"message", Text("The same as a sentence.", kLongTextMost)}},
                  "Why nothing is offered in a zone.");
}

std::vector<Field> SearchFields() {
  constexpr std::int64_t kAnyNumber = 1'000'000;
  return {{"instanceType?", Text("With instanceCount.")},
          {"instanceCount?", Integer(1, kAnyNumber, "At most 64.")},
          {"ultraserverType?", Text("With ultraserverCount.")},
          {"ultraserverCount?", Integer(1, kAnyNumber, "At most 64.")},
          {"capacityDurationHours?", Integer(1, kAnyNumber, LegalHoursText())},
          {"maxDurationHours?", Integer(1, kAnyNumber, "The longest that will do as well.")},
          {"segments?", Integer(1, kSegmentsMost,
                                "So many pieces of time with gaps will do; 1 unless it is said.")},
          {"startDateRange?", Time("The earliest start.")},
          {"endDateRange?", Time("The latest end.")},
          {"availabilityZone?", Text("Empty: all zones.")},
          {"anyCell?", Flag("Hosts of several cells will do.")},
          {"orderBy?", Word({"Price", "Start", "End"}, "The order of the offerings.")},
          {"maxResults?",
           Integer(1, static_cast<std::int64_t>(kOfferingsMost), "6 unless it is said.")},
          {"namespace?", Text("Whose permission and quota count.", 63)}};
}

std::optional<std::int64_t> NumberIn(const rest::Request& request, const char* name) {
  return ParseInteger(request.query_value(name).value_or(""));
}

std::optional<WallTime> TimeIn(const rest::Request& request, const char* name) {
  const auto time = ParseTime(request.query_value(name).value_or(""));
  return time.ok() ? std::optional(*time) : std::nullopt;
}

OfferingOrder OrderIn(const rest::Request& request) {
  const std::string word = request.query_value("orderBy").value_or("");
  if (word == "Start") return OfferingOrder::kStart;
  return word == "End" ? OfferingOrder::kEnd : OfferingOrder::kPrice;
}

ordered_json OfferingJson(const Offering& offering, const OfferingKey& key) {
  ordered_json row = {{"capacityBlockOfferingId", OfferingId(offering, key)}};
  if (offering.product->ultra_server) {
    row["ultraserverType"] = offering.product->name;
    row["ultraserverCount"] = offering.count;
  }
  row["instanceType"] = offering.product->instance_type;
  row["instanceCount"] = offering.instances();
  row["availabilityZone"] = offering.zone;
  row["startDate"] = FormatTime(offering.start);
  row["endDate"] = FormatTime(offering.end);
  row["capacityBlockDurationHours"] = offering.duration_hours();
  row["capacityBlockDurationMinutes"] = offering.duration_minutes();
  row["upfrontFee"] = offering.fee().ToString();
  row["currencyCode"] = "USD";
  row["tenancy"] = "default";
  return row;
}

ordered_json ExtensionOfferingJson(const ExtensionOffering& offering, const OfferingKey& key) {
  return {{"capacityBlockExtensionOfferingId", ExtensionOfferingId(offering, key)},
          {"capacityBlockExtensionDurationHours", offering.duration_hours()},
          {"startDate", FormatTime(offering.start)},
          {"endDate", FormatTime(offering.end)},
          {"upfrontFee", offering.fee().ToString()},
          {"currencyCode", "USD"}};
}

ordered_json OfferingsJson(const std::vector<Offering>& offerings, std::size_t most,
                           const OfferingKey& key) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < offerings.size() && i < most; ++i) {
    rows.push_back(OfferingJson(offerings[i], key));
  }
  return rows;
}

// Offerings that make up one in segments: the whole, and each segment.
ordered_json SplitJson(const std::vector<Offering>& segments, const OfferingKey& key) {
  std::chrono::minutes duration{0};
  Money fee;
  for (const Offering& segment : segments) {
    duration += segment.duration();
    fee += segment.fee();
  }
  return {{"availabilityZone", segments.front().zone},
          {"startDate", FormatTime(segments.front().start)},
          {"endDate", FormatTime(segments.back().end)},
          {"capacityBlockDurationHours", duration.count() / 60},
          {"upfrontFee", fee.ToString()},
          {"currencyCode", "USD"},
          {"segments", OfferingsJson(segments, segments.size(), key)}};
}

ordered_json BlockJson(const BlockKey& key, const BlockView& view) {
  ordered_json row = {{"namespace", key.ns}, {"name", key.name}};
  if (view.block == nullptr) {
    row["reason"] = view.refusal;
    row["message"] = view.message;
    return row;
  }
  const Block& block = *view.block;
  row["state"] = StateName(block.state);
  row["capacityReservationId"] = block.reservation;
  row["capacityBlockIds"] = block.block_ids;
  if (block.product().ultra_server) row["ultraserverType"] = block.product().name;
  row["instanceType"] = block.product().instance_type;
  row["count"] = block.bought.count;
  row["totalInstanceCount"] = block.bought.instances();
  row["availableInstanceCount"] = view.available;
  row["unavailableInstanceCount"] = view.unavailable;
  row["interconnectStatus"] = InterconnectName(view.interconnect);
  row["availabilityZone"] = block.bought.zone;
  row["createDate"] = FormatTime(block.created);
  row["startDate"] = FormatTime(block.start());
  row["endDate"] = FormatTime(block.end);
  row["reclaimDate"] = FormatTime(block.reclaim());
  row["upfrontFee"] = block.fee().ToString();
  row["currencyCode"] = "USD";
  row["hosts"] = block.hosts;
  if (!block.trouble.empty()) row["message"] = block.trouble;
  return row;
}

Tags TagsOf(const Json& body) {
  Tags tags;
  if (const Json* given = FindMember(body, "tags")) {
    for (const auto& [key, value] : MembersOf(*given)) {
      tags.emplace_back(key, value.get<std::string>());
    }
  }
  return tags;
}

bool IsDryRun(const rest::Request& request) { return request.query_value("dryRun") == "true"; }

PurchaseOrder PurchaseOf(const rest::Request& request) {
  const Json& body = *request.parsed;
  PurchaseOrder order;
  order.key = {std::string(request.param("namespace")), TextOf(body, "name")};
  order.offering_id = TextOf(body, "capacityBlockOfferingId");
  if (std::string platform = TextOf(body, "instancePlatform"); !platform.empty()) {
    order.platform = std::move(platform);
  }
  order.token = TextOf(body, "clientToken");
  order.tags = TagsOf(body);
  order.dry_run = IsDryRun(request);
  return order;
}

// Returns the order of an extension. A repeated token orders the same extension again, whatever the
// block's end by now.
absl::StatusOr<ExtensionOrder> ExtensionOf(const Json& body, const Block& block,
                                           const Snapshot& snapshot, WallTime now) {
  const std::int64_t hours = IntegerOf(body, "capacityBlockExtensionDurationHours").value();
  ExtensionOrder order{
      .reservation = block.reservation, .offering_id = "", .token = TextOf(body, "clientToken")};
  for (const Extension& extension : block.extensions) {
    if (order.token.empty() || extension.token != order.token) continue;
    if (extension.end - extension.start != std::chrono::hours(hours)) {
      return Refuse(kIdempotentMismatch, "the token \"{}\" has bought another extension before",
                    order.token);
    }
    order.offering_id = extension.offering_id;
    return order;
  }
  TAHOMA_ASSIGN_OR_RETURN(const ExtensionOffering offering,
                          OfferExtension(snapshot.profile, snapshot.prices, block, hours, now));
  order.offering_id = ExtensionOfferingId(offering, snapshot.offering_key);
  return order;
}

const Field& TokenField() {
  static const Field field = {"clientToken?",
                              Text("Repeating a request with the same changes nothing.", 128)};
  return field;
}

const Field& DryRunField() {
  static const Field field = {"dryRun?", Flag("Answers as if it were done, and changes nothing.")};
  return field;
}

}  // namespace

void BlockRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("Offering", OfferingSchema());
  routes.Name("SplitOffering", SplitSchema());
  routes.Name("ExtensionOffering", ExtensionOfferingSchema());
  routes.Name("CapacityBlock", BlockSchema());
  routes.Name("Shortage", ShortageSchema());
  routes.Add({.path = "/v1/capacityblockofferings",
              .id = "searchOfferings",
              .summary = "What can be bought; when nothing can, why, and what is nearest.",
              .needs = kSearch,
              .query = SearchFields(),
              .answer = ObjectOf(
                  {{"capacityBlockOfferings", ListOf(Named("Offering"), "In the order asked for.")},
                   {"splitOfferings?",
                    ListOf(Named("SplitOffering"), "In segments, where these end sooner.")},
                   {"reasons?", ListOf(Named("Shortage"), "By zone, when nothing is offered.")},
                   {"nearest?", ListOf(Named("Offering"), "That ask for one thing less.")}}),
              .handler = [this](const auto& r) { return Offerings(r); }});
  AddReadingRoutes(routes);
  routes.Add({.method = "POST",
              .path = "/v1/capacityblocks/{namespace}",
              .id = "buyCapacityBlock",
              .summary = "Buys an offering; answered once the block cannot be lost.",
              .needs = kBuy,
              .query = {DryRunField()},
              .body = BodyOf({{"capacityBlockOfferingId", Text("Of a search.")},
                              {"name?", Text("Of the CapacityBlock; empty: one is made up.", 253)},
                              {"instancePlatform?", Text("Linux/UNIX unless it is said.")},
                              TokenField(),
                              {"tags?", MapOf(Text("A value.", 256), "At most 50.", 50)}}),
              .status = 201,
              .answer = Named("CapacityBlock"),
              .handler = [this](const auto& r) { return Buy(r); }});
  routes.Add({.method = "POST",
              .path = "/v1/capacityblocks/{namespace}/{name}/extensions",
              .id = "extendCapacityBlock",
              .summary = "Lets a block end later; answered once that cannot be lost.",
              .needs = kBuy,
              .query = {DryRunField()},
              .body = BodyOf(
                  {{"capacityBlockExtensionDurationHours", Integer(1, 1'000'000, LegalHoursText())},
                   TokenField()}),
              .status = 201,
              .answer = Named("CapacityBlock"),
              .handler = [this](const auto& r) { return Extend(r); }});
}

void BlockRoutes::AddReadingRoutes(RouteTable& routes) {
  routes.Add({.path = "/v1/capacityblocks",
              .id = "listCapacityBlocks",
              .summary = "The Capacity Blocks by namespace and name.",
              .needs = {.verb = "list", .group = "tahoma.dev", .resource = "capacityblocks"},
              .query = {{"from?", Text("The `next` of the page before.")}},
              .answer = ObjectOf({{"total", Integer(0, INT32_MAX, "Of all pages.")},
                                  {"capacityBlocks", ListOf(Named("CapacityBlock"), "A page.")},
                                  {"next?", Text("Where the next page begins.")}}),
              .handler = [this](const auto& r) { return List(r); }});
  routes.Add({.path = "/v1/capacityblocks/{namespace}/{name}",
              .id = "getCapacityBlock",
              .summary = "One Capacity Block.",
              .needs = {.verb = "get", .group = "tahoma.dev", .resource = "capacityblocks"},
              .answer = Named("CapacityBlock"),
              .handler = [this](const auto& r) { return Show(r); }});
  routes.Add({.path = "/v1/capacityblocks/{namespace}/{name}/extensionofferings",
              .id = "searchExtensionOfferings",
              .summary = "How long a block may be extended, and for how much; why not, if not.",
              .needs = {.verb = "get", .group = "tahoma.dev", .resource = "capacityblocks"},
              .query = {{"capacityBlockExtensionDurationHours?",
                         Integer(1, 1'000'000, "All that there are unless it is said.")}},
              .answer = ObjectOf({{"capacityBlockExtensionOfferings",
                                   ListOf(Named("ExtensionOffering"), "The shortest first.")},
                                  {"reason?", Text("EC2's code, when there is none.")},
                                  {"message?", Text("Why there is none.", kLongTextMost)}}),
              .handler = [this](const auto& r) { return ExtensionOfferings(r); }});
  routes.Add({.path = "/v1/capacityblocks/{namespace}/{name}/usage",
              .id = "getCapacityBlockUsage",
              .summary = "What the chips of a block were used for, up to now.",
              .needs = {.verb = "get", .group = "tahoma.dev", .resource = "capacityblocks"},
              .answer = UsageSchema(),
              .handler = [this](const auto& r) { return Usage(r); }});
}

rest::Response BlockRoutes::Offerings(const rest::Request& request) const {
  OfferingQuery query;
  query.instance_type = request.query_value("instanceType").value_or("");
  query.instance_count = NumberIn(request, "instanceCount");
  query.ultraserver_type = request.query_value("ultraserverType").value_or("");
  query.ultraserver_count = NumberIn(request, "ultraserverCount");
  query.duration_hours = NumberIn(request, "capacityDurationHours");
  query.max_duration_hours = NumberIn(request, "maxDurationHours");
  query.segments = NumberIn(request, "segments");
  query.start_date_range = TimeIn(request, "startDateRange");
  query.end_date_range = TimeIn(request, "endDateRange");
  query.any_cell = request.query_value("anyCell") == "true";
  query.order = OrderIn(request);
  if (std::string zone = request.query_value("availabilityZone").value_or(""); !zone.empty()) {
    query.zones.push_back(std::move(zone));
  }
  const std::int64_t most = NumberIn(request, "maxResults").value_or(kOfferingsUsual);
  const auto snapshot = take_();
  const WallTime now = std::max(clock_.WallNow(), snapshot->block_now);
  absl::StatusOr<OfferingSearch> search = CheckQuery(query, now);
  if (!search.ok()) return Refused(search.status());
  if (!snapshot->synced) return Refused(Unavailable(kNotKnownYet));
  search->owner = request.query_value("namespace").value_or("");
  if (!search->owner.empty()) search->quotas = snapshot->quotas;
  const SearchAnswer found = SearchOfferings(snapshot->profile, snapshot->prices, *search, now);
  const auto rows = [&](const std::vector<Offering>& offerings) {
    return OfferingsJson(offerings, static_cast<std::size_t>(most), snapshot->offering_key);
  };
  ordered_json body = {{"capacityBlockOfferings", rows(found.offerings)}};
  for (const std::vector<Offering>& segments : found.split) {
    body["splitOfferings"].push_back(SplitJson(segments, snapshot->offering_key));
  }
  if (!found.offerings.empty()) return Answer(200, body);
  body["reasons"] = ordered_json::array();
  for (const Shortage& shortage : found.shortages) {
    body["reasons"].push_back(
        {{"code", shortage.quota ? kInstanceLimitExceeded.name : "NoCapacity"},
         {"availabilityZone", shortage.zone},
         {"most", shortage.most},
         {"missing", shortage.missing},
         {"message", shortage.message}});
  }
  body["nearest"] = rows(found.nearest);
  return Answer(200, body);
}

rest::Response BlockRoutes::List(const rest::Request& request) const {
  const auto snapshot = take_();
  // An empty list would say that everything is lost.
  if (!snapshot->synced) return Refused(Unavailable(kNotKnownYet));
  const std::string from = request.query_value("from").value_or("");
  const std::size_t slash = std::min(from.find('/'), from.size());
  const BlockKey first{from.substr(0, slash), from.substr(std::min(slash + 1, from.size()))};
  const auto page = PageOf(snapshot->blocks, first, [](const BlockKey& key) { return key; });
  ordered_json rows = ordered_json::array();
  for (const auto& [key, view] : page.rows) rows.push_back(BlockJson(key, *view));
  ordered_json body = {{"total", snapshot->blocks.size()}, {"capacityBlocks", std::move(rows)}};
  if (page.next) body["next"] = ToString(*page.next);
  return Answer(200, body);
}

rest::Response BlockRoutes::Show(const rest::Request& request) const {
  const BlockKey key{std::string(request.param("namespace")), std::string(request.param("name"))};
  const auto snapshot = take_();
  if (!snapshot->synced) return Refused(Unavailable(kNotKnownYet));
  const auto* view = snapshot->blocks.Find(key);
  if (view == nullptr) {
    return rest::Response::Problem(404, fmt::format("no Capacity Block {}", ToString(key)));
  }
  return Answer(200, BlockJson(key, **view));
}

rest::Response BlockRoutes::Buy(const rest::Request& request) const {
  const auto block = order_(PurchaseOf(request));
  if (!block.ok()) return Refused(block.status());
  rest::Response answer = Answer(201, BlockJson((*block)->key, {.block = *block}));
  answer.object_name = (*block)->key.name;
  return answer;
}

rest::Response BlockRoutes::WithBlock(
    const rest::Request& request,
    absl::FunctionRef<rest::Response(const Snapshot&, const Block&)> answer) const {
  const BlockKey key{std::string(request.param("namespace")), std::string(request.param("name"))};
  const auto snapshot = take_();
  if (!snapshot->synced) return Refused(Unavailable(kNotKnownYet));
  const auto* view = snapshot->blocks.Find(key);
  if (view == nullptr || (*view)->block == nullptr) {
    return rest::Response::Problem(404, fmt::format("no Capacity Block {}", ToString(key)));
  }
  return answer(*snapshot, *(*view)->block);
}

rest::Response BlockRoutes::ExtensionOfferings(const rest::Request& request) const {
  std::vector<std::int64_t> durations;
  if (const auto asked = NumberIn(request, "capacityBlockExtensionDurationHours")) {
    durations = {*asked};
  } else {
    for (const int days : LegalDays()) durations.push_back(std::int64_t{24} * days);
  }
  return WithBlock(request, [&](const Snapshot& snapshot, const Block& block) {
    ordered_json offerings = ordered_json::array();
    absl::Status why;
    for (const std::int64_t hours : durations) {
      const auto offering =
          OfferExtension(snapshot.profile, snapshot.prices, block, hours, clock_.WallNow());
      if (offering.ok()) {
        offerings.push_back(ExtensionOfferingJson(*offering, snapshot.offering_key));
      } else if (why.ok()) {
        why = offering.status();
      }
    }
    const bool none = offerings.empty();
    ordered_json body = {{"capacityBlockExtensionOfferings", std::move(offerings)}};
    if (none) {
      body["reason"] = Ec2CodeOf(why);
      body["message"] = Message(why);
    }
    return Answer(200, body);
  });
}

rest::Response BlockRoutes::Usage(const rest::Request& request) const {
  return WithBlock(request, [&](const Snapshot& snapshot, const Block& block) {
    return ShowUsage(snapshot, block, clock_.WallNow());
  });
}

rest::Response BlockRoutes::Extend(const rest::Request& request) const {
  return WithBlock(request, [&](const Snapshot& snapshot, const Block& block) {
    absl::StatusOr<ExtensionOrder> order =
        ExtensionOf(*request.parsed, block, snapshot, clock_.WallNow());
    if (!order.ok()) return Refused(order.status());
    order->dry_run = IsDryRun(request);
    const auto extended = order_(*order);
    if (!extended.ok()) return Refused(extended.status());
    return Answer(201, BlockJson(block.key, {.block = *extended}));
  });
}

}  // namespace tahoma::controller
