// The program trn-run: its environment and command line; the rest is sim-node/workload.

#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/core_node.h"
#include "sim-node/workload/trn_run.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain(
      "trn-run", argc, argv, sim::ParseRunArguments, sim::TrnRunHelp,
      [](sim::TrnRunOptions options, const sim::PodEnvironment& pod) -> absl::StatusOr<int> {
        TAHOMA_RETURN_IF_ERROR(
            sim::ReadRounding(sim::Environment("NEURON_RT_STOCHASTIC_ROUNDING_EN"),
                              sim::Environment("NEURON_RT_STOCHASTIC_ROUNDING_SEED"), options));
        sim::SocketCoreNode node(pod.socket, pod.token);
        return sim::RunTrnRun(options, node, std::cout, std::cerr);
      });
}
