#include "controller/core/writes/pending_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

TEST(PendingKeysTest, KeysAreDrainedInOrderAndOnce) {
  Rng rng(1);
  PendingKeys<std::string> pending;
  for (const int count : {0, 1, 7, 300'000}) {
    std::set<std::string> oracle;
    for (int i = 0; i < count; ++i) {
      const std::string key = std::to_string(rng.Below(2'000));
      pending.Add(key);
      oracle.insert(key);
    }
    EXPECT_EQ(pending.empty(), oracle.empty());
    EXPECT_EQ(pending.DrainSorted(), std::vector<std::string>(oracle.begin(), oracle.end()));
    EXPECT_TRUE(pending.empty());
  }
}

}  // namespace
}  // namespace tahoma::controller
