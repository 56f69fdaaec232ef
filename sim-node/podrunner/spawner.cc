#include "sim-node/podrunner/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/file_descriptor.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/pod_users.h"

namespace tahoma::sim {
namespace {

constexpr std::string_view kStateSuffix = ".container";

int PidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// The arguments of a child, made before fork: after it only async-signal-safe calls are allowed.
struct ChildImage {
  std::vector<char*> argv;
  std::vector<std::string> variables;
  std::vector<char*> envp;
};

// For the kernel, arguments and variables end at their first zero byte, and a zero byte inside
// would cut the text short (runc refuses zero bytes, too).
absl::Status CheckText(const Launch& launch) {
  const auto has_zero = [](const std::string& text) { return text.find('\0') != text.npos; };
  for (std::size_t i = 0; i < launch.program.argv.size(); ++i) {
    if (has_zero(launch.program.argv[i])) {
      return InvalidArgument("argument {} of {} contains a zero byte", i, launch.program.path);
    }
  }
  for (const auto& [name, value] : launch.environment) {
    if (has_zero(value)) return InvalidArgument("variable {} contains a zero byte", name);
    if (has_zero(name)) return InvalidArgument("the name of a variable contains a zero byte");
  }
  if (has_zero(launch.working_dir.native())) {
    return InvalidArgument("the working directory contains a zero byte");
  }
  return absl::OkStatus();
}

ChildImage MakeImage(const Launch& launch) {
  ChildImage image;
  for (const std::string& arg : launch.program.argv) {
    image.argv.push_back(const_cast<char*>(arg.c_str()));
  }
  image.argv.push_back(nullptr);
  for (const auto& [name, value] : launch.environment) {
    image.variables.push_back(fmt::format("{}={}", name, value));
  }
  image.variables.push_back(fmt::format("{}={}", kContainerIdVariable, launch.id));
  for (std::string& variable : image.variables) image.envp.push_back(variable.data());
  image.envp.push_back(nullptr);
  return image;
}

// Opens the program before the user changes, because only our user may be able to reach the file.
// The file's own mode decides whether the container's user may run the program.
int OpenProgram(const std::string& path) { return open(path.c_str(), O_PATH | O_CLOEXEC); }

void Limit(__rlimit_resource resource, rlim_t most) {
  struct rlimit limit = {};
  getrlimit(resource, &limit);
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  setrlimit(resource, &limit);
}

// False, with errno, when the user cannot be changed. Limits come before the change: raising a
// limit takes rights that the new user lacks.
bool GiveUpOurRights(const Launch& launch) {
  constexpr rlim_t kFilesMost = 65'536;
  Limit(RLIMIT_CORE, 0);  // a core dump would hold the token
  if (launch.user) {
    Limit(RLIMIT_NOFILE, kFilesMost);
    if (launch.processes_most > 0) {
      Limit(RLIMIT_NPROC, static_cast<rlim_t>(launch.processes_most));
    }
    umask(0077);
    if (!BecomeUser(*launch.user)) return false;
  } else {
    umask(0022);
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// The descriptors and the parent of a child, known before fork.
struct ChildEnds {
  const Stdio* stdio = nullptr;
  int report = -1;   // takes a Failure when the program could not be started
  int program = -1;  // see OpenProgram
  pid_t parent = -1;
};

constexpr int kRootMade = -2;
constexpr int kRootItself = -1;

// Why a child became no container.
struct Failure {
  int error = 0;
  int place = kRootMade;  // of ContainerRoot::Place
};

bool EnterRoot(const Launch& launch, int& failed) {
  failed = kRootItself;
  if (!launch.root.Enter(&failed)) return false;
  failed = kRootMade;
  return true;
}

// Runs in the child.
[[noreturn]] void BecomeContainer(const Launch& launch, const ChildImage& image, ChildEnds ends) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  ends.stdio->Adopt();
  // All our descriptors are close-on-exec; this call also covers descriptors of libraries.
  syscall(SYS_close_range, 3U, ~0U, 1U << 2U);  // CLOSE_RANGE_CLOEXEC
  int failed = kRootMade;
  if (EnterRoot(launch, failed) && GiveUpOurRights(launch) &&
      chdir(launch.working_dir.c_str()) == 0) {
    // Comes after the change of user, because the change takes the signal away (prctl(2)).
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != ends.parent) _exit(127);
    execve(launch.program.path.c_str(), image.argv.data(), image.envp.data());
    // A volume may hide the program.
    if ((errno == EACCES || errno == ENOENT) && ends.program >= 0) {
      syscall(SYS_execveat, ends.program, "", image.argv.data(), image.envp.data(), AT_EMPTY_PATH);
    }
  }
  const Failure failure{.error = errno, .place = failed};
  [[maybe_unused]] const ssize_t wrote = write(ends.report, &failure, sizeof failure);
  _exit(127);
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void CloseWrite() {
    close(write_end);
    write_end = -1;
  }
  int ReleaseRead() { return std::exchange(read_end, -1); }
};

// Writes "user 2000000000", or "user -" for our own user, before the container starts: after our
// death an unrecorded container would not be found. The file need not outlive the machine.
absl::Status WriteState(const std::filesystem::path& file, std::optional<uid_t> user) {
  std::ofstream out(file, std::ios::trunc);
  out << "user " << (user ? std::to_string(*user) : "-") << "\n";
  out.close();
  return out ? absl::OkStatus() : Unavailable("{} cannot be written", file.string());
}

Exit ExitOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return {.code = 128 + number, .signal = number};
  }
  return {.code = WEXITSTATUS(wait_status)};
}

