// Assigns each pod the user of this machine that runs the pod's processes.
//
//   auto users = PodUsers::Open({.first = 0, .count = 1024});     // 0: a range that nobody has
//   absl::StatusOr<uid_t> user = (*users)->Assign("9f…", /*wish=*/std::nullopt);
//   (*users)->Release("9f…");
//
// Pods are processes on one machine here, and the kernel keeps users apart: a pod with its own user
// cannot read other pods' files, memory or environment, nor signal or trace other pods' processes.
// Two programs never hand out the same number: a file locks a range as long as the object lives.
// Numbers go round, so a number is used again as late as possible.
//
// Scope: numbers. The spawner changes the user; no account of /etc/passwd is needed or made.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lib/base/mutex.h"

namespace tahoma::sim {

class PodUsers {
 public:
  struct Options {
    std::uint32_t first = 0;  // 0: the first free range of kRanges
    std::uint32_t count = 1024;
    // The file that locks ranges; the same for all programs of a machine.
    std::filesystem::path lock_file = "/run/tahoma-pod-users.lock";
  };

  // Opens a range and kills all processes of users in the range, left by pods of a dead program.
  // kPermissionDenied says which right this program lacks to start processes as other users, and
  // the alternatives; kAlreadyExists names a range that overlaps another program's range;
  // kInvalidArgument names an account within the range.
  static absl::StatusOr<std::unique_ptr<PodUsers>> Open(const Options& options);
  ~PodUsers();
  PodUsers(const PodUsers&) = delete;
  PodUsers& operator=(const PodUsers&) = delete;

  // Returns the pod's user: the user that the pod already has; else the wished user, if free and in
  // our range; else the next free user. kResourceExhausted when no user is free.
  absl::StatusOr<uid_t> Assign(const std::string& pod_uid, std::optional<std::int64_t> wish);
  // Frees the user of a pod without processes.
  void Release(const std::string& pod_uid);

  uid_t first() const { return first_; }
  uid_t last() const { return first_ + count_ - 1; }

 private:
  PodUsers(int lock, std::uint32_t first, std::uint32_t count)
      : lock_(lock), first_(first), count_(count), next_(first) {}

  const int lock_;  // a descriptor; the kernel drops the lock with it
  const uid_t first_;
  const std::uint32_t count_;
  Mutex mutex_;
  uid_t next_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uid_t> users_ ABSL_GUARDED_BY(mutex_);  // by pod uid
  std::set<uid_t> taken_ ABSL_GUARDED_BY(mutex_);
};

// Returns the first folder above `path`, or `path` itself, that `user` cannot enter; empty when
// `user` can enter all. A folder open to a group counts as closed: a pod's user has only its own
// group.
std::filesystem::path ClosedTo(uid_t user, const std::filesystem::path& path);

// Gives a child between fork and exec the user and group `user`, with no other group and so with no
// capability. False, with errno, when a right is left.
bool BecomeUser(uid_t user);

// Sends SIGKILL to every process of `user`, which must be neither root nor our user.
void KillAllOf(uid_t user);

}  // namespace tahoma::sim
