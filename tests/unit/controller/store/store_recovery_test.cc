// A store whose disk fails and comes back: whatever was acknowledged is there, whatever was refused
// is not, at every place where the disk can fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "controller/store/mark.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using testing::FaultFileSystem;
using ::testing::HasSubstr;
using testing::TempDir;
using Content = std::map<std::string, std::string>;

Content ReadAll(const Store& store) {
  Content content;
  EXPECT_TRUE(store
                  .Scan(Keyspace::kApi, "", "",
                        [&](std::string_view key, std::string_view value) {
                          content.emplace(key, value);
                          return true;
                        })
                  .ok());
  return content;
}

WriteBatch PutOf(std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(Keyspace::kApi, std::move(key), std::move(value));
  return batch;
}

WriteBatch RandomBatch(Rng& rng, Content& content) {
  WriteBatch batch;
  for (std::uint64_t i = 1 + rng.Below(4); i > 0; --i) {
    const std::string key = fmt::format("k{}", rng.Below(12));
    const std::string end = key + "5";
    switch (rng.Below(4)) {
      case 0:
        batch.Delete(Keyspace::kApi, key);
        content.erase(key);
        break;
      case 1:
        batch.DeleteRange(Keyspace::kApi, key, end);
        content.erase(content.lower_bound(key), content.lower_bound(end));
        break;
      default:
        content[key] = std::string(rng.Below(100), static_cast<char>('a' + rng.Below(26)));
        batch.Put(Keyspace::kApi, key, content[key]);
    }
  }
  return batch;
}

// Some commits, of which some or the recovery after them fail at the given write.
struct Course {
  StoreOptions options;
  FaultFileSystem& disk;
  Rng& rng;
  Content acknowledged = {};

  void Commit(Store& store, int count) {
    for (int i = 0; i < count; ++i) {
      Content wanted = acknowledged;
      WriteBatch batch = RandomBatch(rng, wanted);
      if (store.Commit(std::move(batch)).ok()) acknowledged = wanted;
    }
  }
};

// For each write that can fail: what was acknowledged is exactly what there is, after the recovery
// (of which every write may fail too), after more commits, and after a power cut and a new start.
class StoreRecovery : public ::testing::TestWithParam<bool> {
 protected:
  // With little room the logs stay as they are.
  static std::function<std::uint64_t()> Room() {
    if (!GetParam()) return nullptr;
    return [] { return 600UL << 10U; };
  }
};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutRoom, StoreRecovery, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "LittleRoom" : "Room"; });

TEST_P(StoreRecovery, ComesBackWithExactlyTheAcknowledgedCommitsWhereverTheDiskFails) {
  for (const auto failure :
       {FaultFileSystem::Failure::kWriteError, FaultFileSystem::Failure::kDiskFull}) {
    for (std::uint64_t fail_at = 0; fail_at < 4; ++fail_at) {
      SCOPED_TRACE(fmt::format("failure {} at write {}", static_cast<int>(failure), fail_at));
      const TempDir dir;
      const auto disk = std::make_shared<FaultFileSystem>();
      Rng rng(fail_at + 1);
      Course run{{.dir = dir.path(), .file_system = disk, .single_threaded = true}, *disk, rng};
      auto store = *Store::Open(run.options);
      store.reset();
      run.options.free_bytes = Room();
      store = *Store::Open(run.options);
      run.Commit(*store, 5);
      disk->FailAfter(fail_at, failure);
      run.Commit(*store, 8);
      ASSERT_FALSE(store->health().ok());
      EXPECT_EQ(store->failures(), 1U);
      // Recovery itself fails at later and later writes, until it does not.
      for (std::uint64_t n = 0; !store->health().ok(); n += 5 + rng.Below(25)) {
        disk->Heal();
        disk->FailAfter(n, failure);
        if (store->Recover().ok()) break;
        EXPECT_EQ(store->health().code(), absl::StatusCode::kUnavailable) << store->health();
        EXPECT_TRUE(absl::IsUnavailable(store->Commit(PutOf("refused", "x"))));
        ASSERT_LT(n, 500U);
      }
      disk->Heal();
      EXPECT_TRUE(store->health().ok());
      EXPECT_EQ(ReadAll(*store), run.acknowledged);
      run.Commit(*store, 3);
      store.reset();
      disk->PowerCut(rng);
      store = *Store::Open(run.options);
      EXPECT_EQ(ReadAll(*store), run.acknowledged);
    }
  }
}

