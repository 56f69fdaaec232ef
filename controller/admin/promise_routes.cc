#include "controller/admin/promise_routes.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "controller/admin/answer.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

}  // namespace

Schema PromiseSchema() {
  return ObjectOf(
      {{"kind", Text("Start: of a gang that waits until others have ended; Patience: as hardware "
                     "comes free; Preempt: of a gang that others end for.")},
       {"holder", Text("Whose, for people.")},
       {"namespace?", Text("The gang's; absent where the holder is no gang.")},
       {"name?", Text("The gang's, or the pod's.")},
       {"queue?", Text("In which the gang waits.")},
       {"from?", Time("Absent: as the hardware comes free.")},
       {"until?", Time("The holder's latest end; absent: not known.")},
       {"place", Text("The hardware, such as us-0 4x4x4+0,0,0.", kLongTextMost)}},
      "Hardware that is somebody's from one time to another.");
}

ordered_json PromiseRow(const Snapshot& snapshot, const Promise& promise) {
  ordered_json row = {{"kind", ToString(promise.kind)}, {"holder", promise.holder}};
  if (promise.gang) {
    row["namespace"] = promise.gang->ns;
    row["name"] = promise.gang->name;
    const auto* gang = snapshot.gangs.Find(GangRef{*promise.gang, promise.single_pod});
    if (gang != nullptr) row["queue"] = (*gang)->queue;
  }
  if (promise.from != WallTime::min()) row["from"] = FormatTime(promise.from);
  if (promise.until != WallTime::max()) row["until"] = FormatTime(promise.until);
  row["place"] = promise.place;
  return row;
}

const Promise* PromiseTo(const Snapshot& snapshot, const GangRef& gang) {
  for (const auto& promise : snapshot.promises) {
    if (promise->gang == gang.key && promise->single_pod == gang.single) return promise.get();
  }
  return nullptr;
}

void PromiseRoutes::AddRoutes(RouteTable& routes) {
  routes.Name("Promise", PromiseSchema());
  routes.Add(
      {.path = "/v1/promises",
       .id = "listPromises",
       .summary = "Hardware that is promised, in the order of service, and how many gangs wait "
                  "without a promise.",
       .needs = {.verb = "list", .group = "tahoma.dev", .resource = "gangs"},
       .query = {{"namespace?", Text("Of this namespace only, whose permission then counts.", 63)}},
       .answer = ObjectOf(
           {{"promises", ListOf(Named("Promise"), "Who is served first comes first.")},
            {"waiting", Integer(0, INT32_MAX, "Gangs that have all pods and wait for a place.")},
            {"waitingWithout", Integer(0, INT32_MAX, "The part without a promise.")}}),
       .handler = [this](const auto& r) { return List(r); }});
}

rest::Response PromiseRoutes::List(const rest::Request& request) const {
  const auto snapshot = take_();
  const std::string ns = request.query_value("namespace").value_or("");
  ordered_json rows = ordered_json::array();
  std::int64_t promised = 0;
  for (const auto& promise : snapshot->promises) {
    if (!ns.empty() && promise->gang && promise->gang->ns != ns) continue;
    promised += promise->gang ? 1 : 0;
    rows.push_back(PromiseRow(*snapshot, *promise));
  }
  std::int64_t waiting = 0;
  snapshot->gangs.ForEach([&](const GangRef& ref, const auto& view) {
    waiting += view->service && (ns.empty() || ref.key.ns == ns) ? 1 : 0;
  });
  return Answer(200, {{"promises", std::move(rows)},
                      {"waiting", waiting},
                      {"waitingWithout", std::max<std::int64_t>(waiting - promised, 0)}});
}

}  // namespace tahoma::controller
