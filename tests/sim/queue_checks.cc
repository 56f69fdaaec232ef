#include "tests/sim/queue_checks.h"

#include <map>
#include <string>

namespace tahoma::simulation {
namespace {

using controller::QueueSpec;

std::shared_ptr<QueueSpec> Named(const std::string& name, const std::string& parent) {
  auto spec = std::make_shared<QueueSpec>();
  spec->name = name;
  spec->uid = name;
  spec->parent = parent;
  spec->namespaces = {controller::kEveryNamespace};
  spec->half_life = std::chrono::minutes(10);
  return spec;
}

}  // namespace

const std::array<const char*, 3>& QueueNames() {
  static constexpr std::array<const char*, 3> kNames{"batch", "nightly", "serving"};
  return kNames;
}

std::vector<std::shared_ptr<const QueueSpec>> QueuesOfWorlds() {
  auto top = Named("top", "");
  auto batch = Named("batch", "top");
  auto nightly = Named("nightly", "top");
  auto serving = Named("serving", "");
  nightly->most_running = 2;
  serving->weight = 3;
  for (const char* type : {"trn2.48xlarge", "trn2u.48xlarge", "trn2.3xlarge"}) {
    top->limit[type] = 80;
    batch->limit[type] = 64;
    serving->guaranteed[type] = 4;
    serving->lending_limit[type] = 0;
  }
  return {top, batch, nightly, serving};
}

void CheckLimits(World& world, const controller::Snapshot& snapshot) {
  snapshot.queues.ForEach([&](const std::string& name, const auto& view) {
    if (view->spec == nullptr) return;
    for (const auto& [type, limit] : view->spec->limit) {
      const auto held = view->held.find(type);
      if (held == view->held.end() || held->second <= limit) continue;
      world.Fail("queue {} holds {} chips of {}, and its limit is {}", name, held->second, type,
                 limit);
    }
    if (view->spec->most_running && view->running > *view->spec->most_running) {
      world.Fail("queue {} runs {} gangs of at most {}", name, view->running,
                 *view->spec->most_running);
    }
  });
}

void CheckCounts(World& world, const controller::Snapshot& snapshot) {
  std::map<std::string, std::int64_t> running;
  snapshot.gangs.ForEach([&](const auto&, const auto& gang) {
    if (gang->reason == controller::GangReason::kQueueLimit) world.Meet("waits for its queue");
    if (gang->decision == nullptr || !gang->decision->reservation.empty()) return;
    const std::string& queue = gang->decision->queue;
    ++running[queue];
    if (queue == "batch" || queue == "nightly") ++running["top"];
  });
  snapshot.queues.ForEach([&](const std::string& name, const auto& view) {
    if (view->running != running[name]) {
      world.Fail("queue {} counts {} gangs, and {} run", name, view->running, running[name]);
    }
  });
}

}  // namespace tahoma::simulation
