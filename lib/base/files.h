// Reading and replacing small files: configuration, tokens, checkpoints, port files.
//
//   TAHOMA_RETURN_IF_ERROR(WriteAtomically(folder + "/claims.json", claims, 0600));
//   TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder + "/claims.json"));
//   TAHOMA_ASSIGN_OR_RETURN(const std::string token, ReadTokenFile(path, log_a_warning));
//
// Scope: whole files that fit into memory. Their meaning belongs to the callers.
//
// Thread safety: any thread. Callers serialize the writers of one path; readers need not wait, they
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

// A hook for tests, called before each step. A result other than 0 is the errno with which the step
// fails instead of being done.
using BeforeStep = std::function<int(WriteStep)>;

// Replaces the file, or makes it, so that neither a crash nor a power cut leaves anything but the
// old contents or the new, and so that the new ones are on disk when it returns OK. Exactly `mode`
// is set, whatever the umask, before there is any content. A symbolic link is replaced, not
// followed. A crash may leave ".NAME.tmp" beside the file, which the next write replaces; a failure
// leaves nothing.
//
// Errors name the path and the system's reason: kResourceExhausted (no room), kPermissionDenied,
// kNotFound (no such folder), else kUnavailable. The old contents are still there then; only where
// the folder itself could not be synced, the new ones are, and a power cut may undo them.
absl::Status WriteAtomically(const std::string& path, std::string_view contents, mode_t mode,
                             const BeforeStep& before = nullptr);

// Removes the file so that a power cut does not bring it back. OK when it is not there; errors as
// WriteAtomically's.
absl::Status RemoveDurably(const std::string& path);

// None of our small files has more.
inline constexpr std::size_t kFileBytesMost = 4U << 20U;

// The whole file. Errors name the path and the system's reason: kNotFound, kPermissionDenied,
// kInvalidArgument for more than `bytes_most`, else kUnavailable.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::size_t bytes_most = kFileBytesMost);

using Warn = std::function<void(const std::string& line)>;

// Reads a file like ReadFile, for secrets of its owner. kPermissionDenied when everybody may write
// the file: it could be anybody's secret. When others than the owner and the group may read it, or
// the group may write it, `warn` is told (a Kubernetes Secret mounted without a defaultMode is such
// a file, so it is no error).
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const Warn& warn);

// The only line of a secret file, without white space around it. kInvalidArgument when it is empty.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path, const Warn& warn);

}  // namespace tahoma
