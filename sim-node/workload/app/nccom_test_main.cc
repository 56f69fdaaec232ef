// The program nccom-test: its environment and command line; the rest is sim-node/workload.

#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/nccom_node.h"
#include "sim-node/workload/nccom_test.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain(
      "nccom-test", argc, argv, sim::ParseNccomArguments, sim::NccomHelp,
      [](const auto& options, const sim::PodEnvironment& pod) -> absl::StatusOr<int> {
        TAHOMA_ASSIGN_OR_RETURN(const sim::CommPlace place, pod.Place());
        sim::SocketNode node(pod.socket, pod.token);
        return sim::RunNccomTest(options, place, node, std::cout, std::cerr);
      });
}
