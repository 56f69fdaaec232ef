// The program nccom-test: its environment and command line; the rest is sim-node/workload.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/workload/nccom_node.h"
#include "sim-node/workload/nccom_test.h"

namespace {

using namespace tahoma;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<int> Number(const char* name, int fallback) {
  const std::string text = Environment(name);
  if (text.empty()) return fallback;
  if (text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos) {
    return InvalidArgument("{} is \"{}\"; expected a number", name, text);
  }
  return std::stoi(text);
}

absl::StatusOr<sim::NccomPlace> Place(const std::string& token) {
  sim::NccomPlace place;
  TAHOMA_ASSIGN_OR_RETURN(place.rank, Number("TAHOMA_RANK", 0));
  TAHOMA_ASSIGN_OR_RETURN(place.world_size, Number("TAHOMA_WORLD_SIZE", 1));
  if (place.world_size < 1 || place.rank >= place.world_size) {
    return InvalidArgument(
        "TAHOMA_RANK is {}, TAHOMA_WORLD_SIZE {}; expected a rank below the size", place.rank,
        place.world_size);
  }
  place.comm_id = Environment("TAHOMA_COMM_ID");
  if (place.comm_id.empty()) place.comm_id = Environment("NEURON_RT_ROOT_COMM_ID");
  if (place.comm_id.empty() && place.world_size > 1) {
    return InvalidArgument("set TAHOMA_COMM_ID or NEURON_RT_ROOT_COMM_ID to the same for all pods");
  }
  if (place.comm_id.empty()) place.comm_id = "alone-" + token;
  return place;
}

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
  const std::string socket = Environment("TAHOMA_NODE_SOCKET");
  const std::string token = Environment("TAHOMA_CLAIM_TOKEN");
  if (socket.empty() || token.empty()) {
    return Fail(FailedPrecondition(
        "TAHOMA_NODE_SOCKET and TAHOMA_CLAIM_TOKEN are not set; run in a pod with a Neuron claim"));
  }
  const auto place = Place(token);
  if (!place.ok()) return Fail(place.status());
  sim::SocketNode node(socket, token);
  return sim::RunNccomTest(*options, *place, node, std::cout, std::cerr);
}
