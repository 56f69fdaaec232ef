// A file descriptor that is closed at the end of its scope.
//
//   const FileDescriptor folder(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
//   if (folder.get() < 0) return NotFound("{} cannot be opened", path);    // -1 is never closed
//
// Scope: ownership only.
//
// Thread safety: none.

#pragma once

#include <unistd.h>

#include <utility>

namespace tahoma {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    const int old = std::exchange(fd_, other.Release());
    if (old >= 0 && old != fd_) ::close(old);
    return *this;
  }

  int get() const { return fd_; }
  // Hands the descriptor to the caller, who must close it.
  int Release() { return std::exchange(fd_, -1); }
  // Closes like close(2), for callers that must know the result.
  int Close() { return ::close(Release()); }

 private:
  int fd_;
};

}  // namespace tahoma
