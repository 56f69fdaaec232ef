// The program trn-mem: its environment and command line; the rest is sim-node/workload.

#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/mem_node.h"
#include "sim-node/workload/trn_mem.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain(
      "trn-mem", argc, argv, sim::ParseMemArguments, sim::MemHelp,
      [](const auto& options, const sim::PodEnvironment& pod) -> absl::StatusOr<int> {
        TAHOMA_ASSIGN_OR_RETURN(const sim::CommPlace place, pod.Place());
        sim::SocketMemNode node(pod.socket, pod.token);
        return sim::RunTrnMem(options, place, node, std::cout, std::cerr);
      });
}
