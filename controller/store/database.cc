#include "controller/store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// When the logs have this many bytes, RocksDB writes their content to tables.
constexpr std::size_t kLogBytesMost = 256UL << 20U;
constexpr std::array<std::string_view, kKeyspaceCount> kColumnNames = {"default", "api", "ledger"};

std::size_t IndexOf(Keyspace keyspace) { return static_cast<std::size_t>(keyspace); }
rocksdb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status FromRocks(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption()) return DataLoss("{}", status.ToString());
  return Unavailable("{}", status.ToString());
}

// Returns the process that holds the lock. RocksDB holds fcntl's write lock on LOCK: the system can
// name the holder. Must not be called for a lock of our own process: closing any descriptor of the
// file would release the lock (POSIX).
std::optional<int> LockHolder(const std::string& lock_file) {
  const int fd = ::open(lock_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct flock probe = {};
  probe.l_type = F_RDLCK;
  probe.l_whence = SEEK_SET;
  const int asked = ::fcntl(fd, F_GETLK, &probe);
  ::close(fd);
  if (asked != 0 || probe.l_type == F_UNLCK) return std::nullopt;
  return probe.l_pid;
}

absl::Status InUse(const std::string& dir, std::string_view reason) {
  if (reason.find("current process") != std::string_view::npos) {
    return FailedPrecondition("is already open in this process");
  }
  if (const auto pid = LockHolder(dir + "/LOCK")) {
    return FailedPrecondition(
        "is in use by process {}; stop that controller or use another dataDir", *pid);
  }
  return FailedPrecondition("is in use by another process; stop it or use another dataDir");
}

// Returns the synced manifest: the file may be longer while RocksDB adds to it.
Database::Manifest ManifestIn(rocksdb::DB& db) {
  constexpr std::string_view kName = "MANIFEST-";
  Database::Manifest manifest;
  std::vector<std::string> files;
  if (!db.GetLiveFiles(files, &manifest.bytes, /*flush_memtable=*/false).ok()) return {};
  for (const std::string_view file : files) {
    const std::size_t at = file.find(kName);
    if (at == std::string_view::npos) continue;
    std::from_chars(file.data() + at + kName.size(), file.data() + file.size(), manifest.number);
  }
  return manifest;
}

// Keeps RocksDB from recovering by itself: after a full disk RocksDB would flush and go on, in a
// thread that outlives the closing of the database. Store::Recover settles the rest of a failed
// commit.
class Listener : public rocksdb::EventListener {
 public:
  explicit Listener(std::function<void(const Database::Manifest&)> on_manifest)
      : on_manifest_(std::move(on_manifest)) {}
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& /*info*/) override {
    if (on_manifest_) on_manifest_(ManifestIn(*db));
  }
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& /*info*/) override {
    if (on_manifest_) on_manifest_(ManifestIn(*db));
  }

 private:
  const std::function<void(const Database::Manifest&)> on_manifest_;
};

// Passes RocksDB's warnings on as lines of our log. RocksDB's own file, LOG in the folder, is not
// written: after a failed write to LOG, as on a full disk, RocksDB 7.8 ends in an assertion when it
// writes or closes the file again.
class Warnings : public rocksdb::Logger {
 public:
  explicit Warnings(std::function<void(const std::string&)> log)
      : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL), log_(std::move(log)) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list values) override {
    if (!log_) return;
    constexpr std::size_t kLineMax = 512;
    std::array<char, kLineMax> line = {};
    std::vsnprintf(line.data(), line.size(), format, values);
    log_(fmt::format("RocksDB: {}", line.data()));
  }
  void LogHeader(const char* /*format*/, va_list /*values*/) override {}

 private:
  const std::function<void(const std::string&)> log_;
};

