#include "controller/admin/why_route.h"

#include <cstdint>
#include <string>
#include <vector>

#include "controller/admin/admin.h"
#include "controller/admin/answer.h"
#include "controller/admin/promise_routes.h"
#include "controller/admin/queue_routes.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

// Deeper trees are shown up to here.
constexpr std::size_t kQueuesMost = 20;

Schema WhySchema() {
  std::vector<Field> fields = GangStateFields();
  fields.push_back(
      {"order?", ObjectOf({{"place", Integer(1, INT32_MAX, "1 is served next.")},
                           {"of", Integer(1, INT32_MAX, "Gangs that wait in this queue.")}},
                          "Its place among the gangs that wait in its queue; without queues among "
                          "all. Absent unless it waits with all of its pods.")});
  fields.push_back({"queues?", ListOf(ObjectOf({{"queue", Named("Queue")},
                                                {"siblings", Integer(1, INT32_MAX,
                                                                     "Queues with gangs that wait "
                                                                     "beside it, and itself.")}}),
                                      "Its queue, and those above.")});
  fields.push_back({"promise?", Named("Promise")});
  fields.push_back({"keptBy?", ListOf(Named("Promise"),
                                      "But for these promises to others it would begin now.")});
  return ObjectOf(fields, "Why a gang waits, or where it is.");
}

ordered_json OrderOf(const Snapshot& snapshot, const GangView& gang) {
  const bool by_queue = snapshot.queues.size() > 0;
  std::int64_t place = 1;
  std::int64_t of = 0;
  snapshot.gangs.ForEach([&](const GangRef&, const auto& other) {
    if (!other->service || other->service->in_no_block != gang.service->in_no_block) return;
    if (by_queue && other->queue != gang.queue) return;
    ++of;
    place += *other->service < *gang.service ? 1 : 0;
  });
  return {{"place", place}, {"of", of}};
}

// Returns how many queues with gangs that wait have the same queue above.
std::int64_t SiblingsOf(const Snapshot& snapshot, const QueueView& queue) {
  const auto parent = [](const QueueView& one) {
    return one.spec == nullptr ? std::string() : one.spec->parent;
  };
  std::int64_t count = 0;
  snapshot.queues.ForEach([&](const std::string& name, const auto& view) {
    const bool counts = view->place > 0 && parent(*view) == parent(queue);
    count += counts || name == queue.name ? 1 : 0;
  });
  return count;
}

ordered_json QueuesOf(const Snapshot& snapshot, const std::string& from) {
  ordered_json rows = ordered_json::array();
  std::string name = from;
  while (!name.empty() && rows.size() < kQueuesMost) {
    const auto* view = snapshot.queues.Find(name);
    if (view == nullptr) break;
    rows.push_back({{"queue", QueueRow(**view)}, {"siblings", SiblingsOf(snapshot, **view)}});
    name = (*view)->spec == nullptr ? "" : (*view)->spec->parent;
  }
  return rows;
}

}  // namespace

void WhyRoute::AddRoutes(RouteTable& routes) {
  routes.Name("Why", WhySchema());
  routes.Add({.path = "/v1/why/{namespace}/{name}",
              .id = "getWhy",
              .summary = "Why a gang waits, or where it is.",
              .needs = {.verb = "get", .group = "tahoma.dev", .resource = "gangs"},
              .answer = Named("Why"),
              .handler = [this](const auto& r) { return Answer(r); }});
}

rest::Response WhyRoute::Answer(const rest::Request& request) {
  const auto snapshot = take_();
  const auto view = FindGang(*snapshot, request);
  if (view == nullptr) return UnknownGang(request);
  ordered_json row = GangStateRow(*view);
  const bool in_block = view->service && !view->service->in_no_block;
  if (view->service) row["order"] = OrderOf(*snapshot, *view);
  if (!in_block) {
    if (auto queues = QueuesOf(*snapshot, view->queue); !queues.empty()) {
      row["queues"] = std::move(queues);
    }
  }
  if (const Promise* promise = PromiseTo(*snapshot, view->ref)) {
    row["promise"] = PromiseRow(*snapshot, *promise);
  }
  if (view->spec != nullptr && snapshot->cluster != nullptr) {
    const MutexLock lock(mutex_);
    for (const auto& promise : what_if_.KeptBy(*snapshot, *view, clock_.WallNow())) {
      row["keptBy"].push_back(PromiseRow(*snapshot, *promise));
    }
  }
  return controller::Answer(200, row);
}

}  // namespace tahoma::controller
