#include "controller/admin/placement_routes.h"

#include <absl/cleanup/cleanup.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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
constexpr std::int64_t kNumberMost = (std::int64_t{1} << 53) - 1;  // exact in every language

Schema PlacementSchema() {
  return ObjectOf(
      {{"slices", ListOf(Named("Slice"), "The pieces of the torus; none for pods without a box.")},
       {"nodes", ListOf(Text("A node."), "By the ranks of the pods, each once.")},
       {"pods", Integer(1, 4096, "The pods it would have.")},
       {"predictedAllReduce?", Text("Of 256 MiB in each chip; absent for a single chip.")}},
      "A place that a gang would get.");
}

Schema EndingSchema() {
  return ObjectOf(
      {{"gangs", ListOf(ObjectOf({{"namespace", Text("Its namespace.")},
                                  {"name", Text("The gang's, or the pod's.")},
                                  {"kind", Word({"Gang", "Pod"}, "A pod without a Gang is one.")},
                                  {"queue", Text("Its queue.")},
                                  {"priority", Integer(INT32_MIN, INT32_MAX, "Its priority.")},
                                  {"lostChipSeconds",
                                   Integer(0, kNumberMost, "Of work since the last checkpoint.")},
                                  {"ending", Flag("It ends already.")}}),
                        "Whole gangs; the lowest priority first.")},
       {"place?", Text("Where it would go then.", kLongTextMost)},
       {"why?", Text("Why nobody ends for it, as a sentence.", kLongTextMost)}},
      "Who would end for it; nobody is ended by asking.");
}

Schema MovingSchema() {
  return ObjectOf(
      {{"moves", ListOf(ObjectOf({{"namespace", Text("Its namespace.")},
                                  {"name", Text("The gang's.")},
                                  {"from", Text("Where it is.", kLongTextMost)},
                                  {"to", Text("Where it would go.", kLongTextMost)},
                                  {"lostChipSeconds",
                                   Integer(0, kNumberMost, "Of work since the last checkpoint.")}}),
                        "In the order in which they would be made.")},
       {"place?", Text("Where it would go then.", kLongTextMost)},
       {"why?", Text("Why no moves make a place, as a sentence.", kLongTextMost)}},
      "Who would move for it, where moves were asked for; nobody is moved by asking.");
}

Schema ChangeSchema() {
  return ObjectOf(
      {{"kind",
        Word({"Preempt", "Queue", "Shape", "Chips", "Slices", "MaxRuntime", "Wait", "Nothing"},
             "The field to change; Preempt and Wait: none.")},
       {"value", Text("The field's new value; of Wait the time.")},
       {"givesUpPercent", Integer(0, 100, "The part of what was asked for that is lost.")},
       {"message", Text("As a sentence.", kLongTextMost)}},
      "The change that gives up least.");
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
                 "Absent: no end is known that would make room.")},
       {"queue?", Text("In which it would wait; absent where there are no queues.")},
       {"wouldEnd?", EndingSchema()},
       {"wouldMove?", MovingSchema()},
       {"cheapestChange?", ChangeSchema()}},
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
                 {"capacityBlock?", Text("The CapacityBlock in which it runs.", 253)},
                 {"queue?", Text("The queue; as a Gang's: absent, that of the namespace.", 253)},
                 {"priority?", Integer(INT32_MIN, INT32_MAX, "Its priority; 0.")},
                 {"instanceType?",
                  TextLike("[a-z0-9][a-z0-9.-]*", "an instance type such as trn2u.48xlarge", 63)},
                 {"preemptible?", Flag("It may be ended for others; false.")},
                 {"moves?", Flag("Look, too, for gangs that would have to move; false.")}});
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

