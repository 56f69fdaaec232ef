#include "dra-plugin/claims/posix_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

absl::Status Failed(std::string_view what, std::string_view path) {
  const int error = errno;
  const std::string text = fmt::format("{}: cannot {}: {}", path, what, strerror(error));
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted("{}", text);
  if (error == EACCES || error == EPERM || error == EROFS) return PermissionDenied("{}", text);
  return Unavailable("{}", text);
}

// Closes at the end of a scope.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status WriteAndSync(const std::string& path, std::string_view bytes) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (fd.get() < 0) return Failed("create the file", path);
  while (!bytes.empty()) {
    const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fsync(fd.get()) != 0) return Failed("sync", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PosixFiles>> PosixFiles::Open(std::string folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FailedPrecondition("{}: cannot make the folder: {}", folder, error.message());
  return std::unique_ptr<PosixFiles>(new PosixFiles(std::move(folder)));
}

std::string PosixFiles::PathOf(std::string_view name) const {
  return fmt::format("{}/{}", folder_, name);
}

absl::Status PosixFiles::SyncFolder() const {
  const Fd fd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) return Failed("sync the folder", folder_);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> PosixFiles::Read(std::string_view name) {
  const std::string path = PathOf(name);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return std::optional<std::string>();
  if (fd.get() < 0) return Failed("open", path);
  std::string bytes;
  while (true) {
    char chunk[16384];
    const ssize_t got = read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) return std::optional<std::string>(std::move(bytes));
    bytes.append(chunk, static_cast<std::size_t>(got));
    if (bytes.size() > kMaxBytes) {
      return ResourceExhausted("{}: the file is larger than {} bytes", path, kMaxBytes);
    }
  }
}

absl::Status PosixFiles::Write(std::string_view name, std::string_view bytes) {
  const std::string path = PathOf(name);
  const std::string temporary = PathOf(fmt::format(".{}.tmp", name));
  absl::Status status = WriteAndSync(temporary, bytes);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = Failed("rename the new file over the old one", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncFolder();
}

absl::Status PosixFiles::Remove(std::string_view name) {
  const std::string path = PathOf(name);
  if (unlink(path.c_str()) == 0) return SyncFolder();
  return errno == ENOENT ? absl::OkStatus() : Failed("remove", path);
}

absl::StatusOr<std::vector<std::string>> PosixFiles::List() {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return Unavailable("{}: cannot list the folder: {}", folder_, error.message());
  return names;
}

}  // namespace tahoma::dra
