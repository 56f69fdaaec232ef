// Assigns the user of this machine as which the processes of each pod run.
//
//   auto users = PodUsers::Open({.first = 0, .count = 1024});     // 0: a range that nobody has
//   absl::StatusOr<uid_t> user = (*users)->Assign("9f…", /*wish=*/std::nullopt);
//   (*users)->Release("9f…");
//
// Pods are processes on one machine here, and what the kernel keeps apart by itself are users: a
// pod with a user of its own cannot read another's files, memory or environment, nor signal or
// trace it. Two programs never hand out one number: a range is locked in a file as long as the
// object lives. Numbers go round, so that one is used again as late as possible.
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
    // The file in which ranges are locked; the same for all programs of a machine.
    std::filesystem::path lock_file = "/run/tahoma-pod-users.lock";
  };

  // Ends what still runs as a user of the range: pods of a program that died have left it.
  // kPermissionDenied says what this program lacks to start processes as other users, and what else
  // can be done; kAlreadyExists names the range when another program has some of it;
  // kInvalidArgument the account that is in it.
  static absl::StatusOr<std::unique_ptr<PodUsers>> Open(const Options& options);
  ~PodUsers();
  PodUsers(const PodUsers&) = delete;
  PodUsers& operator=(const PodUsers&) = delete;

  // The pod's user: the one it has already, the one it wishes for when that is of our range and
  // nobody's, else the next that nobody has. kResourceExhausted when all are taken.
  absl::StatusOr<uid_t> Assign(const std::string& pod_uid, std::optional<std::int64_t> wish);
  // Frees the user of a pod of which nothing runs any more.
  void Release(const std::string& pod_uid);

  uid_t first() const { return first_; }
  uid_t last() const { return first_ + count_ - 1; }

 private:
  PodUsers(int lock, std::uint32_t first, std::uint32_t count)
      : lock_(lock), first_(first), count_(count), next_(first) {}

  const int lock_;  // a descriptor; the kernel takes the lock away with it
  const uid_t first_;
  const std::uint32_t count_;
  Mutex mutex_;
  uid_t next_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uid_t> users_ ABSL_GUARDED_BY(mutex_);  // by pod uid
  std::set<uid_t> taken_ ABSL_GUARDED_BY(mutex_);
};

// Returns the first folder above `path`, or `path` itself, that `user` cannot enter; empty when it
// can reach all of them. Folders of groups count as closed: such a user has no group but its own.
std::filesystem::path ClosedTo(uid_t user, const std::filesystem::path& path);

// Makes a child, between fork and exec, user and group `user`, with no other group, and so with no
// capability. False, with errno, when something is left.
bool BecomeUser(uid_t user);

// SIGKILL to every process of `user`, which must be neither root nor ours.
void KillAllOf(uid_t user);

}  // namespace tahoma::sim
