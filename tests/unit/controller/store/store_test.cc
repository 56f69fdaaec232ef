// The store against a std::map oracle, and against a file system that fails at every single write.

#include "controller/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "controller/store/commits_in_flight.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/child_program.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using testing::ChildProgram;
using testing::FaultFileSystem;
using ::testing::HasSubstr;
using testing::TempDir;
using Content = std::map<std::string, std::string>;

std::unique_ptr<Store> MustOpen(StoreOptions options) {
  auto store = Store::Open(std::move(options));
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

Content ReadAll(const Store& store, Keyspace keyspace, std::string_view prefix = "",
                std::string_view from = "") {
  Content content;
  EXPECT_TRUE(store
                  .Scan(keyspace, prefix, from,
                        [&](std::string_view key, std::string_view value) {
                          content.emplace(key, value);
                          return true;
                        })
                  .ok());
  return content;
}

WriteBatch PutOf(Keyspace keyspace, std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(keyspace, std::move(key), std::move(value));
  return batch;
}

// A random batch, applied to `content` too.
WriteBatch RandomBatch(Rng& rng, Content& content) {
  WriteBatch batch;
  for (std::uint64_t i = rng.Below(5); i > 0; --i) {
    const std::string key = fmt::format("k{}", rng.Below(20));
    if (rng.Chance(2, 3)) {
      const std::string value = fmt::format("v{}", rng.Below(1000));
      batch.Put(Keyspace::kApi, key, value);
      content[key] = value;
    } else if (rng.Chance(1, 2)) {
      batch.Delete(Keyspace::kApi, key);
      content.erase(key);
    } else {
      const std::string end = key + "5";
      batch.DeleteRange(Keyspace::kApi, key, end);
      content.erase(content.lower_bound(key), content.lower_bound(end));
    }
  }
  return batch;
}

TEST(StoreTest, KeepsWhatWasCommittedAcrossOpens) {
  const TempDir dir;
  {
    const auto store = MustOpen({.dir = dir.path()});
    ASSERT_TRUE(store->Commit(PutOf(Keyspace::kApi, "a", "1")).ok());
    ASSERT_TRUE(store->Commit(PutOf(Keyspace::kLedger, "a", "2")).ok());
  }
  const auto store = MustOpen({.dir = dir.path()});
  EXPECT_EQ(*store->Get(Keyspace::kApi, "a"), "1");
  EXPECT_EQ(*store->Get(Keyspace::kLedger, "a"), "2");
  EXPECT_TRUE(absl::IsNotFound(store->Get(Keyspace::kMeta, "a").status()));
}

TEST(StoreTest, ScanVisitsAPrefixInOrderFromAKeyUntilToldToStop) {
  const TempDir dir;
  const auto store = MustOpen({.dir = dir.path()});
  WriteBatch batch;
  for (const char* key : {"b/2", "a/1", "b/1", "b/3", "c/1"}) batch.Put(Keyspace::kApi, key, key);
  ASSERT_TRUE(store->Commit(std::move(batch)).ok());
  EXPECT_THAT(ReadAll(*store, Keyspace::kApi, "b/"),
              ::testing::ElementsAre(std::pair("b/1", "b/1"), std::pair("b/2", "b/2"),
                                     std::pair("b/3", "b/3")));
  EXPECT_EQ(ReadAll(*store, Keyspace::kApi, "b/", "b/2").size(), 2U);
  int visited = 0;
  ASSERT_TRUE(store->Scan(Keyspace::kApi, "", "", [&](auto, auto) { return ++visited < 2; }).ok());
  EXPECT_EQ(visited, 2);
}

TEST(StoreTest, AgreesWithAMapUnderRandomBatchesAndReopens) {
  const TempDir dir;
  Rng rng(7);
  Content expected;
  for (int round = 0; round < 5; ++round) {
    const auto store = MustOpen({.dir = dir.path(), .single_threaded = round % 2 == 0});
    EXPECT_EQ(ReadAll(*store, Keyspace::kApi), expected);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->Commit(RandomBatch(rng, expected)).ok());
    EXPECT_EQ(ReadAll(*store, Keyspace::kApi), expected);
  }
}

TEST(StoreTest, AsynchronousCommitsAreAnsweredInTheirOrder) {
  const TempDir dir;
  std::vector<int> answered;
  {
    const auto store = MustOpen({.dir = dir.path()});
    for (int i = 0; i < 500; ++i) {
      store->CommitAsync(PutOf(Keyspace::kLedger, "k", std::to_string(i)),
                         [&answered, i](const absl::Status& status) {
                           EXPECT_TRUE(status.ok());
                           answered.push_back(i);
                         });
    }
  }
  ASSERT_EQ(answered.size(), 500U);
  EXPECT_TRUE(std::is_sorted(answered.begin(), answered.end()));
  EXPECT_EQ(*MustOpen({.dir = dir.path()})->Get(Keyspace::kLedger, "k"), "499");
}

