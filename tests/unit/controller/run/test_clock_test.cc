// Which stores may be opened with which time scale, and what a refusal says.

#include "controller/run/test_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controller/backup/backup.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const WallTime kNow = *ParseTime("2026-11-25T18:00:00Z");

class TestClockTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> Open(std::int64_t scale, const std::string& dir, WallTime now = kNow) {
    auto store = Store::Open({.dir = dir, .first = TestClockEntry(scale, now)});
    TAHOMA_CHECK_OK(store.status());
    return *std::move(store);
  }
  absl::StatusOr<BlockTime> TimeOf(std::int64_t scale, WallTime now = kNow) {
    const auto store = Open(scale, data_, now);
    return BlockTimeOf(*store, data_, scale, now);
  }

  testing::TempDir dir_;
  const std::string data_ = dir_.path() + "/data";
};

TEST_F(TestClockTest, AStoreThatIsCreatedWithAScaleKeepsItsOrigin) {
  EXPECT_EQ(*TimeOf(1440), BlockTime(kNow, 1440));
  const auto later = TimeOf(1440, kNow + 1h);
  EXPECT_EQ(later->origin(), kNow);
  EXPECT_EQ(later->ToBlock(kNow + 1h), kNow + 60 * 24h);
}

TEST_F(TestClockTest, AStoreWithoutTheMarkIsRefusedWithAScale) {
  EXPECT_FALSE(TimeOf(1)->test());
  const absl::Status refused = TimeOf(1440).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(Message(refused), HasSubstr("created without it, and its Capacity Blocks are no "
                                          "test; leave timeScale out, or begin in another"));
  // Nor is it marked by the attempt.
  EXPECT_FALSE(TimeOf(1)->test());
}

TEST_F(TestClockTest, AMarkedStoreIsRefusedWithoutItsScaleForEver) {
  ASSERT_TRUE(TimeOf(1440).ok());
  for (const std::int64_t scale : {1, 60}) {
    const absl::Status refused = TimeOf(scale).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(Message(refused),
                HasSubstr("a test's for ever, created on 2026-11-25T18:00:00Z: its Capacity Blocks "
                          "live 1440 times as fast; give timeScale 1440, or begin in another"));
  }
  EXPECT_TRUE(TimeOf(1440).ok());
}

TEST_F(TestClockTest, ABackupOfATestIsATestToo) {
  std::string text;
  {
    const auto store = Open(1440, data_);
    BackupWriter writer(*store->Freeze());
    for (bool more = true; more;) more = *writer.Append(text);
  }
  const std::string restored = dir_.path() + "/restored";
  ASSERT_EQ(RestoreBackup(text, restored, {}), absl::OkStatus());
  const auto store = Open(1440, restored, kNow + 1h);
  EXPECT_EQ(*BlockTimeOf(*store, restored, 1440, kNow + 1h), BlockTime(kNow, 1440));
  EXPECT_FALSE(BlockTimeOf(*store, restored, 1, kNow + 1h).ok());
}

TEST_F(TestClockTest, ADamagedMarkIsRefused) {
  {
    const auto store = Open(1440, data_);
    WriteBatch batch;
    batch.Put(Keyspace::kLedger, std::string(kTestClockKey), "scale 1440");
    ASSERT_EQ(store->Commit(std::move(batch)), absl::OkStatus());
  }
  const absl::Status refused = TimeOf(1440).status();
  EXPECT_TRUE(absl::IsDataLoss(refused));
  EXPECT_THAT(Message(refused), HasSubstr("\"scale 1440\" is no test clock"));
}

TEST_F(TestClockTest, AClockAtItsEndIsRefused) {
  ASSERT_TRUE(TimeOf(100'000).ok());
  const absl::Status refused = TimeOf(100'000, kNow + 24h * 365).status();
  EXPECT_THAT(Message(refused), HasSubstr("stands at its end, 2200-01-01T00:00:00Z"));
}

TEST_F(TestClockTest, TheLogSaysWhatADayTakes) {
  EXPECT_THAT(TestClockLine(BlockTime(kNow, 1440), kNow + 1min),
              HasSubstr("1440 times as fast (timeScale): a day takes 60 s, and for them it is "
                        "2026-11-26T18:00:00Z"));
}

}  // namespace
}  // namespace tahoma::controller