// A crash between the failure and the end of the recovery: the commit that failed may be there or
// not, as after any crash, and nothing else differs.
TEST_P(StoreRecovery, APowerCutInTheMiddleOfARecoveryKeepsWhatWasAcknowledged) {
  for (std::uint64_t crash_at = 0; crash_at < 40; crash_at += 2) {
    SCOPED_TRACE(crash_at);
    const TempDir dir;
    const auto disk = std::make_shared<FaultFileSystem>();
    Rng rng(crash_at + 1);
    StoreOptions options = {.dir = dir.path(), .file_system = disk, .single_threaded = true};
    auto store = *Store::Open(options);
    store.reset();
    options.free_bytes = Room();
    store = *Store::Open(options);
    ASSERT_TRUE(store->Commit(PutOf("before", "1")).ok());
    disk->FailAfter(rng.Below(2), FaultFileSystem::Failure::kWriteError);
    ASSERT_FALSE(store->Commit(PutOf("failed", "1")).ok());
    disk->FailAfter(crash_at, FaultFileSystem::Failure::kCrash);
    const bool recovered = store->Recover().ok();
    store.reset();
    disk->PowerCut(rng);
    store = *Store::Open(options);
    Content found = ReadAll(*store);
    EXPECT_EQ(found["before"], "1");
    if (recovered) {
      EXPECT_FALSE(found.contains("failed"));
    }
  }
}

// Opened with little room again and again, a store keeps all its logs, and writes them to a table
// when there is room.
TEST(StoreRecoveryTest, KeepsItsLogsWhileThereIsLittleRoom) {
  const TempDir dir;
  std::uint64_t room = 1UL << 30U;
  const StoreOptions options = {
      .dir = dir.path(), .single_threaded = true, .free_bytes = [&] { return room; }};
  const auto tables = [&] {
    return std::count_if(std::filesystem::directory_iterator(dir.path()),
                         std::filesystem::directory_iterator(),
                         [](const auto& entry) { return entry.path().extension() == ".sst"; });
  };
  Content acknowledged;
  auto store = *Store::Open(options);
  store.reset();
  const auto before = tables();
  for (int i = 0; i < 5; ++i) {
    room = 600UL << 10U;
    auto opened = Store::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store = *std::move(opened);
    EXPECT_EQ(ReadAll(*store), acknowledged);
    const std::string key = fmt::format("k{}", i);
    ASSERT_TRUE(store->Commit(PutOf(key, "1")).ok());
    acknowledged[key] = "1";
    store.reset();
    EXPECT_EQ(tables(), before);
  }
  room = 400UL << 10U;
  EXPECT_THAT(Store::Open(options).status().ToString(), HasSubstr("no space left"));
  room = 1UL << 30U;
  store = *Store::Open(options);
  EXPECT_EQ(ReadAll(*store), acknowledged);
  EXPECT_GT(tables(), before);
}

