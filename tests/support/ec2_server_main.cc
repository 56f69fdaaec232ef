// tahoma-ec2-server: EC2's Query protocol alone, over a fake seller, for tests with real clients.
//
//   tahoma-ec2-server --port-file FILE [--blocks N] [--access-keys FILE]
//
// Listens on a free loopback port, writes "http://127.0.0.1:PORT" into FILE once it serves, and
// ends in order on SIGTERM. With an access key file it verifies signatures.

#include <signal.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "controller/ec2/ec2_api.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"
#include "tests/support/fake_ec2_service.h"

namespace tahoma::controller::ec2 {
namespace {

struct Arguments {
  std::string port_file, access_keys;
  int blocks = 0;
};

absl::Status Run(const Arguments& arguments) {
  // Blocked before any thread starts, so that only sigwait below receives them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const SystemClock clock;
  Ec2Options options;
  if (!arguments.access_keys.empty()) {
    std::ifstream in(arguments.access_keys);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    TAHOMA_ASSIGN_OR_RETURN(AccessKeys keys, AccessKeys::Parse(text, arguments.access_keys));
    options.keys = std::make_shared<const AccessKeys>(std::move(keys));
  }
  FakeEc2Service service(arguments.blocks);
  Ec2Api ec2(service, options, clock, SeedFromMachine());
  rest::Metrics metrics;
  rest::Server server({.address = "127.0.0.1:0"}, metrics);
  server.SetGate(
      [&](rest::Request& head) { return Ec2Api::Serves(head) ? ec2.Admit(head) : std::nullopt; });
  ec2.AddRoutes(server);
  TAHOMA_RETURN_IF_ERROR(server.Start());
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(arguments.port_file, server.url() + "\n", 0644));
  int signal = 0;
  sigwait(&ends, &signal);
  server.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace tahoma::controller::ec2

int main(int argc, char** argv) {
  tahoma::controller::ec2::Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--port-file") arguments.port_file = argv[i + 1];
    if (flag == "--access-keys") arguments.access_keys = argv[i + 1];
    if (flag == "--blocks") arguments.blocks = std::stoi(argv[i + 1]);
  }
  const absl::Status status = tahoma::controller::ec2::Run(arguments);
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
