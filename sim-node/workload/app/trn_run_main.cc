// The program trn-run: its environment and command line; the rest is sim-node/workload.

#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/core_node.h"
#include "sim-node/workload/trn_run.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain("trn-run", argc, argv, sim::ParseRunArguments, sim::TrnRunHelp,
                      [](const sim::TrnRunOptions& options, const sim::PodEnvironment& pod) {
                        sim::SocketCoreNode node(pod.socket, pod.token);
                        return sim::RunTrnRun(options, node, std::cout, std::cerr);
                      });
}
