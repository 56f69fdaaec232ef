#include "tests/sim/queue_checks.h"

#include <fmt/format.h>

#include <algorithm>
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

namespace {

// Returns the limit of the queue, or what the period gives in its place ("calendar/period").
controller::ChipCounts LimitInForce(const QueueSpec& spec, const std::string& period) {
  if (period.empty()) return spec.limit;
  const auto calendar = CalendarOfWorlds();
  for (const controller::QueuePeriod& one : calendar->periods) {
    const auto numbers = one.queues.find(spec.name);
    if (!period.ends_with("/" + one.name) || numbers == one.queues.end()) continue;
    return numbers->second.limit.value_or(spec.limit);
  }
  return spec.limit;
}

}  // namespace

void LimitChecks::AfterStep(World& world, const controller::Snapshot& snapshot) {
  const auto before = std::exchange(held_, {});
  for (const auto& spec : QueuesOfWorlds()) {
    const auto* found = snapshot.queues.Find(spec->name);
    if (found == nullptr) continue;
    const controller::QueueView& view = **found;
    held_[spec->name] = view.held;
    if (!view.period.empty()) world.Meet("a calendar moves a queue");
    const auto was = before.find(spec->name);
    for (const auto& [type, limit] : LimitInForce(*spec, view.period)) {
      const auto held = view.held.find(type);
      if (held == view.held.end() || held->second <= limit) continue;
      if (was != before.end() && was->second.contains(type) &&
          held->second <= was->second.at(type)) {
        continue;
      }
      world.Fail("queue {} holds {} chips of {}, and its limit is {}", spec->name, held->second,
                 type, limit);
    }
    if (spec->most_running && view.running > *spec->most_running) {
      world.Fail("queue {} runs {} gangs of at most {}", spec->name, view.running,
                 *spec->most_running);
    }
  }
}

void UseChecks::OnStep(const controller::Snapshot& snapshot) {
  if (!snapshot.synced) return;
  const WallTime now = world_.ControllersNow();
  const double passed = std::chrono::duration<double>(now - last_).count();
  for (const auto& [queue, eighths] : held_) {
    most_[queue] += std::max(0.0, passed) * static_cast<double>(eighths);
  }
  last_ = now;
  held_.clear();
  snapshot.gangs.ForEach([&](const auto&, const auto& gang) {
    if (gang->decision == nullptr) return;
    std::int64_t& held = held_[gang->decision->queue];
    for (const auto& claim : gang->decision->claims) {
      for (const auto& result : claim.allocation.results) {
        if (result.driver != controller::kNeuronDriver) continue;
        // A node's device is all of the node's chips.
        const bool node = result.device == "neuron-node";
        held += controller::kEighthsOfChip * (node ? controller::kChipsPerNode : 1);
      }
    }
  });
  std::map<std::string, double> counted;
  snapshot.gang_usage.ForEach([&](const controller::UsageKey& key, const auto& sum) {
    const controller::UsageSum until = sum.UpTo(now);
    for (const auto& one : until.types) {
      counted[key.queue] += static_cast<double>(one.eighth_ms) / 1000;
    }
  });
  constexpr double kSlack = 1 + 64 * controller::kEighthsOfChip;  // a second of all chips
  for (const auto& [queue, eighths] : counted) {
    if (eighths > 1) world_.Meet("use counted");
    if (eighths <= most_[queue] + kSlack) continue;
    world_.Fail("queue {} has used {:.0f} chip-seconds at most, and {:.0f} are counted", queue,
                most_[queue] / controller::kEighthsOfChip, eighths / controller::kEighthsOfChip);
  }
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
