// PodDisruptionBudgets: how many pods may be evicted now.

#include <algorithm>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

// An eviction whose pod is still there after this time has failed.
constexpr std::chrono::seconds kEvictionTime{120};

struct Demand {
  std::int64_t expected = 0;
  std::int64_t healthy = 0;
};

Demand DemandOf(const Json& budget, std::int64_t pods, std::optional<std::int64_t> wanted) {
  const Json& missing = ValueAt(budget, {"spec", "maxUnavailable"});
  if (!missing.is_null()) {
    const std::int64_t expected = wanted.value_or(pods);
    return {expected, std::max<std::int64_t>(expected - Scaled(missing, expected, true), 0)};
  }
  const Json& least = ValueAt(budget, {"spec", "minAvailable"});
  if (least.is_number_integer()) return {pods, least.get<std::int64_t>()};
  const std::int64_t expected = wanted.value_or(pods);
  return {expected, Scaled(least, expected, true)};
}

}  // namespace

Decision SyncBudget(const Json& budget, const Bodies& pods, std::optional<std::int64_t> expected,
                    WallTime now) {
  Decision decision;
  std::int64_t count = 0;
  std::int64_t healthy = 0;
  Json evicted = Json::object();  // pods whose eviction was granted, and which have not gone yet
  for (const auto& pod : pods) {
    if (!Selects(ValueAt(budget, {"spec", "selector"}), *pod)) continue;
    if (HasPhase(*pod, "Succeeded") || HasPhase(*pod, "Failed")) continue;
    ++count;
    const std::string name(kube::NameOf(*pod));
    const auto since = ParseTime(kube::StringAt(budget, {"status", "disruptedPods", name}));
    if (kube::IsBeingDeleted(*pod)) continue;
    if (since.ok() && *since + kEvictionTime > now) {
      evicted[name] = FormatTime(*since);
      Wake(decision, *since + kEvictionTime);
      continue;
    }
    healthy += IsTrue(*pod, "Ready") ? 1 : 0;
  }
  const Demand demand = DemandOf(budget, count, expected);
  const std::int64_t allowed =
      demand.expected > 0 ? std::max<std::int64_t>(healthy - demand.healthy, 0) : 0;
  Json status = PartOf(budget, "status");
  status["currentHealthy"] = healthy;
  status["desiredHealthy"] = demand.healthy;
  status["expectedPods"] = demand.expected;
  status["disruptionsAllowed"] = allowed;
  status["observedGeneration"] = kube::GenerationOf(budget);
  status.erase("disruptedPods");
  if (!evicted.empty()) status["disruptedPods"] = std::move(evicted);
  SetCondition(status, "DisruptionAllowed", allowed > 0,
               allowed > 0 ? "SufficientPods" : "InsufficientPods", "", now);
  for (Json& condition : status["conditions"]) {
    condition["observedGeneration"] = kube::GenerationOf(budget);
    if (!condition.contains("message")) condition["message"] = "";
  }
  WriteStatus(kBudgets, budget, std::move(status), decision);
  return decision;
}

}  // namespace tahoma::controller::apiserver
