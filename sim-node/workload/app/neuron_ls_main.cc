// The program neuron-ls: asks the pod's sim-node, by the claim's token, which devices there are.

#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/app/pod_processes.h"
#include "sim-node/workload/neuron_ls.h"
#include "sim-node/workload/usage_node.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain("neuron-ls", argc, argv, sim::ParseNeuronLsArguments, sim::NeuronLsHelp,
                      [](const auto& options, const auto& pod) -> absl::StatusOr<int> {
                        sim::UsageNode node(pod.socket, pod.token);
                        TAHOMA_ASSIGN_OR_RETURN(sim::DeviceList devices, node.Devices());
                        devices.processes = sim::ProcessesOf(pod.token, options.all_processes);
                        std::cout << sim::PrintDevices(devices, options.view);
                        return 0;
                      });
}
