// A block's entry of the journal: written, read, and read as earlier versions wrote it.

#include "controller/core/journal/block_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "controller/core/journal/entry_form.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

TEST(BlockRecordTest, ABlockIsReadAsItWasWritten) {
  Block block{.reservation = "cr-1", .block_ids = {"cb-1", "cb-2"}, .key = {"team-a", "train"}};
  block.token = "call";
  block.signatures = {"s1", "s2"};
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

Block SmallBlock() {
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
  return block;
}

Json BodyOf(const Block& block) {
  Json body;
  EXPECT_TRUE(DecodeEntry(EncodeBlock(block), [&](EntryType, const Json& read) {
                body = read;
                return absl::OkStatus();
              }).ok());
  return body;
}

TEST(BlockRecordTest, ABlockOfAnEarlierVersionIsRead) {
  Block block = SmallBlock();
  Json body = BodyOf(block);
  EXPECT_EQ(body.erase("usage") + body.erase("replace") + body.erase("signatures"), 3U);
  body["terms"] = {1, 0, false, false};
  const auto read = DecodeBlock(EncodeEntry(EntryType::kBlockChanged, body));
  ASSERT_TRUE(read.ok()) << read.status();
  block.usage.as_of = block.start();
  EXPECT_EQ(*read, block);
}

TEST(BlockRecordTest, WhatALaterVersionAddsIsPassedOver) {
  Block block = SmallBlock();
  block.usage.as_of = block.start();
  Json body = BodyOf(block);
  body["added"] = {{"a", {1, 2, 3}}};
  body["zebra"] = "z";
  for (const char* member : {"bought", "payment", "terms", "usage", "version"}) {
    body[member].push_back("more");
  }
  body["cells"][0].push_back(nullptr);
  const auto read = DecodeBlock(EncodeEntry(EntryType::kBlockChanged, body));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, block);
}

TEST(BlockRecordTest, ARecordSaysWhatIsWrongWithIt) {
  const auto error = [](const std::function<void(Json&)>& damage) {
    Json body = BodyOf(SmallBlock());
    damage(body);
    const auto read = DecodeBlock(EncodeEntry(EntryType::kBlockChanged, body));
    EXPECT_TRUE(absl::IsDataLoss(read.status()));
    return std::string(read.status().message());
  };
  const std::string bad = "journal record of type 6 with a bad body: ";
  EXPECT_EQ(error([](Json& body) { body.erase("platform"); }), bad + "it has no platform");
  EXPECT_EQ(error([](Json& body) { body["state"] = 99; }), bad + "enumerator 99 is not among 0..6");
  EXPECT_EQ(error([](Json& body) { body["cells"][0][1] = 2; }),
            bad + "cells with other hosts than bought");
  EXPECT_EQ(error([](Json& body) { body["bought"][0] = "x"; }), bad + "an unknown product");
  EXPECT_EQ(error([](Json& body) { body["bought"].erase(6); }),
            bad + "an array with too few items");
  EXPECT_EQ(error([](Json& body) { body["uid"] = 1; }), bad + "major type 0 where a text belongs");
  EXPECT_EQ(error([](Json& body) { body["bought"][1] = std::int64_t{1} << 40; }),
            bad + "a count of 1099511627776, not of 1 to 1000000");
  const Json whole = BodyOf(SmallBlock());
  for (const auto& [name, value] : MembersOf(whole)) {
    const bool is_of_later_releases =
        name == "usage" || name == "replace" || name == "version" || name == "signatures";
    if (is_of_later_releases) continue;
    EXPECT_EQ(error([&](Json& body) { body.erase(name); }), bad + "it has no " + name);
  }
}

}  // namespace
}  // namespace tahoma::controller
