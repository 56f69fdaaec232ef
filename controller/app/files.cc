#include "controller/app/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kFileBytesMost = 4U << 20U;

absl::Status SystemError(const std::string& path, std::string_view what) {
  const int error = errno;
  const std::string text = fmt::format("{}: {}: {}", path, what, std::strerror(error));
  if (error == ENOENT) return NotFound("{}", text);
  if (error == EACCES || error == EPERM) return PermissionDenied("{}", text);
  return Unavailable("{}", text);
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, "cannot be opened");
  std::string text;
  char buffer[65'536];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const absl::Status status = SystemError(path, "cannot be read");
      ::close(fd);
      return status;
    }
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMost) {
      ::close(fd);
      return InvalidArgument("{} is larger than {} bytes", path, kFileBytesMost);
    }
  }
  ::close(fd);
  return text;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return InvalidArgument("{} holds no token", path);
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

absl::Status WriteFile(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError(fresh, "cannot be created");
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const absl::Status status = SystemError(fresh, "cannot be written");
      ::close(fd);
      return status;
    }
    done += static_cast<std::size_t>(put);
  }
  ::close(fd);
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return SystemError(path, "cannot be replaced");
  return absl::OkStatus();
}

}  // namespace tahoma::controller
