#include "controller/admin/defragmentation_routes.h"

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "controller/admin/answer.h"
#include "controller/admin/objects.h"
#include "controller/core/facts/asked_gang.h"
#include "controller/core/facts/defragmentation.h"
#include "controller/reserve/refusal.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

std::vector<Field> WishFields() {
  using Spec = DefragmentationSpec;
  return {{"shape?", Text("A place for this box, such as 4x4x4.", 16)},
          {"slices?", Integer(1, Spec::kSlicesMost, "So many boxes at once; 1.")},
          {"ultraServers?",
           Integer(1, Spec::kSlicesMost, "Or so many more whole UltraServers that are free.")},
          {"forGang?",
           ObjectOf({{"namespace", Text("Its namespace.", 63)}, {"name", Text("Its name.", 253)}},
                    "Or a place for this gang, which waits.")},
          {"maxMoves?", Integer(1, Spec::kMovesMost, "The most gangs that move; 10.")}};
}

std::vector<Field> OrderFields() {
  std::vector<Field> fields = WishFields();
  fields.push_back({"name?", Text("Of the object; absent: one is made up.", 63)});
  fields.push_back({"movesPerHour?", Integer(1, DefragmentationSpec::kPerHourMost,
                                             "The most moves that begin in an hour; 6.")});
  fields.push_back({"keepFor?", Text("How long the free place is kept; 10m.", 8)});
  fields.push_back({"apply?", Flag("true: gangs move. false: the object is a dry run.")});
  return fields;
}

Schema MovesSchema() {
  return ListOf(ObjectOf({{"namespace", Text("The gang's.")},
                          {"name", Text("The gang's.")},
                          {"from", Text("Its place now.", kLongTextMost)},
                          {"to", Text("Its place then.", kLongTextMost)},
                          {"lostChipSeconds", Integer(0, INT64_MAX, "The work that is lost.")},
                          {"state?", Text("Of an object's move.")}}),
                "In the order in which they are made.");
}

Schema MovePlanSchema() {
  return ObjectOf({{"possible", Flag("Some gangs could move so that the place is free.")},
                   {"message?", Text("Why not, and who may not move.", kLongTextMost)},
                   {"place?", Text("The place.", kLongTextMost)},
                   {"lostChipSeconds?", Integer(0, INT64_MAX, "The work that all moves lose.")},
                   {"moves?", MovesSchema()}},
                  "Which gangs would move for a place.");
}

Schema DefragmentationSchema() {
  return ObjectOf({{"name", Text("The object's.")},
                   {"apply", Flag("false: a dry run.")},
                   {"abort", Flag("No more moves begin.")},
                   {"phase?", Text("Waiting, Planned, Moving, Done, Aborted or Failed.")},
                   {"message?", Text("A sentence for people.", kLongTextMost)},
                   {"place?", Text("The wanted place.", kLongTextMost)},
                   {"lostChipSeconds?", Integer(0, INT64_MAX, "The work that all moves lose.")},
                   {"keptUntil?", Time("Until when the free place is kept.")},
                   {"moves", MovesSchema()}},
                  "Gangs that move so that a place comes free.");
}

ordered_json MoveRow(const GangKey& gang, const std::string& from, const std::string& to,
                     std::int64_t lost) {
  return {{"namespace", gang.ns},
          {"name", gang.name},
          {"from", from},
          {"to", to},
          {"lostChipSeconds", lost}};
}

ordered_json RowOf(const DefragmentationFact& fact) {
  const DefragmentationStatus& status = fact.status;
  ordered_json row = {{"name", fact.name}, {"apply", fact.spec.apply}, {"abort", fact.spec.abort}};
  if (status.phase != DefragmentationPhase::kNone) {
    row["phase"] = ToString(status.phase);
    row["message"] = status.message;
  }
  if (!status.place.empty()) {
    row["place"] = status.place;
    row["lostChipSeconds"] = status.lost;
  }
  if (status.kept_until) row["keptUntil"] = FormatTime(*status.kept_until);
  row["moves"] = ordered_json::array();
  for (const GangMove& move : status.moves) {
    row["moves"].push_back(MoveRow(move.gang, move.from, move.to, move.lost));
    row["moves"].back()["state"] = ToString(move.state);
  }
  return row;
}

// Returns the object of the body's members, with the rules of the kind kept.
absl::StatusOr<Json> ObjectOfBody(const Json& body) {
  Json spec = body;
  std::string name = TextOf(body, "name");
  spec.erase("name");
  Json metadata;
  if (name.empty()) {
    metadata["generateName"] = "defragment-";
    name = "question";
  } else {
    metadata["name"] = name;
  }
  Json object = {{"apiVersion", "tahoma.dev/v1alpha1"},
                 {"kind", "Defragmentation"},
                 {"metadata", {{"name", name}}},
                 {"spec", std::move(spec)}};
  TAHOMA_ASSIGN_OR_RETURN(const auto fact, ParseDefragmentation(object));
  if (!fact->spec_error.empty()) return RefuseWith(kInvalidParameterValue, fact->spec_error);
  object["metadata"] = std::move(metadata);
  return object;
}

// Returns the gang that wants the place.
absl::StatusOr<std::shared_ptr<const GangSpec>> WantedIn(const Snapshot& snapshot,
                                                         const DefragmentationSpec& spec) {
  if (const auto request = WantedBy(spec)) {
    return GangOfRequest(*request, {"defragmentation", "question"});
  }
  const auto* view = snapshot.gangs.Find(GangRef{*spec.for_gang, false});
  if (view == nullptr || (*view)->spec == nullptr) {
    return FailedPrecondition("gang {} does not wait for hardware", ToString(*spec.for_gang));
  }
  return (*view)->spec;
}

