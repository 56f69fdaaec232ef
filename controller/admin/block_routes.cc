#include "controller/admin/block_routes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using json = Json;
using nlohmann::ordered_json;

constexpr std::size_t kRowsMost = 1000;
constexpr std::size_t kOfferingsMost = 1000;
// As many as EC2 answers with unless it is asked for more.
constexpr std::size_t kOfferingsUsual = 6;
constexpr std::size_t kTokenMost = 128;

rest::Response Answer(int status, const ordered_json& body) {
  return rest::Response::Json(status,
                              body.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

// A problem with EC2's code for it.
rest::Response Refused(const absl::Status& status) {
  rest::Response problem = rest::Response::FromStatus(status);
  if (!IsRefusal(status)) return problem;
  ordered_json body = ordered_json::parse(problem.body);
  body["code"] = Ec2CodeOf(status);
  problem.body = body.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  return problem;
}

// Reads the query of a search, one parameter after the other; the first error is kept.
class QueryReader {
 public:
  explicit QueryReader(const rest::Request& request) : request_(request) {}

  std::string Text(const char* name) { return request_.query_value(name).value_or(""); }

  std::optional<std::int64_t> Number(const char* name) {
    const std::optional<std::string> text = request_.query_value(name);
    if (!text) return std::nullopt;
    std::int64_t number = 0;
    const char* end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, number);
    if (text->empty() || error != std::errc() || rest != end) {
      Fail(Refuse(kInvalidParameterValue, "{} {}: must be a whole number", name, *text));
      return std::nullopt;
    }
    return number;
  }

  std::optional<WallTime> Time(const char* name) {
    const std::optional<std::string> text = request_.query_value(name);
    if (!text) return std::nullopt;
    const absl::StatusOr<WallTime> time = ParseTime(*text);
    if (time.ok()) return *time;
    Fail(Refuse(kInvalidParameterValue, "{} {}: must be a time in UTC, such as {}", name, *text,
                "2026-12-01T11:30:00Z"));
    return std::nullopt;
  }

  bool Flag(const char* name) {
    const std::string text = Text(name);
    if (!text.empty() && text != "true" && text != "false") {
      Fail(Refuse(kInvalidParameterValue, "{} {}: must be true or false", name, text));
    }
    return text == "true";
  }

  OfferingOrder Order(const char* name) {
    constexpr std::array<std::pair<std::string_view, OfferingOrder>, 3> kOrders = {
        {{"Price", OfferingOrder::kPrice},
         {"Start", OfferingOrder::kStart},
         {"End", OfferingOrder::kEnd}}};
    const std::string text = Text(name);
    for (const auto& [word, order] : kOrders) {
      if (text.empty() || text == word) return order;
    }
    Fail(Refuse(kInvalidParameterValue, "{} {}: must be Price, Start or End", name, text));
    return OfferingOrder::kPrice;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const rest::Request& request_;
  absl::Status status_;
};

ordered_json OfferingJson(const Offering& offering) {
  ordered_json row = {{"capacityBlockOfferingId", OfferingId(offering)}};
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

ordered_json OfferingsJson(const std::vector<Offering>& offerings, std::size_t most) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < offerings.size() && i < most; ++i) {
    rows.push_back(OfferingJson(offerings[i]));
  }
  return rows;
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

// Reads a member of a body that must be text when it is there.
absl::StatusOr<std::string> TextOf(const json& body, const char* name, std::string otherwise) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return otherwise;
  if (!found->is_string()) return Refuse(kInvalidParameterValue, "{}: must be text", name);
  return found->get<std::string>();
}

absl::StatusOr<json> BodyOf(const rest::Request& request) {
  json body = json::parse(request.body, nullptr, false);
  if (!body.is_object()) return InvalidArgument("the body must be a JSON object");
  return body;
}

absl::StatusOr<Tags> TagsOf(const json& body) {
  Tags tags;
  const auto found = body.find("tags");
  if (found == body.end() || found->is_null()) return tags;
  if (!found->is_object() || found->size() > 50) {
    return Refuse(kInvalidParameterValue, "tags: must be an object with at most 50 members");
  }
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string() || key.empty() || key.size() > 128) {
      return Refuse(kInvalidParameterValue,
                    "tags: keys must have 1 to 128 characters, and values must be text");
    }
    tags.emplace_back(key, value.get<std::string>());
  }
  return tags;
}

