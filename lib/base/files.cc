#include "lib/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "lib/base/file_descriptor.h"
#include "lib/base/status.h"

namespace tahoma {
namespace {

absl::Status SystemError(const std::string& path, std::string_view what, int error) {
  const std::string text = fmt::format("{}: {}: {}", path, what, std::strerror(error));
  if (error == ENOENT) return NotFound("{}", text);
  if (error == EACCES || error == EPERM || error == EROFS) return PermissionDenied("{}", text);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return ResourceExhausted("{}", text);
  return Unavailable("{}", text);
}

// Does the steps, unless a test makes a step fail.
class Steps {
 public:
  explicit Steps(const BeforeStep& before) : before_(before) {}

  // Returns the result of `call`, or -1 with errno if the test wants the step to fail.
  template <typename Call>
  int Do(WriteStep step, Call call) const {
    if (const int error = before_ ? before_(step) : 0; error != 0) {
      errno = error;
      return -1;
    }
    return call();
  }

 private:
  const BeforeStep& before_;
};

int WriteAll(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t put = ::write(fd, contents.data(), contents.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return -1;
    contents.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

// Makes `path`, which must not exist.
absl::Status WriteNew(const std::string& path, std::string_view contents, mode_t mode,
                      const Steps& steps) {
  FileDescriptor fd(steps.Do(WriteStep::kCreate, [&] {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }));
  if (fd.get() < 0) return SystemError(path, "cannot be created", errno);
  // Until here only the owner may open the file. The mode is set before the contents are written,
  // so nobody reads contents without the right.
  if (steps.Do(WriteStep::kSetMode, [&] { return ::fchmod(fd.get(), mode); }) != 0) {
    return SystemError(path, "its mode cannot be set", errno);
  }
  if (steps.Do(WriteStep::kWrite, [&] { return WriteAll(fd.get(), contents); }) != 0) {
    return SystemError(path, "cannot be written", errno);
  }
  if (steps.Do(WriteStep::kSync, [&] { return ::fsync(fd.get()); }) != 0) {
    return SystemError(path, "cannot be synced", errno);
  }
  if (steps.Do(WriteStep::kClose, [&] { return fd.Close(); }) != 0) {
    return SystemError(path, "cannot be closed", errno);
  }
  return absl::OkStatus();
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path target(path);
  return target.has_parent_path() ? target.parent_path().string() : ".";
}

// A new file in such a place would be no device, pipe or socket any more.
bool IsDevicePipeOrSocket(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

int SyncFolder(const std::string& folder) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.get() < 0 ? -1 : ::fsync(fd.get());
}

absl::StatusOr<std::string> ReadAll(const std::string& path, int fd, std::size_t bytes_most) {
  std::string text;
  char buffer[65'536];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, "cannot be read", errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > bytes_most) {
      return InvalidArgument("{} is larger than {} bytes", path, bytes_most);
    }
  }
}

}  // namespace

absl::Status WriteAtomically(const std::string& path, std::string_view contents, mode_t mode,
                             const BeforeStep& before) {
  if (IsDevicePipeOrSocket(path)) {
    return FailedPrecondition("{} is a device, a pipe or a socket; only a file can be replaced",
                              path);
  }
  const std::string folder = FolderOf(path);
  const std::string fresh =
      fmt::format("{}/.{}.tmp", folder, std::filesystem::path(path).filename().string());
  const Steps steps(before);
  ::unlink(fresh.c_str());  // left by a killed writer
  absl::Status status = WriteNew(fresh, contents, mode, steps);
  if (status.ok() &&
      steps.Do(WriteStep::kRename, [&] { return std::rename(fresh.c_str(), path.c_str()); }) != 0) {
    status = SystemError(path, "cannot be replaced", errno);
  }
  if (!status.ok()) {
    ::unlink(fresh.c_str());
    return status;
  }
  if (steps.Do(WriteStep::kSyncFolder, [&] { return SyncFolder(folder); }) != 0) {
    return SystemError(folder, "the folder cannot be synced", errno);
  }
  return absl::OkStatus();
}

absl::Status RemoveDurably(const std::string& path) {
  if (::unlink(path.c_str()) != 0) {
    return errno == ENOENT ? absl::OkStatus() : SystemError(path, "cannot be removed", errno);
  }
  const std::string folder = FolderOf(path);
  if (SyncFolder(folder) == 0) return absl::OkStatus();
  return SystemError(folder, "the folder cannot be synced", errno);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t bytes_most) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError(path, "cannot be opened", errno);
  return ReadAll(path, fd.get(), bytes_most);
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const Warn& warn) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError(path, "cannot be opened", errno);
  struct stat found = {};
  if (::fstat(fd.get(), &found) != 0) return SystemError(path, "cannot be examined", errno);
  const unsigned mode = found.st_mode & 07777U;
  if (S_ISREG(found.st_mode) && (mode & S_IWOTH) != 0) {
    return PermissionDenied(
        "{} holds a secret, but everybody may write it (mode {:04o}); its mode should be 0600",
        path, mode);
  }
  if (S_ISREG(found.st_mode) && (mode & (S_IROTH | S_IWGRP)) != 0) {
    warn(
        fmt::format("{} holds a secret, but others may {} it (mode {:04o}); its mode should be "
                    "0600",
                    path, (mode & S_IROTH) != 0 ? "read" : "write", mode));
  }
  return ReadAll(path, fd.get(), kFileBytesMost);
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path, const Warn& warn) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path, warn));
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return InvalidArgument("{} holds no token", path);
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

}  // namespace tahoma
