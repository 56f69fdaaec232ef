// A folder that was cut, changed or robbed at every place: the store holds exactly the acknowledged
// commits, or refuses to start and leaves everything unchanged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "controller/store/folder.h"
#include "controller/store/log_check.h"
#include "controller/store/mark.h"
#include "controller/store/store.h"
#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using testing::FaultFileSystem;
using ::testing::HasSubstr;
using testing::TempDir;
using Files = std::map<std::string, std::string>;

Files FilesOf(const std::string& dir) {
  Files files;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    if (name != "LOCK") files[name] = *ReadFile(entry.path(), 1U << 30U);
  }
  return files;
}

std::string NameEnding(const Files& files, const std::string& end) {
  for (const auto& [name, bytes] : files) {
    if (name.ends_with(end) && !bytes.empty()) return name;
  }
  return "";
}

class StoreDamageTest : public ::testing::Test {
 protected:
  StoreOptions Options() {
    return {.dir = dir(),
            .file_system = disk_,
            .single_threaded = true,
            .log = [this](const std::string& line) { log_ += line + "\n"; }};
  }
  std::string dir() const { return temp_.path() + "/data"; }

  absl::Status Put(const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.Put(Keyspace::kApi, key, value);
    return store_->Commit(std::move(batch));
  }
  void PutFiles(const Files& files) {
    store_.reset();
    fs::remove_all(dir());
    fs::create_directories(dir());
    for (const auto& [name, bytes] : files) {
      std::ofstream(dir() + "/" + name, std::ios::binary) << bytes;
    }
  }
  void Open() {
    store_.reset();
    auto opened = Store::Open(Options());
    TAHOMA_CHECK_OK(opened.status());
    store_ = *std::move(opened);
  }
  std::string Keys() const {
    std::string keys;
    TAHOMA_CHECK_OK(store_->Scan(Keyspace::kApi, "", "", [&](std::string_view key, auto) {
      keys += key;
      return true;
    }));
    return keys;
  }
  // Opening must fail with kDataLoss, `says`, and change nothing.
  void ExpectRefused(const Files& files, const std::string& says) {
    PutFiles(files);
    const auto opened = Store::Open(Options());
    EXPECT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
    EXPECT_THAT(opened.status().ToString(), HasSubstr(says));
    EXPECT_EQ(FilesOf(dir()), files) << "the folder was changed";
  }

  // Returns the keys that a start finds, or "refused": at the start or at the reading.
  std::string Found(const Files& files) {
    PutFiles(files);
    auto opened = Store::Open(Options());
    if (!opened.ok()) return "refused";
    std::string keys;
    const absl::Status read = (*opened)->Scan(Keyspace::kApi, "", "", [&](auto key, auto value) {
      keys += std::string(key) + (value == "1" ? "" : "?");
      return true;
    });
    return read.ok() ? keys : "refused";
  }

  TempDir temp_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<Store> store_;
  std::string log_;
};

// The files of a store that acknowledged commits "a" to "e", and the extent of log and mark before
// "e".
struct Left {
  Files files;
  std::string log;  // the log's name
  std::string mark_before;
  std::size_t log_before = 0;
};

class LeftTest : public StoreDamageTest {
 protected:
  LeftTest() {
    Open();
    for (const char* key : {"a", "b"}) TAHOMA_CHECK_OK(Put(key, "1"));
    Open();  // recovery writes these to tables
    for (const char* key : {"c", "d"}) TAHOMA_CHECK_OK(Put(key, "1"));
    const Files before = FilesOf(dir());
    TAHOMA_CHECK_OK(Put("e", "1"));
    store_.reset();
    left_.files = FilesOf(dir());
    left_.log = NameEnding(left_.files, ".log");
    left_.mark_before = before.at(kMarkName);
    left_.log_before = before.at(left_.log).size();
    TAHOMA_CHECK(left_.log_before < left_.files.at(left_.log).size());
    TAHOMA_CHECK(!NameEnding(left_.files, ".sst").empty());
  }
  Left left_;
};

TEST_F(LeftTest, IsWholeWhenNothingIsDone) {
  PutFiles(left_.files);
  Open();
  EXPECT_EQ(Keys(), "abcde");
  EXPECT_EQ(log_.find("cut off"), std::string::npos);
}

TEST_F(LeftTest, AnUnfinishedLastWriteOfAnyLengthIsCutOff) {
  const std::string whole = left_.files[left_.log];
  for (std::size_t size = left_.log_before + 1; size < whole.size(); ++size) {
    Files files = left_.files;
    files[left_.log] = whole.substr(0, size);
    files[kMarkName] = left_.mark_before;
    PutFiles(files);
    log_.clear();
    Open();
    EXPECT_EQ(Keys(), "abcd") << "cut at " << size;
    EXPECT_THAT(log_, HasSubstr("of a commit that was never acknowledged, are cut off"));
  }
}

