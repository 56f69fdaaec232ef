// The program nccom-test: its environment and command line; the rest is sim-node/workload.

#include <iostream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/workload/app/pod_environment.h"
#include "sim-node/workload/nccom_node.h"
#include "sim-node/workload/nccom_test.h"

namespace {

using namespace tahoma;

int Fail(const absl::Status& status) {
  std::cerr << "nccom-test: " << Message(status) << "\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = sim::ParseNccomArguments(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) return Fail(options.status());
  if (options->help) {
    std::cout << sim::NccomHelp();
    return 0;
  }
  const auto pod = sim::PodEnvironment::Read();
  if (!pod.ok()) return Fail(pod.status());
  sim::SocketNode node(pod->socket, pod->token);
  return sim::RunNccomTest(*options, pod->place, node, std::cout, std::cerr);
}
