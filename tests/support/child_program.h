// A program that a test runs, watches and kills.
//
//   ChildProgram controller({Bin("controller"), "--standalone"}, dir.path() + "/log");
//   while (!std::filesystem::exists(port_file)) {
//     ASSERT_FALSE(controller.WaitEnd(std::chrono::milliseconds(10))) << controller.log();
//   }
//   controller.Kill(SIGKILL);
//   EXPECT_EQ(controller.Wait(), std::nullopt);            // it did not exit by itself
//
// The destructor kills a running program.
//
// Thread safety: belongs to one thread.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tahoma::testing {

// Returns the path of one of our programs, from $TAHOMA_BIN.
std::string Bin(const std::string& program);

class ChildProgram {
 public:
  // Starts `arguments[0]`; stdout and stderr go to `log_file`.
  ChildProgram(const std::vector<std::string>& arguments, std::string log_file);
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  pid_t pid() const { return pid_; }
  void Kill(int signal);
  // Whether the program has ended, after at most `timeout`.
  bool WaitEnd(std::chrono::milliseconds timeout);
  // Whether `holds` becomes true while the program runs, after at most `timeout`.
  bool WaitUntil(const std::function<bool()>& holds, std::chrono::milliseconds timeout);
  // Waits for the program's end, at most two minutes; then kills the program. Returns the exit
  // status, or nothing after a signal.
  std::optional<int> Wait();
  // Returns the output until now.
  std::string log() const;

 private:
  const std::string log_file_;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  bool ended_ = false;
  int status_ = 0;  // of waitpid
};

}  // namespace tahoma::testing