TEST_F(LeftTest, ALastWriteOfWhichAnyByteDidNotReachTheDiskIsCutOff) {
  const std::string whole = left_.files[left_.log];
  for (std::size_t at = left_.log_before; at < whole.size(); ++at) {
    Files files = left_.files;
    files[left_.log][at] = static_cast<char>(whole[at] ^ 0x40);
    files[kMarkName] = left_.mark_before;
    PutFiles(files);
    Open();
    EXPECT_EQ(Keys(), "abcd") << "changed at " << at;
  }
}

TEST_F(LeftTest, AnAcknowledgedLastWriteThatIsCutOrChangedAnywhereIsRefused) {
  const std::string whole = left_.files[left_.log];
  for (std::size_t at = left_.log_before; at < whole.size(); ++at) {
    Files files = left_.files;
    files[left_.log] = whole.substr(0, at);
    ExpectRefused(files, "had been acknowledged: a log was cut or removed");
    files[left_.log] = whole;
    files[left_.log][at] = static_cast<char>(whole[at] ^ 0x40);
    ExpectRefused(files, "had been acknowledged");
  }
}

// The mark may be of before a power cut, or gone.
TEST_F(LeftTest, DamageThatACommitFollowsIsRefusedWhateverTheMarkSays) {
  for (const bool marked : {true, false}) {
    Files files = left_.files;
    files[kMarkName] = left_.mark_before;
    if (!marked) files.erase(kMarkName);
    for (std::size_t at = 0; at < left_.log_before; ++at) {
      Files changed = files;
      changed[left_.log][at] = static_cast<char>(files[left_.log][at] ^ 1);
      ExpectRefused(changed, "and whole commits follow");
    }
  }
}

TEST_F(LeftTest, ACommitThatIsMissingInTheMiddleIsRefused) {
  Files files = left_.files;
  const std::string& log = left_.files[left_.log];
  std::vector<std::size_t> begins;
  ReadLog(log, [&](const LogRecord& record) { begins.push_back(record.begin); });
  ASSERT_EQ(begins.size(), 3U);
  files[left_.log] = log.substr(0, begins[1]) + log.substr(begins[2]);
  ExpectRefused(files, "are missing before byte");
}

TEST_F(LeftTest, FilesThatWereRemovedAreNoticed) {
  const auto without = [&](const std::string& name) {
    Files files = left_.files;
    EXPECT_EQ(files.erase(name), 1U);
    return files;
  };
  ExpectRefused(without(left_.log), "a log was cut or removed");
  ExpectRefused(without("CURRENT"), "CURRENT is missing");
  ExpectRefused(without(NameEnding(left_.files, ".sst")), "No such file or directory");
  for (const auto& [name, bytes] : left_.files) {
    if (name.starts_with("MANIFEST-")) ExpectRefused(without(name), "which CURRENT names");
  }
  Files without_any;
  without_any[kMarkName] = left_.files[kMarkName];
  ExpectRefused(without_any, "CURRENT is missing");
}

TEST_F(LeftTest, AManifestThatIsCutAnywhereIsNoticed) {
  for (const auto& [name, bytes] : left_.files) {
    if (!name.starts_with("MANIFEST-")) continue;
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
      Files files = left_.files;
      files[name] = bytes.substr(0, size);
      ExpectRefused(files, "");
    }
  }
}

// Returns the bytes of all record headers (a checksum, the length and the type) in a file of
// RocksDB's log form, shorter than a block.
std::vector<std::size_t> HeaderBytes(std::string_view text) {
  std::vector<std::size_t> bytes;
  for (std::size_t at = 0; at < text.size();) {
    for (std::size_t i = 0; i < 7; ++i) bytes.push_back(at + i);
    at += 7 + static_cast<unsigned char>(text[at + 4]) +
          256U * static_cast<unsigned char>(text[at + 5]);
  }
  return bytes;
}

// RocksDB takes a length that reaches behind the end for an unfinished record, and forgets all
// later records.
TEST_F(LeftTest, NoBitOfTheManifestHidesWhatWasAcknowledged) {
  const std::string name = "MANIFEST-" + fmt::format("{:06}", ManifestOf(dir())->manifest);
  const std::string whole = left_.files.at(name);
  const std::vector<std::size_t> headers = HeaderBytes(whole);
  ASSERT_GT(headers.size(), 7U);
  for (const bool marked : {true, false}) {
    Files files = left_.files;
    if (!marked) files.erase(kMarkName);
    const std::size_t last = headers[headers.size() - 7];
    for (const std::size_t at : headers) {
      if (!marked && at >= last) continue;  // may be a record that never ended
      for (unsigned bit = 0; bit < 8; ++bit) {
        files[name] = whole;
        files[name][at] = static_cast<char>(whole[at] ^ static_cast<char>(1U << bit));
        ExpectRefused(files, "cannot be read from byte");
      }
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      if (!marked && at >= last) continue;
      files[name] = whole;
      files[name][at] = static_cast<char>(whole[at] ^ 0x10);
      ExpectRefused(files, "cannot be read from byte");
    }
  }
}

TEST_F(LeftTest, NoBitOfALogsHeadersHidesWhatWasAcknowledged) {
  const std::string whole = left_.files.at(left_.log);
  for (const std::size_t at : HeaderBytes(whole)) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Files files = left_.files;
      files[left_.log][at] = static_cast<char>(whole[at] ^ static_cast<char>(1U << bit));
      ExpectRefused(files, "");
    }
  }
}

