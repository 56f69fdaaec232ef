#include "controller/ctl/offerings.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "controller/ctl/table.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/url.h"

namespace tahoma::controller {
namespace {

constexpr char kPath[] = "/v1/capacityblockofferings";

std::string TargetOf(const OfferingsAsked& asked) {
  const bool ultra_servers = asked.type.starts_with("u-");
  kube::Query query = {
      {ultra_servers ? "ultraserverType" : "instanceType", asked.type},
      {ultra_servers ? "ultraserverCount" : "instanceCount", std::to_string(asked.count)},
      {"capacityDurationHours", std::to_string(asked.hours)},
      {"maxResults", std::to_string(asked.most)}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query.emplace_back(name, value);
  };
  if (asked.hours_most != 0) add("maxDurationHours", std::to_string(asked.hours_most));
  if (asked.segments != 1) add("segments", std::to_string(asked.segments));
  add("startDateRange", asked.from);
  add("endDateRange", asked.to);
  add("availabilityZone", asked.zone);
  add("orderBy", asked.order);
  add("namespace", asked.ns);
  if (asked.any_cell) add("anyCell", "true");
  return std::string(kPath) + "?" + kube::EncodeQuery(query);
}

std::string Duration(const Json& offering) {
  const std::int64_t hours = kube::IntAt(offering, {"capacityBlockDurationHours"});
  const std::int64_t minutes = kube::IntAt(offering, {"capacityBlockDurationMinutes"});
  std::string text;
  if (hours >= 24) text += fmt::format("{}d", hours / 24);
  if (hours % 24 != 0) text += fmt::format("{}h", hours % 24);
  if (minutes != 0) text += fmt::format("{}m", minutes);
  return text;
}

std::vector<std::string> RowOf(const Json& offering) {
  const auto text = [&](const char* field) {
    return std::string(kube::StringAt(offering, {field}));
  };
  const bool ultra_servers = !text("ultraserverType").empty();
  return {
      text(ultra_servers ? "ultraserverType" : "instanceType"),
      std::to_string(kube::IntAt(offering, {ultra_servers ? "ultraserverCount" : "instanceCount"})),
      text("availabilityZone"),
      text("startDate"),
      text("endDate"),
      Duration(offering),
      text("upfrontFee") + " " + text("currencyCode"),
      text("capacityBlockOfferingId")};
}

std::string TableOf(const Json& offerings) {
  std::vector<std::vector<std::string>> rows = {
      {"TYPE", "COUNT", "ZONE", "START", "END", "DURATION", "FEE", "OFFERING"}};
  for (const Json& offering : offerings) rows.push_back(RowOf(offering));
  return TableText(rows);
}

// A row for each segment, and after them what all of them are.
std::string SplitText(const Json& split) {
  std::string text;
  for (const Json& whole : split) {
    const Json& segments = kube::ListAt(whole, {"segments"});
    std::string ids;
    for (const Json& segment : segments) {
      ids += ids.empty() ? "" : ",";
      ids += kube::StringAt(segment, {"capacityBlockOfferingId"});
    }
    text +=
        fmt::format("In {} segments, {} for {} {}:\n", segments.size(), Duration(whole),
                    kube::StringAt(whole, {"upfrontFee"}), kube::StringAt(whole, {"currencyCode"}));
    text += TableOf(segments) + "all or none: kubectl tahoma book " + ids + "\n";
  }
  return text;
}

}  // namespace

absl::StatusOr<Json> AskForOfferings(kube::Transport& admin, const OfferingsAsked& asked) {
  const auto answer = admin.Send({.target = TargetOf(asked)});
  if (!answer.ok()) return Annotate(answer.status(), "the admin API");
  const auto body = answer->Json();
  if (answer->status == 200 && body->is_object()) return *body;
  const std::string_view detail = kube::StringAt(*body, {"detail"});
  const std::string_view code = kube::StringAt(*body, {"code"});
  if (detail.empty()) {
    return Unavailable("the admin API answered with {} to {}; is this its address?", answer->status,
                       kPath);
  }
  return InvalidArgument("{}{}{}", code, code.empty() ? "" : ": ", detail);
}

bool HasOfferings(const Json& answer) {
  return !kube::ListAt(answer, {"capacityBlockOfferings"}).empty() ||
         !kube::ListAt(answer, {"splitOfferings"}).empty();
}

std::string OfferingsText(const Json& answer) {
  const Json& whole = kube::ListAt(answer, {"capacityBlockOfferings"});
  const std::string split = SplitText(kube::ListAt(answer, {"splitOfferings"}));
  if (!whole.empty()) return TableOf(whole) + split;
  std::string text = "No offerings.\n";
  for (const Json& reason : kube::ListAt(answer, {"reasons"})) {
    text += fmt::format("  {}\n", kube::StringAt(reason, {"message"}));
  }
  const Json& nearest = kube::ListAt(answer, {"nearest"});
  if (!nearest.empty()) text += "Nearest:\n" + TableOf(nearest);
  return text + split;
}

}  // namespace tahoma::controller
