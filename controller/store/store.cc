#include "controller/store/store.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "controller/store/commits_in_flight.h"
#include "controller/store/folder.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// The bytes that RocksDB writes to open a folder, beside a copy of its logs: manifest and options.
constexpr std::uint64_t kRoomToOpen = 4UL << 20U;
// The bytes to open a folder when the logs stay and nothing is reserved, and for the first commit.
constexpr std::uint64_t kRoomToGoOn = 512UL << 10U;
// Longer logs are soon written to tables, which need room.
constexpr std::uint64_t kKeptLogsMost = 192UL << 20U;

MonotonicTime Now() { return SystemClock().MonotonicNow(); }

// Returns the batch that restores the values that `operations` replace or delete in `database`.
absl::StatusOr<WriteBatch> UndoOf(const Database& database,
                                  const Database::Operations& operations) {
  WriteBatch undo;
  for (const WriteBatch::Operation* op : operations) {
    if (op->kind == WriteBatch::Kind::kDeleteRange) {
      TAHOMA_RETURN_IF_ERROR(
          database.Scan(op->keyspace, op->key, [&](std::string_view key, std::string_view value) {
            if (key >= op->value()) return false;
            undo.Put(op->keyspace, std::string(key), std::string(value));
            return true;
          }));
      continue;
    }
    absl::StatusOr<std::string> before = database.Get(op->keyspace, op->key);
    if (before.ok()) {
      undo.Put(op->keyspace, op->key, *std::move(before));
    } else if (absl::IsNotFound(before.status())) {
      undo.Delete(op->keyspace, op->key);
    } else {
      return before.status();
    }
  }
  return undo;
}

}  // namespace

Store::Store(StoreOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  if (options.dir.empty()) return InvalidArgument("the store needs a folder (dataDir)");
  std::unique_ptr<Store> store(new Store(std::move(options)));
  {
    const MutexLock lock(store->write_mutex_);
    TAHOMA_RETURN_IF_ERROR(store->OpenDatabase());
  }
  if (!store->options_.single_threaded) {
    store->committer_ = std::thread([raw = store.get()] { raw->RunCommitter(); });
  }
  return store;
}

void Store::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

absl::Status Store::Explain(const absl::Status& status) const {
  const std::string& dir = options_.dir;
  if (absl::IsFailedPrecondition(status)) {
    return FailedPrecondition("the store in {} {}", dir, Message(status));
  }
  if (!absl::IsDataLoss(status)) return Annotate(status, fmt::format("the store in {}", dir));
  return DataLoss(
      "the store in {} is damaged: {}. Nothing in it was changed. {}", dir, Message(status),
      options_.only_copy
          ? "Keep it as it is and restore it from a backup into another folder: controller restore "
            "BACKUP --data-dir NEW"
          : "Keep a copy and start with an empty folder: what was published is read back from the "
            "Kubernetes API");
}

Database::Options Store::DatabaseOptions() const {
  return {.dir = options_.dir,
          .file_system = options_.file_system,
          .single_threaded = options_.single_threaded,
          .log = options_.log};
}

absl::Status Store::OpenDatabase() {
  std::vector<std::string> notes;
  TAHOMA_RETURN_IF_ERROR(MakePrivate(options_.dir, notes));
  for (const std::string& note : notes) Log(note);
  Database::Options database = DatabaseOptions();
  TAHOMA_RETURN_IF_ERROR(Explain(Database::CheckUnused(database)));
  const absl::StatusOr<FolderFound> found = CheckFolder(options_.dir, options_.only_copy);
  if (!found.ok()) return Explain(found.status());
  const absl::StatusOr<bool> keep_logs = KeepsLogs(*found);
  if (!keep_logs.ok()) return Explain(keep_logs.status());
  if (found->mark) {
    TAHOMA_RETURN_IF_ERROR(Explain(CheckExtent(*found->mark, found->logs.last_sequence)));
  }
  for (const LogsFound::Tail& tail : found->logs.tails) {
    Log(fmt::format("{}: {} bytes at its end, of a commit that was never acknowledged, are cut off",
                    tail.path, tail.bytes));
  }
  TAHOMA_RETURN_IF_ERROR(Explain(CutTails(found->logs)));
  database.create = found->is_new;
  database.keep_logs = *keep_logs;
  database.on_manifest = [this](const Database::Manifest& manifest) { NoteManifest(manifest); };
  auto opened = Database::Open(std::move(database));
  if (!opened.ok()) return Explain(opened.status());
  TAHOMA_RETURN_IF_ERROR(CheckFormat(**opened));
  TAHOMA_RETURN_IF_ERROR(BeginMark(**opened));
  if (found->is_new) Log(fmt::format("created a new store in {}", options_.dir));
  if (options_.only_copy) {
    if (const absl::Status guard = WriteGuard(options_.dir); !guard.ok()) {
      Log(fmt::format("should {} be found empty one day, nobody will notice: {}", options_.dir,
                      Message(guard)));
    }
  }
  const MutexLock lock(mutex_);
  // Only a store with content can have lost some.
  unmarked_ = !found->is_new && !found->mark;
  database_ = *std::move(opened);
  return absl::OkStatus();
}

