// The usage of a queue as an entry of the journal.

#include "controller/core/journal/usage_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "controller/core/journal/entry_form.h"
#include "controller/core/journal/record.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

const UsageRecord kUsage{.key = {"team-a", "nightly"},
                         .sum = {.as_of = WallTime(std::chrono::nanoseconds(1'700'000'000'123'456)),
                                 .types = {{"trn1.32xlarge", 7}, {"trn2.48xlarge", 1LL << 60}}},
                         .term = 3};

TEST(UsageRecordTest, AnEntryIsReadAsItWasWritten) {
  const std::string bytes = EncodeUsage(kUsage);
  EXPECT_TRUE(IsUsageEntry(bytes));
  EXPECT_FALSE(IsUsageEntry(EncodeRecord(GangAllocated{7})));
  const auto read = DecodeUsage(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key, kUsage.key);
  EXPECT_EQ(read->sum, kUsage.sum);
  EXPECT_EQ(read->term, 3);
}

TEST(UsageRecordTest, WhatIsHeldNowIsNotStored) {
  UsageRecord holds = kUsage;
  holds.sum.types[0].eighths = 128;
  EXPECT_EQ(DecodeUsage(EncodeUsage(holds))->sum, kUsage.sum);
}

TEST(UsageRecordTest, DamagedEntriesAreRefused) {
  const auto status = [](const Json& types) {
    return DecodeUsage(
               EncodeEntry(EntryType::kUsageCounted,
                           {{"ns", "a"}, {"queue", "q"}, {"at", 1}, {"term", 0}, {"types", types}}))
        .status();
  };
  EXPECT_TRUE(status(Json::array({Json::array({"a", 1}), Json::array({"b", 1})})).ok());
  EXPECT_TRUE(absl::IsDataLoss(status(Json::array({Json::array({"a", 1}), Json::array({"a", 1})}))))
      << "a type twice";
  EXPECT_TRUE(absl::IsDataLoss(status(Json::array({Json::array({"a", -1})}))));
  EXPECT_TRUE(absl::IsDataLoss(status(Json::array({Json::array({"a", "1"})}))));
  EXPECT_TRUE(absl::IsDataLoss(status(Json(3))));
  EXPECT_TRUE(absl::IsDataLoss(DecodeUsage(EncodeRecord(GangAllocated{7})).status()));
}

TEST(UsageRecordTest, TimeDoesNotGoBack) {
  UsageSum sum{.as_of = WallTime(std::chrono::seconds(100)),
               .types = {{.type = "t", .eighth_ms = 5, .eighths = 2}}};
  EXPECT_EQ(sum.UpTo(WallTime(std::chrono::seconds(90))), sum);
  EXPECT_EQ(sum.UpTo(WallTime(std::chrono::seconds(101))).types[0].eighth_ms, 5 + 2 * 1000);
}

TEST(UsageRecordTest, TheUseOfAQueueIsReadAsItWasWritten) {
  const QueueUseRecord record{
      .queue = "research",
      .use = {.as_of = WallTime(std::chrono::seconds(7)), .used = 1024.5, .own = 0.000001}};
  const std::string bytes = EncodeQueueUse(record);
  EXPECT_TRUE(IsUsageEntry(bytes));
  EXPECT_TRUE(IsQueueUseEntry(bytes));
  EXPECT_FALSE(IsQueueUseEntry(EncodeUsage(kUsage)));
  const auto read = DecodeQueueUse(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->queue, "research");
  EXPECT_EQ(read->use, record.use);
}

TEST(UsageRecordTest, ADamagedUseOfAQueueIsRefused) {
  const auto status = [](const Json& used) {
    return DecodeQueueUse(EncodeEntry(EntryType::kQueueUsed,
                                      {{"queue", "q"}, {"at", 1}, {"used", used}, {"own", 0}}))
        .status();
  };
  EXPECT_TRUE(status(5).ok());
  EXPECT_TRUE(absl::IsDataLoss(status(-1)));
  EXPECT_TRUE(absl::IsDataLoss(status(std::int64_t{1} << 62)));
  EXPECT_TRUE(absl::IsDataLoss(status("5")));
  EXPECT_TRUE(absl::IsDataLoss(DecodeQueueUse(EncodeUsage(kUsage)).status()));
}

}  // namespace
}  // namespace tahoma::controller
