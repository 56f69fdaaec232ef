// Backups of random stores, under writes, and of every damage to them; a restored store serves what
// was backed up, under versions that were never given out.

#include "controller/backup/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/apiserver/storage/object_store.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using Content = std::map<std::pair<Keyspace, std::string>, std::string>;

std::unique_ptr<Store> MustOpen(const std::string& dir) {
  auto store = Store::Open({.dir = dir, .single_threaded = true});
  TAHOMA_CHECK_OK(store.status());
  return *std::move(store);
}

std::string BackupOf(const Store& store, const std::function<void()>& between = nullptr) {
  BackupWriter writer(*store.Freeze());
  std::string text;
  for (bool more = true; more;) {
    const auto appended = writer.Append(text);
    TAHOMA_CHECK_OK(appended.status());
    more = *appended;
    if (between) between();
  }
  return text;
}

Content ContentOf(const Store& store) {
  Content content;
  for (const Keyspace keyspace : {Keyspace::kApi, Keyspace::kLedger}) {
    TAHOMA_CHECK_OK(store.Scan(keyspace, "", "", [&](std::string_view key, std::string_view value) {
      content[{keyspace, std::string(key)}] = value;
      return true;
    }));
  }
  return content;
}

void Put(Store& store, Keyspace keyspace, std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(keyspace, std::move(key), std::move(value));
  TAHOMA_CHECK_OK(store.Commit(std::move(batch)));
}

void PutRandom(Store& store, Rng& rng) {
  std::string value;
  const bool text = rng.Chance(1, 2);
  for (std::size_t i = rng.Below(100); i > 0; --i) {
    value += static_cast<char>(text ? 'a' + rng.Below(26) : rng.Below(256));
  }
  Put(store, rng.Chance(1, 2) ? Keyspace::kApi : Keyspace::kLedger,
      fmt::format("k{}", rng.Below(300)), std::move(value));
}

TEST(BackupTest, ARestoredStoreHoldsWhatTheOtherHeldWhenTheBackupBegan) {
  const TempDir dir;
  Rng rng(1);
  const auto store = MustOpen(dir.path() + "/a");
  for (int i = 0; i < 400; ++i) PutRandom(*store, rng);
  Put(*store, Keyspace::kApi, "large", std::string(600'000, 'x'));  // more than a piece
  const Content before = ContentOf(*store);
  const std::string text = BackupOf(*store, [&] { PutRandom(*store, rng); });
  ASSERT_TRUE(CheckBackup(text).ok()) << CheckBackup(text);
  ASSERT_TRUE(RestoreBackup(text, dir.path() + "/b", nullptr).ok());
  EXPECT_EQ(ContentOf(*MustOpen(dir.path() + "/b")), before);
}

TEST(BackupTest, AnyCutAndAnyChangeIsFound) {
  const TempDir dir;
  Rng rng(2);
  const auto store = MustOpen(dir.path() + "/a");
  for (int i = 0; i < 20; ++i) PutRandom(*store, rng);
  const std::string text = BackupOf(*store);
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(CheckBackup(text.substr(0, i)).ok()) << "cut at " << i;
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ (1 << rng.Below(7)));
    EXPECT_FALSE(CheckBackup(changed).ok()) << "changed at " << i;
  }
  EXPECT_FALSE(CheckBackup(text + text).ok());
  EXPECT_EQ(RestoreBackup(text.substr(0, text.size() / 2), dir.path() + "/b", nullptr).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/b"));
}

TEST(BackupTest, AFolderWithContentIsNotOverwritten) {
  const TempDir dir;
  const std::string text = BackupOf(*MustOpen(dir.path() + "/a"));
  const absl::Status refused = RestoreBackup(text, dir.path() + "/a", nullptr);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.ToString(), HasSubstr("is not empty; restore into a new folder"));
}

TEST(BackupTest, NoControllerStartsWithARestoreThatDidNotEnd) {
  const TempDir dir;
  Put(*MustOpen(dir.path()), Keyspace::kMeta, std::string(Store::kRestoringKey), "1");
  const auto refused = Store::Open({.dir = dir.path()});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("holds a restore that did not end"));
}

TEST(BackupTest, VersionsOfARestoredStoreWereNeverGivenOut) {
  const TempDir dir;
  const apiserver::ResourceName maps = {"", "configmaps"};
  const auto put = [&](apiserver::ObjectStore& objects, const std::string& name) {
    return (*objects.Change(maps, "default/" + name,
                            [&](const apiserver::ObjectPtr&) -> absl::StatusOr<apiserver::Edit> {
                              return apiserver::Edit::Put(Json{{"metadata", {{"name", name}}}});
                            }))
        ->version;
  };
  std::string text;
  std::int64_t lost = 0;
  {
    const auto store = MustOpen(dir.path() + "/a");
    const auto objects = *apiserver::ObjectStore::Open(*store, {});
    put(*objects, "kept");
    text = BackupOf(*store);
    for (int i = 0; i < 100; ++i) lost = put(*objects, "lost");
  }
  ASSERT_TRUE(RestoreBackup(text, dir.path() + "/b", nullptr).ok());
  const auto store = MustOpen(dir.path() + "/b");
  const auto objects = *apiserver::ObjectStore::Open(*store, {});
  EXPECT_NE(objects->Get(maps, "default/kept"), nullptr);
  EXPECT_EQ(objects->Get(maps, "default/lost"), nullptr);
  EXPECT_GT(put(*objects, "new"), lost + 1'000'000);
  EXPECT_EQ(objects->Next(maps, lost, 10, std::chrono::milliseconds(0)).status().code(),
            absl::StatusCode::kOutOfRange)
      << "who watches from a version that was lost must list again";
}

}  // namespace
}  // namespace tahoma::controller
