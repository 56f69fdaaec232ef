// sim-node: one emulated Trn2 instance, and the kubelet's place for the pods bound to it; or a
// fleet of virtual nodes in an API server.

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include "lib/base/status.h"
#include "lib/config/log.h"
#include "lib/config/parse.h"
#include "sim-node/app/options.h"
#include "sim-node/app/sim_node.h"

namespace {

using namespace tahoma;

int Fail(const absl::Status& status) {
  spdlog::error("{}", Message(status));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  sim::Options options;
  const config::Spec spec = sim::DeclareOptions(options);
  if (const std::optional<int> exit = config::Parse(argc, argv, spec)) return *exit;
  // State, logs, keys and the plugin's socket are for this user alone. A file for pods gets its
  // mode when made.
  umask(0077);
  config::StartLog("sim-node", options.log);
  if (const absl::Status checked = sim::CheckOptions(options); !checked.ok()) return Fail(checked);

  // Blocked before any thread begins: all threads inherit the mask, and only sigwait sees the
  // signals.
  signal(SIGPIPE, SIG_IGN);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  auto program = sim::SimNode::Start(options);
  if (!program.ok()) return Fail(program.status());
  int number = 0;
  sigwait(&ends, &number);
  spdlog::info("signal {}: ending", number);
  (*program)->Stop();
  return 0;
}
