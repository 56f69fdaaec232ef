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
// later commit is refused with kUnavailable until the program is started again and recovery has
// read what is really there.
//
// Scope: bytes under keys (docs/formats/store.md). What they mean belongs to the callers.
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "controller/store/write_batch.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class FileSystem;
}  // namespace rocksdb

namespace tahoma::controller {

struct StoreOptions {
  std::string dir = {};
  // Tests and the simulator put a fault-injecting file system here; null is the machine's own.
  std::shared_ptr<rocksdb::FileSystem> file_system = nullptr;
  // True: every commit happens inside the calling thread and RocksDB never flushes or compacts on
  // its own, so that a run repeats exactly. For simulations; a long-lived store would only grow.
  bool single_threaded = false;
};

class Store {
 public:
  // The version of everything in docs/formats/store.md. A folder of another version is refused.
  static constexpr std::string_view kFormat = "1";
  // Committers wait when this much is queued and not yet on disk.
  static constexpr std::size_t kQueuedBytesMax = 64UL << 20U;

  // Creates the folder when there is none. Fails with kFailedPrecondition when another process has
  // it open (naming the folder and, if the system tells, the process) or its format is not ours,
  // kDataLoss when its content is damaged, kUnavailable when the file system refuses.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);

  // Finishes what is queued, then closes. Callbacks of queued commits are called before it returns.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Returns when the batch is on disk. On an error it is unknown whether it is; the store has
  // stopped (see above). An empty batch succeeds once everything queued before it is on disk.
  absl::Status Commit(WriteBatch batch);

  // As Commit, answered by `done`. Calls of `done` come in the order of the calls of CommitAsync,
  // one at a time, from the store's thread (single_threaded: before CommitAsync returns). `done`
  // must be short and must not commit.
  using Done = std::function<void(const absl::Status&)>;
  void CommitAsync(WriteBatch batch, Done done);

  // Called after the answers of each group of commits that reached the disk together, from their
  // thread; for what is worth doing once for all of them. Null: nothing, and when this returns the
  // one before is not called any more.
  void SetAfterGroup(std::function<void()> after);

  // kNotFound when there is no such key. Sees commits that were acknowledged before the call.
  absl::StatusOr<std::string> Get(Keyspace keyspace, std::string_view key) const;

  // Visits the keys that begin with `prefix`, from `from` on (empty: from the first), in byte order
  // and as of one moment, until `visit` returns false. kDataLoss when a checksum does not fit.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  absl::Status Scan(Keyspace keyspace, std::string_view prefix, std::string_view from,
                    const Visit& visit) const;

  // Why the store has stopped; OK while it has not.
  absl::Status health() const;

 private:
  struct Pending {
    WriteBatch batch;
    Done done;
  };

  explicit Store(StoreOptions options);
  absl::Status OpenDatabase();
  absl::Status CheckFormat();
  void RunCommitter();
  static std::vector<const WriteBatch::Operation*> Effective(const std::vector<Pending>& group);
  absl::Status Write(const std::vector<Pending>& group);
  void Answer(const std::vector<Pending>& group, const absl::Status& status);
  absl::Status Refusal() const;  // what commits get after a failure; health() is OK before

  const StoreOptions options_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> columns_;

  mutable std::mutex mutex_;
  std::condition_variable queued_;
  std::condition_variable room_;
  std::vector<Pending> queue_;
  std::size_t queue_bytes_ = 0;
  bool closing_ = false;
  absl::Status failure_;
  std::mutex after_group_mutex_;
  std::function<void()> after_group_;
  std::thread committer_;
};

}  // namespace tahoma::controller
