// The program trn-run: its environment and command line; the rest is sim-node/workload.

#include <iostream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/workload/app/pod_environment.h"
#include "sim-node/workload/core_node.h"
#include "sim-node/workload/trn_run.h"

namespace {

using namespace tahoma;

int Fail(const absl::Status& status) {
  std::cerr << "trn-run: " << Message(status) << "\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = sim::ParseRunArguments(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) return Fail(options.status());
  if (options->help) {
    std::cout << sim::TrnRunHelp();
    return 0;
  }
  const auto pod = sim::PodEnvironment::Read();
  if (!pod.ok()) return Fail(pod.status());
  sim::SocketCoreNode node(pod->socket, pod->token);
  return sim::RunTrnRun(*options, node, std::cout, std::cerr);
}
