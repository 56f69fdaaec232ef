#include "controller/admin/usage_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/admin/answer.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

// Numbers of JSON are exact to this one in every language.
constexpr std::int64_t kExactMost = (std::int64_t{1} << 53) - 1;
constexpr std::int64_t kEighthMsOfSecond = 1000 * kEighthsOfChip;

Schema UsageRowSchema() {
  return ObjectOf(
      {{"namespace", Text("The gangs'.")},
       {"queue", Text("In which they waited: as their Gang says, or a label of their pods.")},
       {"instanceType", Text("Whose chips; - for a type that is not known.")},
       {"chipSeconds", Integer(0, kExactMost, "Whole chips times seconds, until asOf.")},
       {"chipHours", TextLike("[0-9]+[.][0-9]{2}", "be the same in hours")},
       {"chips", Text("Held at asOf, such as 16; 0.125 is a core of a Trainium2.")}},
      "For how long gangs have held chips.");
}

UsageKey ParseKey(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  return {std::string(text.substr(0, slash)),
          std::string(text.substr(std::min(slash + 1, text.size())))};
}

}  // namespace

void UsageRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("GangUsage", UsageRowSchema());
  routes.Add(
      {.path = "/v1/usage",
       .id = "listUsage",
       .summary = "The chip time of gangs by namespace, queue and instance type.",
       .needs = {.verb = "list", .group = "tahoma.dev", .resource = "gangs"},
       .query = {{"from?", Text("The `next` of the page before.")},
                 {"namespace?", Text("Of this namespace only, whose permission then counts.", 63)},
                 {"queue?", Text("Of queues of this name only.", 63)}},
       .answer = ObjectOf({{"asOf", Time("Up to when it is counted.")},
                           {"usage", ListOf(Named("GangUsage"), "By namespace and queue.")},
                           {"next?", Text("Where the next page begins.")}}),
       .handler = [this](const auto& r) { return List(r); }});
}

rest::Response UsageRoutes::List(const rest::Request& request) const {
  const auto snapshot = take_();
  const WallTime now = clock_.WallNow();
  const UsageKey from = ParseKey(request.query_value("from").value_or(""));
  const std::string ns = request.query_value("namespace").value_or("");
  const std::string queue = request.query_value("queue").value_or("");
  std::map<UsageKey, UsageSum> sums;
  snapshot->gang_usage.ForEach([&](const UsageKey& key, const UsageSum& sum) {
    if (key < from || (!ns.empty() && key.ns != ns)) return;
    if (queue.empty() || key.queue == queue) sums.emplace(key, sum);
  });
  ordered_json body = {{"asOf", FormatTime(now)}, {"usage", ordered_json::array()}};
  ordered_json& rows = body["usage"];
  for (const auto& [key, sum] : sums) {
    if (rows.size() >= kRowsMost) {
      body["next"] = key.ns + "/" + key.queue;
      break;
    }
    for (const UsageSum::OfType& one : sum.UpTo(now).types) {
      rows.push_back({{"namespace", key.ns},
                      {"queue", key.queue},
                      {"instanceType", one.type},
                      {"chipSeconds", one.eighth_ms / kEighthMsOfSecond},
                      {"chipHours", HoursText(one.eighth_ms / kEighthsOfChip)},
                      {"chips", fmt::format("{:g}", static_cast<double>(one.eighths) /
                                                        static_cast<double>(kEighthsOfChip))}});
    }
  }
  return Answer(200, body);
}

void AddChipSeconds(rest::Metrics& metrics, UsageRoutes::TakeSnapshot take, const Clock& clock) {
  metrics.AddCounterFamily(
      "tahoma_chip_seconds_total",
      "Chip-seconds for which gangs have held chips, by namespace and queue.",
      [take = std::move(take), &clock] {
        const auto snapshot = take();
        const WallTime now = clock.WallNow();
        std::vector<std::pair<rest::Labels, double>> values;
        snapshot->gang_usage.ForEach([&](const UsageKey& key, const UsageSum& sum) {
          std::int64_t eighth_ms = 0;
          for (const UsageSum::OfType& one : sum.UpTo(now).types) eighth_ms += one.eighth_ms;
          values.push_back(
              {{{"namespace", key.ns}, {"queue", key.queue}},
               static_cast<double>(eighth_ms) / static_cast<double>(kEighthMsOfSecond)});
        });
        return values;
      });
}

}  // namespace tahoma::controller
