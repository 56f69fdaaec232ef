// Starts containers as local processes, watches the containers, and leaves no process behind.
//
// Every container leads its own session and process group, with stdin from /dev/null unless its
// Launch says otherwise, stdout and stderr in its ContainerLog, and no other descriptor. Sessions
// may see the output beside the log (Attach), and run programs of their own as the container's
// (Run). A container can gain no privilege beyond its
// first privileges (PR_SET_NO_NEW_PRIVS). A container with its own user (PodUsers) has no other
// group, no capability, and limits on its use of the machine.
//
// When the leader ends, the rest of its group is killed, as in a container whose first process
// ends. After the last container of a user, every other process of the user is killed. The kernel
// kills the leader when this program dies. Sweep finds processes of a former run by the state files
// and the variable TAHOMA_CONTAINER_ID, which children inherit unless they remove it.
// PodUsers::Open ends processes that hide from Sweep.
//
// Scope: POSIX processes. NodePods decides which container starts, and when.
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
#include "sim-node/podrunner/attachment.h"
#include "sim-node/podrunner/container_log.h"
#include "sim-node/podrunner/container_root.h"
#include "sim-node/podrunner/environment.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/podrunner/pod_machine.h"
#include "sim-node/podrunner/stdio.h"

namespace tahoma::sim {

// The variable that marks a container's processes.
inline constexpr std::string_view kContainerIdVariable = "TAHOMA_CONTAINER_ID";

struct Launch {
  std::string id{};             // unique, letters and digits
  std::optional<uid_t> user{};  // without a user: this program's own user
  int processes_most = 0;       // of the user, threads included; 0: as many as we may have
  Program program{};
  Environment environment{};
  std::filesystem::path working_dir{};
  std::filesystem::path log_file{};
  ContainerRoot root{};
  std::string image{};   // for Run: whose programs the container has
  bool has_in = false;   // stdin is open until a session ends it (EndIn), or the container
  bool one_in = false;   // the first session that writes to stdin ends it with itself
  bool has_tty = false;  // stdin, stdout and stderr are one terminal
};

// A program that a session runs in a container. Killed with its process group at the end of the
// object, at the container's end, and when this program dies.
class Process {
 public:
  Process(pid_t pid, StreamEnds ends);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Nothing while the program runs; then the rest of its group is killed.
  std::optional<Exit> Reap();
  // Readable when the program has ended.
  int pidfd() const { return pidfd_.get(); }
  StreamEnds& ends() { return ends_; }

 private:
  const pid_t pid_;
  const FileDescriptor pidfd_;
  StreamEnds ends_;
  std::optional<Exit> exit_;
};

struct Ended {
  std::string id{};
  Exit exit{};
};

// The interface that starts containers: processes here, nothing in the simulator.
class Spawner {
 public:
  virtual ~Spawner() = default;
  // Starts a container. After OK, `ended` is called once for the id. An error names the program and
  // the reason; then `ended` is not called.
  virtual absl::Status Start(const Launch& launch) = 0;
  // Sends SIGTERM or SIGKILL to the whole group; does nothing after the container's end.
  virtual void Signal(const std::string& id, bool kill) = 0;
};

class PosixSpawner final : public Spawner {
 public:
  using EndedSink = std::function<void(const Ended& ended)>;

  // `state_folder` must exist. `ended` must not call back.
  PosixSpawner(const Clock& clock, std::filesystem::path state_folder, EndedSink ended);
  // Kills all running containers.
  ~PosixSpawner() override;

  absl::Status Start(const Launch& launch) override;
  void Signal(const std::string& id, bool kill) override;

  // Returns the id of the pod's running container of that name, "<pod uid>_<container>_<attempt>";
  // any of the pod's without a name. Empty when none runs.
  std::string FindRunning(const std::string& pod_uid, const std::string& container) const;
  // Returns how the container was started; null when it does not run.
  std::shared_ptr<const Launch> LaunchOf(const std::string& id) const;
  // Runs a program with the user, environment and folder of a running container. Errors as Start;
  // kNotFound when the container does not run. The calling thread must outlive the process.
  absl::StatusOr<std::unique_ptr<Process>> Run(const std::string& id, const Program& program,
                                               StreamWish wish);
  // kNotFound when the container does not run.
  absl::StatusOr<std::shared_ptr<Attachment>> Attach(const std::string& id);
  // Closes the container's stdin, as soon as no session has it any more.
  void EndIn(const std::string& id);

  // Kills every process of containers that a former run recorded in `state_folder`, forgets the
  // containers, and returns their ids. Call before Start.
  static std::vector<std::string> Sweep(const std::filesystem::path& state_folder);

 private:
  struct Child {
    pid_t pid = -1;
    std::optional<uid_t> user;
    std::shared_ptr<const Launch> launch;
    int pidfd = -1;
    FileDescriptor in{-1};
    int out = -1;
    int err = -1;
    Audience audience;
    bool exited = false;
    Exit exit{};
    std::unique_ptr<ContainerLog> log;
  };

  // Forks and starts the program; then `stdio` has this side's ends.
  absl::StatusOr<pid_t> Fork(const Launch& launch, const Stdio& stdio)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();
  void Wake();
  // Moves the bytes of a pipe into the log; closes the pipe at its end.
  void Drain(int& fd, LogStream stream, Child& child, bool to_the_end);
  void Reap(Child& child);
  bool EndOf(const std::string& id, Child& child);
  std::filesystem::path StateFile(const std::string& id) const;

  const Clock& clock_;
  const std::filesystem::path state_folder_;
  const EndedSink ended_;
  int wake_[2] = {-1, -1};
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Child>> children_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tahoma::sim
