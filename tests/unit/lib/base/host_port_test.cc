#include "lib/base/host_port.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lib/base/status.h"

namespace tahoma {
namespace {

void ExpectSplit(const std::string& text, const std::string& host, std::optional<int> port) {
  SCOPED_TRACE(text);
  const auto split = SplitHostPort(text);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->host, host);
  EXPECT_EQ(split->port, port);
}

TEST(HostPortTest, AHostMayHaveAPort) {
  ExpectSplit("localhost", "localhost", std::nullopt);
  ExpectSplit("127.0.0.1:8001", "127.0.0.1", 8001);
  ExpectSplit("[fd00::1]", "fd00::1", std::nullopt);
  ExpectSplit("[::1]:0", "::1", 0);
  ExpectSplit("a:65535", "a", 65535);
  ExpectSplit(":80", "", 80);
  ExpectSplit("", "", std::nullopt);
}

TEST(HostPortTest, WhatIsWrongIsSaid) {
  const auto why = [](const std::string& text) {
    return std::string(Message(SplitHostPort(text).status()));
  };
  for (const std::string port : {"", "x", "65536", "-1", " 1", "1 ", "+1", "0x1"}) {
    EXPECT_EQ(why("a:" + port), "port \"" + port + "\" is not a number from 0 to 65535");
    EXPECT_EQ(why("[::1]:" + port), why("a:" + port));
  }
  // Read from the right, "::1" would be the host ":" and the port 1.
  for (const std::string bare : {"::1", "::1:8001", "a:1:2", "fe80::1", ":::"}) {
    EXPECT_EQ(why(bare), "an IPv6 address needs brackets, as in [::1]:8001") << bare;
  }
  EXPECT_EQ(why("[::1"), "\"[\" has no \"]\"");
  EXPECT_EQ(why("[a]:1"), "brackets are for IPv6 addresses");
  EXPECT_EQ(why("[::1]x"), "after \"]\" only a port may follow");
}

TEST(HostPortTest, JoinIsTheInverseOfSplit) {
  for (const std::string text : {"localhost:80", "[::1]:443", "10.0.0.1:0"}) {
    const auto split = SplitHostPort(text);
    ASSERT_TRUE(split.ok());
    EXPECT_EQ(JoinHostPort(split->host, *split->port), text);
  }
  EXPECT_EQ(JoinHostPort("fd00::1", "6443"), "[fd00::1]:6443");
}

}  // namespace
}  // namespace tahoma