absl::StatusOr<PurchaseOrder> PurchaseOf(const rest::Request& request) {
  PurchaseOrder order;
  order.key.ns = request.param("namespace");
  TAHOMA_ASSIGN_OR_RETURN(const json body, BodyOf(request));
  TAHOMA_ASSIGN_OR_RETURN(order.key.name, TextOf(body, "name", ""));
  TAHOMA_ASSIGN_OR_RETURN(order.offering_id, TextOf(body, "capacityBlockOfferingId", ""));
  TAHOMA_ASSIGN_OR_RETURN(order.platform, TextOf(body, "instancePlatform", order.platform));
  TAHOMA_ASSIGN_OR_RETURN(order.token, TextOf(body, "clientToken", ""));
  TAHOMA_ASSIGN_OR_RETURN(order.tags, TagsOf(body));
  if (order.offering_id.empty()) {
    return Refuse(kMissingParameter, "capacityBlockOfferingId is missing");
  }
  if (order.token.size() > kTokenMost) {
    return Refuse(kInvalidParameterValue, "clientToken: must have at most {} characters",
                  kTokenMost);
  }
  return order;
}

absl::StatusOr<ExtensionOrder> ExtensionOf(const rest::Request& request, const Block& block,
                                           const PriceList& prices) {
  ExtensionOrder order;
  order.reservation = block.reservation;
  TAHOMA_ASSIGN_OR_RETURN(const json body, BodyOf(request));
  TAHOMA_ASSIGN_OR_RETURN(order.token, TextOf(body, "clientToken", ""));
  const auto hours = body.find("capacityBlockExtensionDurationHours");
  if (hours == body.end() || !hours->is_number_integer() ||
      !IsLegalDuration(hours->get<std::int64_t>())) {
    return Refuse(kInvalidParameterValue, "capacityBlockExtensionDurationHours: must be {}",
                  LegalHoursText());
  }
  // The book checks the rest, as it does for an offering that a search has answered with.
  order.offering_id =
      ExtensionOfferingId({.reservation = block.reservation,
                           .start = block.end,
                           .end = block.end + std::chrono::hours(hours->get<std::int64_t>()),
                           .rate = prices.RateOf(block.product()),
                           .count = block.bought.count});
  return order;
}

}  // namespace

void BlockRoutes::AddRoutes(rest::Server& server) {
  server.Route("GET", "/v1/capacityblocks", [this](const auto& r) { return List(r); });
  server.Route("GET", "/v1/capacityblockofferings", [this](const auto& r) { return Offerings(r); });
  server.Route("GET", "/v1/capacityblocks/{namespace}/{name}",
               [this](const auto& r) { return Show(r); });
  server.Route("POST", "/v1/capacityblocks/{namespace}", [this](const auto& r) { return Buy(r); });
  server.Route("POST", "/v1/capacityblocks/{namespace}/{name}/extensions",
               [this](const auto& r) { return Extend(r); });
}

