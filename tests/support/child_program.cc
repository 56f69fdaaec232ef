#include "tests/support/child_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/clock.h"

namespace tahoma::testing {

std::string Bin(const std::string& program) {
  const char* folder = std::getenv("TAHOMA_BIN");
  TAHOMA_CHECK(folder != nullptr);
  return std::string(folder) + "/" + program;
}

ChildProgram::ChildProgram(const std::vector<std::string>& arguments, std::string log_file)
    : log_file_(std::move(log_file)) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int log = ::open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  TAHOMA_CHECK(log >= 0);
  pid_ = ::fork();
  TAHOMA_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    // Between fork and exec only what is safe in a process with threads.
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(log);
  // glibc 2.36 declares pidfd_open without C linkage.
  pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  TAHOMA_CHECK(pid_fd_ >= 0);
}

ChildProgram::~ChildProgram() {
  if (!ended_) {
    Kill(SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  ::close(pid_fd_);
}

void ChildProgram::Kill(int signal) {
  if (!ended_) ::kill(pid_, signal);
}

bool ChildProgram::WaitEnd(std::chrono::milliseconds timeout) {
  if (ended_) return true;
  pollfd ready{.fd = pid_fd_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, static_cast<int>(timeout.count())) <= 0) return false;
  ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

bool ChildProgram::WaitUntil(const std::function<bool()>& holds,
                             std::chrono::milliseconds timeout) {
  const SystemClock clock;
  const MonotonicTime end = clock.MonotonicNow() + timeout;
  while (!holds()) {
    if (clock.MonotonicNow() > end || WaitEnd(std::chrono::milliseconds(5))) return false;
  }
  return true;
}

std::optional<int> ChildProgram::Wait() {
  if (!WaitEnd(std::chrono::minutes(2))) {
    Kill(SIGKILL);
    WaitEnd(std::chrono::minutes(2));
  }
  if (!WIFEXITED(status_)) return std::nullopt;
  return WEXITSTATUS(status_);
}

std::string ChildProgram::log() const {
  std::ifstream in(log_file_);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace tahoma::testing
