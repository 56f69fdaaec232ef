#include "dra-plugin/kubelet/call_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/status.h"

namespace tahoma::dra {

CallLock::Held::Held(CallLock& lock)
    : lock_(lock.mutex_), file_(open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_.get() < 0) {
    status_ = Unavailable("{}: cannot open the lock file: {}", lock.path_, strerror(errno));
    return;
  }
  while (flock(file_.get(), LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    status_ = Unavailable("{}: cannot lock: {}", lock.path_, strerror(errno));
    return;
  }
}

}  // namespace tahoma::dra
