// The key of service accounts' tokens is made once, and is that store's.

#include "controller/app/account_key.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

std::unique_ptr<Store> OpenStore(const std::string& dir) {
  auto store = Store::Open({.dir = dir});
  TAHOMA_CHECK_OK(store.status());
  return *std::move(store);
}

std::string SignedBy(Store& store) {
  return (*AccountTokensOf(store))
      ->Sign({.name_space = "default",
              .account = {.name = "a", .uid = "1"},
              .audiences = {"b"},
              .id = "j",
              .issued = 1,
              .expires = 2});
}

TEST(AccountKeyTest, ATokenIsGoodAfterARestartAndInNoOtherStore) {
  const testing::TempDir dir;
  const std::string token = SignedBy(*OpenStore(dir.path() + "/one"));
  EXPECT_TRUE((*AccountTokensOf(*OpenStore(dir.path() + "/one")))->Read(token).ok());
  EXPECT_FALSE((*AccountTokensOf(*OpenStore(dir.path() + "/other")))->Read(token).ok());
}

TEST(AccountKeyTest, WhatIsNoKeyIsDamage) {
  const testing::TempDir dir;
  const auto store = OpenStore(dir.path() + "/data");
  const std::string whole = NewAccountKey();
  for (const std::string& kept :
       {std::string("short"), whole.substr(0, whole.size() / 2), std::string(whole.size(), '\0')}) {
    WriteBatch batch;
    batch.Put(Keyspace::kLedger, std::string(kAccountKeyKey), kept);
    ASSERT_TRUE(store->Commit(std::move(batch)).ok());
    const auto tokens = AccountTokensOf(*store);
    EXPECT_TRUE(absl::IsDataLoss(tokens.status())) << tokens.status();
    EXPECT_EQ(Message(tokens.status()),
              "the store's account-key: no private key of the curve P-256 in PEM");
  }
}

}  // namespace
}  // namespace tahoma::controller
