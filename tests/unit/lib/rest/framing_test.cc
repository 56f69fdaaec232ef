// The border between a request and the next. A client that could set the border by two rules at
// once could smuggle requests past a proxy before the server.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/status.h"
#include "lib/rest/server.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using testing::RawClient;

constexpr std::string_view kSmuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

// Answers every path with the received method, path and body.
class FramingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.max_body_bytes = 1 << 20;
    options.request_timeout = std::chrono::seconds(2);
    server_ = std::make_unique<Server>(std::move(options), metrics_);
    server_->Raw([this](const Request& request) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(request.method + " " + request.path);
      return Response::Text(200, request.body);
    });
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }
  std::vector<std::string> Seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  // Returns all answers to bytes sent at once; the server or the end of sending ends the
  // connection.
  std::string AnswersTo(const std::string& bytes) {
    RawClient client(server_->port());
    client.Send(bytes);
    client.EndSending();
    return client.ReadAll();
  }

  Metrics metrics_;
  std::mutex mutex_;
  std::vector<std::string> seen_;
  std::unique_ptr<Server> server_;
};

std::size_t Count(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(FramingTest, ALengthThatIsNoNumberEndsTheConnection) {
  for (const std::string length :
       {"+5", "-1", "5, 5", "5 5", "0x5", "5a", "", "18446744073709551616",
        "5\r\nContent-Length: 5", "5\r\ncontent-length: 6"}) {
    const std::string answer = AnswersTo(
        "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: " +
        length + "\r\n\r\nhello" + std::string(kSmuggled));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << length << "\n" << answer;
    EXPECT_EQ(Count(answer, "HTTP/1.1 "), 1U) << length << "\n" << answer;
  }
  EXPECT_TRUE(Seen().empty());
}

TEST_F(FramingTest, TwoWaysToFrameABodyEndTheConnection) {
  for (const std::string head : {
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
           "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: gzip, chunked\r\n",
           "Transfer-Encoding: xchunked\r\n",
           "Transfer-Encoding : chunked\r\n",
           "Content-Length : 5\r\n",
           "Content-Length\t: 5\r\n",
           "X: y\r\n Content-Length: 5\r\n",
           "Content-Length\r\n",
           "Content-Length: 5\n",
           "Content-Length: 5\rX: y\r\n",
           "Transfer-Encoding:\r\n",
           ": 5\r\n",
       }) {
    const std::string answer =
        AnswersTo("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" + head +
                  "\r\n0\r\n\r\n" + std::string(kSmuggled));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 501 "))
        << head << "\n"
        << answer;
    EXPECT_EQ(Count(answer, "HTTP/1.1 "), 1U) << head << "\n" << answer;
  }
  EXPECT_TRUE(Seen().empty());
}

TEST_F(FramingTest, DamagedChunksEndTheConnection) {
  for (const std::string body : {
           "xyz\r\n",
           "-1\r\na\r\n0\r\n\r\n",
           "5\r\nabc",
           "3\r\nabcdef\r\n0\r\n\r\n",
           "\r\n",
           "ffffffffffffffff\r\na",
           "10000000000000000\r\na",
           "fffffffffffffff0\r\nabc\r\n0\r\n\r\n",
       }) {
    const std::string answer = AnswersTo(
        "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: "
        "chunked\r\n\r\n" +
        body);
    EXPECT_LE(Count(answer, "HTTP/1.1 "), 1U) << body << "\n" << answer;
    EXPECT_EQ(Count(answer, "HTTP/1.1 200 "), 0U) << body << "\n" << answer;
  }
  EXPECT_TRUE(Seen().empty());
}

TEST_F(FramingTest, AfterARequestToCloseNothingIsServed) {
  const std::string answer = AnswersTo(
      "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + std::string(kSmuggled));
  EXPECT_EQ(Count(answer, "HTTP/1.1 200 "), 1U) << answer;
  EXPECT_EQ(Seen(), std::vector<std::string>{"GET /a"});
}

TEST_F(FramingTest, AnOldClientsConnectionIsClosed) {
  RawClient client(server_->port());
  client.Send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(client.ReadAll().starts_with("HTTP/1."));
}

// Bodies of any framing, cut into any pieces, arrive unchanged.
TEST_F(FramingTest, BodiesArriveWholeHoweverTheyAreSent) {
  rc::check([this] {
    const auto bodies = *rc::gen::container<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::element('a', '\r', '\n', '\0', '0', '\xff')));
    std::string sent;
    for (const std::string& body : bodies) {
      sent += "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n";
      if (*rc::gen::arbitrary<bool>()) {
        sent += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        continue;
      }
      sent += "Transfer-Encoding: chunked\r\n\r\n";
      for (std::size_t at = 0; at < body.size();) {
        const std::size_t size = *rc::gen::inRange<std::size_t>(1, body.size() - at + 1);
        sent += fmt::format("{:x}\r\n", size) + body.substr(at, size) + "\r\n";
        at += size;
      }
      sent += "0\r\n\r\n";
    }
    RawClient client(server_->port());
    for (std::size_t at = 0; at < sent.size();) {
      const std::size_t size = *rc::gen::inRange<std::size_t>(1, sent.size() - at + 1);
      client.Send(std::string_view(sent).substr(at, size));
      at += size;
    }
    for (const std::string& body : bodies) {
      const std::string answer = client.ReadAnswer();
      RC_ASSERT(answer.starts_with("HTTP/1.1 200 OK\r\n"));
      RC_ASSERT(answer.ends_with("\r\n\r\n" + body));
    }
  });
}

