// A block's entry of the journal: written, read, and read as earlier versions wrote it.

#include "controller/ledger/block_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "controller/ledger/entry_form.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

TEST(BlockRecordTest, ABlockIsReadAsItWasWritten) {
  Block block{.reservation = "cr-1", .block_ids = {"cb-1", "cb-2"}, .key = {"team-a", "train"}};
  block.bought = {.product = FindProduct("u-trn2x64"),
                  .count = 2,
                  .zone = "z",
                  .any_cell = true,
                  .start = StartOf(20'000),
                  .end = StartOf(20'007),
                  .rate = {5}};
  block.cells = {{"a", 1}, {"b", 1}};
  block.created = block.start() - std::chrono::hours(3);
  block.end = StartOf(20'009);
  block.state = BlockState::kUnavailable;
  block.tags = {{"k", "v"}};
  block.terms = {.replace = ReplacePolicy::kAutomatic,
                 .binding = BindingMode::kAtPurchase,
                 .lend_idle = true,
                 .magnetic = true,
                 .access = {"team-b", "team-c"}};
  block.payment = {.settles = block.created, .succeeds = false, .deadline = block.end};
  block.extensions = {{.offering_id = "cbe-1",
                       .token = "t",
                       .purchased = block.created,
                       .start = StartOf(20'007),
                       .end = StartOf(20'009),
                       .fee = {7},
                       .payment = block.payment,
                       .state = ExtensionState::kPaymentSucceeded}};
  block.hosts = {"us-0", "us-1"};
  block.bound = block.created;
  block.warned = true;
  block.trouble = "why";
  block.replace_request = "today";
  block.replacing = true;
  block.usage = {.chip_ms = {.used = 1, .lent = 2, .idle = 3, .lost = 4}, .as_of = block.start()};
  const std::string bytes = EncodeBlock(block);
  EXPECT_TRUE(IsBlockEntry(bytes));
  const auto read = DecodeBlock(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, block);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_TRUE(absl::IsDataLoss(DecodeBlock(other).status())) << i;
  }
}

TEST(BlockRecordTest, ABlockOfAnEarlierVersionIsRead) {
  Block block{.reservation = "cr-1", .key = {"team-a", "train"}};
  block.bought = {.product = FindProduct("u-trn2x64"),
                  .count = 1,
                  .zone = "z",
                  .start = StartOf(20'000),
                  .end = StartOf(20'007),
                  .rate = {5}};
  block.cells = {{"a", 1}};
  block.created = block.start() - std::chrono::hours(3);
  block.end = block.bought.end;
  Json body;
  ASSERT_TRUE(DecodeEntry(EncodeBlock(block), [&](EntryType, const Json& read) {
                body = read;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(body.erase("usage") + body.erase("replace"), 2U);
  body["terms"] = {1, 0, false, false};
  const auto read = DecodeBlock(EncodeEntry(EntryType::kBlockChanged, body));
  ASSERT_TRUE(read.ok()) << read.status();
  block.usage.as_of = block.start();
  EXPECT_EQ(*read, block);
}

}  // namespace
}  // namespace tahoma::controller
