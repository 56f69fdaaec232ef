// Reads RocksDB's write-ahead logs before RocksDB does, to tell an unfinished last write from
// damage.
//
// A commit is one record, and the next begins only when it is synced. So an unreadable record that
// no other record follows may be a write that never ended; where a record follows, the unreadable
// one had been acknowledged. RocksDB cannot tell the two apart: it stops at a checksum that does
// not fit, or it takes everything from there on for lost.
//
// Format: https://github.com/facebook/rocksdb/wiki/Write-Ahead-Log-File-Format, blocks of 32 KiB,
// record types 1 to 4; a record begins with the sequence number of its first change (8 bytes) and
// the number of changes (4 bytes), little endian.
//
// The manifest has the same form. RocksDB ends reading one at a record that seems to go on behind
// the end of the file, as if it were unfinished: a length that was changed would hide all that
// follows.
//
// Scope: files "*.log" and the manifest of a folder that nobody has open.
//
// Thread safety: plain functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::controller {

// A record, by its place in a log.
struct LogRecord {
  std::uint64_t begin = 0;  // its place in the file
  std::uint64_t end = 0;
  std::uint64_t sequence = 0;  // sequence number of its first change
  std::uint32_t changes = 0;
};
struct LogEnd {
  std::uint64_t whole = 0;  // whole records end here
  bool clean = true;        // and nothing follows them
  bool goes_on = false;     // not clean: a record begins behind the unreadable bytes
};
// Tells `visit` each whole record of the log's text, in order. Returns how far it can be read.
LogEnd ReadLog(std::string_view log, const std::function<void(const LogRecord&)>& visit);

struct LogsFound {
  // The sequence number of the last change in any log; nullopt when no log has a record.
  std::optional<std::uint64_t> last_sequence;
  // A log that ends with an incomplete write.
  struct Tail {
    std::string path;
    std::uint64_t whole = 0;
    std::uint64_t bytes = 0;  // behind `whole`
  };
  std::vector<Tail> tails;
  std::uint64_t bytes = 0;  // in all logs together
};

// Reads all logs. kDataLoss when a record that a later one follows cannot be read or is missing.
absl::StatusOr<LogsFound> CheckLogs(const std::string& dir);

// Cuts the incomplete writes off and syncs the logs.
absl::Status CutTails(const LogsFound& found);

// Cuts the commits behind the change `acknowledged` off: they failed, and may not be on disk. What
// cannot be read stays.
absl::Status CutBehind(const std::string& dir, std::uint64_t acknowledged);

// Reads a manifest. kDataLoss when a record cannot be read and another one follows, or it is among
// the first `acknowledged` bytes.
absl::Status CheckManifest(const std::string& path, std::uint64_t acknowledged);

}  // namespace tahoma::controller
