#include "controller/store/store.h"

#include <absl/container/flat_hash_set.h>
#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "controller/store/commits_in_flight.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::array<std::string_view, kKeyspaceCount> kColumnNames = {"default", "api", "ledger"};
constexpr std::string_view kFormatKey = "format";

std::size_t IndexOf(Keyspace keyspace) { return static_cast<std::size_t>(keyspace); }
rocksdb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status FromRocks(const rocksdb::Status& status, std::string_view dir) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption()) {
    return DataLoss(
        "the store in {} is damaged: {}. Keep a copy of the folder, then restore it from a backup, "
        "or start with an empty folder: what was published is read back from the Kubernetes API",
        dir, status.ToString());
  }
  return Unavailable("the store in {}: {}", dir, status.ToString());
}

// RocksDB holds fcntl's write lock on LOCK, so the system can name the process. Must not be asked
// about a lock of our own process: closing any descriptor of the file would release it (POSIX).
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
    return FailedPrecondition("the store in {} is already open in this process", dir);
  }
  if (const auto pid = LockHolder(dir + "/LOCK")) {
    return FailedPrecondition(
        "the store in {} is in use by process {}; stop that controller or use another dataDir", dir,
        *pid);
  }
  return FailedPrecondition(
      "the store in {} is in use by another process; stop it or use another dataDir", dir);
}

// RocksDB renames a folder's LOG before it asks for the folder's lock, also when a running
// controller writes that LOG. So the lock is asked for before RocksDB is.
absl::Status CheckUnused(rocksdb::Env* env, const std::string& dir) {
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = env->LockFile(dir + "/LOCK", &lock);
  if (locked.ok()) return FromRocks(env->UnlockFile(lock), dir);
  const std::string reason = locked.ToString();
  // Nobody's lock is in the way of a file that cannot even be opened.
  if (reason.find("open a file for lock") != std::string::npos) return FromRocks(locked, dir);
  return InUse(dir, reason);
}

// After a full disk RocksDB would flush and go on, in a thread of its own that lives on while the
// database is closed. What a failed commit has left is settled by the next start (store.h).
class NoRecovery : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

rocksdb::DBOptions DatabaseOptions(const StoreOptions& options, rocksdb::Env* env) {
  rocksdb::DBOptions db;
  db.env = env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.paranoid_checks = true;
  db.track_and_verify_wals_in_manifest = true;
  // An acknowledged commit must never be dropped: only an unfinished record at the very end of the
  // log (never acknowledged, as it was not synced) may be ignored.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db.max_total_wal_size = 256UL << 20U;
  db.max_background_jobs = 2;
  db.max_open_files = 512;
  db.keep_log_file_num = 2;
  db.max_log_file_size = 4UL << 20U;
  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.max_bgerror_resume_count = 0;
  db.listeners.push_back(std::make_shared<NoRecovery>());
  // What is recovered from the log may never have been synced; RocksDB's default writes it to a
  // table before anything builds on it, here too.
  if (options.single_threaded) {
    db.avoid_flush_during_shutdown = true;
    db.max_total_wal_size = 4UL << 30U;
  }
  return db;
}

rocksdb::ColumnFamilyOptions ColumnOptions(const StoreOptions& options) {
  rocksdb::ColumnFamilyOptions column;
  column.write_buffer_size = 32UL << 20U;
  if (options.single_threaded) {
    column.write_buffer_size = 1UL << 30U;
    column.disable_auto_compactions = true;
  }
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(16UL << 20U);
  column.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return column;
}

}  // namespace

Store::Store(StoreOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  if (options.dir.empty()) return InvalidArgument("the store needs a folder (dataDir)");
  std::unique_ptr<Store> store(new Store(std::move(options)));
  TAHOMA_RETURN_IF_ERROR(store->OpenDatabase());
  TAHOMA_RETURN_IF_ERROR(store->CheckFormat());
  if (!store->options_.single_threaded) {
    store->committer_ = std::thread([raw = store.get()] { raw->RunCommitter(); });
  }
  return store;
}

absl::Status Store::OpenDatabase() {
  std::error_code error;
  std::filesystem::create_directories(options_.dir, error);
  if (error) {
    return Unavailable("cannot create the store's folder {}: {}", options_.dir, error.message());
  }
  rocksdb::Env* env = rocksdb::Env::Default();
  if (options_.file_system) {
    env_ = rocksdb::NewCompositeEnv(options_.file_system);
    env = env_.get();
  }
  TAHOMA_RETURN_IF_ERROR(CheckUnused(env, options_.dir));
  std::vector<rocksdb::ColumnFamilyDescriptor> wanted;
  for (const std::string_view name : kColumnNames) {
    wanted.emplace_back(std::string(name), ColumnOptions(options_));
  }
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::Open(DatabaseOptions(options_, env), options_.dir, wanted, &columns_, &db);
  db_.reset(db);
  const std::string reason = opened.ToString();
  if (opened.IsIOError() && reason.find("lock") != std::string::npos &&
      reason.find("LOCK") != std::string::npos) {
    return InUse(options_.dir, reason);
  }
  if (opened.IsInvalidArgument()) {
    return FailedPrecondition(
        "the folder {} holds a RocksDB that is not Tahoma's ({}); use another dataDir",
        options_.dir, reason);
  }
  return FromRocks(opened, options_.dir);
}

