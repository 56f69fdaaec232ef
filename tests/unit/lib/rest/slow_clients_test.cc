// Clients that send half a request, or do not read the answer: such clients hold no thread, share
// bounded memory, and are closed to make room for other clients.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/rest/server.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/lib/kube/test_certificates.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using std::chrono::milliseconds;
using testing::RawClient;

constexpr std::size_t kLargeBytes = 16 << 20;
constexpr std::string_view kLarge = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kMade = "GET /made HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kPlain = "GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kPost =
    "POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Type: a/b\r\nContent-Length: ";

class SlowClientsTest : public ::testing::Test {
 protected:
  ~SlowClientsTest() override {
    Release();
    if (server_ != nullptr) server_->Stop();
  }
  void Start(ServerOptions options) {
    server_ = std::make_unique<Server>(std::move(options), metrics_);
    server_->Route("GET", "/plain", [](const Request&) { return Response::Text(200, "plain"); });
    server_->Route("GET", "/large",
                   [](const Request&) { return Response::Text(200, std::string(16 << 20, 'x')); });
    server_->Route("GET", "/made", [this](const Request&) { return Made(); });
    server_->Route("POST", "/length", [](const Request& request) {
      return Response::Text(200, std::to_string(request.body.size()));
    });
    server_->Route("GET", "/held", [this](const Request&) {
      std::unique_lock lock(mutex_);
      ++held_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return released_; });
      return Response::Text(200, "released");
    });
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }
  // Returns a stream of kLargeBytes whose bytes are made while the stream is sent, up to
  // `made_most_`.
  Response Made() {
    Response answer = Response::Stream(
        "text/plain",
        [this, at = std::size_t{0}](std::string& out, milliseconds) mutable {
          for (int i = 0; i < 1024 && at < kLargeBytes && at < made_most_; ++i) {
            out += fmt::format("{:015}\n", at);
            at += 16;
            made_ += 16;
          }
          return at < kLargeBytes;
        },
        [this] { ++ended_; });
    answer.headers.emplace_back("Content-Length", std::to_string(kLargeBytes));
    return answer;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void WaitUntilHeld(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ == count; });
  }
  // Opens `count` connections; each sends these bytes and then nothing.
  void Crowd(int count, const std::string& bytes, int receive_buffer = 0) {
    for (int i = 0; i < count; ++i) {
      crowd_.push_back(std::make_unique<RawClient>(server_->port(), receive_buffer));
      crowd_.back()->Send(bytes);
    }
  }
  std::string Ask(std::string_view bytes) { return RawClient(server_->port()).Ask(bytes); }
  void ExpectPlainAnswers() {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(Ask(kPlain).ends_with("plain"));
  }
  double Metric(const std::string& name) {
    const std::string text = metrics_.Text();
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  std::size_t made_most_ = SIZE_MAX;
  std::atomic<std::size_t> made_ = 0;
  std::atomic<int> ended_ = 0;
  Metrics metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int held_ = 0;
  bool released_ = false;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<RawClient>> crowd_;
};

TEST_F(SlowClientsTest, HalfRequestsHoldNoThread) {
  Start({.max_threads = 2, .reserved_threads = 1, .request_timeout = std::chrono::minutes(10)});
  Crowd(100, "");
  Crowd(100, "GET /plain HT");
  Crowd(100, "GET /plain HTTP/1.1\r\nHost: local");
  Crowd(100, std::string(kPost) + "1000\r\n\r\n");
  Crowd(100, std::string(kPost) + "1000\r\n\r\nhalf of it");
  Crowd(100,
        "POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Type: a/b\r\nTransfer-Encoding: "
        "chunked\r\n\r\n5\r\nab");
  ExpectPlainAnswers();
  // The last client sends the rest after all.
  crowd_.back()->Send("cde\r\n0\r\n\r\n");
  EXPECT_TRUE(crowd_.back()->ReadAnswer().ends_with("\r\n\r\n5"));
}

