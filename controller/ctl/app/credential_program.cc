#include "controller/ctl/app/credential_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/file_descriptor.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kOutputBytesMost = 1 << 20;
constexpr int kNotFoundStatus = 127;  // of a program that glibc could not start in the child

// Our environment, and the call's above it.
std::vector<std::string> EnvironmentOf(const kube::CredentialCall& call) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto replaces = [&](const auto& variable) {
      return text.starts_with(variable.first) &&
             text.substr(variable.first.size()).starts_with('=');
    };
    if (std::ranges::none_of(call.environment, replaces)) all.emplace_back(text);
  }
  for (const auto& [name, value] : call.environment)
    all.push_back(fmt::format("{}={}", name, value));
  return all;
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status NoSuchProgram(const kube::CredentialCall& call) {
  const std::string hint = call.install_hint.empty() ? "" : "\n\n" + call.install_hint;
  return NotFound("exec: executable {} not found{}", call.command, hint);
}

// Starts the program with `output` as its standard output.
absl::StatusOr<pid_t> Start(const kube::CredentialCall& call, int output) {
  std::vector<std::string> words = {call.command};
  words.insert(words.end(), call.args.begin(), call.args.end());
  std::vector<std::string> variables = EnvironmentOf(call);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!call.interactive) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, call.command.c_str(), &actions, nullptr,
                                 PointersTo(words).data(), PointersTo(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return NoSuchProgram(call);
  if (error != 0) {
    return Unavailable("exec: {} cannot be started: {}", call.command, std::strerror(error));
  }
  return child;
}

// Waits for the end of the program and returns its wait status.
int Await(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

absl::StatusOr<std::string> RunCredentialProgram(const kube::CredentialCall& call) {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Unavailable("exec: no pipe for {}: {}", call.command, std::strerror(errno));
  }
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  TAHOMA_ASSIGN_OR_RETURN(const pid_t child, Start(call, writer.get()));
  writer.Close();
  std::string printed;
  std::array<char, 4096> piece;
  while (printed.size() <= kOutputBytesMost) {
    const ssize_t got = read(reader.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    printed.append(piece.data(), static_cast<std::size_t>(got));
  }
  const bool too_much = printed.size() > kOutputBytesMost;
  if (too_much) kill(child, SIGKILL);
  const int status = Await(child);
  if (too_much) {
    return ResourceExhausted("exec: executable {} printed more than {} bytes", call.command,
                             kOutputBytesMost);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return printed;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFoundStatus) return NoSuchProgram(call);
  return Unavailable("exec: executable {} failed with {} {}", call.command,
                     WIFEXITED(status) ? "exit code" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

}  // namespace tahoma::controller