rocksdb::DBOptions DatabaseOptions(const Database::Options& options, rocksdb::Env* env) {
  rocksdb::DBOptions db;
  db.env = env;
  db.create_if_missing = options.create;
  db.create_missing_column_families = true;  // an earlier start may have ended in between
  db.paranoid_checks = true;
  db.track_and_verify_wals_in_manifest = true;
  // Unfinished writes were cut off before (log_check.h): all other records must be whole.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  db.max_total_wal_size = kLogBytesMost;
  db.max_background_jobs = 2;
  db.max_open_files = 512;
  db.info_log = std::make_shared<Warnings>(options.log);
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.max_bgerror_resume_count = 0;
  db.listeners.push_back(std::make_shared<Listener>(options.on_manifest));
  // Records recovered from the log may never have been synced. RocksDB's default writes them to a
  // table before anything builds on them.
  db.avoid_flush_during_recovery = options.keep_logs;
  // Where there is little room, RocksDB reserves none: as much as fits is written.
  db.allow_fallocate = !options.keep_logs;
  if (options.single_threaded) {
    db.avoid_flush_during_shutdown = true;
    db.max_total_wal_size = 4UL << 30U;
    // RocksDB reserves 1.1 write buffers on the disk for a log: 1.1 GiB for each of a simulation's
    // disks.
    db.allow_fallocate = false;
  }
  return db;
}

std::vector<rocksdb::ColumnFamilyDescriptor> Columns(const Database::Options& options) {
  rocksdb::ColumnFamilyOptions column;
  // Kept logs must fit: a full buffer would be written to a table.
  column.write_buffer_size = options.keep_logs ? kLogBytesMost : 32UL << 20U;
  if (options.single_threaded) {
    column.write_buffer_size = 1UL << 30U;
    column.disable_auto_compactions = true;
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> columns;
  for (const std::string_view name : kColumnNames) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(16UL << 20U);
    column.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    columns.emplace_back(std::string(name), column);
  }
  return columns;
}

// Returns the environment; null for RocksDB's own.
std::unique_ptr<rocksdb::Env> EnvOf(const Database::Options& options) {
  return options.file_system ? rocksdb::NewCompositeEnv(options.file_system) : nullptr;
}

}  // namespace

absl::Status Database::CheckUnused(const Options& options) {
  const std::unique_ptr<rocksdb::Env> own = EnvOf(options);
  rocksdb::Env* env = own ? own.get() : rocksdb::Env::Default();
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = env->LockFile(options.dir + "/LOCK", &lock);
  if (locked.ok()) return FromRocks(env->UnlockFile(lock));
  const std::string reason = locked.ToString();
  // A lock file that cannot even be opened is an error of the file system, not another process's
  // lock.
  if (reason.find("open a file for lock") != std::string::npos) return FromRocks(locked);
  return InUse(options.dir, reason);
}

Database::Database(Options options) : options_(std::move(options)), env_(EnvOf(options_)) {}

absl::StatusOr<std::shared_ptr<Database>> Database::Open(Options options) {
  std::shared_ptr<Database> database(new Database(std::move(options)));
  const Options& own = database->options_;
  rocksdb::Env* env = database->env_ ? database->env_.get() : rocksdb::Env::Default();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::Open(DatabaseOptions(own, env), own.dir, Columns(own), &database->columns_, &db);
  database->db_.reset(db);
  const std::string reason = opened.ToString();
  if (opened.IsIOError() && reason.find("lock") != std::string::npos &&
      reason.find("LOCK") != std::string::npos) {
    return InUse(own.dir, reason);
  }
  if (opened.IsInvalidArgument()) {
    return FailedPrecondition("holds a RocksDB that is not Tahoma's ({}); use another dataDir",
                              reason);
  }
  TAHOMA_RETURN_IF_ERROR(FromRocks(opened));
  return database;
}

absl::StatusOr<std::shared_ptr<Database>> Database::OpenReadOnly(Options options) {
  std::shared_ptr<Database> database(new Database(std::move(options)));
  const Options& own = database->options_;
  rocksdb::DBOptions read_only =
      DatabaseOptions(own, database->env_ ? database->env_.get() : rocksdb::Env::Default());
  read_only.create_missing_column_families = false;
  read_only.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::OpenForReadOnly(read_only, own.dir, Columns(own), &database->columns_, &db);
  database->db_.reset(db);
  if (opened.IsInvalidArgument()) {
    return FailedPrecondition("holds a RocksDB that is not Tahoma's ({})", opened.ToString());
  }
  TAHOMA_RETURN_IF_ERROR(FromRocks(opened));
  return database;
}

