#include "controller/admin/queue_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/admin/answer.h"
#include "controller/admin/promise_routes.h"
#include "controller/core/facts/queue_object.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;
using QueueRows = std::map<std::string, std::shared_ptr<const QueueView>>;

const Permission kListQueues{.verb = "list", .group = "tahoma.dev", .resource = "queues"};
const Permission kGetQueue{.verb = "get", .group = "tahoma.dev", .resource = "queues"};
// The gangs of a queue are those of many namespaces.
const Permission kListAllGangs{.verb = "list", .group = "tahoma.dev", .resource = "gangs"};
constexpr std::int64_t kTypesOfQueueMost = 1000;
constexpr std::int64_t kCountMost = (std::int64_t{1} << 53) - 1;  // exact in every language

Schema ChipCountsSchema(std::string_view about) {
  return MapOf(Integer(0, kCountMost, "Whole chips."), about, kTypesOfQueueMost);
}

Schema QueueSchema() {
  return ObjectOf(
      {{"name", Text("The queue's.")},
       {"object", Flag("There is a Queue of this name; without one only gangs name the queue.")},
       {"parent", Text("The queue above; empty at the top.")},
       {"weight", Integer(1, 1'000'000, "Its part of what siblings share.")},
       {"stop", Word({"", "Hold", "Drain"}, "Whether gangs start.")},
       {"reason", Word({"Ready", "NoParent", "Circle", "Guarantees", "Invalid"},
                       "That of the condition Ready.")},
       {"message", Text("The reason as a sentence.", kLongTextMost)},
       {"waiting", Integer(0, kCountMost, "Gangs that wait, here and in queues below.")},
       {"running", Integer(0, kCountMost, "Gangs that hold chips, here and in queues below.")},
       {"guaranteed", ChipCountsSchema("The queue's own as in force now, by instance type.")},
       {"limit", ChipCountsSchema("The most, as in force now; none for types without a number.")},
       {"period", Text("QueueCalendar/period that gives both; empty: its own are in force.")},
       {"held", ChipCountsSchema("By gangs here and in queues below.")},
       {"borrowed", ChipCountsSchema("Those of held beyond guaranteed.")},
       {"usedChipHours", Integer(0, kCountMost, "Of the past, as far as they still count.")},
       {"sharePercent", Integer(0, 100, "The wanted part of what siblings use.")},
       {"usedSharePercent", Integer(0, 100, "The part of what siblings have used.")},
       {"place", Integer(0, INT32_MAX, "Among the siblings, 1 is served next; 0: no gang waits.")}},
      "Where gangs wait, and what they may hold.");
}

Schema QueuedGangSchema() {
  return ObjectOf({{"namespace", Text("Its namespace.")},
                   {"name", Text("Its name.")},
                   {"kind", Word({"Gang", "Pod"}, "A pod without a Gang is one of its own.")},
                   {"priority", Integer(INT32_MIN, INT32_MAX, "A higher one is served first.")},
                   {"since", Time("When it was created.")},
                   {"reason", Text("Why it waits, in one word; empty when it has just come.")},
                   {"message", Text("Why, as a sentence.", kLongTextMost)},
                   {"promise?", Named("Promise")}},
                  "A gang that has all of its pods and waits for a place.");
}

ordered_json JsonOf(const ChipCounts& chips) {
  ordered_json counts = ordered_json::object();
  for (const auto& [type, count] : chips) counts[type] = count;
  return counts;
}

rest::Response UnknownQueue(const rest::Request& request) {
  return rest::Response::Problem(
      404, fmt::format("no queue {}, and no gang that names it", request.param("name")));
}

ordered_json QueuedGangRow(const Snapshot& snapshot, const GangView& gang) {
  ordered_json row = {{"namespace", gang.ref.key.ns},
                      {"name", gang.ref.key.name},
                      {"kind", gang.ref.single ? "Pod" : "Gang"},
                      {"priority", -gang.service->behind},
                      {"since", FormatTime(gang.service->created)},
                      {"reason", ToString(gang.reason)},
                      {"message", gang.message}};
  if (const Promise* promise = PromiseTo(snapshot, gang.ref)) {
    row["promise"] = PromiseRow(snapshot, *promise);
  }
  return row;
}

// Returns the first queues by name.
QueueRows Metered(const Snapshot& snapshot) {
  QueueRows rows;
  snapshot.queues.ForEach([&](const std::string& name, const auto& view) {
    rows.emplace(name, view);
    if (rows.size() > kMeteredQueues) rows.erase(std::prev(rows.end()));
  });
  return rows;
}

}  // namespace

