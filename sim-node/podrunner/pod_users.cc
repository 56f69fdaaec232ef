#include "sim-node/podrunner/pod_users.h"

#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// Above what distributions and container engines give away (Debian's policy 9.2.2 and
// /etc/subuid); the second is for a user namespace that has only 65,536 users.
constexpr std::array<std::uint32_t, 2> kRanges = {2'000'000'000, 40'000};
constexpr int kRangesTried = 64;

constexpr std::string_view kOtherwise =
    "; run sim-node as root, or say podRunner.podUser: same if its pods may do what it may";

// Forks a child that tries to become `user`; returns 0 or its errno.
int TryToBecome(uid_t user) {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(BecomeUser(user) ? 0 : errno);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

// True when nobody else has any of those numbers. The lock belongs to the descriptor.
bool LockRange(int fd, std::uint32_t first, std::uint32_t count) {
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = count;
  return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

absl::Status WhyNot(int error, uid_t user) {
  if (error == EINVAL) {
    return PermissionDenied(
        "user {} is not mapped in this user namespace (/proc/self/uid_map): set "
        "podRunner.firstUser to one that is{}",
        user, kOtherwise);
  }
  return PermissionDenied("pods cannot be started as users of their own (as user {}: {}){}", user,
                          std::strerror(error), kOtherwise);
}

// The first range, from `first` on, that nobody has; nothing when none of them is free.
std::optional<std::uint32_t> LockFree(int fd, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = 0; i < kRangesTried; ++i) {
    if (LockRange(fd, first + i * count, count)) return first + i * count;
  }
  return std::nullopt;
}

// Somebody may be logged in as an account, and what is a pod's ends with the pod.
absl::Status CheckNoAccount(uid_t first, uid_t last) {
  absl::Status status;
  setpwent();
  while (const passwd* account = getpwent()) {
    if (account->pw_uid < first || account->pw_uid > last) continue;
    status = InvalidArgument(
        "user {} is the account {}: set podRunner.firstUser to the first of {} that are none",
        account->pw_uid, account->pw_name, last - first + 1);
    break;
  }
  endpwent();
  return status;
}

void KillAllOfRange(uid_t first, uid_t last) {
  std::set<uid_t> users;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    struct stat found = {};
    if (stat(entry.path().c_str(), &found) != 0) continue;
    if (found.st_uid >= first && found.st_uid <= last) users.insert(found.st_uid);
  }
  for (const uid_t user : users) KillAllOf(user);
}

}  // namespace

// The system calls themselves: glibc's change all threads and may not be called after fork.
bool BecomeUser(uid_t user) {
  return syscall(SYS_setgroups, 0, nullptr) == 0 && syscall(SYS_setresgid, user, user, user) == 0 &&
         syscall(SYS_setresuid, user, user, user) == 0 && getuid() == user;
}

absl::StatusOr<std::unique_ptr<PodUsers>> PodUsers::Open(const Options& options) {
  TAHOMA_CHECK(options.count > 0);
  // A range that wrapped round would give a pod the user root.
  TAHOMA_CHECK(options.first <= std::numeric_limits<std::uint32_t>::max() - options.count);
  std::uint32_t first = options.first == 0 ? kRanges[0] : options.first;
  int error = TryToBecome(first);
  if (error == EINVAL && options.first == 0) {
    first = kRanges[1];
    error = TryToBecome(first);
  }
  if (error != 0) return WhyNot(error, first);
  const int fd = open(options.lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return Unavailable("{}: cannot be opened: {}", options.lock_file.string(),
                       std::strerror(errno));
  }
  std::unique_ptr<PodUsers> users;
  if (options.first != 0) {
    if (LockRange(fd, first, options.count)) users.reset(new PodUsers(fd, first, options.count));
  } else if (const auto found = LockFree(fd, first, options.count)) {
    users.reset(new PodUsers(fd, *found, options.count));
  }
  if (users) {
    TAHOMA_RETURN_IF_ERROR(CheckNoAccount(users->first(), users->last()));
    KillAllOfRange(users->first(), users->last());
    return users;
  }
  close(fd);
  return AlreadyExists(
      "another program gives users from {} to {} to its pods: set podRunner.firstUser to the first "
      "of {} that nobody has",
      first, first + options.count - 1, options.count);
}

PodUsers::~PodUsers() { close(lock_); }

absl::StatusOr<uid_t> PodUsers::Assign(const std::string& pod_uid,
                                       std::optional<std::int64_t> wish) {
  const MutexLock lock(mutex_);
  if (const auto found = users_.find(pod_uid); found != users_.end()) return found->second;
  if (taken_.size() >= count_) {
    return ResourceExhausted("all {} users of this node's pods are taken", count_);
  }
  uid_t user = next_;
  if (wish && *wish >= first_ && *wish <= last() && !taken_.contains(static_cast<uid_t>(*wish))) {
    user = static_cast<uid_t>(*wish);
  } else {
    while (taken_.contains(user)) user = user == last() ? first_ : user + 1;
    next_ = user == last() ? first_ : user + 1;
  }
  TAHOMA_CHECK(user >= first_ && user <= last());  // numbers outside are not locked for us
  const bool is_free = taken_.insert(user).second;
  TAHOMA_CHECK(is_free);  // else two pods could read each other's files
  users_[pod_uid] = user;
  return user;
}

void PodUsers::Release(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  const auto found = users_.find(pod_uid);
  if (found == users_.end()) return;
  taken_.erase(found->second);
  users_.erase(found);
}

std::filesystem::path ClosedTo(uid_t user, const std::filesystem::path& path) {
  std::filesystem::path so_far;
  for (const std::filesystem::path& part : path) {
    so_far /= part;
    struct stat found = {};
    if (stat(so_far.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) continue;
    const unsigned enter = found.st_uid == user ? S_IXUSR : S_IXOTH;
    if ((found.st_mode & enter) == 0) return so_far;
  }
  return {};
}

void KillAllOf(uid_t user) {
  TAHOMA_CHECK(user != 0 && user != geteuid());
  const pid_t child = fork();
  if (child == 0) {
    if (!BecomeUser(user))
      _exit(1);  // kill(-1) reaches all that the caller may signal: as root, all
    constexpr int kRounds = 16;
    for (int round = 0; round < kRounds && kill(-1, SIGKILL) == 0; ++round) sched_yield();
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace tahoma::sim