Database::~Database() {
  if (!db_) return;
  for (rocksdb::ColumnFamilyHandle* column : columns_) {
    db_->DestroyColumnFamilyHandle(column).PermitUncheckedError();
  }
  db_->Close().PermitUncheckedError();
}

absl::Status Database::Write(const Operations& operations) {
  constexpr std::size_t kFraming = 32;  // more than RocksDB adds to an operation
  std::size_t bytes = 0;
  for (const WriteBatch::Operation* op : operations) {
    bytes += op->key.size() + op->value().size() + kFraming;
  }
  rocksdb::WriteBatch merged(bytes);
  for (const WriteBatch::Operation* effective : operations) {
    const WriteBatch::Operation& op = *effective;
    rocksdb::ColumnFamilyHandle* column = columns_[IndexOf(op.keyspace)];
    rocksdb::Status added;
    switch (op.kind) {
      case WriteBatch::Kind::kPut:
        added = merged.Put(column, SliceOf(op.key), SliceOf(op.value()));
        break;
      case WriteBatch::Kind::kDelete:
        added = merged.Delete(column, SliceOf(op.key));
        break;
      case WriteBatch::Kind::kDeleteRange:
        added = merged.DeleteRange(column, SliceOf(op.key), SliceOf(op.value()));
        break;
    }
    TAHOMA_CHECK(added.ok());
  }
  if (merged.Count() == 0) return absl::OkStatus();
  rocksdb::WriteOptions synced;
  synced.sync = true;
  return FromRocks(db_->Write(synced, &merged));
}

Database::Manifest Database::manifest() const { return ManifestIn(*db_); }

std::uint64_t Database::sequence() const { return db_->GetLatestSequenceNumber(); }

absl::StatusOr<std::string> Database::Get(Keyspace keyspace, std::string_view key) const {
  std::string value;
  const rocksdb::Status got =
      db_->Get(rocksdb::ReadOptions(), columns_[IndexOf(keyspace)], SliceOf(key), &value);
  if (got.IsNotFound()) return NotFound("the store has no key '{}'", key);
  if (!got.ok()) return FromRocks(got);
  return value;
}

absl::Status Database::Scan(Keyspace keyspace, std::string_view from, const Visit& visit) const {
  return ScanAt(nullptr, keyspace, from, visit);
}

absl::Status Database::ScanAt(const rocksdb::Snapshot* snapshot, Keyspace keyspace,
                              std::string_view from, const Visit& visit) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  const std::unique_ptr<rocksdb::Iterator> at(
      db_->NewIterator(options, columns_[IndexOf(keyspace)]));
  for (at->Seek(SliceOf(from)); at->Valid(); at->Next()) {
    if (!visit(ViewOf(at->key()), ViewOf(at->value()))) break;
  }
  return FromRocks(at->status());
}

std::size_t Database::CheckTables(const std::function<void(const absl::Status&)>& damaged) const {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db_->GetLiveFilesMetaData(&tables);
  rocksdb::Options options;
  if (env_) options.env = env_.get();
  for (const rocksdb::LiveFileMetaData& table : tables) {
    rocksdb::SstFileReader reader(options);
    rocksdb::Status status = reader.Open(table.db_path + table.name);
    if (status.ok()) status = reader.VerifyChecksum();
    if (!status.ok()) damaged(Annotate(FromRocks(status), table.db_path + table.name));
  }
  return tables.size();
}

Database::Moment::Moment(std::shared_ptr<Database> database)
    : database_(std::move(database)), snapshot_(database_->db_->GetSnapshot()) {}
Database::Moment::~Moment() { database_->db_->ReleaseSnapshot(snapshot_); }
std::uint64_t Database::Moment::sequence() const { return snapshot_->GetSequenceNumber(); }
absl::Status Database::Moment::Scan(Keyspace keyspace, std::string_view from,
                                    const Visit& visit) const {
  return database_->ScanAt(snapshot_, keyspace, from, visit);
}

}  // namespace tahoma::controller