rest::Response BlockRoutes::Offerings(const rest::Request& request) const {
  QueryReader reader(request);
  OfferingQuery query;
  query.instance_type = reader.Text("instanceType");
  query.instance_count = reader.Number("instanceCount");
  query.ultraserver_type = reader.Text("ultraserverType");
  query.ultraserver_count = reader.Number("ultraserverCount");
  query.duration_hours = reader.Number("capacityDurationHours");
  query.max_duration_hours = reader.Number("maxDurationHours");
  query.start_date_range = reader.Time("startDateRange");
  query.end_date_range = reader.Time("endDateRange");
  query.any_cell = reader.Flag("anyCell");
  query.order = reader.Order("orderBy");
  if (const std::string zone = reader.Text("availabilityZone"); !zone.empty()) {
    query.zones.push_back(zone);
  }
  const std::int64_t most = reader.Number("maxResults").value_or(kOfferingsUsual);
  if (!reader.status().ok()) return Refused(reader.status());
  if (most < 1 || most > static_cast<std::int64_t>(kOfferingsMost)) {
    return Refused(
        Refuse(kInvalidParameterValue, "maxResults {}: must be 1 to {}", most, kOfferingsMost));
  }
  const WallTime now = clock_.WallNow();
  const absl::StatusOr<OfferingSearch> search = CheckQuery(query, now);
  if (!search.ok()) return Refused(search.status());
  const auto snapshot = take_();
  if (!snapshot->synced) return Refused(Unavailable("the fleet is not known yet"));
  const SearchAnswer found = SearchOfferings(snapshot->profile, snapshot->prices, *search, now);
  ordered_json body = {
      {"capacityBlockOfferings", OfferingsJson(found.offerings, static_cast<std::size_t>(most))}};
  if (!found.offerings.empty()) return Answer(200, body);
  body["reasons"] = ordered_json::array();
  for (const Shortage& shortage : found.shortages) {
    body["reasons"].push_back({{"code", "NoCapacity"},
                               {"availabilityZone", shortage.zone},
                               {"most", shortage.most},
                               {"missing", shortage.missing},
                               {"message", shortage.message}});
  }
  body["nearest"] = OfferingsJson(found.nearest, static_cast<std::size_t>(most));
  return Answer(200, body);
}

rest::Response BlockRoutes::List(const rest::Request&) const {
  const auto snapshot = take_();
  std::map<BlockKey, std::shared_ptr<const BlockView>> sorted;
  snapshot->blocks.ForEach([&](const BlockKey& key, const auto& view) {
    sorted[key] = view;
    if (sorted.size() > kRowsMost) sorted.erase(std::prev(sorted.end()));
  });
  ordered_json rows = ordered_json::array();
  for (const auto& [key, view] : sorted) rows.push_back(BlockJson(key, *view));
  return Answer(200, {{"total", snapshot->blocks.size()}, {"capacityBlocks", std::move(rows)}});
}

rest::Response BlockRoutes::Show(const rest::Request& request) const {
  const BlockKey key{std::string(request.param("namespace")), std::string(request.param("name"))};
  const auto snapshot = take_();
  const auto* view = snapshot->blocks.Find(key);
  if (view == nullptr) {
    return rest::Response::Problem(404, fmt::format("no Capacity Block {}", ToString(key)));
  }
  return Answer(200, BlockJson(key, **view));
}

rest::Response BlockRoutes::Buy(const rest::Request& request) const {
  const absl::StatusOr<PurchaseOrder> order = PurchaseOf(request);
  if (!order.ok()) return Refused(order.status());
  const auto block = order_(*order);
  if (!block.ok()) return Refused(block.status());
  return Answer(201, BlockJson((*block)->key, {.block = *block}));
}

rest::Response BlockRoutes::Extend(const rest::Request& request) const {
  const BlockKey key{std::string(request.param("namespace")), std::string(request.param("name"))};
  const auto snapshot = take_();
  const auto* view = snapshot->blocks.Find(key);
  if (view == nullptr || (*view)->block == nullptr) {
    return rest::Response::Problem(404, fmt::format("no Capacity Block {}", ToString(key)));
  }
  const absl::StatusOr<ExtensionOrder> order =
      ExtensionOf(request, *(*view)->block, snapshot->prices);
  if (!order.ok()) return Refused(order.status());
  const auto extended = order_(*order);
  if (!extended.ok()) return Refused(extended.status());
  return Answer(201, BlockJson(key, {.block = *extended}));
}

}  // namespace tahoma::controller