ordered_json PlanJson(const absl::StatusOr<MovePlan>& plan) {
  ordered_json body = {{"possible", plan.ok()}};
  if (!plan.ok()) {
    body["message"] = std::string(Message(plan.status()));
    return body;
  }
  body["place"] = plan->wanted.ToString();
  body["lostChipSeconds"] = plan->work;
  body["moves"] = ordered_json::array();
  for (const PlannedMove& move : plan->moves) {
    body["moves"].push_back(
        MoveRow(move.run->gang.key, move.run->from, move.to.ToString(), move.work));
  }
  return body;
}

}  // namespace

void DefragmentationRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("MovePlan", MovePlanSchema());
  routes.Name("Defragmentation", DefragmentationSchema());
  const auto needs = [](const char* verb) {
    return Permission{.verb = verb, .group = "tahoma.dev", .resource = "defragmentations"};
  };
  routes.Add({.method = "POST",
              .path = "/v1/moves/plan",
              .id = "planDefragmentation",
              .summary = "Which gangs would move for a place; nothing moves and nothing is kept.",
              .needs = needs("list"),
              .body = BodyOf(WishFields()),
              .answer = Named("MovePlan"),
              .handler = [this](const auto& r) { return Plan(r); }});
  routes.Add({.path = "/v1/defragmentations",
              .id = "listDefragmentations",
              .summary = "The Defragmentations, with how far their moves have come.",
              .needs = needs("list"),
              .answer = ObjectOf({{"defragmentations", ListOf(Named("Defragmentation"), "All.")}}),
              .handler = [this](const auto&) { return List(); }});
  routes.Add({.method = "POST",
              .path = "/v1/defragmentations",
              .id = "createDefragmentation",
              .summary = "Makes a Defragmentation: with apply its gangs move.",
              .needs = needs("create"),
              .body = BodyOf(OrderFields()),
              .status = 201,
              .answer = Named("Defragmentation"),
              .handler = [this](const auto& r) { return Create(r); }});
  routes.Add({.method = "DELETE",
              .path = "/v1/defragmentations/{name}",
              .id = "abortDefragmentation",
              .summary = "Begins no more moves; the one under way is completed. The object stays.",
              .needs = needs("patch"),
              .status = 202,
              .answer = Named("Defragmentation"),
              .handler = [this](const auto& r) { return Abort(r); }});
}

rest::Response DefragmentationRoutes::Plan(const rest::Request& request) {
  const auto object = ObjectOfBody(*request.parsed);
  if (!object.ok()) return Refused(object.status());
  Json named = *object;
  named["metadata"]["name"] = "question";
  const auto fact = ParseDefragmentation(named);
  if (!fact.ok()) return Refused(fact.status());
  const auto snapshot = take_();
  if (!snapshot->synced || snapshot->cluster == nullptr) {
    return Refused(Unavailable("the fleet is not known yet"));
  }
  const DefragmentationSpec& spec = (*fact)->spec;
  const auto wanted = WantedIn(*snapshot, spec);
  if (!wanted.ok()) return Answer(200, PlanJson(wanted.status()));
  const absl::Cleanup leave = [this] { --asking_; };
  if (++asking_ > kAskingMost) {
    return Refused(ResourceExhausted("{} questions are being answered; ask again", kAskingMost));
  }
  const MutexLock lock(mutex_);
  const MoveWish wish{.gang = *wanted,
                      .gains_ultra_servers = spec.ultra_servers.has_value(),
                      .moves_most = static_cast<std::size_t>(spec.max_moves)};
  return Answer(200, PlanJson(question_.Ask(*snapshot, wish, clock_.WallNow())));
}

rest::Response DefragmentationRoutes::List() const {
  const auto list = Send(api_, kube::ListRequest(kDefragmentations, {}));
  if (!list.ok()) return Refused(list.status());
  ordered_json rows = ordered_json::array();
  for (const Json& object : kube::ListAt(**list, {"items"})) {
    const auto fact = ParseDefragmentation(object);
    if (fact.ok()) rows.push_back(RowOf(**fact));
  }
  return Answer(200, {{"defragmentations", std::move(rows)}});
}

rest::Response DefragmentationRoutes::Create(const rest::Request& request) const {
  auto object = ObjectOfBody(*request.parsed);
  if (!object.ok()) return Refused(object.status());
  const auto made = Send(api_, kube::CreateRequest(kDefragmentations, "", *std::move(object)));
  if (!made.ok()) return Refused(made.status());
  const auto fact = ParseDefragmentation(**made);
  return fact.ok() ? Answer(201, RowOf(**fact)) : Refused(fact.status());
}

rest::Response DefragmentationRoutes::Abort(const rest::Request& request) const {
  Json patch;
  patch["spec"]["abort"] = true;
  const auto object =
      Send(api_, kube::PatchRequest(kDefragmentations, {"", std::string(request.param("name"))},
                                    kube::PatchType::kMerge, std::move(patch)));
  if (!object.ok()) return Refused(object.status());
  const auto fact = ParseDefragmentation(**object);
  return fact.ok() ? Answer(202, RowOf(**fact)) : Refused(fact.status());
}

}  // namespace tahoma::controller
