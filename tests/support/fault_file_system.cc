#include "tests/support/fault_file_system.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace tahoma::testing {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class FaultFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name, FaultFileSystem* disk)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), disk_(disk) {}

  IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options,
                  IODebugContext* debug) override {
    IOStatus status = disk_->Allow(FaultFileSystem::Change::kAppend);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Append(bytes, options, debug);
    if (status.ok()) disk_->Appended(name_, bytes.size());
    return status;
  }
  IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return Append(bytes, options, debug);
  }
  // PowerCut decides what survives, so the machine's disk is not made to sync.
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = disk_->Allow(FaultFileSystem::Change::kSync);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Flush(options, debug);
    if (status.ok()) disk_->Synced(name_);
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  const std::string name_;
  FaultFileSystem* const disk_;
};

// Changes of names are durable at once.
class FaultDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  using FSDirectoryWrapper::FSDirectoryWrapper;

  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*,
                               const rocksdb::DirFsyncOptions&) override {
    return IOStatus::OK();
  }
};

std::uint64_t SizeOf(const std::string& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  return error ? 0 : size;
}

}  // namespace

FaultFileSystem::FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

void FaultFileSystem::FailAfter(std::uint64_t operations, Failure failure) {
  const std::lock_guard lock(mutex_);
  fails_at_ = operations_ + operations;
  failure_ = failure;
}

void FaultFileSystem::Heal() {
  const std::lock_guard lock(mutex_);
  fails_at_.reset();
  full_ = crashed_ = false;
}

std::uint64_t FaultFileSystem::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

IOStatus FaultFileSystem::Allow(Change change) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = operations_++;
  if (fails_at_ && number >= *fails_at_) {
    fails_at_.reset();
    if (failure_ == Failure::kWriteError) return IOStatus::IOError("injected I/O error");
    (failure_ == Failure::kDiskFull ? full_ : crashed_) = true;
  }
  if (crashed_) return IOStatus::IOError("injected crash");
  if (full_ && change == Change::kAppend) return IOStatus::NoSpace("injected full disk");
  return IOStatus::OK();
}

IOStatus FaultFileSystem::AllowNamespaceChange() {
  const std::lock_guard lock(mutex_);
  return crashed_ ? IOStatus::IOError("injected crash") : IOStatus::OK();
}

void FaultFileSystem::Appended(const std::string& file, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  files_[file].written += bytes;
}

void FaultFileSystem::Synced(const std::string& file) {
  const std::lock_guard lock(mutex_);
  files_[file].synced = files_[file].written;
}

void FaultFileSystem::PowerCut(Rng& rng) {
  const std::lock_guard lock(mutex_);
  // Each file has numbers of its own: how much of RocksDB's own log is not synced depends on the
  // real time.
  const std::uint64_t seed = rng.Next();
  for (auto& [file, sizes] : files_) {
    const std::uint64_t unsynced = sizes.written - sizes.synced;
    if (unsynced == 0) continue;
    const std::string name = std::filesystem::path(file).filename();
    Rng own(seed ^ std::hash<std::string>()(name));
    const std::uint64_t kept = own.Chance(1, 2) ? 0 : own.Below(unsynced + 1);
    std::error_code error;
    std::filesystem::resize_file(file, sizes.synced + kept, error);
    sizes.written = sizes.synced = sizes.synced + kept;
  }
  fails_at_.reset();
  full_ = crashed_ = false;
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& name,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file,
                                          IODebugContext* debug) {
  IOStatus status = AllowNamespaceChange();
  if (status.ok()) status = FileSystemWrapper::NewWritableFile(name, options, file, debug);
  if (!status.ok()) return status;
  *file = std::make_unique<FaultFile>(std::move(*file), name, this);
  const std::lock_guard lock(mutex_);
  files_[name] = {};
  return status;
}

IOStatus FaultFileSystem::ReopenWritableFile(const std::string& name,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             IODebugContext* debug) {
  IOStatus status = AllowNamespaceChange();
  if (status.ok()) status = FileSystemWrapper::ReopenWritableFile(name, options, file, debug);
  if (!status.ok()) return status;
  *file = std::make_unique<FaultFile>(std::move(*file), name, this);
  const std::uint64_t size = SizeOf(name);
  const std::lock_guard lock(mutex_);
  files_.insert({name, {.written = size, .synced = size}});
  return status;
}

IOStatus FaultFileSystem::ReuseWritableFile(const std::string& name, const std::string& old_name,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* file,
                                            IODebugContext* debug) {
  IOStatus status = AllowNamespaceChange();
  if (status.ok()) {
    status = FileSystemWrapper::ReuseWritableFile(name, old_name, options, file, debug);
  }
  if (!status.ok()) return status;
  *file = std::make_unique<FaultFile>(std::move(*file), name, this);
  const std::lock_guard lock(mutex_);
  files_.erase(old_name);
  files_[name] = {};
  return status;
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to,
                                     const IOOptions& options, IODebugContext* debug) {
  IOStatus status = AllowNamespaceChange();
  if (status.ok()) status = FileSystemWrapper::RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (auto moved = files_.extract(from)) {
    moved.key() = to;
    files_.erase(to);
    files_.insert(std::move(moved));
  }
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& name, const IOOptions& options,
                                     IODebugContext* debug) {
  IOStatus status = AllowNamespaceChange();
  if (status.ok()) status = FileSystemWrapper::DeleteFile(name, options, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  files_.erase(name);
  return status;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& name, const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* directory,
                                       IODebugContext* debug) {
  IOStatus status = FileSystemWrapper::NewDirectory(name, options, directory, debug);
  if (status.ok()) *directory = std::make_unique<FaultDirectory>(std::move(*directory));
  return status;
}

}  // namespace tahoma::testing
