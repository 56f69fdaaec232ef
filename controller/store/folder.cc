#include "controller/store/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lib/base/files.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

namespace fs = std::filesystem;

void Narrow(const std::string& path, mode_t mode, std::vector<std::string>& notes) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0 || (found.st_mode & 0777U & ~mode) == 0) return;
  if (::chmod(path.c_str(), found.st_mode & 07777U & (mode | 07000U)) == 0) return;
  notes.push_back(
      fmt::format("{} can be read by others (mode {:04o}) and that cannot be changed: {}", path,
                  found.st_mode & 07777U, std::strerror(errno)));
}

// Returns a file that only a folder with content has.
std::string AnyContent(const std::string& dir) {
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    std::error_code ignored;
    if (path.extension() == ".sst") return path.filename();
    if (path.extension() == ".log" && fs::file_size(path, ignored) > 0) return path.filename();
  }
  return "";
}

}  // namespace

absl::Status MakePrivate(const std::string& dir, std::vector<std::string>& notes) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return Unavailable("cannot create the store's folder {}: {}", dir, error.message());
  Narrow(dir, 0700, notes);
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) Narrow(at->path(), 0600, notes);
  }
  return absl::OkStatus();
}

std::string GuardOf(const std::string& dir) {
  std::string path = fs::absolute(dir).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + ".created";
}

absl::Status WriteGuard(const std::string& dir) {
  const std::string path = GuardOf(dir);
  std::error_code ignored;
  if (fs::exists(path, ignored)) return absl::OkStatus();
  return WriteAtomically(
      path,
      fmt::format("A store was created in {}. While this file is there, the controller does not\n"
                  "begin with an empty one. Remove it to begin anew.\n",
                  dir),
      0600);
}

absl::StatusOr<FolderFound> CheckFolder(const std::string& dir, bool guarded) {
  FolderFound found;
  TAHOMA_ASSIGN_OR_RETURN(found.mark, ReadMark(dir));
  std::error_code ignored;
  if (!fs::exists(dir + "/CURRENT", ignored)) {
    const std::string content = AnyContent(dir);
    if (found.mark || !content.empty()) {
      return DataLoss("{}/CURRENT is missing, but {} is there", dir,
                      found.mark ? kMarkName : content);
    }
    if (guarded && fs::exists(GuardOf(dir), ignored)) {
      return DataLoss("it is empty, but {} says that it held one; is a disk not mounted?",
                      GuardOf(dir));
    }
    found.is_new = true;
    return found;
  }
  TAHOMA_ASSIGN_OR_RETURN(const Mark manifest, ManifestOf(dir));
  if (found.mark && manifest.manifest < found.mark->manifest) {
    return DataLoss("CURRENT names the manifest {}, but the store had come to {}",
                    manifest.manifest, found.mark->manifest);
  }
  if (found.mark && manifest.manifest == found.mark->manifest &&
      manifest.manifest_bytes < found.mark->manifest_bytes) {
    return DataLoss("the manifest {} has {} bytes, but had at least {}", manifest.manifest,
                    manifest.manifest_bytes, found.mark->manifest_bytes);
  }
  const bool is_marked = found.mark && manifest.manifest == found.mark->manifest;
  TAHOMA_RETURN_IF_ERROR(CheckManifest(fmt::format("{}/MANIFEST-{:06}", dir, manifest.manifest),
                                       is_marked ? found.mark->manifest_bytes : 0));
  TAHOMA_ASSIGN_OR_RETURN(found.logs, CheckLogs(dir));
  return found;
}

}  // namespace tahoma::controller
