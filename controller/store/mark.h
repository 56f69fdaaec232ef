// The mark of a store's newest commit: a small file in its folder by which the next start notices
// that the folder holds less.
//
// Note is not synced: that would cost every commit a second sync. So the mark is exact however the
// process ends, while after a power cut it may be some seconds old. It is never ahead of the disk.
//
// Scope: the file ACKNOWLEDGED (docs/formats/store.md).
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tahoma::controller {

struct Mark {
  std::uint64_t sequence = 0;        // number of the last acknowledged change
  std::uint64_t manifest = 0;        // number of RocksDB's manifest
  std::uint64_t manifest_bytes = 0;  // its least length

  friend bool operator==(const Mark&, const Mark&) = default;
};

inline constexpr const char* kMarkName = "ACKNOWLEDGED";

// Reads the mark; nullopt when there is no such file, kDataLoss when it is malformed.
absl::StatusOr<std::optional<Mark>> ReadMark(const std::string& dir);

class MarkFile {
 public:
  // Writes `mark` durably and keeps the file open.
  static absl::StatusOr<MarkFile> Open(const std::string& dir, const Mark& mark);
  MarkFile() = default;
  MarkFile(MarkFile&& other) noexcept;
  MarkFile& operator=(MarkFile&& other) noexcept;
  ~MarkFile();

  // Replaces the mark, best effort: an older mark is also true, it only notices less.
  void Note(const Mark& mark);

 private:
  int fd_ = -1;
};

// Returns the number and the size of the manifest that CURRENT names; kDataLoss when there is none.
absl::StatusOr<Mark> ManifestOf(const std::string& dir);

}  // namespace tahoma::controller