enum class Marked : std::uint8_t { kNo, kYes, kCannotTell };

// Whether the process of a folder in /proc has an environment that is empty: fields 50 and 51 of
// proc_pid_stat(5), its two ends, are equal. Both are 0 while the process starts a program. The
// second field, in parentheses, may hold anything.
bool HasEmptyEnvironment(const std::filesystem::path& process) {
  std::ifstream in(process / "stat", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  std::string begin;
  std::string end;
  for (int number = 3; number <= 51; ++number) {
    begin = std::exchange(end, {});
    if (!(fields >> end)) return false;
  }
  return begin == end && end != "0";
}

// Whether the process of a folder in /proc has the marker in its environment. While a process
// starts a program, the kernel shows no environment (fs/proc/base.c, environ_open) but already the
// program; kernel threads and zombies have no program.
Marked HasMarker(const std::filesystem::path& process, const std::string& marker) {
  std::ifstream in(process / "environ", std::ios::binary);
  const std::string environment((std::istreambuf_iterator<char>(in)), {});
  if (environment.empty()) {
    std::error_code none;
    const auto program = std::filesystem::read_symlink(process / "exe", none);
    return program.empty() || HasEmptyEnvironment(process) ? Marked::kNo : Marked::kCannotTell;
  }
  const std::size_t at = environment.find(marker);
  const bool whole =
      at != std::string::npos && (at == 0 || environment[at - 1] == '\0') &&
      (at + marker.size() == environment.size() || environment[at + marker.size()] == '\0');
  return whole ? Marked::kYes : Marked::kNo;
}

// Kills every process with the container's id in its environment, until a look finds none, because
// a process may have started another meanwhile. Waits for a process that is starting a program,
// because on a loaded machine such a process may get no processor for long. Spares a process
// without an environment.
void KillMarked(const std::string& id) {
  constexpr int kLooksMost = 100;
  constexpr int kLooksAtOne = 2000;
  constexpr int kPauseMs = 1;
  const std::string marker = fmt::format("{}={}", kContainerIdVariable, id);
  bool killed = true;
  for (int look = 0; killed && look < kLooksMost; ++look) {
    killed = false;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      Marked marked = HasMarker(entry.path(), marker);
      for (int i = 0; marked == Marked::kCannotTell && i < kLooksAtOne; ++i) {
        poll(nullptr, 0, kPauseMs);
        marked = HasMarker(entry.path(), marker);
      }
      if (marked != Marked::kYes) continue;
      kill(std::stoi(name), SIGKILL);
      killed = true;
    }
  }
}

}  // namespace

Process::Process(pid_t pid, StreamEnds ends)
    : pid_(pid), pidfd_(PidFd(pid)), ends_(std::move(ends)) {}

Process::~Process() {
  if (exit_) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

// As with PosixSpawner::Reap, the group is killed while the leader is a zombie.
std::optional<Exit> Process::Reap() {
  siginfo_t ended = {};
  if (exit_ || waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid == 0) {
    return exit_;
  }
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_ = ExitOf(status);
  return exit_;
}

PosixSpawner::PosixSpawner(const Clock& clock, std::filesystem::path state_folder, EndedSink ended)
    : clock_(clock), state_folder_(std::move(state_folder)), ended_(std::move(ended)) {
  TAHOMA_CHECK(pipe2(wake_, O_CLOEXEC | O_NONBLOCK) == 0);
  thread_ = std::thread([this] { Loop(); });
}

PosixSpawner::~PosixSpawner() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [id, child] : children_) kill(-child->pid, SIGKILL);
  }
  Wake();
  thread_.join();
  close(wake_[0]);
  close(wake_[1]);
}