absl::Status Store::CheckFormat() {
  const absl::StatusOr<std::string> found = Get(Keyspace::kMeta, kFormatKey);
  if (found.ok()) {
    if (*found == kFormat) return absl::OkStatus();
    return FailedPrecondition(
        "the store in {} has format {}, this program reads format {}; use the program that wrote "
        "it",
        options_.dir, *found, kFormat);
  }
  if (!absl::IsNotFound(found.status())) return found.status();
  for (const Keyspace keyspace : {Keyspace::kMeta, Keyspace::kApi, Keyspace::kLedger}) {
    bool any = false;
    TAHOMA_RETURN_IF_ERROR(Scan(keyspace, "", "", [&](auto, auto) {
      any = true;
      return false;
    }));
    if (any) {
      return DataLoss(
          "the store in {} has content but no format version; it is not Tahoma's or it "
          "is damaged",
          options_.dir);
    }
  }
  std::vector<Pending> first(1);
  first[0].batch.Put(Keyspace::kMeta, std::string(kFormatKey), std::string(kFormat));
  return Write(first);
}

Store::~Store() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  queued_.notify_all();
  if (committer_.joinable()) committer_.join();
  for (rocksdb::ColumnFamilyHandle* column : columns_) {
    if (db_) db_->DestroyColumnFamilyHandle(column).PermitUncheckedError();
  }
  if (db_) db_->Close().PermitUncheckedError();
}

absl::Status Store::Refusal() const {
  return Unavailable(
      "the store in {} has stopped and takes no more writes, because an earlier one failed ({}); "
      "everything acknowledged is kept; mend the disk and start the controller again",
      options_.dir, Message(failure_));
}

absl::Status Store::health() const {
  const std::lock_guard lock(mutex_);
  return failure_.ok() ? absl::OkStatus() : Refusal();
}

absl::Status Store::Commit(WriteBatch batch) {
  CommitsInFlight flight;
  flight.Start();
  CommitAsync(std::move(batch), [&](const absl::Status& status) { flight.Answer(status); });
  return flight.Land();
}

void Store::CommitAsync(WriteBatch batch, Done done) {
  std::unique_lock lock(mutex_);
  if (options_.single_threaded) {
    std::vector<Pending> group(1);
    group[0] = {std::move(batch), std::move(done)};
    absl::Status status = failure_.ok() ? absl::OkStatus() : Refusal();
    if (status.ok()) failure_ = status = Write(group);
    lock.unlock();
    Answer(group, status);
    return;
  }
  room_.wait(lock, [&] { return queue_bytes_ < kQueuedBytesMax; });
  queue_bytes_ += batch.bytes();
  queue_.push_back({std::move(batch), std::move(done)});
  if (queue_.size() == 1) queued_.notify_one();
}

void Store::RunCommitter() {
  std::unique_lock lock(mutex_);
  while (true) {
    queued_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::vector<Pending> group;
    group.swap(queue_);
    queue_bytes_ = 0;
    absl::Status status = failure_.ok() ? absl::OkStatus() : Refusal();
    lock.unlock();
    room_.notify_all();
    bool failed_now = false;
    if (status.ok()) {
      status = Write(group);
      failed_now = !status.ok();
    }
    if (failed_now) {
      const std::lock_guard relock(mutex_);
      failure_ = status;
    }
    Answer(group, status);
    lock.lock();
  }
}

void Store::Answer(const std::vector<Pending>& group, const absl::Status& status) {
  for (const Pending& pending : group) pending.done(status);
  const std::lock_guard lock(after_group_mutex_);
  if (after_group_) after_group_();
}

void Store::SetAfterGroup(std::function<void()> after) {
  const std::lock_guard lock(after_group_mutex_);
  after_group_ = std::move(after);
}

// What a group does, in its order, without what a later operation on the same key makes void: each
// commit of the API tells the newest version.
std::vector<const WriteBatch::Operation*> Store::Effective(const std::vector<Pending>& group) {
  std::vector<const WriteBatch::Operation*> operations;
  for (const Pending& pending : group) {
    for (const WriteBatch::Operation& op : pending.batch.operations()) operations.push_back(&op);
  }
  absl::flat_hash_set<std::pair<Keyspace, std::string_view>> later;
  for (auto at = operations.rbegin(); at != operations.rend(); ++at) {
    const WriteBatch::Operation& op = **at;
    if (op.kind != WriteBatch::Kind::kDeleteRange && !later.emplace(op.keyspace, op.key).second) {
      *at = nullptr;
    }
  }
  std::erase(operations, nullptr);
  return operations;
}

absl::Status Store::Write(const std::vector<Pending>& group) {
  const auto operations = Effective(group);
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
  return Annotate(FromRocks(db_->Write(synced, &merged), options_.dir),
                  "a commit failed and it is unknown whether it is on disk");
}

absl::StatusOr<std::string> Store::Get(Keyspace keyspace, std::string_view key) const {
  std::string value;
  const rocksdb::Status got =
      db_->Get(rocksdb::ReadOptions(), columns_[IndexOf(keyspace)], SliceOf(key), &value);
  if (got.IsNotFound()) return NotFound("the store has no key '{}'", key);
  if (!got.ok()) return FromRocks(got, options_.dir);
  return value;
}

absl::Status Store::Scan(Keyspace keyspace, std::string_view prefix, std::string_view from,
                         const Visit& visit) const {
  const std::unique_ptr<rocksdb::Iterator> at(
      db_->NewIterator(rocksdb::ReadOptions(), columns_[IndexOf(keyspace)]));
  for (at->Seek(SliceOf(std::max(prefix, from))); at->Valid(); at->Next()) {
    const std::string_view key = ViewOf(at->key());
    if (!key.starts_with(prefix)) break;
    if (!visit(key, ViewOf(at->value()))) break;
  }
  return FromRocks(at->status(), options_.dir);
}

}  // namespace tahoma::controller
