#include "controller/app/ending.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace tahoma::controller {
namespace {

// Runs in any thread at any place, so it may use nothing but system calls.
extern "C" void EndNow(int /*signal*/) {
  constexpr std::string_view kWords =
      "controller: something hangs, so it ends as if it were killed; what was acknowledged is "
      "kept\n";
  (void)!::write(STDERR_FILENO, kWords.data(), kWords.size());
  ::_exit(1);
}

}  // namespace

void EndWithin(std::chrono::seconds most) {
  struct sigaction action = {};
  action.sa_handler = &EndNow;
  ::sigaction(SIGALRM, &action, nullptr);
  ::alarm(static_cast<unsigned>(most.count()));
}

}  // namespace tahoma::controller
