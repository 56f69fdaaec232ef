#include "controller/publish/render_workload.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

using json = Json;

constexpr const char* kRequest = "node";

json Config(json parameters) {
  parameters["apiVersion"] = "neuron.aws.com/v1";  // hw::kDeviceConfigApiVersion
  return {{"requests", json::array({kRequest})},
          {"opaque", {{"driver", kNeuronDriver}, {"parameters", std::move(parameters)}}}};
}

// The claim of one member: a whole node of the type, which works with the others of its slice.
json RenderClaim(const WorkloadFact& workload) {
  const std::string expression = fmt::format(
      "device.attributes['neuron.aws.com'].resourceType == 'neuron_node' && "
      "device.attributes['neuron.aws.com'].instanceType == '{}'",
      workload.instance_type);
  json exactly = {{"deviceClassName", kNeuronDriver},
                  {"allocationMode", "ExactCount"},
                  {"count", 1},
                  {"selectors", json::array({json{{"cel", {{"expression", expression}}}}})}};
  json configs = json::array(
      {Config({{"kind", "UltraServerConfig"}, {"ultraserverMode", workload.topology_size}}),
       Config({{"kind", "NeuronConfig"}, {"logicalNeuronCore", workload.lnc}})});
  json requests = json::array({json{{"name", kRequest}, {"exactly", std::move(exactly)}}});
  return {{"devices", {{"requests", std::move(requests)}, {"config", std::move(configs)}}}};
}

}  // namespace

kube::Request RenderClaimTemplate(const ClaimTemplateCreation& write) {
  const WorkloadFact& workload = *write.workload;
  const kube::OwnerReference owner = workload.AsOwner();
  json owners = json::array({{{"apiVersion", owner.api_version},
                              {"kind", owner.kind},
                              {"name", owner.name},
                              {"uid", owner.uid},
                              {"controller", true}}});
  json metadata = {{"name", workload.claim_template},
                   {"namespace", workload.key.ns},
                   {"ownerReferences", std::move(owners)}};
  return kube::CreateRequest(kClaimTemplates, workload.key.ns,
                             {{"apiVersion", "resource.k8s.io/v1"},
                              {"kind", "ResourceClaimTemplate"},
                              {"metadata", std::move(metadata)},
                              {"spec", {{"spec", RenderClaim(workload)}}}});
}

kube::Request RenderWorkloadStatus(const WorkloadStatusWrite& write) {
  const WorkloadStatus& status = *write.status;
  json conditions = json::array();
  for (const WorkloadCondition& condition : status.conditions) {
    conditions.push_back({{"type", condition.type},
                          {"status", condition.holds ? "True" : "False"},
                          {"reason", condition.reason},
                          {"message", condition.message},
                          {"observedGeneration", status.observed_generation},
                          {"lastTransitionTime", FormatTime(condition.since)}});
  }
  json body = {{"state", ToString(status.state)},
               {"allocatedUltraServers", status.ultraservers},
               {"allocatedAt", nullptr},
               {"conditions", std::move(conditions)}};
  if (status.allocated_at) body["allocatedAt"] = FormatTime(*status.allocated_at);
  return kube::PatchRequest(
      kUltraServerWorkloads, {write.key.ns, write.key.name}, kube::PatchType::kMerge,
      {{"metadata", {{"uid", write.uid}}}, {"status", std::move(body)}}, {.subresource = "status"});
}

}  // namespace tahoma::controller
