#include "sim-node/serve/socket_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

namespace fs = std::filesystem;

// Gives the folder's mode.
absl::StatusOr<mode_t> MakeFolder(const fs::path& folder, mode_t mode) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (error) return Unavailable("folder {}: {}", folder.parent_path().string(), error.message());
  // The mode is exact, whatever the umask; of a folder that was there it stays.
  if (mkdir(folder.c_str(), 0700) == 0 && chmod(folder.c_str(), mode) == 0) return mode;
  struct stat found = {};
  if (errno != EEXIST || stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return Unavailable("folder {}: {}", folder.string(), std::strerror(errno));
  }
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return FailedPrecondition("folder {} is user {}'s, who can replace what is in it",
                              folder.string(), found.st_uid);
  }
  return found.st_mode & 07777U;
}

}  // namespace

absl::Status MakePrivateFolder(const std::string& socket) {
  const fs::path folder = fs::path(socket).parent_path();
  TAHOMA_ASSIGN_OR_RETURN(const mode_t mode, MakeFolder(folder, 0700));
  if ((mode & 0077U) == 0) return absl::OkStatus();
  return FailedPrecondition(
      "folder {} is open to other users (mode {:04o}), and whoever reaches {} may do everything on "
      "this node: choose another folder, or chmod 0700 it",
      folder.string(), mode, socket);
}

absl::Status MakeWorkloadFolder(const std::string& socket) {
  const fs::path path(socket);
  const fs::path folder = path.parent_path();
  TAHOMA_ASSIGN_OR_RETURN(const mode_t mode, MakeFolder(folder, 0755));
  if ((mode & 0022U) != 0) {
    return FailedPrecondition(
        "folder {} can be written by other users (mode {:04o}): chmod 0755 it", folder.string(),
        mode);
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename() == path.filename()) continue;
    return FailedPrecondition(
        "folder {} is given to containers, and holds {} too: it must be the socket's own",
        folder.string(), entry.path().filename().string());
  }
  if (error) return Unavailable("folder {}: {}", folder.string(), error.message());
  return absl::OkStatus();
}

}  // namespace tahoma::sim
