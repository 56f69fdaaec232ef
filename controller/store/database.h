// A RocksDB folder that is open: three keyspaces, written in synced batches.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto database, Database::Open({.dir = dir, .create = true}));
//   TAHOMA_RETURN_IF_ERROR(database->Write(operations));
//
// Errors are bare reasons: kDataLoss for damage, kFailedPrecondition for a folder that we must not
// open, kUnavailable for what the system refuses. The Store adds which folder they are about.
//
// Scope: how RocksDB is set up and called. When to write, and what follows a failure, is the
// Store's business.
//
// Thread safety: any thread. The folder is closed when the last owner has gone.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/store/write_batch.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class FileSystem;
class Snapshot;
}  // namespace rocksdb

namespace tahoma::controller {

class Database {
 public:
  // How far RocksDB's manifest has come, on disk.
  struct Manifest {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
  };
  struct Options {
    std::string dir;
    std::shared_ptr<rocksdb::FileSystem> file_system = nullptr;  // null: the machine's own
    bool single_threaded = false;                                // as StoreOptions::single_threaded
    bool create = false;
    // Opens without writing the content of the logs to tables, which would need room for it. Only
    // for logs of which everything is on disk.
    bool keep_logs = false;
    // Called from RocksDB's threads after tables were written, before the logs and tables that
    // these replace are deleted; must be short.
    std::function<void(const Manifest& manifest)> on_manifest = nullptr;
    // Called with RocksDB's warnings, a line each, from any thread.
    std::function<void(const std::string& line)> log = nullptr;
  };
  using Operations = std::vector<const WriteBatch::Operation*>;
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;

  // Fails when another process has the folder open, naming it, before anything is touched.
  static absl::Status CheckUnused(const Options& options);
  // Opens a folder without changing anything in it. Nothing can be written.
  static absl::StatusOr<std::shared_ptr<Database>> OpenReadOnly(Options options);
  static absl::StatusOr<std::shared_ptr<Database>> Open(Options options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Writes all operations or none to the disk. After an error it is unknown which, but until the
  // database is closed it shows none of them.
  absl::Status Write(const Operations& operations);
  // Returns the sequence number of the newest change.
  std::uint64_t sequence() const;
  Manifest manifest() const;

  // The state of one moment, kept as long as the object lives.
  class Moment {
   public:
    explicit Moment(std::shared_ptr<Database> database);
    ~Moment();
    Moment(const Moment&) = delete;
    Moment& operator=(const Moment&) = delete;

    std::uint64_t sequence() const;
    // Does the same as Database::Scan.
    absl::Status Scan(Keyspace keyspace, std::string_view from, const Visit& visit) const;

   private:
    const std::shared_ptr<Database> database_;
    const rocksdb::Snapshot* const snapshot_;
  };

  // Returns the value; kNotFound when there is no such key.
  absl::StatusOr<std::string> Get(Keyspace keyspace, std::string_view key) const;
  // Visits the keys from `from` on, in byte order, until `visit` returns false.
  absl::Status Scan(Keyspace keyspace, std::string_view from, const Visit& visit) const;

  // Reads every block of every table. Returns how many tables there are; tells each damaged one.
  std::size_t CheckTables(const std::function<void(const absl::Status&)>& damaged) const;

 private:
  explicit Database(Options options);
  absl::Status ScanAt(const rocksdb::Snapshot* snapshot, Keyspace keyspace, std::string_view from,
                      const Visit& visit) const;

  const Options options_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> columns_;
};

}  // namespace tahoma::controller
