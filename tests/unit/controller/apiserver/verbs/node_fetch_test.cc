// Logs from a node: a small HTTP server stands in for the pod runner.

#include "controller/apiserver/verbs/node_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "lib/base/json.h"
#include "lib/base/mutex.h"
#include "lib/rest/server.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller::apiserver {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::string_view kLog = "/containerLogs/a/b/c";
constexpr std::size_t kMiB = std::size_t{1} << 20U;

class NodeFetchTest : public ::testing::Test {
 protected:
  NodeFetchTest() {
    node_.Raw([this](const rest::Request& request) {
      const MutexLock lock(mutex_);
      shown_ = request.header("Authorization");
      return Answer(request);
    });
    EXPECT_TRUE(node_.Start().ok());
  }
  ~NodeFetchTest() override { node_.Stop(); }

  rest::Response Answer(const rest::Request& request) {
    if (request.path.ends_with("/none")) return rest::Response::Text(404, "no such container\n");
    if (request.path.ends_with("/teapot")) return rest::Response::Text(418, "tea");
    if (request.path.ends_with("/large-refusal")) {
      return rest::Response::Text(404, std::string(kMiB, 'x'));
    }
    if (request.path.ends_with("/page")) {
      rest::Response page = rest::Response::Text(200, "<script>");
      page.content_type = "text/html";
      return page;
    }
    if (request.path.ends_with("/endless")) {
      return rest::Response::Stream("text/html", [this](std::string& out, auto) {
        out += std::string(kMiB, 'x');
        sent_ += kMiB;
        return true;
      });
    }
    if (request.query != "follow=true") return rest::Response::Text(200, "whole " + request.target);
    return rest::Response::Stream("text/plain", [this](std::string& out, auto) {
      out += "line " + std::to_string(sent_++) + "\n";
      return sent_ < 3;
    });
  }
  rest::Response Fetch(std::string_view target, const std::string& secret_file = {},
                       const std::string& name = "n1") const {
    return HttpNodeFetch(secret_file)({.node = name, .host = "127.0.0.1", .port = node_.port()},
                                      std::string(target));
  }
  // The Authorization of the last request.
  std::string Shown() {
    const MutexLock lock(mutex_);
    return shown_;
  }
  // Returns the log that a reader gets.
  static std::string Read(const rest::Response& response) {
    std::string out = response.body;
    while (response.source && response.source(out, 1000ms)) {
    }
    if (response.closed) response.closed();
    return out;
  }
  static std::string MessageOf(const rest::Response& response) {
    return ParseJson(response.body)["message"].get<std::string>();
  }

  std::atomic<std::size_t> sent_ = 0;
  Mutex mutex_;
  std::string shown_ ABSL_GUARDED_BY(mutex_);
  rest::Metrics metrics_;
  rest::Server node_{{.address = "127.0.0.1:0"}, metrics_};
};

TEST_F(NodeFetchTest, PassesAWholeLogOn) {
  const auto whole = Fetch(std::string(kLog) + "?tailLines=1");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(Read(whole), "whole /containerLogs/a/b/c?tailLines=1");
}

TEST_F(NodeFetchTest, ARefusalIsAStatusWithTheNodesWord) {
  for (const char* target : {"/containerLogs/a/b/none", "/containerLogs/a/b/none?follow=true"}) {
    const auto refused = Fetch(target);
    EXPECT_EQ(refused.status, 404);
    EXPECT_EQ(refused.content_type, "application/json");
    EXPECT_EQ(MessageOf(refused), "no such container");
  }
  const auto odd = Fetch("/containerLogs/a/b/teapot");
  EXPECT_EQ(odd.status, 500);
  EXPECT_THAT(MessageOf(odd), HasSubstr("the node answered 418: tea"));
  EXPECT_EQ(Fetch("/containerLogs/a/b/large-refusal").status, 500);
}

TEST_F(NodeFetchTest, FollowsALogToItsEnd) {
  EXPECT_EQ(Read(Fetch(std::string(kLog) + "?follow=true")), "line 0\nline 1\nline 2\n");
}

TEST_F(NodeFetchTest, ALogIsTextWhateverItsNodeSays) {
  for (const char* target : {"/containerLogs/a/b/page", "/containerLogs/a/b/page?follow=true"}) {
    const auto page = Fetch(target);
    EXPECT_EQ(page.content_type, "text/plain");
    EXPECT_THAT(page.headers, Contains(Pair("X-Content-Type-Options", "nosniff")));
    EXPECT_EQ(Read(page), "<script>");
  }
}

// The sockets of both ends hold some MiB.
TEST_F(NodeFetchTest, ALogWithoutEndIsHeldByItsNodeUntilItsReaderTakesIt) {
  const auto endless = Fetch("/containerLogs/a/b/endless");
  ASSERT_TRUE(endless.source != nullptr);
  std::string out;
  std::size_t read = 0;
  while (read < 64 * kMiB) {
    out.clear();
    ASSERT_TRUE(endless.source(out, 1000ms));
    EXPECT_LE(out.size(), std::size_t{256} << 10U) << "what waits for one reader";
    read += out.size();
  }
  EXPECT_LT(sent_, read + 32 * kMiB);
  endless.closed();
}

TEST_F(NodeFetchTest, ANodeIsShownATokenOfItsOwn) {
  const testing::TempDir dir;
  const std::string secret = dir.path() + "/secret";
  std::ofstream(secret) << "a secret\n";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  (void)Fetch(kLog, secret);
  const std::string first = Shown();
  EXPECT_EQ(first, "Bearer " + NodeLogToken("a secret", "n1"));
  (void)Fetch(kLog, secret, "n2");
  EXPECT_NE(Shown(), first);
  EXPECT_EQ(first.find("a secret"), std::string::npos);
  (void)Fetch(kLog);
  EXPECT_EQ(Shown(), "") << "no secret, no token";
  EXPECT_THAT(MessageOf(Fetch(kLog, dir.path() + "/none")), HasSubstr(dir.path() + "/none"));
}

// printf node-logs/trn2-0 | openssl dgst -sha256 -hmac key
TEST(NodeLogTokenTest, IsTheHmacOfTheNodesName) {
  EXPECT_EQ(NodeLogToken("key", "trn2-0"),
            "afdfca505c171935e72617e79b56881ba7aad60a823a41a2c3a6d9b545853518");
}

TEST_F(NodeFetchTest, ANodeThatIsDownIsAnInternalErrorThatNamesIt) {
  const int port = node_.port();
  node_.Stop();
  const auto answer =
      HttpNodeFetch()({.node = "n1", .host = "127.0.0.1", .port = port}, std::string(kLog));
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("127.0.0.1:" + std::to_string(port)));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
