#include "dra-plugin/kubelet/call_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/status.h"

namespace tahoma::dra {

CallLock::Held::~Held() {
  if (fd_ >= 0) close(fd_);  // closing drops the lock
}

absl::StatusOr<CallLock::Held> CallLock::Acquire() {
  std::unique_lock lock(mutex_);
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Unavailable("{}: cannot open the lock file: {}", path_, strerror(errno));
  while (flock(fd, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    close(fd);
    return Unavailable("{}: cannot lock: {}", path_, strerror(error));
  }
  return Held(std::move(lock), fd);
}

}  // namespace tahoma::dra
