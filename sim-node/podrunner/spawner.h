// Starts containers as local processes, watches them, and leaves none behind.
//
// Every container is the leader of its own session and process group, with stdin from /dev/null
// and stdout and stderr in its ContainerLog, without any other descriptor, and can gain no
// privilege that it does not start with (PR_SET_NO_NEW_PRIVS). With a user of its own (PodUsers) it
// has no other group, no capability, and limits on what it can use up.
//
// When the leader ends the rest of its group is killed, as the end of a container's first process
// ends a container; after the last container of a user, whatever else runs as that user. The kernel
// kills the leader when this program dies; Sweep finds processes of a former run by the state files
// and the variable TAHOMA_CONTAINER_ID, which children inherit unless they remove it. Processes
// that hide from it are ended with the users of pods (PodUsers::Open).
//
// Scope: POSIX processes. NodePods decides what to start and when.
//
// Thread safety: Start and Signal may be called from any thread; `ended` is called from the
// spawner's own thread.

#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "sim-node/podrunner/container_log.h"
#include "sim-node/podrunner/environment.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/podrunner/pod_machine.h"

namespace tahoma::sim {

// The variable by which a container's processes are found again.
inline constexpr std::string_view kContainerIdVariable = "TAHOMA_CONTAINER_ID";

struct Launch {
  std::string id{};             // unique, letters and digits
  std::optional<uid_t> user{};  // without one: this program's own
  int processes_most = 0;       // and threads, of the user; 0: as many as we may have
  Program program{};
  Environment environment{};
  std::filesystem::path working_dir{};
  std::filesystem::path log_file{};
};

struct Ended {
  std::string id{};
  Exit exit{};
};

// The interface that starts containers: as processes here, as nothing in the simulator.
class Spawner {
 public:
  virtual ~Spawner() = default;
  // Starts a container. After OK, `ended` is called once for that id. An error says what could not
  // be run and why; then `ended` is not called.
  virtual absl::Status Start(const Launch& launch) = 0;
  // SIGTERM or SIGKILL to the whole group; nothing when it has ended.
  virtual void Signal(const std::string& id, bool kill) = 0;
};

class PosixSpawner final : public Spawner {
 public:
  using EndedSink = std::function<void(const Ended& ended)>;

  // `state_folder` must exist. `ended` must not call back.
  PosixSpawner(const Clock& clock, std::filesystem::path state_folder, EndedSink ended);
  // Kills what still runs.
  ~PosixSpawner() override;

  absl::Status Start(const Launch& launch) override;
  void Signal(const std::string& id, bool kill) override;

  // Kills every process of containers that a former run recorded in `state_folder` and forgets
  // them. Gives their ids. Call before Start.
  static std::vector<std::string> Sweep(const std::filesystem::path& state_folder);

 private:
  struct Child {
    pid_t pid = -1;
    std::optional<uid_t> user;
    int pidfd = -1;
    int out = -1;
    int err = -1;
    bool exited = false;
    Exit exit{};
    std::unique_ptr<ContainerLog> log;
  };

  void Loop();
  void Wake();
  // Moves what a pipe holds into the log; closes it at its end.
  void Drain(int& fd, LogStream stream, Child& child, bool to_the_end);
  void Reap(Child& child);
  bool EndOf(const std::string& id, Child& child);
  std::filesystem::path StateFile(const std::string& id) const;

  const Clock& clock_;
  const std::filesystem::path state_folder_;
  const EndedSink ended_;
  int wake_[2] = {-1, -1};
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Child>> children_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tahoma::sim