TEST_F(SlowClientsTest, ReadersOfNothingHoldNoThreadAndAreCut) {
  Start({.max_threads = 2, .reserved_threads = 1, .write_timeout = milliseconds(500)});
  Crowd(10, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", 4096);
  ExpectPlainAnswers();
  RawClient last(server_->port());
  while (Metric("tahoma_http_connections") > 1) ASSERT_TRUE(last.Ask(kPlain).ends_with("plain"));
  for (const auto& client : crowd_) {
    EXPECT_LT(client->ReadAll().size(), std::size_t{16} << 20) << "cut in its midst";
  }
}

TEST_F(SlowClientsTest, AReaderOfALargeAnswerGetsAllOfIt) {
  Start({.max_threads = 2, .reserved_threads = 1});
  RawClient client(server_->port(), 4096);
  const std::string answer = client.Ask("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_GT(answer.size(), std::size_t{16} << 20);
  EXPECT_TRUE(client.Ask(kPlain).ends_with("plain"));
}

TEST_F(SlowClientsTest, AnAnswerIsMadeAsItsReaderTakesIt) {
  Start({.max_threads = 2, .reserved_threads = 1});
  RawClient client(server_->port(), 4096);
  const std::string answer = client.Ask(kMade);
  const std::size_t body = answer.size() - kLargeBytes;
  EXPECT_NE(answer.substr(0, body).find("\r\nContent-Length: 16777216\r\n"), std::string::npos);
  for (std::size_t at = 0; at < kLargeBytes; at += 16) {
    ASSERT_EQ(answer.substr(body + at, 16), fmt::format("{:015}\n", at));
  }
  EXPECT_TRUE(client.Ask(kPlain).ends_with("plain"));
  EXPECT_EQ(ended_, 1);
}

TEST_F(SlowClientsTest, ForReadersOfNothingNextToNothingIsMade) {
  Start({.max_threads = 2, .reserved_threads = 1, .write_timeout = milliseconds(500)});
  Crowd(20, std::string(kMade), 4096);
  ExpectPlainAnswers();
  while (ended_ < 20) ExpectPlainAnswers();  // cut, because the clients read nothing
  EXPECT_LT(made_, 20 * kLargeBytes / 2) << "what the sockets took";
}

TEST_F(SlowClientsTest, APartIsNotTakenForTheWhole) {
  made_most_ = kLargeBytes / 2;
  Start({.max_threads = 2, .reserved_threads = 1});
  RawClient client(server_->port());
  client.Send(kMade);
  const std::string answer = client.ReadAll();
  EXPECT_NE(answer.find("Content-Length: 16777216\r\n"), std::string::npos);
  EXPECT_LT(answer.size(), kLargeBytes) << "and the connection is closed";
  EXPECT_EQ(ended_, 1);
}

TEST_F(SlowClientsTest, AHeadRequestOfAStreamedAnswerGetsTheHeadAlone) {
  Start({});
  RawClient client(server_->port());
  client.Send("HEAD /made HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string head = client.ReadUntil("\r\n\r\n");
  EXPECT_NE(head.find("\r\nContent-Length: 16777216\r\n"), std::string::npos) << head;
  EXPECT_TRUE(client.Ask(kPlain).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(made_, 0U);
}

TEST_F(SlowClientsTest, LargeAnswersThatNobodyReadsShareABudgetAndTheNextComesLater) {
  Start({.max_buffered_bytes = 40 << 20,
         .max_buffered_bytes_per_client = 40 << 20,
         .write_timeout = std::chrono::minutes(10)});
  Crowd(2, std::string(kLarge), 4096);
  for (const auto& reader : crowd_) {
    ASSERT_TRUE(reader->ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  }
  const std::string refused = Ask(kLarge);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ")) << refused.substr(0, 200);
  EXPECT_NE(refused.find("Retry-After: 1\r\n"), std::string::npos) << refused;
  ExpectPlainAnswers();
  crowd_.clear();
  while (Ask(kLarge).size() < kLargeBytes) {
  }
}

TEST_F(SlowClientsTest, AByteNowAndThenIsNoProgress) {
  Start({.request_timeout = milliseconds(100)});
  for (const std::string& begin : {std::string("GET /plain HTTP/1.1\r\nHost: localhost\r\nX: "),
                                   std::string(kPost) + "1000000\r\n\r\n"}) {
    RawClient client(server_->port());
    client.Send(begin);
    while (!client.WaitReadable(milliseconds(5))) client.Send("x");
    EXPECT_TRUE(client.ReadAnswer().starts_with("HTTP/1.1 408 ")) << begin;
  }
}

TEST_F(SlowClientsTest, HalfBodiesShareABudgetAndTheOldestGiveWay) {
  Start({.max_buffered_bytes = 4 << 20,
         .max_buffered_bytes_per_client = 2 << 20,
         .request_timeout = std::chrono::minutes(10)});
  const std::string half = std::string(kPost) + "2000000\r\n\r\n" + std::string(200'000, 'x');
  Crowd(100, half);
  RawClient last(server_->port());
  EXPECT_TRUE(last.Ask(std::string(kPost) + "500000\r\n\r\n" + std::string(500'000, 'x'))
                  .ends_with("\r\n\r\n500000"));
  // The server reads the last byte of the crowd when a worker is free.
  while (Metric("tahoma_http_connections_evicted_total") < 80) {
    ASSERT_TRUE(last.Ask(kPlain).ends_with("plain"));
  }
  EXPECT_TRUE(crowd_.front()->ReadAnswer().starts_with("HTTP/1.1 503 "));
  ExpectPlainAnswers();
}

TEST_F(SlowClientsTest, SilentConnectionsGiveWayToNewOnes) {
  Start({.max_connections = 40, .request_timeout = std::chrono::minutes(10)});
  RawClient known(server_->port());
  EXPECT_TRUE(known.Ask(kPlain).ends_with("plain"));
  Crowd(300, "GET /pl");
  ExpectPlainAnswers();
  EXPECT_TRUE(known.Ask(kPlain).ends_with("plain")) << "who has been served goes last";
  EXPECT_LE(Metric("tahoma_http_connections"), 30) << "one client's part";
}

// The defect: the answer had no body, so a client could not tell which server had refused.
TEST_F(SlowClientsTest, ARefusalForLackOfRoomHasABodyLikeOtherRefusals) {
  Start({.max_connections = 4, .problem = [](int status, std::string_view detail) {
           return Response::Json(status, fmt::format(R"({{"said":"{}"}})", detail));
         }});
  Crowd(3, "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  WaitUntilHeld(3);
  const std::string refused = RawClient(server_->port()).ReadAnswer();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 Too Many Requests\r\n")) << refused;
  for (const char* field :
       {"Retry-After: 1\r\n", "Connection: close\r\n", "Content-Type: application/json\r\n"}) {
    EXPECT_NE(refused.find(field), std::string::npos) << refused;
  }
  EXPECT_TRUE(refused.ends_with(R"({"said":"there is no room for another connection"})"))
      << refused;
}

TEST_F(SlowClientsTest, ProbesAndMetricsAreAnsweredWhenAllThreadsAreBusy) {
  Start({.max_threads = 2, .reserved_threads = 1});
  Crowd(2, "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  WaitUntilHeld(2);
  RawClient waiting(server_->port());
  waiting.Send(kPlain);
  for (const char* path : {"/livez", "/readyz", "/healthz", "/metrics"}) {
    EXPECT_TRUE(Ask(std::string("GET ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    .starts_with("HTTP/1.1 200 "))
        << path;
  }
  EXPECT_TRUE(RawClient(server_->port())
                  .Ask("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: "
                       "localhost\r\n\r\n")
                  .ends_with("ok"));
  Release();
  EXPECT_TRUE(waiting.ReadAnswer().ends_with("plain"));
}

TEST_F(SlowClientsTest, HalfHandshakesHoldNoThread) {
  const testing::TempDir dir;
  const auto ca = testing::MakeCertificate("ca", "", "", nullptr);
  const auto own = testing::MakeCertificate("own", "", "IP:127.0.0.1", &ca);
  std::ofstream(dir.path() + "/cert.pem") << own.Pem();
  std::ofstream(dir.path() + "/key.pem") << own.KeyPem();
  Start({.tls = {.cert_file = dir.path() + "/cert.pem", .key_file = dir.path() + "/key.pem"},
         .max_threads = 2,
         .reserved_threads = 1,
         .request_timeout = std::chrono::minutes(10)});
  Crowd(100, "");
  Crowd(100, std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8));
  Crowd(20, "GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n");
  httplib::SSLClient client("127.0.0.1", server_->port());
  client.enable_server_certificate_verification(false);
  client.set_read_timeout(10);
  for (int i = 0; i < 20; ++i) {
    const auto answer = client.Get("/plain");
    ASSERT_TRUE(answer) << to_string(answer.error());
    EXPECT_EQ(answer->body, "plain");
  }
  EXPECT_EQ(client.Get("/large")->body.size(), std::size_t{16} << 20);
  EXPECT_EQ(client.Post("/length", std::string(1 << 20, 'x'), "a/b")->body, "1048576");
  EXPECT_EQ(crowd_.back()->ReadAll().find("HTTP"), std::string::npos) << "no TLS, no answer";
}

}  // namespace
}  // namespace tahoma::rest
