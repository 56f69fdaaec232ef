// The processor time and memory that containers use, for kubectl top, by:
//
//   GET /stats/containers
//     {"containers": [{"namespace": "default", "pod": "web", "container": "main",
//                      "cpuNanoCores": 250000000, "memoryBytes": 1048576, "windowMillis": 10000}]}
//
// The route is installed before the server starts.
//
//   InstallUsageRoute(server, logs, clock);
//
// A container's processes are those with its TAHOMA_CONTAINER_ID, so programs of exec count, too.
// The rate is since the look before, at most a minute ago; without a look before, the mean since
// the container's oldest process began. A look within a second of another has the other's result:
// readers, however many, cost a look at the machine's processes each second.
//
// Scope: what /proc says (proc_pid_stat(5)).
//
// Thread safety: any thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/rest/server.h"
#include "sim-node/podrunner/log_folder.h"

namespace tahoma::sim {

struct ContainerUse {
  std::int64_t nano_cores = 0;
  std::int64_t memory_bytes = 0;
  std::chrono::milliseconds window{};
};

class ContainerUsage {
 public:
  // `proc` is /proc, but in tests.
  explicit ContainerUsage(std::filesystem::path proc) : proc_(std::move(proc)) {}

  // By TAHOMA_CONTAINER_ID. `now` must not go back.
  std::map<std::string, ContainerUse> Look(MonotonicTime now);

 private:
  struct Sum {
    std::int64_t cpu_millis = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t age_millis = 0;
  };
  using Sums = std::map<std::string, Sum>;

  Sums Read() const;

  const std::filesystem::path proc_;
  Mutex mutex_;
  bool looked_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, ContainerUse> uses_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime before_at_ ABSL_GUARDED_BY(mutex_){};
  Sums before_ ABSL_GUARDED_BY(mutex_);
};

// `clock` must outlive the server.
void InstallUsageRoute(rest::Server& server, std::shared_ptr<const LogFolder> pods,
                       const Clock& clock);

}  // namespace tahoma::sim
