#include "controller/admin/decision_routes.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "controller/admin/answer.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

// Numbers of JSON are exact to this one in every language.
constexpr std::int64_t kIdMost = (std::int64_t{1} << 53) - 1;

Schema DecisionSchema() {
  return ObjectOf(
      {{"id", Integer(0, kIdMost, "Grows from one decision to the next.")},
       {"time", Time("When it was decided.")},
       {"namespace", Text("The gang's.")},
       {"name", Text("The gang's, or the pod's.")},
       {"kind", Word({"Gang", "Pod"}, "A pod without a Gang is one of its own.")},
       {"decision", Word({"Placed", "Blocked", "Bound", "Undone"}, "What was decided.")},
       {"pods?", Integer(1, INT32_MAX, "Pods that have a place.")},
       {"where?", Text("Its slices, or its nodes; of many only the first.", 4096)},
       {"message?", Text("Why.", 4096)}},
      "A decision about a gang.");
}

ordered_json DecisionRow(const LoggedDecision& decision) {
  ordered_json row = {{"id", decision.id},
                      {"time", FormatMicroTime(decision.when)},
                      {"namespace", decision.gang.key.ns},
                      {"name", decision.gang.key.name},
                      {"kind", decision.gang.single ? "Pod" : "Gang"},
                      {"decision", ToString(decision.kind)}};
  if (decision.pods > 0) row["pods"] = decision.pods;
  if (!decision.where.empty()) row["where"] = decision.where;
  if (!decision.message.empty()) row["message"] = decision.message;
  return row;
}

}  // namespace

void DecisionRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("Decision", DecisionSchema());
  routes.Add(
      {.path = "/v1/decisions",
       .id = "listDecisions",
       .summary = "The last decisions about gangs, the oldest first.",
       .needs = {.verb = "list", .group = "tahoma.dev", .resource = "gangs"},
       .query = {{"from?", Integer(0, kIdMost, "The `next` of the page before, or newest + 1.")},
                 {"gang?", Text("Of this gang or pod only: NAMESPACE/NAME.")},
                 {"namespace?", Text("Of this namespace only, whose permission then counts.", 63)}},
       .answer = ObjectOf(
           {{"decisions", ListOf(Named("Decision"), "A page of them.")},
            {"oldest?", Integer(0, kIdMost, "The first that is kept; absent when none is.")},
            {"newest?", Integer(0, kIdMost, "The last one.")},
            {"next?", Integer(0, kIdMost, "Where the next page begins.")}}),
       .handler = [this](const auto& r) { return List(r); }});
}

rest::Response DecisionRoutes::List(const rest::Request& request) const {
  const auto snapshot = take_();
  const DecisionLog& log = snapshot->decisions;
  const auto from =
      static_cast<std::uint64_t>(ParseInteger(request.query_value("from").value_or("0")).value());
  const std::string gang = request.query_value("gang").value_or("");
  const std::string ns = request.query_value("namespace").value_or("");
  ordered_json body = {{"decisions", ordered_json::array()}};
  ordered_json& rows = body["decisions"];
  std::uint64_t id = std::max(from, log.first());
  for (; id < log.end() && rows.size() < kRowsMost; ++id) {
    const LoggedDecision& decision = log.at(id);
    if (!ns.empty() && decision.gang.key.ns != ns) continue;
    if (!gang.empty() && ToString(decision.gang.key) != gang) continue;
    rows.push_back(DecisionRow(decision));
  }
  if (log.first() < log.end()) {
    body["oldest"] = log.first();
    body["newest"] = log.end() - 1;
  }
  if (id < log.end()) body["next"] = id;
  return Answer(200, body);
}

}  // namespace tahoma::controller
