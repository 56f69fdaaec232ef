// Logs that are cut and changed at every place, against a writer of RocksDB's log format.

#include "controller/store/log_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/journal/entry_form.h"
#include "lib/base/files.h"
#include "lib/base/rng.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kBlock = 32'768;

std::string Bytes(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xffU);
  return bytes;
}

// As RocksDB writes a log: https://github.com/facebook/rocksdb/wiki/Write-Ahead-Log-File-Format.
class LogWriter {
 public:
  void Add(std::string_view payload) {
    begins_.push_back(text_.size());
    bool first = true;
    for (bool more = true; more; first = false) {
      std::size_t room = kBlock - text_.size() % kBlock;
      if (room < 7) {
        text_.append(room, '\0');
        if (first) begins_.back() = text_.size();
        room = kBlock;
      }
      const std::string_view part = payload.substr(0, room - 7);
      payload.remove_prefix(part.size());
      more = !payload.empty();
      const int type = first ? (more ? 2 : 1) : (more ? 3 : 4);
      const std::string body = Bytes(static_cast<std::uint64_t>(type), 1) + std::string(part);
      const std::uint32_t crc = Crc32c(body);
      text_ += Bytes(((crc >> 15U | crc << 17U) + 0xa282ead8U) & 0xffffffffU, 4);
      text_ += Bytes(part.size(), 2) + body;
    }
    ends_.push_back(text_.size());
  }
  const std::string& text() const { return text_; }
  const std::vector<std::size_t>& begins() const { return begins_; }
  const std::vector<std::size_t>& ends() const { return ends_; }

 private:
  std::string text_;
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> ends_;
};

struct Read {
  LogEnd end;
  std::vector<LogRecord> records;
};
Read ReadAll(std::string_view text) {
  Read read;
  read.end = ReadLog(text, [&](const LogRecord& record) { read.records.push_back(record); });
  return read;
}

std::string RandomPayload(Rng& rng, std::uint64_t sequence, std::uint32_t changes,
                          std::size_t most) {
  std::string payload = Bytes(sequence, 8) + Bytes(changes, 4);
  for (std::size_t i = rng.Below(most); i > 0; --i) {
    payload += static_cast<char>(rng.Chance(1, 3) ? 0 : rng.Below(256));
  }
  return payload;
}

LogWriter RandomLog(Rng& rng) {
  LogWriter log;
  std::uint64_t sequence = 1;
  for (std::uint64_t i = 1 + rng.Below(12); i > 0; --i) {
    const auto changes = static_cast<std::uint32_t>(1 + rng.Below(5));
    log.Add(RandomPayload(rng, sequence, changes, rng.Chance(1, 3) ? 3 * kBlock : 200));
    sequence += changes;
  }
  return log;
}

TEST(LogCheckTest, ReadsEveryRecordOfAWholeLog) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const LogWriter log = RandomLog(rng);
    const Read read = ReadAll(log.text());
    EXPECT_TRUE(read.end.clean);
    ASSERT_EQ(read.records.size(), log.begins().size());
    std::uint64_t next = 1;
    for (std::size_t i = 0; i < read.records.size(); ++i) {
      EXPECT_EQ(read.records[i].begin, log.begins()[i]);
      EXPECT_EQ(read.records[i].sequence, next);
      next += read.records[i].changes;
    }
  }
}

TEST(LogCheckTest, ALogThatIsCutAnywhereEndsWithItsLastWholeRecord) {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    const LogWriter log = RandomLog(rng);
    const std::size_t cut = rng.Below(log.text().size() + 1);
    const Read read = ReadAll(std::string_view(log.text()).substr(0, cut));
    const auto whole = static_cast<std::size_t>(
        std::upper_bound(log.ends().begin(), log.ends().end(), cut) - log.ends().begin());
    EXPECT_EQ(read.records.size(), whole) << "cut at " << cut;
    EXPECT_FALSE(read.end.goes_on);
    EXPECT_LE(read.end.whole, cut);
    EXPECT_TRUE(ReadAll(std::string_view(log.text()).substr(0, read.end.whole)).end.clean);
  }
}

TEST(LogCheckTest, AChangedByteIsTheEndUnlessARecordBeginsBehindIt) {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    const LogWriter log = RandomLog(rng);
    const std::size_t record = rng.Below(log.begins().size());
    const std::size_t at =
        log.begins()[record] + rng.Below(log.ends()[record] - log.begins()[record]);
    std::string changed = log.text();
    changed[at] = static_cast<char>(changed[at] ^ (1 << rng.Below(8)));
    // The bytes that fill a block are nobody's.
    if (ReadAll(changed).end.clean) {
      EXPECT_LT(kBlock - at % kBlock, 7U);
      continue;
    }
    const Read read = ReadAll(changed);
    EXPECT_EQ(read.records.size(), record) << "changed at " << at;
    EXPECT_EQ(read.end.goes_on, record + 1 < log.begins().size()) << "changed at " << at;
  }
}