TEST(StoreTest, TellsTheEndOfEachGroupAfterItsAnswers) {
  const TempDir dir;
  std::vector<int> told;  // only the store's thread, until it is closed
  {
    const auto store = MustOpen({.dir = dir.path()});
    store->SetAfterGroup([&] { told.push_back(-1); });
    for (int i = 0; i < 100; ++i) {
      store->CommitAsync(PutOf(Keyspace::kApi, "k", "v"),
                         [&told, i](const absl::Status&) { told.push_back(i); });
    }
  }
  EXPECT_EQ(told.back(), -1);
  EXPECT_NE(told.front(), -1);
  EXPECT_EQ(std::adjacent_find(told.begin(), told.end()), told.end());  // no group is empty
  std::erase(told, -1);
  EXPECT_EQ(told.size(), 100U);
}

TEST(StoreTest, ManyThreadsCommitAtOnceAndNothingIsLost) {
  const TempDir dir;
  {
    const auto store = MustOpen({.dir = dir.path()});
    std::vector<std::jthread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&store, t] {
        for (int i = 0; i < 50; ++i) {
          EXPECT_TRUE(store->Commit(PutOf(Keyspace::kApi, fmt::format("{}/{}", t, i), "x")).ok());
        }
      });
    }
  }
  EXPECT_EQ(ReadAll(*MustOpen({.dir = dir.path()}), Keyspace::kApi).size(), 16U * 50U);
}

TEST(StoreTest, ASecondOpenInTheSameProcessSaysSo) {
  const TempDir dir;
  const auto store = MustOpen({.dir = dir.path()});
  const auto second = Store::Open({.dir = dir.path()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().ToString(),
              HasSubstr(dir.path() + " is already open in this process"));
}

// Not a test: what the next one runs as a process of its own. Forking is not enough, since threads
// of this process hold locks that nobody would release in the child.
TEST(StoreTest, DISABLED_HoldsTheFolderUntilItIsKilled) {
  const auto store = MustOpen({.dir = std::getenv("TAHOMA_TEST_FOLDER"), .single_threaded = true});
  std::fputs("held\n", stderr);
  for (;;) ::pause();
}

TEST(StoreTest, ASecondProcessIsToldWhichProcessHoldsTheFolder) {
  const TempDir dir;
  const TempDir logs;
  ChildProgram holder({"/usr/bin/env", "TAHOMA_TEST_FOLDER=" + dir.path(),
                       std::filesystem::read_symlink("/proc/self/exe"),
                       "--gtest_also_run_disabled_tests", "--gtest_filter=*HoldsTheFolder*"},
                      logs.path() + "/log");
  while (holder.log().find("held\n") == std::string::npos) {
    ASSERT_FALSE(holder.WaitEnd(std::chrono::milliseconds(5))) << holder.log();
  }
  const auto second = Store::Open({.dir = dir.path()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().ToString(),
              HasSubstr(fmt::format("in use by process {}", holder.pid())));
  holder.Kill(SIGKILL);
  EXPECT_EQ(holder.Wait(), std::nullopt);
  EXPECT_TRUE(Store::Open({.dir = dir.path()}).ok()) << "free again once that process has ended";
}

TEST(StoreTest, AnotherFormatIsRefusedAndNothingChanges) {
  const TempDir dir;
  {
    const auto store = MustOpen({.dir = dir.path()});
    ASSERT_TRUE(store->Commit(PutOf(Keyspace::kMeta, "format", "99")).ok());
  }
  for (int i = 0; i < 2; ++i) {
    const auto opened = Store::Open({.dir = dir.path()});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(opened.status().ToString(),
                HasSubstr("has format 99, this program reads format 1"));
  }
}

TEST(StoreTest, ALockThatCannotBeOpenedIsNotSaidToBeHeld) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path() + "/LOCK");
  const auto opened = Store::Open({.dir = dir.path()});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(opened.status().ToString(), HasSubstr("Is a directory"));
}

