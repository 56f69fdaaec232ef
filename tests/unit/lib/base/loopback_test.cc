#include "lib/base/loopback.h"

#include <gtest/gtest.h>

namespace tahoma {
namespace {

TEST(LoopbackTest, OnlyAddressesOfThisMachineAre) {
  for (const char* own : {"127.0.0.1:1", "127.9.8.7:1", "[::1]:1", "localhost:1", "LocalHost:1"}) {
    EXPECT_TRUE(IsLoopback(own)) << own;
  }
  for (const char* open : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "localhost.example.com:1",
                           "127.example.com:1", ":1", "", "::1:1", "[127.0.0.1]:1", "[::2]:1"}) {
    EXPECT_FALSE(IsLoopback(open)) << open;
  }
}

TEST(LoopbackTest, OnlyHostsOfThisMachineAre) {
  for (const char* own : {"127.0.0.1", "127.9.8.7", "::1", "localhost", "LOCALHOST"}) {
    EXPECT_TRUE(IsLoopbackHost(own)) << own;
  }
  for (const char* other : {"", "0.0.0.0", "::", "::2", "[::1]", "10.0.0.1", "127.example.com",
                            "xlocalhost", "127.0.0.1.evil.example"}) {
    EXPECT_FALSE(IsLoopbackHost(other)) << other;
  }
}

}  // namespace
}  // namespace tahoma
