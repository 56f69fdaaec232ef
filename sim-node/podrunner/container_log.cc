#include "sim-node/podrunner/container_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kReadsAtOnce = 4;

std::filesystem::path Former(const std::filesystem::path& file) { return file.string() + ".1"; }

// A rotation between two looks at the files is rare.
constexpr int kLooks = 16;

std::uint64_t InodeOf(const std::filesystem::path& file) {
  struct stat found = {};
  return stat(file.c_str(), &found) == 0 ? found.st_ino : 0;
}

// A file open for reading; without descriptor and inode when absent. No other file gets the inode
// number of an open file.
struct OpenFile {
  explicit OpenFile(const std::filesystem::path& file)
      : fd(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat found = {};
    if (fd >= 0 && fstat(fd, &found) == 0) inode = found.st_ino;
  }
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd = -1;
  std::uint64_t inode = 0;
};

std::string NanoTime(WallTime time) {
  const auto nanos = time.time_since_epoch().count() % 1'000'000'000;
  std::string text = FormatTime(time);
  text.pop_back();  // "Z"
  return fmt::format("{}.{:09}Z", text, nanos);
}

// The parts of a stored line; an empty tag for a line of another writer.
struct StoredLine {
  std::string_view time;
  std::string_view tag;
  std::string_view text;
};

StoredLine Split(std::string_view line) {
  StoredLine parts;
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) return parts;
  const std::size_t second = line.find(' ', first + 1);
  if (second == std::string_view::npos || second + 2 >= line.size() + 1) return parts;
  parts.time = line.substr(0, first);
  parts.tag = line.substr(second + 1, 1);
  parts.text = second + 3 <= line.size() ? line.substr(second + 3) : std::string_view();
  return parts;
}

}  // namespace

ContainerLog::ContainerLog(std::filesystem::path file, Limits limits)
    : file_(std::move(file)), limits_(limits) {
  Open();
}

ContainerLog::~ContainerLog() {
  if (fd_ >= 0) close(fd_);
}

void ContainerLog::Open() {
  fd_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd_ < 0 && status_.ok()) {
    status_ = Unavailable("log {}: {}", file_.string(), std::strerror(errno));
  }
  // A former runner may have died before it reported the attempt's start; the attempt then begins
  // again.
  const off_t size = fd_ < 0 ? 0 : lseek(fd_, 0, SEEK_END);
  written_ = size < 0 ? 0 : static_cast<std::uint64_t>(size);
}

void ContainerLog::Rotate() {
  close(fd_);
  if (rename(file_.c_str(), Former(file_).c_str()) != 0 && status_.ok()) {
    status_ = Unavailable("log {} cannot be rotated: {}", file_.string(), std::strerror(errno));
  }
  Open();
}

void ContainerLog::WriteLine(LogStream stream, char tag, std::string_view text, WallTime now) {
  if (fd_ < 0) return;
  const std::string line =
      fmt::format("{} {} {} {}\n", NanoTime(now),
                  stream == LogStream::kStdout ? "stdout" : "stderr", tag, text);
  if (written_ > 0 && written_ + line.size() > limits_.max_bytes) Rotate();
  const ssize_t wrote = write(fd_, line.data(), line.size());
  if (wrote < 0 && status_.ok()) {
    status_ = Unavailable("log {}: {}", file_.string(), std::strerror(errno));
  }
  written_ += line.size();
}

void ContainerLog::Append(LogStream stream, std::string_view bytes, WallTime now) {
  std::string& pending = pending_[static_cast<std::size_t>(stream)];
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::size_t room = kMaxLogPiece - pending.size();
    const std::size_t take = std::min(newline, std::min(bytes.size(), room));
    pending.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    if (!bytes.empty() && bytes[0] == '\n') {
      bytes.remove_prefix(1);
      WriteLine(stream, 'F', pending, now);
      pending.clear();
    } else if (pending.size() == kMaxLogPiece) {
      WriteLine(stream, 'P', pending, now);
      pending.clear();
    }
  }
}