TEST(StoreTest, ADamagedLogIsDataLossWithWhatToDo) {
  const TempDir dir;
  {
    const auto store = MustOpen({.dir = dir.path(), .single_threaded = true});
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(store->Commit(PutOf(Keyspace::kApi, "key", std::string(100, 'x'))).ok());
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    if (entry.path().extension() != ".log" || entry.file_size() < 1000) continue;
    std::fstream log(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    log.seekp(500);
    log << "damaged";
  }
  for (const auto& [only_copy, advice] : {std::pair(true, "restore it from a backup"),
                                          std::pair(false, "start with an empty folder")}) {
    const auto opened =
        Store::Open({.dir = dir.path(), .single_threaded = true, .only_copy = only_copy});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(opened.status().ToString(), HasSubstr(advice));
  }
}

TEST(StoreTest, StopsAfterAFailedWriteAndKeepsWhatWasAcknowledged) {
  for (const auto failure :
       {FaultFileSystem::Failure::kWriteError, FaultFileSystem::Failure::kDiskFull,
        FaultFileSystem::Failure::kCrash}) {
    for (const bool single_threaded : {true, false}) {
      const TempDir dir;
      const auto disk = std::make_shared<FaultFileSystem>();
      const StoreOptions options = {.dir = dir.path(),
                                    .file_system = disk,
                                    .single_threaded = single_threaded,
                                    .retry_every = std::chrono::hours(1)};
      {
        const auto store = MustOpen(options);
        ASSERT_TRUE(store->Commit(PutOf(Keyspace::kApi, "before", "1")).ok());
        ASSERT_TRUE(store->health().ok());
        disk->FailAfter(0, failure);
        const absl::Status failed = store->Commit(PutOf(Keyspace::kApi, "failed", "1"));
        EXPECT_THAT(failed.ToString(), HasSubstr("unknown whether it is on disk"));
        disk->Heal();
        const absl::Status refused = store->Commit(PutOf(Keyspace::kApi, "after", "1"));
        EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
        EXPECT_THAT(refused.ToString(), HasSubstr("everything acknowledged is kept"));
        EXPECT_EQ(store->health(), refused);
        EXPECT_EQ(*store->Get(Keyspace::kApi, "before"), "1") << "reading goes on";
      }
      const auto store = MustOpen(options);
      EXPECT_EQ(*store->Get(Keyspace::kApi, "before"), "1");
      EXPECT_TRUE(absl::IsNotFound(store->Get(Keyspace::kApi, "after").status()));
      EXPECT_TRUE(store->Commit(PutOf(Keyspace::kApi, "after", "2")).ok());
    }
  }
}

// A run of random commits with a power cut at the N-th write, for every N until one survives.
TEST(StoreTest, APowerCutAtAnyWriteKeepsExactlyTheAcknowledgedCommits) {
  bool survived = false;
  for (std::uint64_t crash_at = 0; !survived; ++crash_at) {
    const TempDir dir;
    const auto disk = std::make_shared<FaultFileSystem>();
    const StoreOptions options = {.dir = dir.path(), .file_system = disk, .single_threaded = true};
    Rng rng(crash_at + 1);
    Content acknowledged;
    Content attempted;
    disk->FailAfter(crash_at, FaultFileSystem::Failure::kCrash);
    if (auto store = Store::Open(options); store.ok()) {
      survived = true;
      for (int i = 0; i < 12 && survived; ++i) {
        attempted = acknowledged;
        survived = (*store)->Commit(RandomBatch(rng, attempted)).ok();
        if (survived) acknowledged = attempted;
      }
    }
    disk->PowerCut(rng);
    const auto store = MustOpen(options);
    ASSERT_NE(store, nullptr) << "crash at write " << crash_at;
    const Content found = ReadAll(*store, Keyspace::kApi);
    EXPECT_TRUE(found == acknowledged || found == attempted) << "crash at write " << crash_at;
    if (survived) {
      EXPECT_EQ(found, acknowledged);
      EXPECT_GT(crash_at, 24U) << "each commit is at least an append and a sync";
    }
  }
}

TEST(CommitsInFlightTest, ASecondAnswerToACommitIsAMistakeOfOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // RocksDB's threads outlive the tests before
  CommitsInFlight flight;
  flight.Start();
  flight.Answer(absl::OkStatus());
  EXPECT_DEATH(flight.Answer(absl::OkStatus()), "CHECK failed: unanswered_ > 0");
}

TEST(StoreTest, TheSameRunOnTheSameSeedDoesTheSameWrites) {
  std::vector<std::uint64_t> operations;
  for (int run = 0; run < 2; ++run) {
    const TempDir dir;
    const auto disk = std::make_shared<FaultFileSystem>();
    const auto store = MustOpen({.dir = dir.path(), .file_system = disk, .single_threaded = true});
    Rng rng(3);
    Content content;
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->Commit(RandomBatch(rng, content)).ok());
    operations.push_back(disk->operations());
  }
  EXPECT_EQ(operations[0], operations[1]);
}

}  // namespace
}  // namespace tahoma::controller