absl::Status Store::BeginMark(const Database& database) {
  const MutexLock lock(mark_mutex_);  // keeps new tables out of the earlier mark
  const Database::Manifest manifest = database.manifest();
  const Mark mark{database.sequence(), manifest.number, manifest.bytes};
  absl::StatusOr<MarkFile> file = MarkFile::Open(options_.dir, mark);
  if (!file.ok()) return Unavailable("the store in {}: {}", options_.dir, Message(file.status()));
  mark_ = mark;
  mark_file_ = *std::move(file);
  return absl::OkStatus();
}

// Compares the folder with its mark, before anything in the folder changes.
absl::Status Store::CheckExtent(const Mark& mark,
                                std::optional<std::uint64_t> newest_in_logs) const {
  std::uint64_t newest = 0;
  if (newest_in_logs) {
    newest = *newest_in_logs;
  } else {
    TAHOMA_ASSIGN_OR_RETURN(const auto database, Database::OpenReadOnly(DatabaseOptions()));
    newest = database->sequence();
  }
  if (newest >= mark.sequence) return absl::OkStatus();
  return DataLoss(
      "it ends with change {}, but {} had been acknowledged: a log was cut or removed (to go on "
      "without them remove {}/{})",
      newest, mark.sequence, options_.dir, kMarkName);
}

absl::Status Store::CheckFormat(Database& database) const {
  const absl::StatusOr<std::string> found = database.Get(Keyspace::kMeta, kFormatKey);
  if (found.ok()) {
    if (*found == kFormat) {
      const absl::Status restoring = database.Get(Keyspace::kMeta, kRestoringKey).status();
      if (absl::IsNotFound(restoring)) return absl::OkStatus();
      if (!restoring.ok()) return Explain(restoring);
      return Explain(FailedPrecondition(
          "holds a restore that did not end; remove the folder and restore the backup again"));
    }
    return FailedPrecondition(
        "the store in {} has format {}, this program reads format {}; use the program that wrote "
        "it",
        options_.dir, *found, kFormat);
  }
  if (!absl::IsNotFound(found.status())) return Explain(found.status());
  for (const Keyspace keyspace : {Keyspace::kMeta, Keyspace::kApi, Keyspace::kLedger}) {
    bool any = false;
    TAHOMA_RETURN_IF_ERROR(Explain(database.Scan(keyspace, "", [&](auto, auto) {
      any = true;
      return false;
    })));
    if (any) {
      return DataLoss(
          "the store in {} has content but no format version; it is not Tahoma's or it "
          "is damaged",
          options_.dir);
    }
  }
  WriteBatch first = options_.first;
  first.Put(Keyspace::kMeta, std::string(kFormatKey), std::string(kFormat));
  Database::Operations operations;
  for (const WriteBatch::Operation& operation : first.operations()) {
    operations.push_back(&operation);
  }
  return Explain(database.Write(operations));
}

Store::~Store() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  queued_.NotifyAll();
  if (committer_.joinable()) committer_.join();
}

absl::Status Store::Refusal() const {
  if (!absl::IsUnavailable(failure_)) return failure_;
  return Unavailable(
      "the store in {} takes no writes, because one failed ({}); everything acknowledged is kept, "
      "and it goes on by itself when the disk can be written again",
      options_.dir, Message(failure_));
}

