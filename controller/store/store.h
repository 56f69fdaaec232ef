// The controller's one durable store: a RocksDB folder with three keyspaces.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto store, Store::Open({.dir = "/var/lib/tahoma"}));
//   TAHOMA_RETURN_IF_ERROR(store->Commit(std::move(batch)));   // on disk when this returns OK
//
// A commit is atomic and synced. Commits that arrive while the disk is busy share the next sync, so
// many threads (or one thread with CommitAsync) get far more commits per second than the disk
// syncs.
//
// After a write or sync has failed nobody can know what the disk holds, so the store stops: every
// later commit is refused with kUnavailable. From then on it tries to recover: it closes the
// folder, opens it again, so that recovery reads what is really there, and undoes the rest of the
// failed commits. Then it takes commits again, with exactly the acknowledged contents. A caller
// that keeps a copy of these in memory need not read them again.
//
// A folder that holds less than was acknowledged, or is damaged, is refused and left as it is
// (docs/formats/store.md says what can be noticed).
//
// Scope: bytes under keys (docs/formats/store.md). The callers know their meaning.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "controller/store/database.h"
#include "controller/store/mark.h"
#include "controller/store/write_batch.h"
#include "lib/base/mutex.h"

namespace tahoma::controller {

struct FolderFound;

struct StoreOptions {
  std::string dir = {};
  // The file system of RocksDB, null for the machine's own. Tests and the simulator inject faults
  // here.
  std::shared_ptr<rocksdb::FileSystem> file_system = nullptr;
  // Makes every commit happen inside the calling thread, without RocksDB's own flushes and
  // compactions, so that a run repeats exactly. For simulations; a long-lived store would only
  // grow. After a failure the store recovers only when Recover is called.
  bool single_threaded = false;
  // Says that the folder is the only copy of its content, as in standalone mode. Then an empty
  // folder where there was a store is refused, by a file beside it (DIR.created), and messages say
  // to restore a backup. Otherwise, as in a cluster, they say to begin with an empty folder.
  bool only_copy = false;
  // The time from a failure, or an attempt to recover, to the next attempt.
  std::chrono::milliseconds retry_every = std::chrono::seconds(1);
  // Returns the free bytes of the folder's disk; null: asks the system. Tests have less room here.
  std::function<std::uint64_t()> free_bytes = nullptr;
  // The first content of a new store, in the commit that creates the store. Ignored for an existing
  // store.
  WriteBatch first = {};
  // Called with lines for the administrator, from any thread.
  std::function<void(const std::string& line)> log = nullptr;
};

class Store {
 public:
  // The version of everything in docs/formats/store.md. A folder of another version is refused.
  static constexpr std::string_view kFormat = "1";
  static constexpr std::string_view kFormatKey = "format";  // of Keyspace::kMeta
  // The key of Keyspace::kMeta that exists while a backup is being restored into the folder. Open
  // refuses a folder that has it.
  static constexpr std::string_view kRestoringKey = "restoring";
  // Committers wait when this much is queued and not yet on disk.
  static constexpr std::size_t kQueuedBytesMax = 64UL << 20U;

  // Opens the folder, and creates it when there is none; it becomes its owner's alone.
  // kFailedPrecondition when another process has it open (naming the folder and, if the system
  // tells, the process) or its format is not ours, kDataLoss when its content is damaged or less
  // than it was, kUnavailable when the file system refuses.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);

  // Finishes the queued commits and calls their callbacks, then closes.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Returns when the batch is on disk. After an error the store has stopped (see above); should the
  // program end before it recovers, it is unknown whether the batch is on disk. An empty batch
  // succeeds once everything queued before it is on disk.
  absl::Status Commit(WriteBatch batch);

  // Commits without waiting and answers by calling `done`. The calls of `done` come in the order of
  // the calls of CommitAsync, one at a time, from the store's thread (single_threaded: before
  // CommitAsync returns). `done` must be short and must not commit.
  using Done = std::function<void(const absl::Status&)>;
  void CommitAsync(WriteBatch batch, Done done);

