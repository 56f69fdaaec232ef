#include "tests/sim/queue_checks.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

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

std::shared_ptr<const controller::QueueCalendarSpec> CalendarOfWorlds() {
  auto calendar = std::make_shared<controller::QueueCalendarSpec>();
  calendar->name = "by-minutes";
  calendar->uid = "by-minutes";
  calendar->warning = std::chrono::minutes(1);
  constexpr int kBegin = 8 * 60;  // minutes of the day: worlds begin at 08:00
  for (const auto& [from, until] : {std::pair{1, 2}, {3, 5}, {8, 20}, {25, 55}}) {
    controller::QueuePeriod period;
    period.name = fmt::format("from-{}", from);
    period.from = kBegin + from;
    period.until = kBegin + until;
    controller::ChipCounts guaranteed, limit;
    for (const char* type : {"trn2.48xlarge", "trn2u.48xlarge", "trn2.3xlarge"}) {
      guaranteed[type] = 12;
      limit[type] = 16;
    }
    period.queues["serving"].guaranteed = guaranteed;
    period.queues["batch"].limit = limit;
    calendar->periods.push_back(std::move(period));
  }
  return calendar;
}

void LimitChecks::AfterStep(World& world, const controller::Snapshot& snapshot) {
  const auto before = std::exchange(held_, {});
  snapshot.queues.ForEach([&](const std::string& name, const auto& view) {
    held_[name] = view->held;
    if (view->spec == nullptr) return;
    if (!view->period.empty()) world.Meet("a calendar moves a queue");
    const auto was = before.find(name);
    for (const auto& [type, limit] : view->spec->limit) {
      const auto held = view->held.find(type);
      if (held == view->held.end() || held->second <= limit) continue;
      if (was != before.end() && was->second.contains(type) &&
          held->second <= was->second.at(type)) {
        continue;
      }
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
    if (gang->reason == controller::GangReason::kQueueCalendar) world.Meet("waits for a calendar");
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
