// The program neuron-ls: asks the pod's sim-node, by the claim's token, which devices there are.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/wire/call.h"
#include "sim-node/workload/neuron_ls.h"

namespace {

using namespace tahoma;

constexpr std::chrono::seconds kTimeout{10};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Fail(const absl::Status& status) {
  std::cerr << "neuron-ls: " << Message(status) << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  bool help = false;
  const auto view =
      sim::ParseNeuronLsArguments(std::vector<std::string>(argv + 1, argv + argc), help);
  if (!view.ok()) return Fail(view.status());
  if (help) {
    std::cout << sim::NeuronLsHelp();
    return 0;
  }
  const std::string socket = Environment("TAHOMA_NODE_SOCKET");
  const std::string token = Environment("TAHOMA_CLAIM_TOKEN");
  if (socket.empty() || token.empty()) {
    return Fail(
        FailedPrecondition("no Neuron devices: TAHOMA_NODE_SOCKET and TAHOMA_CLAIM_TOKEN "
                           "are not set; run in a pod with a Neuron claim"));
  }
  wire::Client client(socket);
  wire::Request request;
  request.method = "devices";
  request.params = fmt::format(R"({{"token":"{}"}})", token);
  const absl::StatusOr<wire::Reply> reply = client.Call(request, kTimeout);
  if (!reply.ok()) return Fail(reply.status());
  const auto devices = sim::ParseDevices(reply->result);
  if (!devices.ok()) return Fail(devices.status());
  std::cout << sim::PrintDevices(*devices, *view);
  return 0;
}
