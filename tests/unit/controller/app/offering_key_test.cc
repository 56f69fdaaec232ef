// The key of a store is made once, and is that store's.

#include "controller/app/offering_key.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

std::unique_ptr<Store> Open(const std::string& dir) {
  auto store = Store::Open({.dir = dir});
  TAHOMA_CHECK_OK(store.status());
  return *std::move(store);
}

TEST(OfferingKeyTest, AStoreKeepsItsKeyAndAnotherHasAnother) {
  const testing::TempDir dir;
  const OfferingKey key = *OfferingKeyOf(*Open(dir.path() + "/one"));
  EXPECT_EQ(*OfferingKeyOf(*Open(dir.path() + "/one")), key);
  const OfferingKey other = *OfferingKeyOf(*Open(dir.path() + "/other"));
  EXPECT_NE(other, key);
  EXPECT_NE(key, OfferingKey{}) << "that of tests";
}

TEST(OfferingKeyTest, AKeyOfAnotherLengthIsDamage) {
  const testing::TempDir dir;
  const auto store = Open(dir.path() + "/data");
  WriteBatch batch;
  batch.Put(Keyspace::kLedger, std::string(kOfferingKeyKey), "short");
  ASSERT_TRUE(store->Commit(std::move(batch)).ok());
  EXPECT_TRUE(absl::IsDataLoss(OfferingKeyOf(*store).status()));
}

}  // namespace
}  // namespace tahoma::controller