TEST(LogCheckTest, PiecesOfAnUnfinishedRecordThatReachedTheDiskFirstAreNoRecordBehindIt) {
  Rng rng(4);
  LogWriter log;
  log.Add(RandomPayload(rng, 1, 1, 100));
  log.Add(Bytes(2, 8) + Bytes(1, 4) + std::string(4 * kBlock, 'x'));
  std::string text = log.text();
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(log.begins()[1]) + 50, text.begin() + kBlock,
            '\0');
  const Read read = ReadAll(text);
  EXPECT_EQ(read.records.size(), 1U);
  EXPECT_FALSE(read.end.goes_on);
}

TEST(LogCheckTest, ZerosAtTheEndAreNoRecord) {
  Rng rng(5);
  const LogWriter log = RandomLog(rng);
  const Read read = ReadAll(log.text() + std::string(5000, '\0'));
  EXPECT_EQ(read.records.size(), log.begins().size());
  EXPECT_FALSE(read.end.goes_on);
}

TEST(LogCheckTest, AnythingAtAllIsReadWithoutHarm) {
  Rng rng(6);
  for (int round = 0; round < 100; ++round) {
    std::string text;
    for (std::size_t i = rng.Below(3000); i > 0; --i) {
      text += static_cast<char>(rng.Chance(1, 2) ? rng.Below(6) : rng.Below(256));
    }
    const Read read = ReadAll(text);
    EXPECT_LE(read.end.whole, text.size());
  }
}

// A record as RocksDB writes a commit: its first change, how many, and what they are.
std::string Commit(std::uint64_t sequence, std::uint64_t changes) {
  return Bytes(sequence, 8) + Bytes(changes, 4) + "what was written";
}

TEST(LogCheckTest, CommitsBehindTheAcknowledgedOnesAreCutOff) {
  const testing::TempDir dir;
  const std::string first = dir.path() + "/000007.log";
  const std::string second = dir.path() + "/000012.log";
  LogWriter old_log, log;
  old_log.Add(Commit(1, 3));
  old_log.Add(Commit(4, 1));
  log.Add(Commit(5, 2));
  log.Add(Commit(7, 2));
  ASSERT_TRUE(WriteAtomically(first, old_log.text(), 0600).ok());
  ASSERT_TRUE(WriteAtomically(second, log.text() + "part of one", 0600).ok());
  ASSERT_TRUE(CutBehind(dir.path(), 8).ok());
  EXPECT_EQ(*ReadFile(second), log.text() + "part of one") << "it may have been acknowledged";
  ASSERT_TRUE(CutBehind(dir.path(), 6).ok());
  EXPECT_EQ(*ReadFile(second), log.text().substr(0, log.ends()[0]));
  ASSERT_TRUE(CutBehind(dir.path(), 4).ok());
  EXPECT_EQ(*ReadFile(second), "");
  EXPECT_EQ(*ReadFile(first), old_log.text());
  EXPECT_EQ(CheckLogs(dir.path())->last_sequence, 4U);
}

TEST(LogCheckTest, AManifestMayOnlyEndUnreadBehindWhatWasAcknowledged) {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/MANIFEST-000001";
  LogWriter manifest;
  for (const char* record : {"first", "second", "third"}) manifest.Add(record);
  const auto check = [&](const std::string& text, std::uint64_t acknowledged) {
    EXPECT_TRUE(WriteAtomically(path, text, 0600).ok());
    return CheckManifest(path, acknowledged).ok();
  };
  const std::string& whole = manifest.text();
  EXPECT_TRUE(check(whole, whole.size()));
  EXPECT_FALSE(check(whole, whole.size() + 1));
  std::string longer = whole;
  longer[manifest.begins()[2] + 5] = 1;  // 256 bytes more than there are
  EXPECT_FALSE(check(longer, whole.size()));
  EXPECT_TRUE(check(longer, manifest.ends()[1])) << "a record that never ended";
  longer = whole;
  longer[manifest.begins()[1] + 5] = 1;
  EXPECT_FALSE(check(longer, 0)) << "another follows";
}

}  // namespace
}  // namespace tahoma::controller