absl::Status Store::health() const {
  const MutexLock lock(mutex_);
  return failure_.ok() ? absl::OkStatus() : Refusal();
}

bool Store::unmarked() const {
  const MutexLock lock(mutex_);
  return unmarked_;
}

std::shared_ptr<Database> Store::database() const {
  const MutexLock lock(mutex_);
  return database_;
}

absl::Status Store::Commit(WriteBatch batch) {
  CommitsInFlight flight;
  flight.Start();
  CommitAsync(std::move(batch), [&](const absl::Status& status) { flight.Answer(status); });
  return flight.Land();
}

void Store::CommitAsync(WriteBatch batch, Done done) {
  if (options_.single_threaded) {
    std::vector<Pending> group(1);
    group[0] = {std::move(batch), std::move(done)};
    Answer(group, Write(group));
    return;
  }
  const MutexLock lock(mutex_);
  TAHOMA_CHECK(!closing_);  // the committer may have gone, and nobody would answer
  while (queue_bytes_ >= kQueuedBytesMax) room_.Wait(mutex_);
  queue_bytes_ += batch.bytes();
  queue_.push_back({std::move(batch), std::move(done)});
  if (queue_.size() == 1) queued_.NotifyOne();
}

void Store::RunCommitter() {
  MutexLock lock(mutex_);
  std::optional<MonotonicTime> retry;
  while (true) {
    if (absl::IsUnavailable(failure_)) {
      if (!retry) retry = Now() + options_.retry_every;
      while (!closing_ && queue_.empty() && queued_.WaitUntil(mutex_, *retry)) {
      }
    } else {
      retry.reset();
      while (!closing_ && queue_.empty()) queued_.Wait(mutex_);
    }
    if (closing_ && queue_.empty()) return;
    if (retry && !closing_ && Now() >= *retry) {
      lock.Unlock();
      Recover().IgnoreError();  // health() tells
      lock.Lock();
      retry.reset();
    }
    std::vector<Pending> group;
    group.swap(queue_);
    queue_bytes_ = 0;
    lock.Unlock();
    room_.NotifyAll();
    if (!group.empty()) Answer(group, Write(group));
    lock.Lock();
  }
}

void Store::Answer(const std::vector<Pending>& group, const absl::Status& status) {
  for (const Pending& pending : group) pending.done(status);
  const MutexLock lock(after_group_mutex_);
  if (after_group_) after_group_();
}

void Store::SetAfterGroup(std::function<void()> after) {
  const MutexLock lock(after_group_mutex_);
  after_group_ = std::move(after);
}

// Returns the operations of a group, in its order, without operations that a later operation on the
// same key replaces: each commit of the API writes the newest version.
Database::Operations Store::Effective(const std::vector<Pending>& group) {
  Database::Operations operations;
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
  const MutexLock writing(write_mutex_);
  std::shared_ptr<Database> database;
  {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) return Refusal();
    database = database_;
  }
  const Database::Operations operations = Effective(group);
  const absl::Status written = database->Write(operations);
  if (written.ok()) {
    NoteAcknowledged(*database);
    return written;
  }
  const absl::Status why =
      Annotate(Explain(written), "a commit failed and it is unknown whether it is on disk");
  Fail(*database, operations, why);
  return why;
}

void Store::NoteAcknowledged(const Database& database) {
  const std::uint64_t sequence = database.sequence();
  const MutexLock lock(mark_mutex_);
  // An older mark would let the next start accept a folder that has lost a commit.
  TAHOMA_CHECK(sequence >= mark_.sequence);
  mark_.sequence = sequence;
  mark_file_.Note(mark_);
}

void Store::NoteManifest(const Database::Manifest& manifest) {
  const MutexLock lock(mark_mutex_);
  // Two threads may call in the wrong order.
  if (std::pair(manifest.number, manifest.bytes) <=
      std::pair(mark_.manifest, mark_.manifest_bytes)) {
    return;
  }
  mark_.manifest = manifest.number;
  mark_.manifest_bytes = manifest.bytes;
  mark_file_.Note(mark_);
}

