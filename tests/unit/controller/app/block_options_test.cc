// The options of Capacity Blocks, from flags to the book.

#include "controller/app/block_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/app/options.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<BookOptions> Book(const std::vector<std::string>& arguments) {
  Options options;
  const absl::Status parsed = config::ParseArguments(arguments, DeclareOptions(options)).status();
  if (!parsed.ok()) return parsed;
  const absl::Status checked = CheckOptions(options);
  if (!checked.ok()) return checked;
  return BookOptionsOf(options.blocks);
}

TEST(BlockOptionsTest, WithoutAnyEverythingIsAsEc2HasIt) {
  const auto book = Book({});
  ASSERT_TRUE(book.ok()) << book.status();
  EXPECT_EQ(book->prices.RateOf(*FindProduct("trn2.48xlarge")).ToExactString(), "35.7608");
  EXPECT_EQ(book->payment.delay, std::chrono::seconds(0));
  EXPECT_EQ(book->payment.failure_tag, "tahoma.dev/simulated-payment");
  EXPECT_EQ(book->hosts.one_spare_in, 32);
  EXPECT_EQ(book->quota, Quota{});
  EXPECT_FALSE(book->share_ultra_servers);
}

TEST(BlockOptionsTest, EachOptionReachesTheBook) {
  const auto book =
      Book({"--capacity-blocks.prices", "trn2.48xlarge=30,u-trn2x64=110.5",
            "--capacity-blocks.payment-delay", "5m", "--capacity-blocks.payment-failure-tag", "pay",
            "--capacity-blocks.one-spare-in", "0", "--capacity-blocks.quota.instances", "64",
            "--capacity-blocks.quota.average", "32", "--capacity-blocks.quota.window-days", "14",
            "--capacity-blocks.share-ultra-servers"});
  ASSERT_TRUE(book.ok()) << book.status();
  EXPECT_EQ(book->prices.RateOf(*FindProduct("trn2.48xlarge")).ToExactString(), "30.00");
  EXPECT_EQ(book->prices.RateOf(*FindProduct("u-trn2x64")).ToExactString(), "110.50");
  EXPECT_EQ(book->prices.RateOf(*FindProduct("trn2.3xlarge")), FindProduct("trn2.3xlarge")->rate);
  EXPECT_EQ(book->payment.delay, std::chrono::minutes(5));
  EXPECT_EQ(book->payment.failure_tag, "pay");
  EXPECT_EQ(book->hosts.one_spare_in, 0);
  EXPECT_TRUE(book->share_ultra_servers);
  EXPECT_EQ(book->quota, (Quota{.instances = 64, .average = 32, .window_days = 14}));
}

TEST(BlockOptionsTest, WhatIsWrongIsSaid) {
  const auto why = [](const char* flag, const char* value) {
    return std::string(Message(Book({flag, value}).status()));
  };
  EXPECT_THAT(why("--capacity-blocks.prices", "trn3=1"),
              HasSubstr("\"trn3\" is not sold; the products are trn2.3xlarge, trn2.48xlarge, "
                        "u-trn2x64"));
  EXPECT_THAT(why("--capacity-blocks.prices", "u-trn2x64=cheap"),
              HasSubstr("capacityBlocks.prices.u-trn2x64: \"cheap\" is no amount"));
  EXPECT_THAT(why("--capacity-blocks.prices", "u-trn2x64=1000.01"),
              HasSubstr("at most 1000.00 USD an hour"));
  EXPECT_THAT(why("--capacity-blocks.payment-failure-tag", std::string(129, 'x').c_str()),
              HasSubstr("has 129 characters; at most 128"));
  EXPECT_THAT(why("--capacity-blocks.payment-delay", "49h"), HasSubstr("49h"));
  EXPECT_THAT(why("--capacity-blocks.quota.window-days", "0"), HasSubstr("1 to 182"));
  EXPECT_THAT(why("--capacity-blocks.quota.instances", "-1"), HasSubstr("-1"));
}

TEST(BlockOptionsTest, TheExampleIsRead) {
  Options options;
  const config::Spec spec = DeclareOptions(options);
  ASSERT_EQ(
      config::ParseFile(*ReadFile("examples/blocks/controller.yaml"), "controller.yaml", spec),
      absl::OkStatus());
  EXPECT_EQ(CheckOptions(options), absl::OkStatus());
  EXPECT_EQ(options.time_scale, 1440);
  const auto book = BookOptionsOf(options.blocks);
  ASSERT_TRUE(book.ok()) << book.status();
  EXPECT_EQ(book->prices.RateOf(*FindProduct("u-trn2x64")).ToExactString(), "110.50");
  EXPECT_EQ(book->payment.delay, std::chrono::minutes(5));
  EXPECT_EQ(book->hosts.one_spare_in, 8);
  EXPECT_EQ(book->quota, (Quota{.instances = 128, .average = 64, .window_days = 28}));
}

TEST(BlockOptionsTest, AMistakeInAFileIsToldWithItsPlace) {
  const auto why = [](const std::string& section) {
    Options options;
    const config::Spec spec = DeclareOptions(options);
    return std::string(
        Message(config::ParseFile("apiVersion: tahoma.dev/v1alpha1\nkind: ControllerConfig\n"
                                  "capacityBlocks:\n" +
                                      section,
                                  "c.yaml", spec)));
  };
  EXPECT_THAT(why("  price: {u-trn2x64: 1}\n"), HasSubstr("c.yaml:4: capacityBlocks.price"));
  EXPECT_THAT(why("  price: {u-trn2x64: 1}\n"), HasSubstr("prices"));
  EXPECT_THAT(why("  quota: {windowDays: 400}\n"), HasSubstr("capacityBlocks.quota.windowDays"));
  EXPECT_THAT(why("  paymentDelay: soon\n"), HasSubstr("c.yaml:4: capacityBlocks.paymentDelay"));
  EXPECT_THAT(why("  oneSpareIn: -1\n"), HasSubstr("c.yaml:4: capacityBlocks.oneSpareIn"));
}

TEST(BlockOptionsTest, AFlagThatNamesAnUnknownKeyIsToldTheNearest) {
  Options options;
  const config::Spec spec = DeclareOptions(options);
  EXPECT_FALSE(config::ParseArguments({"--capacity-blocks.pricess", "a=1"}, spec).ok());
}

}  // namespace
}  // namespace tahoma::controller
