// Logs from a node: a small HTTP server stands in for the pod runner.

#include "controller/apiserver/verbs/node_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "lib/rest/server.h"

namespace tahoma::controller::apiserver {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class NodeFetchTest : public ::testing::Test {
 protected:
  NodeFetchTest() {
    node_.Raw([this](const rest::Request& request) {
      if (request.path.ends_with("/none")) return rest::Response::Text(404, "no such container");
      if (request.query != "follow=true")
        return rest::Response::Text(200, "whole " + request.target);
      return rest::Response::Stream("text/plain",
                                    [this](std::string& out, std::chrono::milliseconds) {
                                      out += "line " + std::to_string(sent_++) + "\n";
                                      return sent_ < 3;
                                    });
    });
    EXPECT_TRUE(node_.Start().ok());
  }

  std::atomic<int> sent_ = 0;
  rest::Metrics metrics_;
  rest::Server node_{{.address = "127.0.0.1:0"}, metrics_};
  NodeFetch fetch_ = HttpNodeFetch();
};

TEST_F(NodeFetchTest, PassesAWholeLogAndRefusalsOn) {
  const auto whole = fetch_("127.0.0.1", node_.port(), "/containerLogs/a/b/c?tailLines=1");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.body, "whole /containerLogs/a/b/c?tailLines=1");
  const auto refused = fetch_("127.0.0.1", node_.port(), "/containerLogs/a/b/none");
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.body, "no such container");
  EXPECT_EQ(fetch_("127.0.0.1", node_.port(), "/containerLogs/a/b/none?follow=true").status, 404);
}

TEST_F(NodeFetchTest, FollowsALogToItsEnd) {
  const auto followed = fetch_("127.0.0.1", node_.port(), "/containerLogs/a/b/c?follow=true");
  ASSERT_TRUE(followed.source != nullptr);
  std::string out;
  while (followed.source(out, 1000ms)) {
  }
  EXPECT_EQ(out, "line 0\nline 1\nline 2\n");
  followed.closed();
}

TEST_F(NodeFetchTest, ANodeThatIsDownIsAnInternalErrorThatNamesIt) {
  const int port = node_.port();
  node_.Stop();
  const auto answer = fetch_("127.0.0.1", port, "/containerLogs/a/b/c");
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("127.0.0.1:" + std::to_string(port)));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
