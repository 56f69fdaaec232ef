// Reading and replacing small files: configuration, tokens, checkpoints, port files.
//
//   TAHOMA_RETURN_IF_ERROR(WriteAtomically(folder + "/claims.json", claims, 0600));
//   TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder + "/claims.json"));
//   TAHOMA_ASSIGN_OR_RETURN(const std::string token, ReadTokenFile(path, log_a_warning));
//
// Scope: whole files that fit into memory. Their meaning belongs to the callers.
//
// Thread safety: any thread. Callers serialize the writers of a path; readers need not wait, and
// find the old contents or the new.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tahoma {

// The steps of WriteAtomically, in their order.
enum class WriteStep : std::uint8_t {
  kCreate,
  kSetMode,
  kWrite,
  kSync,
  kClose,
  kRename,
  kSyncFolder,
};

// A hook for tests, called before each step. A result other than 0 is an errno: the step is skipped
// and fails with the errno.
using BeforeStep = std::function<int(WriteStep)>;

// Replaces the file, or makes the file. After a crash or a power cut the file has the old contents
// or the new, and after OK the new contents are on disk. `mode` is set exactly, whatever the umask,
// before any content is written. A symbolic link is replaced, not followed. A crash may leave
// ".NAME.tmp" beside the file, and the next write replaces it; a failure leaves nothing.
//
// Errors name the path and the system's reason: kResourceExhausted (no room), kPermissionDenied,
// kNotFound (no such folder), kFailedPrecondition (a device, a pipe or a socket, such as /dev/null
// or a link to one), else kUnavailable. After an error the old contents are still there;
// only when the folder could not be synced, the new contents are there and a power cut may undo the
// change.
absl::Status WriteAtomically(const std::string& path, std::string_view contents, mode_t mode,
                             const BeforeStep& before = nullptr);

// Removes the file for good: a power cut does not bring the file back. OK when there is no file;
// fails as WriteAtomically.
absl::Status RemoveDurably(const std::string& path);

// None of our small files has more.
inline constexpr std::size_t kFileBytesMost = 4U << 20U;

// The whole file. Errors name the path and the system's reason: kNotFound, kPermissionDenied,
// kInvalidArgument for more than `bytes_most`, else kUnavailable.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::size_t bytes_most = kFileBytesMost);

using Warn = std::function<void(const std::string& line)>;

// Reads a file like ReadFile, for secrets of the file's owner. kPermissionDenied when everybody may
// write the file, because the secret could be anybody's. Calls `warn` when users besides the owner
// and the group may read the file, or the group may write it (no error: a Kubernetes Secret mounted
// without a defaultMode is such a file).
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const Warn& warn);

// Returns the only line of a secret file, without white space around it. kInvalidArgument when
// empty.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path, const Warn& warn);

}  // namespace tahoma
