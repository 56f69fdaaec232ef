// ReplicaSets: as many pods of a template as wanted.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "controller/apiserver/controllers/workloads/parts.h"
#include "controller/apiserver/schema/fields.h"
#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

Json ReplicaStatus(const Json& set, const Bodies& active, WallTime now, Decision& decision) {
  std::int64_t labelled = 0;
  std::int64_t ready = 0;
  std::int64_t available = 0;
  const Json& labels = ValueAt(set, {"spec", "template", "metadata", "labels"});
  for (const auto& pod : active) {
    labelled += Selects({{"matchLabels", labels}}, *pod) ? 1 : 0;
    ready += IsTrue(*pod, "Ready") ? 1 : 0;
    const auto since = AvailableAt(*pod, kube::IntAt(set, {"spec", "minReadySeconds"}), now);
    if (!since) continue;
    available += *since <= now ? 1 : 0;
    if (*since > now) Wake(decision, *since);
  }
  Json status = PartOf(set, "status");
  const auto count = [&](const char* field, std::int64_t value) {
    status.erase(field);
    if (value > 0) status[field] = value;
  };
  status["replicas"] = static_cast<std::int64_t>(active.size());
  count("fullyLabeledReplicas", labelled);
  count("readyReplicas", ready);
  count("availableReplicas", available);
  status["observedGeneration"] = kube::GenerationOf(set);
  return status;
}

}  // namespace

Decision SyncReplicaSet(const Json& set, const Bodies& pods, WallTime now) {
  Decision decision;
  Bodies active = Claimed(set, "apps/v1", "ReplicaSet", ValueAt(set, {"spec", "selector"}), pods,
                          kube::kPods, decision.writes);
  std::erase_if(active, [](const auto& pod) { return !IsActive(*pod); });
  if (!kube::IsBeingDeleted(set)) {
    const auto wanted = static_cast<std::size_t>(IntOr(PartOf(set, "spec"), "replicas", 1));
    for (std::size_t i = active.size(); i < wanted && i < active.size() + kBurst; ++i) {
      Json pod = PodOf(set, "apps/v1", "ReplicaSet", ValueAt(set, {"spec", "template"}));
      // A generated name is at most 63 bytes, of which five are random.
      pod["metadata"]["generateName"] = TextAt(set, {"metadata", "name"}).substr(0, 57) + "-";
      CreatePod(std::move(pod), decision);
    }
    std::ranges::sort(active, [](const auto& a, const auto& b) { return GoesFirst(*a, *b); });
    for (std::size_t i = 0; i + wanted < active.size(); ++i) DeletePod(*active[i], decision);
  }
  WriteStatus(kReplicaSets, set, ReplicaStatus(set, active, now, decision), decision);
  return decision;
}

}  // namespace tahoma::controller::apiserver