// The mark says that less was acknowledged than the log has: the rest may not be on disk, and needs
// a table.
TEST(StoreRecoveryTest, DoesNotBuildOnALogThatMayNotBeOnDisk) {
  const TempDir dir;
  std::uint64_t room = 1UL << 30U;
  const StoreOptions options = {
      .dir = dir.path(), .single_threaded = true, .free_bytes = [&] { return room; }};
  auto store = *Store::Open(options);
  const std::string mark = *ReadFile(dir.path() + "/" + kMarkName);
  ASSERT_TRUE(store->Commit(PutOf("a", "1")).ok());
  store.reset();
  ASSERT_TRUE(WriteAtomically(dir.path() + "/" + kMarkName, mark, 0600).ok());
  room = 600UL << 10U;
  EXPECT_THAT(Store::Open(options).status().ToString(), HasSubstr("no space left"));
  room = 1UL << 30U;
  EXPECT_EQ(ReadAll(**Store::Open(options)), (Content{{"a", "1"}}));
}

TEST(StoreRecoveryTest, ComesBackByItselfWhenTheDiskDoesAndSaysSo) {
  const TempDir dir;
  const auto disk = std::make_shared<FaultFileSystem>();
  std::mutex mutex;
  std::condition_variable changed;
  std::string log;
  const auto store = *Store::Open({.dir = dir.path(),
                                   .file_system = disk,
                                   .retry_every = std::chrono::milliseconds(1),
                                   .log = [&](const std::string& line) {
                                     const std::lock_guard lock(mutex);
                                     log += line + "\n";
                                     changed.notify_all();
                                   }});
  disk->FailAfter(0, FaultFileSystem::Failure::kDiskFull);
  EXPECT_FALSE(store->Commit(PutOf("failed", "1")).ok());
  EXPECT_TRUE(absl::IsUnavailable(store->Commit(PutOf("refused", "1"))));
  disk->Heal();
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return log.find("takes writes again") != std::string::npos; });
  EXPECT_THAT(log, HasSubstr("a commit failed"));
  lock.unlock();
  EXPECT_TRUE(store->Commit(PutOf("after", "1")).ok());
  EXPECT_EQ(ReadAll(*store), (Content{{"after", "1"}}));
}

TEST(StoreRecoveryTest, SeveralThreadsMayAskForTheRecoveryAtOnce) {
  const TempDir dir;
  const auto disk = std::make_shared<FaultFileSystem>();
  const auto store =
      *Store::Open({.dir = dir.path(), .file_system = disk, .single_threaded = true});
  Content acknowledged;
  for (int round = 0; round < 10; ++round) {
    disk->FailAfter(0, FaultFileSystem::Failure::kWriteError);
    ASSERT_FALSE(store->Commit(PutOf("failed", "1")).ok());
    disk->Heal();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { EXPECT_TRUE(store->Recover().ok()); });
    }
    for (std::thread& thread : threads) thread.join();
    const std::string key = fmt::format("k{}", round);
    ASSERT_TRUE(store->Commit(PutOf(key, "1")).ok()) << store->health();
    acknowledged[key] = "1";
    EXPECT_EQ(ReadAll(*store), acknowledged);
  }
}

TEST(StoreRecoveryTest, DoesNotComeBackUnderAReaderOfAMoment) {
  const TempDir dir;
  const auto disk = std::make_shared<FaultFileSystem>();
  const auto store =
      *Store::Open({.dir = dir.path(), .file_system = disk, .single_threaded = true});
  ASSERT_TRUE(store->Commit(PutOf("a", "1")).ok());
  auto moment = *store->Freeze();
  disk->FailAfter(0, FaultFileSystem::Failure::kWriteError);
  EXPECT_FALSE(store->Commit(PutOf("b", "1")).ok());
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_THAT(store->Recover().ToString(), HasSubstr("is still being read"));
  }
  std::string keys;
  ASSERT_TRUE(moment
                  ->Scan(Keyspace::kApi, "",
                         [&](std::string_view key, auto) {
                           keys += key;
                           return true;
                         })
                  .ok());
  EXPECT_EQ(keys, "a");
  moment.reset();
  EXPECT_TRUE(store->Recover().ok());
  EXPECT_TRUE(store->Commit(PutOf("c", "1")).ok());
}

}  // namespace
}  // namespace tahoma::controller