void PosixSpawner::Wake() { [[maybe_unused]] const ssize_t wrote = write(wake_[1], "w", 1); }

std::filesystem::path PosixSpawner::StateFile(const std::string& id) const {
  return state_folder_ / (id + std::string(kStateSuffix));
}

absl::StatusOr<pid_t> PosixSpawner::Fork(const Launch& launch, const Stdio& stdio) {
  TAHOMA_RETURN_IF_ERROR(CheckText(launch));
  TAHOMA_CHECK(launch.user != uid_t{0});
  Pipe report;
  if (report.write_end < 0) {
    return Unavailable("no pipe for container {}: {}", launch.id, std::strerror(errno));
  }
  const ChildImage image = MakeImage(launch);
  const FileDescriptor program(OpenProgram(launch.program.path));
  const ChildEnds ends{
      .stdio = &stdio, .report = report.write_end, .program = program.get(), .parent = getpid()};
  if (stopping_) return Unavailable("the pod runner is stopping");
  const pid_t pid = fork();
  if (pid == 0) BecomeContainer(launch, image, ends);
  if (pid < 0) return Unavailable("fork: {}", std::strerror(errno));
  report.CloseWrite();
  Failure failure;
  if (read(report.read_end, &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure)) {
    waitpid(pid, nullptr, 0);
    const int error = failure.error;
    if (failure.place != kRootMade) {
      return FailedPrecondition("{} cannot be mounted: {}", launch.root.Place(failure.place),
                                std::strerror(error));
    }
    return FailedPrecondition("{} in {}{}: {}", launch.program.path, launch.working_dir.string(),
                              launch.user ? fmt::format(" as user {}", *launch.user) : "",
                              std::strerror(error));
  }
  return pid;
}

absl::Status PosixSpawner::Start(const Launch& launch) {
  TAHOMA_ASSIGN_OR_RETURN(const std::unique_ptr<Stdio> stdio,
                          Stdio::Make({.in = launch.has_in, .tty = launch.has_tty}, launch.user));
  auto child = std::make_shared<Child>();
  child->user = launch.user;
  child->launch = std::make_shared<const Launch>(launch);
  if (launch.one_in) child->audience.KeepForFirst();
  child->log = std::make_unique<ContainerLog>(launch.log_file, ContainerLog::Limits{});
  TAHOMA_RETURN_IF_ERROR(WriteState(StateFile(launch.id), launch.user));
  // Under the lock, the loop's thread forks nothing while this child is half made, and the
  // destructor finds every child.
  const MutexLock lock(mutex_);
  const absl::StatusOr<pid_t> pid = Fork(launch, *stdio);
  if (!pid.ok()) {
    std::error_code ignored;
    std::filesystem::remove(StateFile(launch.id), ignored);
    return pid.status();
  }
  child->pid = *pid;
  child->pidfd = PidFd(child->pid);
  StreamEnds ends = stdio->Take();
  child->in = std::move(ends.in);
  child->out = ends.out.Release();
  child->err = ends.err.Release();
  children_[launch.id] = std::move(child);
  Wake();
  return absl::OkStatus();
}

std::string PosixSpawner::FindRunning(const std::string& pod_uid,
                                      const std::string& container) const {
  const std::string prefix =
      container.empty() ? pod_uid + "_" : fmt::format("{}_{}_", pod_uid, container);
  const MutexLock lock(mutex_);
  for (const auto& [id, child] : children_) {
    if (id.starts_with(prefix) && !child->exited) return id;
  }
  return "";
}

std::shared_ptr<const Launch> PosixSpawner::LaunchOf(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = children_.find(id);
  return found == children_.end() || found->second->exited ? nullptr : found->second->launch;
}

absl::StatusOr<std::unique_ptr<Process>> PosixSpawner::Run(const std::string& id,
                                                           const Program& program,
                                                           StreamWish wish) {
  const MutexLock lock(mutex_);
  const auto found = children_.find(id);
  if (found == children_.end() || found->second->exited) {
    return NotFound("container {} does not run", id);
  }
  Launch launch = *found->second->launch;
  launch.program = program;
  if (wish.tty) launch.environment.try_emplace("TERM", "xterm");
  TAHOMA_ASSIGN_OR_RETURN(const std::unique_ptr<Stdio> stdio, Stdio::Make(wish, launch.user));
  TAHOMA_ASSIGN_OR_RETURN(const pid_t pid, Fork(launch, *stdio));
  return std::make_unique<Process>(pid, stdio->Take());
}