ordered_json QueueRow(const QueueView& view) {
  static const auto* const kNoObject = new std::shared_ptr<const QueueSpec>(new QueueSpec());
  QueueView shown = view;
  if (shown.spec == nullptr) shown.spec = *kNoObject;
  const QueueStatus status = StatusOf(shown);
  const QueueSpec& spec = *shown.spec;
  return {{"name", view.name},
          {"object", view.spec != nullptr},
          {"parent", spec.parent},
          {"weight", spec.weight},
          {"stop", ToString(status.stop)},
          {"reason", ToString(status.trouble)},
          {"message", status.message},
          {"waiting", status.waiting},
          {"running", status.running},
          {"guaranteed", JsonOf(spec.guaranteed)},
          {"limit", JsonOf(spec.limit)},
          {"period", status.period},
          {"held", JsonOf(status.held)},
          {"borrowed", JsonOf(status.borrowed)},
          {"usedChipHours", status.used_chip_hours},
          {"sharePercent", status.share_percent},
          {"usedSharePercent", status.used_share_percent},
          {"place", status.place}};
}

void QueueRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("Queue", QueueSchema());
  routes.Name("QueuedGang", QueuedGangSchema());
  routes.Add({.path = "/v1/queues",
              .id = "listQueues",
              .summary = "The queues by name, with what their gangs hold.",
              .needs = kListQueues,
              .query = {{"from?", Text("The `next` of the page before.")}},
              .answer = ObjectOf({{"queues", ListOf(Named("Queue"), "A page of them.")},
                                  {"next?", Text("Where the next page begins.")}}),
              .handler = [this](const auto& r) { return List(r); }});
  routes.Add({.path = "/v1/queues/{name}",
              .id = "getQueue",
              .summary = "One queue.",
              .needs = kGetQueue,
              .answer = Named("Queue"),
              .handler = [this](const auto& r) { return Show(r); }});
  routes.Add(
      {.path = "/v1/queues/{name}/gangs",
       .id = "listQueuedGangs",
       .summary = "The gangs that wait for a place in a queue, the one that is served next first.",
       .needs = kListAllGangs,
       .query = {{"from?", Integer(0, 999'999'999, "The `next` of the page before.")}},
       .answer = ObjectOf({{"gangs", ListOf(Named("QueuedGang"), "In the order of service.")},
                           {"next?", Integer(0, INT32_MAX, "Where the next page begins.")}}),
       .handler = [this](const auto& r) { return Gangs(r); }});
}

rest::Response QueueRoutes::List(const rest::Request& request) const {
  const auto snapshot = take_();
  const auto page = PageOf(snapshot->queues, std::string(request.query_value("from").value_or("")),
                           [](const std::string& name) { return name; });
  ordered_json queues = ordered_json::array();
  for (const auto& [name, view] : page.rows) queues.push_back(QueueRow(*view));
  ordered_json body = {{"queues", std::move(queues)}};
  if (page.next) body["next"] = *page.next;
  return Answer(200, body);
}

rest::Response QueueRoutes::Show(const rest::Request& request) const {
  const auto snapshot = take_();
  const auto* view = snapshot->queues.Find(std::string(request.param("name")));
  return view == nullptr ? UnknownQueue(request) : Answer(200, QueueRow(**view));
}

rest::Response QueueRoutes::Gangs(const rest::Request& request) const {
  const auto snapshot = take_();
  const std::string name(request.param("name"));
  std::vector<const GangView*> gangs;
  snapshot->gangs.ForEach([&](const GangRef&, const auto& view) {
    if (view->service && view->queue == name) gangs.push_back(view.get());
  });
  if (gangs.empty() && snapshot->queues.Find(name) == nullptr) return UnknownQueue(request);
  const auto from = std::min(
      static_cast<std::size_t>(ParseInteger(request.query_value("from").value_or("0")).value()),
      gangs.size());
  const std::size_t end = std::min(from + kRowsMost, gangs.size());
  const auto at = [&](std::size_t i) { return gangs.begin() + static_cast<std::ptrdiff_t>(i); };
  std::partial_sort(at(0), at(end), gangs.end(),
                    [](const GangView* a, const GangView* b) { return *a->service < *b->service; });
  ordered_json rows = ordered_json::array();
  for (std::size_t i = from; i < end; ++i) rows.push_back(QueuedGangRow(*snapshot, *gangs[i]));
  ordered_json body = {{"gangs", std::move(rows)}};
  if (end < gangs.size()) body["next"] = end;
  return Answer(200, body);
}

void AddQueueMetrics(rest::Metrics& metrics, QueueRoutes::TakeSnapshot take) {
  using Values = std::vector<std::pair<rest::Labels, double>>;
  metrics.AddGaugeFamily(
      "tahoma_queue_waiting_gangs", "Gangs that wait, by queue; those of queues below count, too.",
      [take] {
        Values values;
        for (const auto& [name, view] : Metered(*take())) {
          values.push_back({{{"queue", name}}, static_cast<double>(view->waiting)});
        }
        return values;
      });
  metrics.AddGaugeFamily(
      "tahoma_queue_held_chips",
      "Chips that gangs hold, by queue and instance type; those of queues below count, too.",
      [take = std::move(take)] {
        Values values;
        for (const auto& [name, view] : Metered(*take())) {
          for (const auto& [type, chips] : view->held) {
            values.push_back(
                {{{"queue", name}, {"instance_type", type}}, static_cast<double>(chips)});
          }
        }
        return values;
      });
}

}  // namespace tahoma::controller
