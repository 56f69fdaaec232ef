// Reads RocksDB's write-ahead logs before RocksDB does, to tell an unfinished last write from
// damage.
//
// A commit is one record, and the next commit begins only when the record is synced. An unreadable
// record that no record follows may therefore be a write that never ended; an unreadable record
// before another record had been acknowledged. RocksDB cannot tell the two apart: at a wrong
// checksum it either stops, or takes everything behind for lost.
//
// Format: https://github.com/facebook/rocksdb/wiki/Write-Ahead-Log-File-Format, blocks of 32 KiB,
// record types 1 to 4; a record begins with the sequence number of its first change (8 bytes) and
// the number of changes (4 bytes), little endian.
//
// The manifest has the same form. RocksDB stops reading a manifest at a record that seems to
// continue behind the end of the file, as if unfinished: a changed length would hide all later
// records.
//
// Scope: files "*.log" and the manifest of a folder that no process has open.
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
  std::uint64_t begin = 0;  // place in the file
  std::uint64_t end = 0;
  std::uint64_t sequence = 0;  // sequence number of the first change
  std::uint32_t changes = 0;
};
struct LogEnd {
  std::uint64_t whole = 0;  // whole records end here
  bool clean = true;        // and nothing follows the whole records
  bool goes_on = false;     // not clean: a record begins behind the unreadable bytes
};
// Calls `visit` with each whole record of the log's text, in order. Returns how far the log is
// readable.
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

// Reads all logs. kDataLoss when a record before another record cannot be read or is missing.
absl::StatusOr<LogsFound> CheckLogs(const std::string& dir);

// Cuts the incomplete writes off and syncs the logs.
absl::Status CutTails(const LogsFound& found);

// Cuts the commits behind the change `acknowledged` off: they failed, and may not be on disk.
// Unreadable bytes stay.
absl::Status CutBehind(const std::string& dir, std::uint64_t acknowledged);

// Reads a manifest. kDataLoss when a record cannot be read and another record follows, or the
// record is among the first `acknowledged` bytes.
absl::Status CheckManifest(const std::string& path, std::uint64_t acknowledged);

}  // namespace tahoma::controller
