// controller: places gangs of pods on Trainium2 capacity, on a cluster or standing alone.
//
//   controller --standalone --data-dir /var/lib/tahoma --write-kubeconfig kubeconfig
//   controller backup --admin-url http://127.0.0.1:8002 backup.ndjson
//   controller restore backup.ndjson --data-dir /var/lib/tahoma-new
//   controller --check /var/lib/tahoma
//   controller --replay trace.swf.gz --fleet 2-UltraServers
//
// Ends with status 0 on SIGTERM and SIGINT, 1 when something outside is wrong (the message on
// stderr says what), 2 for a wrong command line or configuration.

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "controller/app/check.h"
#include "controller/app/options.h"
#include "controller/app/program.h"
#include "controller/app/replay_command.h"
#include "controller/backup/backup_command.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace {

// Every open watch is a file. The usual soft limit of 1,024 is there for programs that use
// select(2); we do not.
void RaiseFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
  // Files that the controller writes are readable by itself only: its data holds Secrets.
  ::umask(0077);
  if (const std::optional<int> exit = tahoma::controller::RunBackupCommand(argc, argv)) {
    return *exit;
  }
  if (const std::optional<int> exit = tahoma::controller::RunCheckCommand(argc, argv)) return *exit;
  if (const std::optional<int> exit = tahoma::controller::RunReplayCommand(argc, argv)) {
    return *exit;
  }
  tahoma::controller::Options options;
  const tahoma::config::Spec spec = tahoma::controller::DeclareOptions(options);
  if (const std::optional<int> exit = tahoma::config::Parse(argc, argv, spec)) return *exit;
  if (const absl::Status status = tahoma::controller::CheckOptions(options); !status.ok()) {
    fmt::print(stderr, "controller: {}\n", tahoma::Message(status));
    return 2;
  }
  // The signals are blocked before any thread begins, so that all inherit it; one thread waits for
  // them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFileLimit();
  const absl::Status status = tahoma::controller::RunProgram(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "controller: {}\n", tahoma::Message(status));
  return 1;
}
