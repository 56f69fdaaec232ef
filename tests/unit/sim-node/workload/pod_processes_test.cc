#include "sim-node/workload/app/pod_processes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace tahoma::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> Numbers(const std::vector<ListedProcess>& processes) {
  std::vector<int> numbers;
  for (const ListedProcess& process : processes) numbers.push_back(process.pid);
  return numbers;
}

// A sleeping program with this token in its environment.
class Sleeper {
 public:
  Sleeper(const std::string& token, bool with_socket) {
    const std::string variable = "TAHOMA_CLAIM_TOKEN=" + token;
    int started[2] = {-1, -1};
    int sockets[2] = {-1, -1};
    EXPECT_EQ(pipe2(started, O_CLOEXEC), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | (with_socket ? 0 : SOCK_CLOEXEC), 0, sockets), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const char* const arguments[] = {"sleep", "1000", nullptr};
      const char* const environment[] = {variable.c_str(), nullptr};
      execve("/bin/sleep", const_cast<char**>(arguments), const_cast<char**>(environment));
      _exit(1);
    }
    close(started[1]);
    char none = 0;
    EXPECT_EQ(read(started[0], &none, 1), 0);  // the pipe closes when the program has started
    for (const int end : {started[0], sockets[0], sockets[1]}) close(end);
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  int pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(PodProcessesTest, ProcessesWithTheTokenAndASocketUseTheDevices) {
  const std::string token = "token-" + std::to_string(getpid());
  const Sleeper user(token, /*with_socket=*/true);
  const Sleeper shell(token, /*with_socket=*/false);
  const Sleeper stranger(token + "0", /*with_socket=*/true);
  const std::vector<ListedProcess> found = ProcessesOf(token, /*with_self=*/false);
  ASSERT_THAT(Numbers(found), ElementsAre(user.pid()));
  EXPECT_EQ(found[0].command, "sleep 1000");
  EXPECT_THAT(Numbers(ProcessesOf(token + "0", false)), ElementsAre(stranger.pid()));
  EXPECT_THAT(ProcessesOf("nobody's", true), IsEmpty());
}

}  // namespace
}  // namespace tahoma::sim
