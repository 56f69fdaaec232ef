// Backups: the store's content at one moment as text, and a new store from the text.
//
// Scope: docs/formats/backup.md. backup_command.h has files and transport.
//
// Thread safety: a writer is one thread's at a time; the functions are free.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "controller/store/database.h"
#include "controller/store/write_batch.h"
#include "lib/base/digest.h"

namespace tahoma::controller {

class BackupWriter {
 public:
  explicit BackupWriter(std::unique_ptr<Database::Moment> moment);

  // Appends whole lines, about 256 KiB; false after the last line.
  absl::StatusOr<bool> Append(std::string& text);

 private:
  void AppendLine(std::string line, std::string& text);

  const std::unique_ptr<Database::Moment> moment_;
  bool begun_ = false;
  Keyspace keyspace_ = Keyspace::kApi;
  std::string from_;
  std::uint64_t records_ = 0;
  Sha256Digest chain_{};
};

using VisitRecord =
    std::function<absl::Status(Keyspace keyspace, std::string key, std::string value)>;

// Calls `visit` with each record. kDataLoss, with the line, when the text is cut or changed,
// perhaps only at its end; kFailedPrecondition for another version.
absl::Status VisitBackup(std::string_view text, const VisitRecord& visit);
// Checks the text without the records.
absl::Status CheckBackup(std::string_view text);

// Makes a store in `dir`, which must be empty or absent. Versions of objects continue far above all
// earlier versions (ObjectStore::RaiseVersion): clients and watches begin anew. No controller
// starts with the folder of an unfinished restore.
absl::Status RestoreBackup(std::string_view text, const std::string& dir,
                           const std::function<void(const std::string&)>& log);

}  // namespace tahoma::controller