TEST_F(FramingTest, HeadIsAnsweredLikeGetWithoutABody) {
  RawClient client(server_->port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
  // Whatever came after the head would stand before this answer.
  EXPECT_TRUE(
      client.Ask("GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(FramingTest, UnknownMethodsAndTargetsAreAnsweredAndClosed) {
  for (const std::string line : {"BREW /a HTTP/1.1", "GET /a HTTP/9.9", "GET a HTTP/1.1", "GET /a",
                                 "GET  /a HTTP/1.1", "get /a HTTP/1.1", "GET /a b HTTP/1.1"}) {
    const std::string answer = AnswersTo(line + "\r\n\r\n" + std::string(kSmuggled));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 4")) << line << "\n" << answer;
    EXPECT_EQ(Count(answer, "HTTP/1.1 "), 1U) << line << "\n" << answer;
  }
  EXPECT_TRUE(Seen().empty());
}

TEST(GracefulStopTest, ARequestThatIsServedIsAnsweredWhole) {
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false;
  bool go_on = false;
  Metrics metrics;
  Server server({}, metrics);
  const std::string body(1 << 20, 'x');
  server.Route("GET", "/slow", [&](const Request&) {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return go_on; });
    return Response::Text(200, body);
  });
  ASSERT_EQ(server.Start(), absl::OkStatus());
  RawClient idle(server.port());
  EXPECT_TRUE(
      idle.Ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200"));
  RawClient client(server.port());
  client.Send(
      "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\nGET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  std::thread stopper([&] { server.Stop(); });
  EXPECT_EQ(idle.ReadAll(), "");  // closed: the stop has begun
  {
    const std::lock_guard lock(mutex);
    go_on = true;
    changed.notify_all();
  }
  const std::string answers = client.ReadAll();
  stopper.join();
  EXPECT_TRUE(answers.ends_with(body)) << answers.size();
  EXPECT_EQ(Count(answers, "HTTP/1.1 200 OK"), 1U);
  EXPECT_FALSE(RawClient(server.port()).connected());
}

TEST(StreamHeadTest, HeadOfAStreamEndsAtOnceAndClosesItsSource) {
  std::mutex mutex;
  std::condition_variable changed;
  int closed = 0;
  Metrics metrics;
  Server server({}, metrics);
  server.Route("GET", "/watch", [&](const Request&) {
    return Response::Stream(
        "application/json",
        [](std::string& out, std::chrono::milliseconds) {
          out = "line\n";
          return false;
        },
        [&] {
          const std::lock_guard lock(mutex);
          ++closed;
          changed.notify_all();
        });
  });
  ASSERT_EQ(server.Start(), absl::OkStatus());
  RawClient client(server.port());
  client.Send("HEAD /watch HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(client.Ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                  .starts_with("HTTP/1.1 200 OK\r\n"));
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return closed == 1; }));
}

}  // namespace
}  // namespace tahoma::rest
