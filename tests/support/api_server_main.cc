// tahoma-api-server: the standalone Kubernetes API alone, for tests with real clients.
//
//   tahoma-api-server --data DIR --crds DIR --port-file FILE [--address 127.0.0.1:PORT]
//
// Listens on a free loopback port, or on the given address, writes "http://127.0.0.1:PORT" into
// FILE when ready, and ends in order on SIGTERM. Trusts every caller; for tests only.

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/access/account_tokens.h"
#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/http_front.h"
#include "controller/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {
namespace {

struct Arguments {
  std::string data, crds, port_file;
  std::string address = "127.0.0.1:0";
};

absl::Status InstallCrds(apiserver::ApiServer& server, const std::string& dir) {
  if (dir.empty()) return absl::OkStatus();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    TAHOMA_RETURN_IF_ERROR(Annotate(server.InstallCrd(text), file.string()));
  }
  return absl::OkStatus();
}

// A kubelet that answers every log request with the request itself.
rest::Response EchoLog(const apiserver::NodeEndpoint& node, const std::string& target) {
  return rest::Response::Text(200, fmt::format("{}:{}{}\n", node.host, node.port, target));
}

absl::Status Run(const Arguments& arguments) {
  // Blocked before any thread starts, so only sigwait below receives these signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const SystemClock clock;
  TAHOMA_ASSIGN_OR_RETURN(const auto store, Store::Open({.dir = arguments.data}));
  apiserver::ApiServer::Options options;
  options.seed = SeedFromMachine();
  options.node_fetch = &EchoLog;
  TAHOMA_ASSIGN_OR_RETURN(AccountTokens tokens, AccountTokens::Of(NewAccountKey()));
  options.account_tokens = std::make_shared<const AccountTokens>(std::move(tokens));
  TAHOMA_ASSIGN_OR_RETURN(const auto server,
                          apiserver::ApiServer::Open(*store, clock, std::move(options)));
  TAHOMA_RETURN_IF_ERROR(InstallCrds(*server, arguments.crds));
  rest::Metrics metrics;
  apiserver::HttpFront front(*server, {.address = arguments.address}, metrics);
  TAHOMA_RETURN_IF_ERROR(front.Start());
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(arguments.port_file, front.url() + "\n", 0644));
  int signal = 0;
  sigwait(&ends, &signal);
  front.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace tahoma::controller

int main(int argc, char** argv) {
  tahoma::controller::Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--data") arguments.data = argv[i + 1];
    if (flag == "--crds") arguments.crds = argv[i + 1];
    if (flag == "--port-file") arguments.port_file = argv[i + 1];
    if (flag == "--address") arguments.address = argv[i + 1];
  }
  const absl::Status status = tahoma::controller::Run(arguments);
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