ordered_json EndingJson(const ForeseenVictims& victims) {
  ordered_json body = {{"gangs", ordered_json::array()}};
  for (const EndingGang& gang : victims.gangs) {
    body["gangs"].push_back({{"namespace", gang.ref.key.ns},
                             {"name", gang.ref.key.name},
                             {"kind", gang.ref.single ? "Pod" : "Gang"},
                             {"queue", gang.queue},
                             {"priority", gang.priority},
                             {"lostChipSeconds", gang.work},
                             {"ending", gang.ending}});
  }
  if (victims.placement) body["place"] = victims.placement->ToString();
  if (!victims.why.empty()) body["why"] = victims.why;
  return body;
}

ordered_json MovingJson(const absl::StatusOr<MovePlan>& plan) {
  ordered_json body = {{"moves", ordered_json::array()}};
  if (!plan.ok()) {
    body["why"] = std::string(Message(plan.status()));
    return body;
  }
  for (const PlannedMove& move : plan->moves) {
    body["moves"].push_back({{"namespace", move.run->gang.key.ns},
                             {"name", move.run->gang.key.name},
                             {"from", move.run->from},
                             {"to", move.to.ToString()},
                             {"lostChipSeconds", move.work}});
  }
  body["place"] = plan->wanted.ToString();
  return body;
}

void AddEarliest(const Earliest& earliest, ordered_json& body) {
  body["earliest"] = {{"time", FormatTime(earliest.when)}, {"exact", earliest.exact}};
  if (earliest.place) body["earliest"]["placement"] = PlacementJson(*earliest.place);
}

ordered_json ForecastJson(const Forecast& forecast) {
  ordered_json body = {{"fits", forecast.now.has_value()}};
  if (!forecast.queue.empty()) body["queue"] = forecast.queue;
  if (forecast.now) {
    body["placement"] = PlacementJson(*forecast.now);
    return body;
  }
  const Blocked& blocked = *forecast.blocked;
  body["reason"] = forecast.by_queue ? ToString(*forecast.by_queue) : ToString(blocked.reason);
  body["message"] = blocked.message;
  if (blocked.largest_free) {
    body["largestFree"] = {{"shape", blocked.largest_free->ToString()},
                           {"domain", blocked.largest_free_domain}};
  }
  if (!blocked.blockers.empty()) body["blockers"] = blocked.blockers;
  if (forecast.earliest) AddEarliest(*forecast.earliest, body);
  if (forecast.victims) body["wouldEnd"] = EndingJson(*forecast.victims);
  if (forecast.moves) body["wouldMove"] = MovingJson(*forecast.moves);
  if (const auto& change = forecast.change) {
    body["cheapestChange"] = {{"kind", ToString(change->kind)},
                              {"value", change->value},
                              {"givesUpPercent", std::lround(100 * change->gives_up)},
                              {"message", change->message}};
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
  auto asked = std::make_shared<GangSpec>(**gang);
  if (std::string queue = TextOf(*request.parsed, "queue"); !queue.empty()) {
    asked->queue = std::move(queue);
  }
  asked->priority = static_cast<std::int32_t>(IntegerOf(*request.parsed, "priority").value_or(0));
  asked->preemptible = FlagOf(*request.parsed, "preemptible");
  if (const std::string type = TextOf(*request.parsed, "instanceType"); !type.empty()) {
    for (MemberSpec& member : asked->members) {
      member.claims.front().requests.front().alternatives.front().selectors.push_back(
          fmt::format("device.attributes[\"{}\"].instanceType == \"{}\"", kNeuronDriver, type));
    }
  }
  const auto snapshot = take_();
  if (!snapshot->synced || snapshot->cluster == nullptr) {
    return Refused(Unavailable("the fleet is not known yet"));
  }
  const absl::Cleanup leave = [this] { --asking_; };
  if (++asking_ > kAskingMost) {
    return Refused(ResourceExhausted("{} questions are being answered; ask again", kAskingMost));
  }
  const AskFor what = FlagOf(*request.parsed, "moves") ? AskFor::kMovesToo : AskFor::kNoMoves;
  const MutexLock lock(mutex_);
  return Answer(200, ForecastJson(what_if_.Ask(*snapshot, asked, clock_.WallNow(), what)));
}

}  // namespace tahoma::controller