// Stops the store. `database` shows none of the failed operations: it still has the old values.
void Store::Fail(const Database& database, const Database::Operations& operations,
                 const absl::Status& why) {
  absl::StatusOr<WriteBatch> undo = UndoOf(database, operations);
  Log(fmt::format("{}", Message(why)));
  ++failures_;
  const MutexLock lock(mutex_);
  if (undo.ok()) {
    undo_ = *std::move(undo);
    failure_ = Unavailable("{}", Message(why));
  } else {
    failure_ = Internal("{}; and what it replaced cannot be read: {}; start the controller again",
                        Message(why), Message(undo.status()));
  }
}

// Opening writes the content of the logs to tables: nothing builds on records that may not be on
// disk. Without room for the tables, the logs can stay if all their records were acknowledged.
absl::StatusOr<bool> Store::KeepsLogs(const FolderFound& found) const {
  const absl::Status room = CheckRoom(found.logs.bytes + kRoomToOpen);
  if (room.ok()) return false;
  const bool on_disk = found.mark && found.logs.last_sequence.value_or(0) <= found.mark->sequence;
  if (!on_disk || found.logs.bytes > kKeptLogsMost) return room;
  TAHOMA_RETURN_IF_ERROR(CheckRoom(kRoomToGoOn));
  return true;
}

// Fails when the disk has less room: RocksDB may end in an assertion when the disk fills up while a
// folder is opened.
absl::Status Store::CheckRoom(std::uint64_t needed) const {
  std::error_code error;
  const std::uint64_t available = options_.free_bytes
                                      ? options_.free_bytes()
                                      : std::filesystem::space(options_.dir, error).available;
  if (error || available >= needed) return absl::OkStatus();  // opening reports an error
  return Unavailable("no space left: {} bytes are free on its disk, at least {} are needed",
                     available, needed);
}

absl::Status Store::Recover() {
  const MutexLock writing(write_mutex_);
  absl::Status before;
  {
    const MutexLock lock(mutex_);
    before = failure_;
  }
  if (!absl::IsUnavailable(before)) return before;
  const absl::Status reopened = Reopen();
  const MutexLock lock(mutex_);
  if (reopened.ok()) {
    failure_ = absl::OkStatus();
    undo_ = WriteBatch();
    Log(fmt::format("the store in {} takes writes again", options_.dir));
  } else if (!absl::IsUnavailable(reopened)) {
    failure_ = reopened;
    Log(fmt::format("the store does not come back: {}", Message(reopened)));
  }
  return reopened;
}

absl::Status Store::Reopen() {
  TAHOMA_RETURN_IF_ERROR(Explain(CheckRoom(kRoomToGoOn + undo_.bytes())));
  std::uint64_t acknowledged = 0;
  {
    const MutexLock lock(mark_mutex_);
    acknowledged = mark_.sequence;
  }
  {
    const MutexLock lock(mutex_);
    if (database_) closed_ = std::exchange(database_, nullptr);
  }
  if (!closed_.expired()) return Unavailable("the store in {} is still being read", options_.dir);
  TAHOMA_RETURN_IF_ERROR(Explain(CutBehind(options_.dir, acknowledged)));
  TAHOMA_RETURN_IF_ERROR(OpenDatabase());
  Database::Operations operations;
  for (const WriteBatch::Operation& op : undo_.operations()) operations.push_back(&op);
  const std::shared_ptr<Database> opened = database();
  TAHOMA_RETURN_IF_ERROR(Explain(opened->Write(operations)));
  NoteAcknowledged(*opened);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Store::Get(Keyspace keyspace, std::string_view key) const {
  const std::shared_ptr<Database> open = database();
  if (!open) return health();
  absl::StatusOr<std::string> value = open->Get(keyspace, key);
  if (value.ok() || absl::IsNotFound(value.status())) return value;
  return Explain(value.status());
}

absl::Status Store::Scan(Keyspace keyspace, std::string_view prefix, std::string_view from,
                         const Visit& visit) const {
  const std::shared_ptr<Database> open = database();
  if (!open) return health();
  return Explain(open->Scan(keyspace, std::max(prefix, from),
                            [&](std::string_view key, std::string_view value) {
                              return key.starts_with(prefix) && visit(key, value);
                            }));
}

absl::StatusOr<std::unique_ptr<Database::Moment>> Store::Freeze() const {
  TAHOMA_RETURN_IF_ERROR(health());
  return std::make_unique<Database::Moment>(database());
}

}  // namespace tahoma::controller
