#include "controller/model/workload_rules.h"

#include <fmt/format.h>

#include <string_view>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/hw/catalogue.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kWordMost = 64;           // of a value in a message
constexpr std::int64_t kServersMost = 1024;     // the slices of a Gang
constexpr const char* kNeverGivenUp = "8760h";  // longer than anybody waits for a next pod

// Returns the UltraServer whose instances of the type NeuronLink joins to a torus; nullptr without
// one.
const hw::UltraServerModel* FindTorus(std::string_view instance_type) {
  for (const hw::UltraServerModel& model : hw::UltraServers()) {
    if (model.instance_type == instance_type && model.fabric == hw::FabricKind::kTorus) {
      return &model;
    }
  }
  return nullptr;
}

std::string TorusTypes() {
  std::string names;
  for (const hw::UltraServerModel& model : hw::UltraServers()) {
    if (model.fabric != hw::FabricKind::kTorus) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.instance_type);
  }
  return names;
}

// Sets the fate of a gang that loses a pod. Returns whether the strategy is known.
bool SetPolicy(std::string_view strategy, GangRequest& gang) {
  if (strategy == "RestartAll") {
    gang.failure_policy = "RestartAll";
  } else if (strategy == "MigrateAffected" || strategy == "ReplaceAffected") {
    gang.failure_policy = "Replace";  // the name in AWS's CRD, and the name in AWS's guide
  } else if (strategy == "NoOp" || strategy.empty()) {
    gang.failure_policy = "Replace";
    gang.start_within = kNeverGivenUp;
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<WorkloadNeeds> NeedsOf(const WorkloadRequest& request) {
  if (FindTorus(request.instance_type) == nullptr) {
    return InvalidArgument("instanceType {}: it has no UltraServer that is a torus; {} has",
                           CutUtf8(request.instance_type, kWordMost), TorusTypes());
  }
  const std::int64_t size = request.topology_size;
  if (size != 1 && size != 2 && size != hw::kUltraServerNodes) {
    return InvalidArgument("topologySize {}: must be 1, 2 or {}", size, hw::kUltraServerNodes);
  }
  if (request.server_count < 1 || request.server_count > kServersMost) {
    return InvalidArgument("serverCount {}: must be 1 to {}", request.server_count, kServersMost);
  }
  WorkloadNeeds needs;
  if (!SetPolicy(request.failure_strategy, needs.gang)) {
    return InvalidArgument("failureStrategy {}: must be NoOp, RestartAll or MigrateAffected",
                           CutUtf8(request.failure_strategy, kWordMost));
  }
  const hw::InstanceType* type = hw::FindInstanceType(request.instance_type);
  TAHOMA_CHECK(type != nullptr);
  const std::int64_t lnc = request.logical_neuron_core.value_or(type->chip->lnc_default);
  if (lnc < 1 || lnc > type->chip->lnc_max || !hw::HasLnc(*type->chip, static_cast<int>(lnc))) {
    return InvalidArgument("logicalNeuronCore {}: must be 1 or 2", lnc);
  }
  needs.lnc = static_cast<int>(lnc);
  needs.gang.members = size * request.server_count;
  needs.gang.slices = request.server_count;
  needs.gang.shape = fmt::format("{}x{}x{}", type->torus.extent(torus::Axis::kX),
                                 type->torus.extent(torus::Axis::kY), size);
  TAHOMA_CHECK(FaultsOf(needs.gang).empty());
  return needs;
}

}  // namespace tahoma::controller
