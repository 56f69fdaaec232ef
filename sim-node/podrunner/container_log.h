// The log of a container attempt: the container's output, in the format of kubelets and kubectl.
//
// A line of the file is "<RFC 3339 time, nanoseconds> <stdout|stderr> <F|P> <text>", P for a piece
// of a longer line (Kubernetes CRI logging format). Above max_bytes the file becomes "<file>.1" and
// a new file begins, so a container's log takes at most 2 * max_bytes.
//
// Scope: files. pod_runner writes logs, log_folder serves logs.
//
// Thread safety: a ContainerLog belongs to one thread; readers are independent.

#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"

namespace tahoma::sim {

enum class LogStream { kStdout, kStderr };

inline constexpr std::size_t kMaxLogPiece = 16 << 10;  // containerd splits longer lines here

class ContainerLog {
 public:
  struct Limits {
    std::uint64_t max_bytes = 10 << 20;  // the kubelet's containerLogMaxSize
  };

  ContainerLog(std::filesystem::path file, Limits limits);
  ~ContainerLog();
  ContainerLog(const ContainerLog&) = delete;
  ContainerLog& operator=(const ContainerLog&) = delete;

  // Full disks lose lines, not containers: the first failure is kept in status().
  void Append(LogStream stream, std::string_view bytes, WallTime now);
  void Close(WallTime now);
  const absl::Status& status() const { return status_; }

 private:
  void WriteLine(LogStream stream, char tag, std::string_view text, WallTime now);
  void Rotate();
  void Open();

  const std::filesystem::path file_;
  const Limits limits_;
  int fd_ = -1;
  std::uint64_t written_ = 0;
  std::array<std::string, 2> pending_;
  absl::Status status_;
};

// Reads the existing lines, oldest first, and later the new lines.
class LogReader {
 public:
  struct Options {
    std::optional<std::int64_t> tail_lines{};
    std::optional<std::int64_t> limit_bytes{};
    std::optional<WallTime> since{};
    bool timestamps = false;
  };

  LogReader(std::filesystem::path file, Options options);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Appends the next bytes, at most about 256 KiB; appends nothing only at the end of the log.
  // False once limit_bytes is used up.
  bool Next(std::string& out);
  // kNotFound when there is no such log (yet).
  absl::Status status() const;

 private:
  bool OpenNext();
  void SkipToTail();
  void Emit(std::string_view line, std::string& out);

  const std::filesystem::path file_;
  const Options options_;
  int fd_ = -1;
  std::uint64_t inode_ = 0;
  // bytes of the file as read; too large for the small stacks of threads that serve requests
  std::string piece_;
  std::string partial_;
  std::int64_t skip_lines_ = 0;
  std::int64_t left_ = 0;
  bool started_ = false;
  // The file was replaced after its end had been seen: lines written in between are read before the
  // next file.
  bool read_out_ = false;
  bool within_line_ = false;  // the last piece was not the end of its line
};

}  // namespace tahoma::sim
