// A file system for RocksDB that fails when told to.
//
//   auto disk = std::make_shared<FaultFileSystem>();
//   auto store = *controller::Store::Open({.dir = dir, .file_system = disk});
//   disk->FailAfter(3, FaultFileSystem::Failure::kCrash);   // three more writes or syncs succeed
//   while (store->Commit(batch).ok()) …
//   store.reset();
//   disk->PowerCut(rng);        // what was not synced is lost, wholly or from a random byte on
//   store = *controller::Store::Open({.dir = dir, .file_system = disk});    // recovery
//
// Counts Append and Sync of every file that is written below it. Files are real ones (of the
// machine's file system); creating, renaming and deleting files is treated as durable at once.
//
// Thread safety: every member may be called from any thread; a run repeats exactly only when one
// thread does everything.

#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/rng.h"

namespace tahoma::testing {

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  enum class Failure : std::uint8_t {
    kWriteError,  // one write or sync fails with an I/O error, later ones succeed
    kDiskFull,    // every append fails with "no space" until Heal()
    kCrash,       // this and every later change fails until Heal(): as if the process had died
  };

  FaultFileSystem();

  // After `operations` more successful appends or syncs, `failure` happens.
  void FailAfter(std::uint64_t operations, Failure failure);
  // No planned failure and no lasting one any more.
  void Heal();
  // Appends and syncs so far, also the failed ones.
  std::uint64_t operations() const;

  // Cuts every file that was written back to what was synced, plus a random part of the rest. The
  // store must be closed. Heals the file system.
  void PowerCut(Rng& rng);

  // For the files of this file system.
  enum class Change : std::uint8_t { kAppend, kSync };
  rocksdb::IOStatus Allow(Change change);
  void Appended(const std::string& file, std::uint64_t bytes);
  void Synced(const std::string& file);

  const char* Name() const override { return "FaultFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  struct Sizes {
    std::uint64_t written = 0;
    std::uint64_t synced = 0;
  };
  rocksdb::IOStatus AllowNamespaceChange();

  mutable std::mutex mutex_;
  std::map<std::string, Sizes> files_;
  std::uint64_t operations_ = 0;
  std::optional<std::uint64_t> fails_at_;
  Failure failure_ = Failure::kWriteError;
  bool full_ = false;
  bool crashed_ = false;
};

}  // namespace tahoma::testing
