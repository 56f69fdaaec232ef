// The journal on the store: order, drops, checksums, and the published CRC-32C vectors.

#include "controller/store/rocks_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/core/journal/entry_form.h"
#include "controller/core/journal/record.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Entries = std::vector<std::pair<Sequence, std::string>>;

class RocksJournalTest : public ::testing::Test {
 protected:
  RocksJournalTest() { Reopen(); }
  void Reopen() {
    store_.reset();
    auto opened = Store::Open({.dir = dir_.path(), .single_threaded = true});
    TAHOMA_CHECK_OK(opened.status());
    store_ = *std::move(opened);
  }
  Entries LoadAll() {
    Entries entries;
    RocksJournal journal(*store_);
    EXPECT_TRUE(journal
                    .Load([&](Sequence sequence, std::string_view bytes) {
                      entries.emplace_back(sequence, bytes);
                      return absl::OkStatus();
                    })
                    .ok());
    return entries;
  }

  testing::TempDir dir_;
  std::unique_ptr<Store> store_;
};

TEST_F(RocksJournalTest, LoadsWhatWasWrittenInOrderOfSequenceAfterAReopen) {
  RocksJournal later(*store_);
  ASSERT_TRUE(later.Write({.put = {{2, "b"}, {0x1234567890, ""}}, .drop = {}}).ok());
  RocksJournal earlier(*store_);
  ASSERT_TRUE(earlier.Write({.put = {{1, std::string("\0x", 2)}}, .drop = {}}).ok());
  Reopen();
  EXPECT_THAT(LoadAll(),
              ElementsAre(Pair(1, std::string("\0x", 2)), Pair(2, "b"), Pair(0x1234567890, "")));
}

TEST_F(RocksJournalTest, DropsInTheSameCommitAndIgnoresUnknownNumbers) {
  RocksJournal journal(*store_);
  ASSERT_TRUE(journal.Write({.put = {{1, "a"}, {2, "b"}}, .drop = {}}).ok());
  ASSERT_TRUE(journal.Write({.put = {{3, "c"}}, .drop = {1, 77}}).ok());
  EXPECT_THAT(LoadAll(), ElementsAre(Pair(2, "b"), Pair(3, "c")));
}

TEST_F(RocksJournalTest, ANumberThatIsThereAlreadyIsAMistakeOfOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // RocksDB has threads
  RocksJournal journal(*store_);
  ASSERT_TRUE(journal.Write({.put = {{1, "a"}, {2, "b"}}, .drop = {}}).ok());
  EXPECT_DEATH((void)journal.Write({.put = {{2, "c"}}, .drop = {}}),
               "CHECK failed: entry.sequence");
  RocksJournal loaded(*store_);
  ASSERT_TRUE(loaded.Load([](Sequence, std::string_view) { return absl::OkStatus(); }).ok());
  EXPECT_DEATH((void)loaded.Write({.put = {{2, "c"}}, .drop = {}}), "CHECK failed: entry.sequence");
}

TEST_F(RocksJournalTest, LoadStopsAtTheVisitorsFirstFailure) {
  RocksJournal journal(*store_);
  ASSERT_TRUE(journal.Write({.put = {{1, "a"}, {2, "b"}}, .drop = {}}).ok());
  int visited = 0;
  const absl::Status loaded = journal.Load([&](Sequence, std::string_view) {
    ++visited;
    return InvalidArgument("no");
  });
  EXPECT_EQ(loaded.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(visited, 1);
}

TEST_F(RocksJournalTest, DamageAndForeignKeysAreDataLossThatNamesThem) {
  struct Case {
    std::string key, value, message;
  };
  for (const Case& c : std::vector<Case>{
           {"j/0000000000000001", "abcdX", "checksum of journal record 1 does not fit"},
           {"j/0000000000000001", "abc", "checksum of journal record 1 does not fit"},
           {"j/1", "abcdX", "the key 'j/1'"},
           {"j/00000000000000zz", "abcdX", "the key 'j/00000000000000zz'"}}) {
    WriteBatch batch;
    batch.DeleteRange(Keyspace::kLedger, "j/", "j0");
    batch.Put(Keyspace::kLedger, c.key, c.value);
    ASSERT_TRUE(store_->Commit(std::move(batch)).ok());
    RocksJournal journal(*store_);
    const absl::Status loaded =
        journal.Load([](Sequence, std::string_view) { return absl::OkStatus(); });
    EXPECT_EQ(loaded.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(loaded.ToString(), HasSubstr(c.message));
  }
}

TEST(Crc32cTest, AgreesWithThePublishedVectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
}

}  // namespace
}  // namespace tahoma::controller