TEST_F(LeftTest, NoBitOfCurrentOptionsOrATableHidesWhatWasAcknowledged) {
  constexpr std::size_t kFooter = 53;
  const std::string table = NameEnding(left_.files, ".sst");
  for (const auto& [name, whole] : left_.files) {
    const bool is_options = name.starts_with("OPTIONS-");
    if (name != "CURRENT" && name != "IDENTITY" && name != table && !is_options) continue;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const bool every_bit = name == "CURRENT" || (name == table && at + kFooter >= whole.size());
      if (!every_bit && at % (is_options ? 1009 : 5) != 0) continue;
      for (unsigned bit = every_bit ? 0 : at % 8; bit < (every_bit ? 8 : at % 8 + 1); ++bit) {
        Files files = left_.files;
        files[name][at] = static_cast<char>(whole[at] ^ static_cast<char>(1U << bit));
        EXPECT_THAT(Found(files), AnyOf("refused", "abcde")) << name << " " << at << " " << bit;
      }
    }
  }
}

TEST_F(LeftTest, AnOlderStateOfTheFolderWithTheNewestMarkIsRefused) {
  PutFiles(left_.files);
  Open();
  TAHOMA_CHECK_OK(Put("f", "1"));
  store_.reset();
  Files files = left_.files;
  files[kMarkName] = FilesOf(dir())[kMarkName];
  ExpectRefused(files, "");
}

TEST_F(LeftTest, AMarkThatIsDamagedIsRefusedAndOneThatIsRemovedIsNot) {
  Files files = left_.files;
  files[kMarkName][30] ^= 1;
  ExpectRefused(files, "ACKNOWLEDGED is damaged");
  files.erase(kMarkName);
  files.erase(left_.log);
  PutFiles(files);
  Open();
  EXPECT_EQ(Keys(), "ab");
  EXPECT_TRUE(store_->unmarked());
  Open();
  EXPECT_FALSE(store_->unmarked());
}

// Logs are deleted once a table has their content: from then on the manifest must be whole.
TEST_F(StoreDamageTest, TheMarkKnowsATableBeforeItsLogIsDeleted) {
  StoreOptions options = Options();
  options.single_threaded = false;
  const auto store = *Store::Open(options);
  for (int i = 0; i < 9; ++i) {
    WriteBatch batch;
    batch.Put(Keyspace::kApi, fmt::format("k{}", i), std::string(4U << 20U, 'x'));
    ASSERT_TRUE(store->Commit(std::move(batch)).ok());
  }
  const auto is_noted = [&] {
    const Files files = FilesOf(dir());
    return !NameEnding(files, ".sst").empty() &&
           (*ReadMark(dir()))->manifest_bytes == ManifestOf(dir())->manifest_bytes;
  };
  const auto deadline = std::chrono::steady_clock::now() + testing::Patience(20);
  while (!is_noted() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(is_noted());
}

// ---- An empty folder ---------------------------------------------------------------------------

TEST_F(StoreDamageTest, AnEmptyFolderWhereTheOnlyCopyWasIsRefused) {
  StoreOptions options = Options();
  options.only_copy = true;
  ASSERT_TRUE(Store::Open(options).ok());
  EXPECT_EQ(GuardOf(dir() + "/"), dir() + ".created");
  fs::remove_all(dir());
  const auto refused = Store::Open(options);
  EXPECT_TRUE(absl::IsDataLoss(refused.status()));
  EXPECT_THAT(refused.status().ToString(), HasSubstr("is a disk not mounted?"));
  EXPECT_THAT(refused.status().ToString(), HasSubstr("controller restore"));
  fs::remove(GuardOf(dir()));
  EXPECT_TRUE(Store::Open(options).ok());
}

TEST_F(StoreDamageTest, AnEmptyFolderOfACopyIsANewStore) {
  ASSERT_TRUE(Store::Open(Options()).ok());
  EXPECT_THAT(log_, HasSubstr("created a new store in " + dir()));
  EXPECT_FALSE(fs::exists(GuardOf(dir())));
  fs::remove_all(dir());
  EXPECT_TRUE(Store::Open(Options()).ok());
}

// ---- Permissions --------------------------------------------------------------------------------

TEST_F(StoreDamageTest, TheFolderAndItsFilesAreTheOwnersAloneAlsoWhenTheyWereNot) {
  Open();
  TAHOMA_CHECK_OK(Put("a", "1"));
  store_.reset();
  fs::permissions(dir(), fs::perms(0755));
  for (const auto& entry : fs::directory_iterator(dir())) {
    fs::permissions(entry.path(), fs::perms(0644));
  }
  const mode_t before = ::umask(0077);  // as the program's main does
  Open();
  TAHOMA_CHECK_OK(Put("b", "1"));
  ::umask(before);
  EXPECT_EQ(fs::status(dir()).permissions(), fs::perms(0700));
  for (const auto& entry : fs::directory_iterator(dir())) {
    EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms(0600)) << entry.path();
  }
}

}  // namespace
}  // namespace tahoma::controller
