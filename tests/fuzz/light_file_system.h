// A file system for stores that live for one input: nothing is synced, and no room is taken before
// it is written (RocksDB would take a gigabyte for each log).
//
//   Store::Open({.dir = dir, .file_system = std::make_shared<LightFileSystem>()});
//
// Thread safety: as the machine's own.

#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <utility>

namespace tahoma::fuzz {

class LightFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  LightFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "LightFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus made = FileSystemWrapper::NewWritableFile(name, options, file, debug);
    if (made.ok()) *file = std::make_unique<File>(std::move(*file));
    return made;
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
    using Options = rocksdb::IOOptions;
    using Debug = rocksdb::IODebugContext;
    using IOStatus = rocksdb::IOStatus;

    void PrepareWrite(std::size_t, std::size_t, const Options&, Debug*) override {}
    IOStatus Allocate(std::uint64_t, std::uint64_t, const Options&, Debug*) override {
      return IOStatus::OK();
    }
    IOStatus Sync(const Options&, Debug*) override { return IOStatus::OK(); }
    IOStatus Fsync(const Options&, Debug*) override { return IOStatus::OK(); }
    IOStatus RangeSync(std::uint64_t, std::uint64_t, const Options&, Debug*) override {
      return IOStatus::OK();
    }
  };
};

}  // namespace tahoma::fuzz