absl::StatusOr<std::shared_ptr<Attachment>> PosixSpawner::Attach(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = children_.find(id);
  if (found == children_.end() || found->second->exited) {
    return NotFound("container {} does not run", id);
  }
  Child& child = *found->second;
  const int in = child.in.get();
  auto session = std::make_shared<Attachment>(
      FileDescriptor(in < 0 ? -1 : fcntl(in, F_DUPFD_CLOEXEC, 0)),
      FileDescriptor(fcntl(wake_[1], F_DUPFD_CLOEXEC, 0)), child.launch->has_tty);
  child.audience.Add(session);
  return session;
}

void PosixSpawner::EndIn(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = children_.find(id);
  if (found != children_.end()) found->second->in = FileDescriptor(-1);
}

void PosixSpawner::Signal(const std::string& id, bool force) {
  const MutexLock lock(mutex_);
  const auto found = children_.find(id);
  if (found == children_.end() || found->second->exited) return;
  kill(-found->second->pid, force ? SIGKILL : SIGTERM);
}

void PosixSpawner::Drain(int& fd, LogStream stream, Child& child, bool to_the_end) {
  char piece[16 << 10];
  // Reads one piece a round while the container runs, because a chatty container must not starve
  // the others. A pipe holds at most 1 MiB once all writers have ended.
  for (int turns = to_the_end ? 1024 : 1; fd >= 0 && turns > 0; --turns) {
    const ssize_t got = read(fd, piece, sizeof piece);
    if (got > 0) {
      const std::string_view bytes(piece, static_cast<std::size_t>(got));
      child.log->Append(stream, bytes, clock_.WallNow());
      child.audience.Append(stream, bytes);
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(fd);
    fd = -1;
  }
}

// Kills the group while the leader is a zombie: no other process can have the leader's number yet.
void PosixSpawner::Reap(Child& child) {
  siginfo_t ended = {};
  if (waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid == 0) {
    return;
  }
  kill(-child.pid, SIGKILL);
  int status = 0;
  waitpid(child.pid, &status, 0);
  child.exited = true;
  child.exit = ExitOf(status);
  close(child.pidfd);
  child.pidfd = -1;
  Drain(child.out, LogStream::kStdout, child, true);
  Drain(child.err, LogStream::kStderr, child, true);
  for (int* fd : {&child.out, &child.err}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
  child.log->Close(clock_.WallNow());
  child.audience.End();
}

// True when the container has ended; the container is then forgotten. With the last container of a
// user, all processes of the user end. The lock keeps other containers of the pod from starting.
bool PosixSpawner::EndOf(const std::string& id, Child& child) {
  const MutexLock lock(mutex_);
  Reap(child);
  if (!child.exited) return false;
  children_.erase(id);
  const bool last = std::none_of(children_.begin(), children_.end(), [&](const auto& other) {
    return other.second->user == child.user;
  });
  if (child.user && last) KillAllOf(*child.user);
  return true;
}

void PosixSpawner::Loop() {
  while (true) {
    std::vector<pollfd> polled = {{.fd = wake_[0], .events = POLLIN, .revents = 0}};
    std::map<std::string, std::shared_ptr<Child>> children;
    {
      const MutexLock lock(mutex_);
      if (stopping_ && children_.empty()) return;
      children = children_;
    }
    for (const auto& [id, child] : children) {
      const bool waits = child->audience.full();
      for (const int fd : {child->pidfd, waits ? -1 : child->out, waits ? -1 : child->err}) {
        polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
    }
    poll(polled.data(), polled.size(), -1);
    char drained[64];
    while (read(wake_[0], drained, sizeof drained) > 0) {
    }
    std::size_t at = 1;
    for (const auto& [id, child] : children) {
      const bool exit_seen = polled[at].revents != 0;
      if (polled[at + 1].revents != 0) Drain(child->out, LogStream::kStdout, *child, false);
      if (polled[at + 2].revents != 0) Drain(child->err, LogStream::kStderr, *child, false);
      at += 3;
      if (!exit_seen || !EndOf(id, *child)) continue;
      KillMarked(id);  // processes that left the group for another session
      std::error_code ignored;
      std::filesystem::remove(StateFile(id), ignored);
      ended_({.id = id, .exit = child->exit});
    }
  }
}

std::vector<std::string> PosixSpawner::Sweep(const std::filesystem::path& state_folder) {
  std::vector<std::string> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state_folder, error)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(kStateSuffix)) continue;
    ids.push_back(name.substr(0, name.size() - kStateSuffix.size()));
  }
  for (const std::string& id : ids) {
    const std::filesystem::path file = state_folder / (id + std::string(kStateSuffix));
    KillMarked(id);
    std::filesystem::remove(file, error);
  }
  return ids;
}

}  // namespace tahoma::sim
