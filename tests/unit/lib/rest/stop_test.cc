// Tests the end of a server: waits, cut connections, and remaining resources.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "lib/rest/server.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using std::chrono::milliseconds;
using testing::RawClient;

// A server with a handler that returns when the test lets it.
class StopTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options) {
    server_ = std::make_unique<Server>(std::move(options), metrics_);
    server_->Route("GET", "/held", [this](const Request&) {
      entered_.set_value();
      released_.get_future().wait();
      return Response::Text(200, "at last");
    });
    server_->Route("GET", "/quick", [](const Request&) { return Response::Text(200, "done"); });
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }

  Metrics metrics_;
  std::unique_ptr<Server> server_;
  std::promise<void> entered_;
  std::promise<void> released_;
};

TEST_F(StopTest, StopCutsTheConnectionOfALateHandlerAndWaitsForTheHandler) {
  Start({.stop_grace = milliseconds(20)});
  RawClient client(server_->port());
  client.Send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  entered_.get_future().wait();
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    server_->Stop();
    stopped = true;
  });
  EXPECT_EQ(client.ReadAll(), "") << "the end of the connection, not an answer";
  EXPECT_FALSE(stopped) << "the handler may still use what the caller is about to destroy";
  released_.set_value();
  stopper.join();
}

TEST_F(StopTest, AHandlerThatEndsWithinTheGraceIsHeardOut) {
  Start({.stop_grace = std::chrono::seconds(30)});
  RawClient client(server_->port());
  client.Send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  entered_.get_future().wait();
  std::thread stopper([&] { server_->Stop(); });
  released_.set_value();
  EXPECT_TRUE(client.ReadAll().ends_with("at last"));
  stopper.join();
}

TEST_F(StopTest, IdleConnectionsAreClosedAtOnceAndNoLongerCounted) {
  Start({.stop_grace = std::chrono::seconds(30)});
  RawClient idle(server_->port());
  EXPECT_TRUE(idle.Ask("GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("done"));
  RawClient silent(server_->port());
  ASSERT_TRUE(silent.connected());
  server_->Stop();
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_NE(metrics_.Text().find("tahoma_http_connections 0\n"), std::string::npos)
      << metrics_.Text();
  server_->Stop();  // twice is once
  EXPECT_FALSE(RawClient(server_->port()).connected());
}

}  // namespace
}  // namespace tahoma::rest