  // Sets what is called after the answers of each group of commits that reached the disk together,
  // from their thread; for work that is worth doing once for all of them. Null: nothing. When this
  // returns the earlier function is not called any more.
  void SetAfterGroup(std::function<void()> after);

  // Returns the value; kNotFound when there is no such key. Sees commits that were acknowledged
  // before the call.
  absl::StatusOr<std::string> Get(Keyspace keyspace, std::string_view key) const;

  // Visits the keys that begin with `prefix`, from `from` on (empty: from the first), in byte order
  // and as of one moment, until `visit` returns false. kDataLoss when a checksum does not fit.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  absl::Status Scan(Keyspace keyspace, std::string_view prefix, std::string_view from,
                    const Visit& visit) const;

  // Returns the present state, for a reader that takes its time. While the state lives, a store
  // that has stopped cannot recover. kUnavailable when it has stopped.
  absl::StatusOr<std::unique_ptr<Database::Moment>> Freeze() const;

  // Returns why the store takes no commits: kUnavailable while it tries to recover, another code
  // when it cannot and the program must end; OK while it takes commits.
  absl::Status health() const;
  // The number of times that the store has stopped taking commits.
  std::uint64_t failures() const { return failures_; }

  // Tries to recover at once. The store's thread does it by itself; with single_threaded the caller
  // must.
  absl::Status Recover();

  // Returns whether the folder held a store without a mark: one of an earlier release, or one whose
  // mark was removed to go on with less. Versions that were given out may be above its newest.
  bool unmarked() const;

 private:
  struct Pending {
    WriteBatch batch;
    Done done;
  };

  explicit Store(StoreOptions options);
  void Log(const std::string& line) const;
  // Adds to an error which store it is about and, for damage, what to do.
  absl::Status Explain(const absl::Status& status) const;
  Database::Options DatabaseOptions() const;
  absl::Status OpenDatabase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status CheckFormat(Database& database) const;
  absl::Status CheckExtent(const Mark& mark, std::optional<std::uint64_t> newest_in_logs) const;
  absl::Status BeginMark(const Database& database);
  void NoteAcknowledged(const Database& database);
  void NoteManifest(const Database::Manifest& manifest);
  // Returns whether the logs must stay as they are, and can; fails when there is no room either
  // way.
  absl::StatusOr<bool> KeepsLogs(const FolderFound& found) const;
  absl::Status CheckRoom(std::uint64_t needed) const;
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void RunCommitter();
  static Database::Operations Effective(const std::vector<Pending>& group);
  // Writes a group, or refuses it.
  absl::Status Write(const std::vector<Pending>& group);
  void Fail(const Database& database, const Database::Operations& operations,
            const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void Answer(const std::vector<Pending>& group, const absl::Status& status);
  // Returns the error that commits get after a failure.
  absl::Status Refusal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Database> database() const;

  const StoreOptions options_;

  // RocksDB's threads note new manifests while the database is open. Locked after write_mutex_.
  Mutex mark_mutex_;
  MarkFile mark_file_ ABSL_GUARDED_BY(mark_mutex_);
  Mark mark_ ABSL_GUARDED_BY(mark_mutex_);

  mutable Mutex mutex_;
  // Null while the folder is closed after a failure.
  std::shared_ptr<Database> database_ ABSL_GUARDED_BY(mutex_);
  CondVar queued_;
  CondVar room_;
  std::vector<Pending> queue_ ABSL_GUARDED_BY(mutex_);
  std::size_t queue_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> failures_ = 0;
  bool unmarked_ ABSL_GUARDED_BY(mutex_) = false;

  // Held while somebody writes to the folder: the committer, with single_threaded the caller, or
  // Recover. Locked before mutex_.
  Mutex write_mutex_;
  // The database after a failure, while somebody may still be reading it.
  std::weak_ptr<Database> closed_ ABSL_GUARDED_BY(write_mutex_);
  WriteBatch undo_ ABSL_GUARDED_BY(write_mutex_);  // takes back the failed commits

  Mutex after_group_mutex_;
  std::function<void()> after_group_ ABSL_GUARDED_BY(after_group_mutex_);
  std::thread committer_;
};

}  // namespace tahoma::controller
