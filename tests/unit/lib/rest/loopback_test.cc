#include "lib/rest/loopback.h"

#include <gtest/gtest.h>

namespace tahoma::rest {
namespace {

TEST(LoopbackTest, OnlyAddressesOfThisMachineAre) {
  for (const char* own : {"127.0.0.1:1", "127.9.8.7:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(IsLoopback(own)) << own;
  }
  for (const char* open : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "localhost.example.com:1",
                           "127.example.com:1", ":1", ""}) {
    EXPECT_FALSE(IsLoopback(open)) << open;
  }
}

}  // namespace
}  // namespace tahoma::rest
