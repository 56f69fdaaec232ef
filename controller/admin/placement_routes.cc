#include "controller/admin/placement_routes.h"

#include <absl/cleanup/cleanup.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controller/admin/answer.h"
#include "controller/reserve/refusal.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kChipsMost = 65536;
constexpr std::int64_t kUltraServerChips = 64;

Schema PlacementSchema() {
  return ObjectOf(
      {{"slices", ListOf(Named("Slice"), "The pieces of the torus; none for pods without a box.")},
       {"nodes", ListOf(Text("A node."), "By the ranks of the pods, each once.")},
       {"pods", Integer(1, 4096, "The pods it would have.")},
       {"predictedAllReduce?", Text("Of 256 MiB in each chip; absent for a single chip.")}},
      "A place that a gang would get.");
}

Schema ForecastSchema() {
  return ObjectOf(
      {{"fits", Flag("It would be placed now.")},
       {"placement?", Named("Placement")},
       {"reason?", Text("Why it would not, in one word.")},
       {"message?", Text("Why it would not, as a sentence.", kLongTextMost)},
       {"largestFree?",
        ObjectOf({{"shape", Text("The largest free box.")}, {"domain", Text("Where it is.")}})},
       {"blockers?", ListOf(Text("A gang or pod.", kLongTextMost), "Who is in the way.")},
       {"earliest?",
        ObjectOf({{"time", Time("When it would fit by what ends when.")},
                  {"exact", Flag("false: it may be earlier; not every moment was looked at.")},
                  {"placement?", Named("Placement")}},
                 "Absent: no end is known that would make room.")}},
      "Where a gang would go.");
}

Schema QuestionSchema() {
  return BodyOf({{"shape?", Text("The box that the chips of a slice form, such as 4x4x2.", 16)},
                 {"chips?", Integer(1, kChipsMost, "Or how many chips a slice has.")},
                 {"ultraServers?", Integer(1, kChipsMost / kUltraServerChips,
                                           "Or how many whole UltraServers a slice has.")},
                 {"slices?", Integer(1, 1024, "Equal pieces; 1.")},
                 {"members?", Integer(1, 4096, "Pods; as few as can hold the chips.")},
                 {"maxRuntime?", Text("Such as 90m or 36h; absent: it runs for ever.", 32)},
                 {"capacityBlock?", Text("The CapacityBlock in which it runs.", 253)}});
}

absl::StatusOr<GangRequest> RequestOf(const Json& body) {
  GangRequest request{.members = IntegerOf(body, "members").value_or(0),
                      .shape = TextOf(body, "shape"),
                      .chips = IntegerOf(body, "chips"),
                      .slices = IntegerOf(body, "slices").value_or(1),
                      .max_runtime = TextOf(body, "maxRuntime")};
  const auto ultra_servers = IntegerOf(body, "ultraServers");
  const int said =
      (request.shape.empty() ? 0 : 1) + (request.chips ? 1 : 0) + (ultra_servers ? 1 : 0);
  if (said == 0) return Refuse(kMissingParameter, "shape, chips or ultraServers is missing");
  if (said > 1) {
    return Refuse(kInvalidParameterCombination,
                  "shape, chips and ultraServers: only one of them may be there");
  }
  if (ultra_servers) request.chips = *ultra_servers * kUltraServerChips;
  return request;
}

ordered_json PlacementJson(const ForeseenPlace& place) {
  ordered_json row = {{"slices", ordered_json::array()}, {"nodes", ordered_json::array()}};
  for (const DecidedSlice& slice : place.decision.slices) {
    if (slice.shape.empty()) continue;
    row["slices"].push_back({{"domain", slice.domain},
                             {"shape", slice.shape},
                             {"origin", slice.origin},
                             {"nodes", slice.nodes}});
  }
  const std::string* before = nullptr;
  for (const DecidedPod& pod : place.decision.pods) {
    if (before == nullptr || *before != pod.node) row["nodes"].push_back(pod.node);
    before = &pod.node;
  }
  row["pods"] = place.decision.pods.size();
  if (!place.predicted_all_reduce.empty()) row["predictedAllReduce"] = place.predicted_all_reduce;
  return row;
}

ordered_json ForecastJson(const Forecast& forecast) {
  ordered_json body = {{"fits", forecast.now.has_value()}};
  if (forecast.now) {
    body["placement"] = PlacementJson(*forecast.now);
    return body;
  }
  const Blocked& blocked = *forecast.blocked;
  body["reason"] = ToString(blocked.reason);
  body["message"] = blocked.message;
  if (blocked.largest_free) {
    body["largestFree"] = {{"shape", blocked.largest_free->ToString()},
                           {"domain", blocked.largest_free_domain}};
  }
  if (!blocked.blockers.empty()) body["blockers"] = blocked.blockers;
  if (!forecast.earliest) return body;
  body["earliest"] = {{"time", FormatTime(forecast.earliest->when)},
                      {"exact", forecast.earliest->exact}};
  if (const auto& place = forecast.earliest->place) {
    body["earliest"]["placement"] = PlacementJson(*place);
  }
  return body;
}

}  // namespace

void PlacementRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("Placement", PlacementSchema());
  routes.Name("Forecast", ForecastSchema());
  routes.Add({.method = "POST",
              .path = "/v1/placements/{namespace}/simulate",
              .id = "simulatePlacement",
              .summary = "Where a gang would go, how fast, and when; nothing is reserved.",
              // It shows what the reason of a gang that waits in that namespace shows.
              .needs = {.verb = "get", .group = "tahoma.dev", .resource = "gangs"},
              .body = QuestionSchema(),
              .answer = Named("Forecast"),
              .handler = [this](const auto& r) { return Simulate(r); }});
}

rest::Response PlacementRoutes::Simulate(const rest::Request& request) {
  const GangKey key{std::string(request.param("namespace")), "simulated"};
  const absl::StatusOr<GangRequest> wanted = RequestOf(*request.parsed);
  if (!wanted.ok()) return Refused(wanted.status());
  const auto gang = GangOfRequest(*wanted, key, TextOf(*request.parsed, "capacityBlock"));
  if (!gang.ok()) {
    return Refused(RefuseWith(kInvalidParameterValue, std::string(Message(gang.status()))));
  }
  const auto snapshot = take_();
  if (!snapshot->synced || snapshot->cluster == nullptr) {
    return Refused(Unavailable("the fleet is not known yet"));
  }
  const absl::Cleanup leave = [this] { --asking_; };
  if (++asking_ > kAskingMost) {
    return Refused(ResourceExhausted("{} questions are being answered; ask again", kAskingMost));
  }
  const MutexLock lock(mutex_);
  return Answer(200, ForecastJson(what_if_.Ask(*snapshot, *gang, clock_.WallNow())));
}

}  // namespace tahoma::controller