void ContainerLog::Close(WallTime now) {
  for (const LogStream stream : {LogStream::kStdout, LogStream::kStderr}) {
    std::string& pending = pending_[static_cast<std::size_t>(stream)];
    if (!pending.empty()) WriteLine(stream, 'F', pending, now);
    pending.clear();
  }
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

LogReader::LogReader(std::filesystem::path file, Options options)
    : file_(std::move(file)),
      options_(options),
      piece_(kReadBytes, '\0'),
      left_(options.limit_bytes.value_or(std::numeric_limits<std::int64_t>::max())) {}

LogReader::~LogReader() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LogReader::status() const {
  if (fd_ >= 0 || access(file_.c_str(), R_OK) == 0) return absl::OkStatus();
  return NotFound("there is no log {}", file_.filename().string());
}

// Opens the rotated file first, then the current file; later the file after the last read file.
// False while the last read file still grows.
bool LogReader::OpenNext() {
  if (!std::exchange(started_, true) && options_.tail_lines) SkipToTail();
  for (int look = 0; look < kLooks; ++look) {
    OpenFile current(file_);
    OpenFile former(Former(file_));
    // rotated meanwhile: the two files do not belong together
    if (InodeOf(file_) != current.inode) continue;
    if (current.inode == inode_) return false;
    // After two rotations the file between is the rotated file.
    OpenFile& next = former.inode == 0 || former.inode == inode_ ? current : former;
    if (next.fd < 0) return false;
    if (fd_ >= 0 && !std::exchange(read_out_, true)) return true;
    if (fd_ >= 0) close(fd_);
    fd_ = std::exchange(next.fd, -1);
    inode_ = next.inode;
    read_out_ = false;
    return true;
  }
  return false;
}

// Counts the existing lines, because reading begins at the last lines.
void LogReader::SkipToTail() {
  std::int64_t lines = 0;
  for (const std::filesystem::path& file : {Former(file_), file_}) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    for (ssize_t got = 0; (got = read(fd, piece_.data(), piece_.size())) > 0;) {
      const std::string_view rest(piece_.data(), static_cast<std::size_t>(got));
      for (std::size_t at = 0; (at = rest.find('\n', at)) != std::string_view::npos; ++at) ++lines;
    }
    close(fd);
  }
  skip_lines_ = std::max<std::int64_t>(0, lines - *options_.tail_lines);
}

void LogReader::Emit(std::string_view line, std::string& out) {
  if (skip_lines_ > 0) {
    --skip_lines_;
    return;
  }
  const StoredLine parts = Split(line);
  if (parts.tag.empty()) return;
  if (options_.since) {
    const absl::StatusOr<WallTime> time = ParseTime(parts.time);
    if (time.ok() && *time < *options_.since) return;
  }
  std::string text;
  if (options_.timestamps && !within_line_) text = fmt::format("{} ", parts.time);
  text.append(parts.text);
  within_line_ = parts.tag == "P";
  if (!within_line_) text += '\n';
  const auto bytes = std::min<std::int64_t>(left_, static_cast<std::int64_t>(text.size()));
  out.append(text, 0, static_cast<std::size_t>(bytes));
  left_ -= bytes;
}

bool LogReader::Next(std::string& out) {
  if (fd_ < 0 && !OpenNext()) return left_ > 0;
  const std::size_t before = out.size();
  // Reads on while every line is left out: an empty result means no more lines.
  for (int i = 0; (i < kReadsAtOnce || out.size() == before) && left_ > 0; ++i) {
    const ssize_t got = read(fd_, piece_.data(), piece_.size());
    if (got <= 0) {
      if (!OpenNext()) break;
      continue;
    }
    partial_.append(piece_.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      Emit(std::string_view(partial_).substr(begin, end - begin), out);
    }
    partial_.erase(0, begin);
  }
  return left_ > 0;
}

}  // namespace tahoma::sim
