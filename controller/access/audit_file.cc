#include "controller/access/audit_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kWaitingBytesMost = 1 << 20;

int OpenForAppend(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                0600);
}

bool IsSameFile(const std::string& path, int fd) {
  struct stat named {};
  struct stat open {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(fd, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditFile>> AuditFile::Open(const std::string& path,
                                                           rest::Metrics& metrics, Log log,
                                                           Write write) {
  const int fd = OpenForAppend(path);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0) {
    return Unavailable("{}: cannot be opened: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) {
    ::close(fd);
    return InvalidArgument("{} is no regular file", path);
  }
  if (!write) write = ::write;
  return std::unique_ptr<AuditFile>(
      new AuditFile(path, fd, metrics, std::move(log), std::move(write)));
}

AuditFile::AuditFile(std::string path, int fd, rest::Metrics& metrics, Log log, Write write)
    : path_(std::move(path)),
      log_(std::move(log)),
      write_(std::move(write)),
      failures_(metrics.AddCounter("tahoma_audit_write_failures_total",
                                   "Writes to the audit file that failed; they are retried.")),
      lost_(metrics.AddCounter("tahoma_audit_lines_lost_total",
                               "Audit lines for which there was no room, neither on disk nor in "
                               "memory.")),
      fd_(fd) {}

AuditFile::~AuditFile() {
  const MutexLock lock(mutex_);
  Flush();
  ::close(fd_);
}

void AuditFile::Append(std::string_view line) {
  const MutexLock lock(mutex_);
  if (waiting_.size() + line.size() + 1 > kWaitingBytesMost) Flush();
  if (waiting_.size() + line.size() + 1 > kWaitingBytesMost) {
    lost_.Increment();
    return;
  }
  waiting_ += line;
  waiting_ += '\n';
  // A disk that refuses is asked again by Poll, not by every request.
  if (!failing_) Flush();
}

void AuditFile::Poll() {
  const MutexLock lock(mutex_);
  Flush();
  if (!IsSameFile(path_, fd_)) Reopen();
}

bool AuditFile::Writable() {
  const MutexLock lock(mutex_);
  Flush();
  return waiting_.empty();
}

void AuditFile::Flush() {
  std::size_t done = 0;
  int error = 0;
  while (done < waiting_.size() && error == 0) {
    const long put = write_(fd_, waiting_.data() + done, waiting_.size() - done);
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (put == 0 || errno != EINTR) {
      error = put == 0 ? EIO : errno;
    }
  }
  waiting_.erase(0, done);
  if (error != 0) failures_.Increment();
  if (error != 0 && !failing_) {
    log_(fmt::format("the audit file {} cannot be written: {}; its lines wait in memory", path_,
                     std::strerror(error)));
  }
  if (error == 0 && failing_) log_(fmt::format("the audit file {} is written again", path_));
  failing_ = error != 0;
}

// Half a line that the old file got is finished there; with lines waiting it stays the file.
void AuditFile::Reopen() {
  if (!waiting_.empty()) return;
  const int fresh = OpenForAppend(path_);
  if (fresh < 0) {
    failures_.Increment();
    log_(fmt::format("the audit file {} cannot be made again: {}; the old one is written on", path_,
                     std::strerror(errno)));
    return;
  }
  ::close(fd_);
  fd_ = fresh;
}

}  // namespace tahoma::controller
