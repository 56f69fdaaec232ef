// Routes, bodies, authentication and clients that do not speak HTTP as they should.

#include "lib/rest/server.h"

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/rest/bearer.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using testing::RawClient;

class ServerTest : public ::testing::Test {
 protected:
  void Serve(ServerOptions options = {}) {
    server_ = std::make_unique<Server>(std::move(options), metrics_);
    server_->Route("GET", "/v1/gangs/{name}", [](const Request& request) {
      return Response::Text(200, "gang " + std::string(request.param("name")));
    });
    server_->Route("POST", "/v1/echo", [](const Request& request) {
      return Response::Text(201, request.body)
          .With("X-Peer-Known", request.peer.empty() ? "no" : "yes");
    });
    server_->Route("GET", "/v1/files/{path...}", [](const Request& request) {
      return Response::Text(200, std::string(request.param("path")));
    });
    server_->Route("GET", "/v1/throws",
                   [](const Request&) -> Response { throw std::runtime_error("oops"); });
  }
  void Start() { ASSERT_EQ(server_->Start(), absl::OkStatus()); }
  std::string Ask(const std::string& bytes) { return RawClient(server_->port()).Ask(bytes); }
  std::string Get(const std::string& path) {
    return Ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }

  Metrics metrics_;
  std::unique_ptr<Server> server_;
};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ServerTest, RoutesTakeNamesFromThePath) {
  Serve();
  Start();
  EXPECT_TRUE(Has(Get("/v1/gangs/a%20b?wide=1"), "gang a b"));
  EXPECT_TRUE(Has(Get("/v1/files/a/b/c"), "\r\n\r\na/b/c"));
}

TEST_F(ServerTest, WhatIsNotThereIsAProblem) {
  Serve();
  Start();
  EXPECT_TRUE(Get("/v1/none").starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_TRUE(Has(Get("/v1/none"), "application/problem+json"));
  for (const std::string method : {"DELETE", "TRACE", "QUERY"}) {
    const std::string answer =
        Ask(method + " /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nX-Secret: s\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << answer;
    EXPECT_TRUE(Has(answer, "Allow: GET\r\n"));
    EXPECT_FALSE(Has(answer, "X-Secret")) << "nothing is echoed";
  }
}

TEST_F(ServerTest, ABodyOfAMethodThatTakesNoneIsRefusedAfterTheMethod) {
  Serve();
  Start();
  const std::string body = " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab";
  const std::string other = Ask("GET /v1/echo" + body);
  EXPECT_TRUE(other.starts_with("HTTP/1.1 405 ")) << other;
  EXPECT_TRUE(Has(other, "Allow: POST\r\n")) << other;
  EXPECT_TRUE(Has(other, "Connection: close\r\n")) << "the body is not read";
  const std::string own = Ask("GET /v1/gangs/a" + body);
  EXPECT_TRUE(own.starts_with("HTTP/1.1 400 ")) << own;
  EXPECT_TRUE(Has(own, "GET takes no body")) << own;
  EXPECT_TRUE(Ask("GET /v1/none" + body).starts_with("HTTP/1.1 400 "));
}

TEST_F(ServerTest, AnEncodedSlashIsRefusedByRoutesAndLeftToTheRawHandler) {
  Serve();
  Start();
  EXPECT_TRUE(Get("/v1/gangs/a%2Fb").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Get("/v1/gangs/a%zz").starts_with("HTTP/1.1 400 "));
  server_.reset();
  Serve();
  server_->Raw([](const Request& request) { return Response::Text(418, request.target); });
  Start();
  EXPECT_TRUE(Has(Get("/v1/gangs/a%2Fb?c=%2f"), "\r\n\r\n/v1/gangs/a%2Fb?c=%2f"));
  EXPECT_TRUE(
      Has(Ask("PATCH / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"), "418"));
}

TEST_F(ServerTest, AConnectionServesManyRequests) {
  Serve();
  Start();
  RawClient client(server_->port());
  for (int i = 0; i < 2000; ++i) {
    const std::string answer = client.Ask("GET /v1/gangs/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(Has(answer, "gang x")) << i << answer;
  }
}

TEST_F(ServerTest, RequestsSentAtOnceAreAnsweredInOrder) {
  Serve();
  Start();
  RawClient client(server_->port());
  client.Send(
      "GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
      "3\r\n\r\none"
      "GET /v1/gangs/b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(Has(client.ReadAnswer(), "gang a"));
  EXPECT_TRUE(Has(client.ReadAnswer(), "one"));
  EXPECT_TRUE(Has(client.ReadAnswer(), "gang b"));
}

TEST_F(ServerTest, BodiesComeWithALengthOrInChunks) {
  Serve();
  Start();
  EXPECT_TRUE(Has(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      "text/plain\r\nContent-Length: 5\r\n\r\nhello"),
                  "\r\n\r\nhello"));
  EXPECT_TRUE(Has(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      "text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
                  "\r\n\r\nabcde"));
  EXPECT_TRUE(
      Has(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n"),
          "Content-Length: 0"));
  EXPECT_TRUE(
      Has(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nExpect: "
              "100-continue\r\nContent-Length: 1\r\n\r\nx"),
          "100 Continue"));
}

TEST_F(ServerTest, FormsAreNotTakenApart) {
  Serve();
  Start();
  const std::string body(10'000, 'a');
  EXPECT_TRUE(Has(
      Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Type: "
          "application/x-www-form-urlencoded"
          "\r\nContent-Length: 10000\r\n\r\n" +
          body),
      body));
}

TEST_F(ServerTest, TooLargeBodiesAreRefused) {
  Serve({.max_body_bytes = 1000});
  Start();
  EXPECT_TRUE(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "text/plain\r\nContent-Length: 1001\r\n\r\n")
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "text/plain\r\nContent-Length: "
                  "99999999999999999999\r\n\r\n")
                  .starts_with("HTTP/1.1 400 "));
  std::string chunks =
      "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  for (int i = 0; i < 2000; ++i) chunks += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_TRUE(Ask(chunks).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "text/plain\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n7d0\r\n" +
                  std::string(2000, 'x') + "\r\n0\r\n\r\n")
                  .starts_with("HTTP/1.1 413 "));
}

TEST_F(ServerTest, WhatIsNotHttpGetsACleanAnswer) {
  Serve();
  Start();
  for (const char* bytes :
       {"BREW /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01 hello\r\n\r\n",
        "GET http://elsewhere/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
        "-1\r\n\r\n",
        "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
        "1\r\nContent-Length: 2\r\n\r\nab",
        "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
        "1\r\nTransfer-Encoding: chunked\r\n\r\na",
        "GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "text/plain\r\nTransfer-Encoding: "
        "chunked\r\n\r\nzz\r\n"}) {
    EXPECT_TRUE(Ask(bytes).starts_with("HTTP/1.1 400 ")) << bytes << Ask(bytes);
  }
  EXPECT_TRUE(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "text/plain\r\nContent-Encoding: "
                  "gzip\r\nContent-Length: 1\r\n\r\na")
                  .starts_with("HTTP/1.1 415 "));
  EXPECT_TRUE(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "text/plain\r\nTransfer-Encoding: gzip\r\n\r\n")
                  .starts_with("HTTP/1.1 501 "));
}

TEST_F(ServerTest, HeadsAreBounded) {
  Serve();
  Start();
  EXPECT_TRUE(Get("/" + std::string(9000, 'a')).starts_with("HTTP/1.1 414 "));
  EXPECT_TRUE(Get("/" + std::string(200'000, 'a')).starts_with("HTTP/1.1 414 "));
  std::string many = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 10'000; ++i) many += "X-A: " + std::to_string(i) + "\r\n";
  EXPECT_TRUE(Ask(many + "\r\n").starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(
      Ask("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + std::string(70'000, 'a') + "\r\n\r\n")
          .starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(
      Ask("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + std::string(60'000, 'a') + "\r\n\r\n")
          .starts_with("HTTP/1.1 404 "));
}

TEST_F(ServerTest, AHalfRequestIsAnsweredWhenItsTimeIsOver) {
  Serve({.request_timeout = std::chrono::milliseconds(50)});
  Start();
  EXPECT_TRUE(Ask("GET /v1/ga").starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(Ask("GET /v1/gangs/a HTTP/1.1\r\nHost:").starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(Ask("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "text/plain\r\nContent-Length: 10\r\n\r\nabc")
                  .starts_with("HTTP/1.1 408 "));
}

TEST_F(ServerTest, ADeadClientLeavesNothingBehind) {
  Serve();
  Start();
  for (int i = 0; i < 50; ++i) {
    RawClient(server_->port())
        .Send(
            "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "text/plain\r\nContent-Length: 10\r\n\r\nabc");
  }
  EXPECT_TRUE(Has(Get("/v1/gangs/a"), "gang a"));
}

TEST_F(ServerTest, WhatIsThrownIsAnInternalErrorAndEndsNothingElse) {
  std::mutex mutex;
  std::vector<std::string> lines;
  Serve({.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  }});
  server_->SetGate([](Request& head) -> std::optional<Response> {
    if (head.header("X-Throw").empty()) return std::nullopt;
    throw 42;  // not even an exception
  });
  int turns = 0;
  bool closed = false;
  server_->Route("GET", "/v1/stream", [&](const Request&) {
    return Response::Stream(
        "text/plain",
        [&](std::string& out, std::chrono::milliseconds) -> bool {
          if (turns++ > 0) throw std::runtime_error("in its midst");
          out = "first";
          return true;
        },
        [&] {
          closed = true;
          throw std::runtime_error("at its end");
        });
  });
  Start();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Get("/v1/throws").starts_with("HTTP/1.1 500 "));
  EXPECT_TRUE(Ask("GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nX-Throw: 1\r\n\r\n")
                  .starts_with("HTTP/1.1 500 "));
  RawClient reader(server_->port());
  reader.Send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  // The connection ends without the last chunk, so nobody takes this for all there was.
  EXPECT_TRUE(reader.ReadAll().ends_with("\r\n\r\n5\r\nfirst\r\n"));
  EXPECT_TRUE(Has(Get("/v1/gangs/a"), "gang a"));
  server_->Stop();
  EXPECT_TRUE(closed);
  ASSERT_EQ(lines.size(), 13U);
  EXPECT_TRUE(lines[0].starts_with("GET /v1/throws from 127.0.0.1:")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" failed inside the server: oops")) << lines[0];
}

TEST_F(ServerTest, TextThatIsNotUtf8OrHasControlsIsRefusedBeforeAnyHandler) {
  Serve();
  int reached = 0;
  server_->SetGate([&](Request&) -> std::optional<Response> {
    ++reached;
    return std::nullopt;
  });
  server_->Raw([&](const Request&) { return Response::Text(200, "raw"); });
  Start();
  for (const std::string path :
       {"/%ff", "/\xff", "/%c3%28", "/%00", "/%0a", "/%7f", "/%ed%a0%80", "/%", "/%4", "/%zz",
        "/a?b=%ff", "/a?%ff", "/a?b=\xff", "/a?b=%00", "/a?b=%0d%0a", "/a?b=%zz"}) {
    EXPECT_TRUE(Get(path).starts_with("HTTP/1.1 400 ")) << path;
  }
  for (const std::string& value :
       std::vector<std::string>{"\xff", "a\xc3", "a\x01", std::string("a\0b", 3)}) {
    const std::string answer =
        Ask("GET /a HTTP/1.1\r\nUser-Agent: " + value + "\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << value;
  }
  EXPECT_EQ(reached, 0);
  EXPECT_TRUE(Has(Get("/v1/gangs/%c3%a9%20\xc3\xa9"), "gang \xc3\xa9 \xc3\xa9"));
  EXPECT_TRUE(
      Has(Ask("GET /a HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \xc3\xa9\r\n\r\n"), "raw"));
}

TEST_F(ServerTest, PagesOfOtherSitesAreRefused) {
  Serve({.allowed_hosts = {"ui.example.com"}});
  Start();
  const std::string post = "POST /v1/echo HTTP/1.1\r\nContent-Length: 2\r\n";
  const auto ask = [&](const std::string& fields) {
    return Ask(post + fields + "\r\nhi").substr(9, 3);
  };
  const std::string json = "Content-Type: application/json\r\n";
  const std::string own = "Host: " + server_->address() + "\r\n";
  EXPECT_EQ(ask(json), "400") << "without Host";
  EXPECT_EQ(ask(json + own), "201");
  EXPECT_EQ(ask(json + own + "Origin: http://" + server_->address() + "\r\n"), "201");
  EXPECT_EQ(ask(json + own + "Origin: https://ui.example.com\r\nSec-Fetch-Site: cross-site\r\n"),
            "201");
  // The requests of fetch(…, {mode: "no-cors"}) from a foreign page, and of a rebound name.
  EXPECT_EQ(ask(json + own + "Origin: https://evil.example\r\n"), "403");
  EXPECT_EQ(ask(json + "Host: evil.example:8001\r\nOrigin: http://evil.example:8001\r\n"), "403");
  EXPECT_EQ(ask(json + own + "Sec-Fetch-Site: cross-site\r\n"), "403");
  EXPECT_EQ(ask(own + "User-Agent: Mozilla/5.0\r\n"), "415");
  EXPECT_EQ(ask(own + "User-Agent: kubectl/v1.36\r\n"), "201");
  EXPECT_TRUE(Has(Ask("GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403"));
}

TEST_F(ServerTest, ProbesAndMetricsAreServed) {
  Serve();
  Start();
  EXPECT_TRUE(Has(Get("/healthz"), "\r\n\r\nok"));
  EXPECT_TRUE(Has(Get("/livez"), "\r\n\r\nok"));
  server_->SetReady("the journal is being read");
  EXPECT_TRUE(Get("/readyz").starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(Has(Get("/readyz"), "the journal is being read"));
  server_->SetReady("");
  EXPECT_TRUE(Has(Get("/readyz"), "\r\n\r\nok"));
  EXPECT_TRUE(Has(Get("/metrics"), "tahoma_http_requests_total{code=\"503\"} 2"));
}

TEST_F(ServerTest, WithATokenOnlyProbesAreOpen) {
  Serve();
  server_->SetGate(TokenGate("secret"));
  Start();
  EXPECT_TRUE(Has(Get("/livez"), "200 OK"));
  EXPECT_TRUE(Get("/v1/gangs/a").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(Get("/metrics").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(Has(
      Ask("GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secrex\r\n\r\n"),
      "401"));
  EXPECT_TRUE(Has(
      Ask("GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n"),
      "gang a"));
}

TEST_F(ServerTest, AGateCanRefuse) {
  Serve();
  server_->SetGate([](Request& head) -> std::optional<Response> {
    if (head.header("X-Let-Me-In") == "please") return std::nullopt;
    return Response::Problem(403, "no");
  });
  Start();
  EXPECT_TRUE(Get("/v1/gangs/a").starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(Has(Ask("GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nX-Let-Me-In: please\r\n\r\n"),
                  "gang a"));
}

TEST_F(ServerTest, WhoIsRefusedIsToldBeforeTheBody) {
  const std::string asked =
      "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nExpect: "
      "100-continue\r\nContent-Length: 9\r\n";
  Serve();
  server_->SetGate([ask = TokenGate("secret")](Request& head) -> std::optional<Response> {
    EXPECT_TRUE(head.body.empty());
    if (auto refusal = ask(head)) return refusal;
    if (head.header("X-Let-Me-In") == "please") return std::nullopt;
    return Response::Problem(403, "no");
  });
  Start();
  // Without a byte of their bodies.
  EXPECT_TRUE(Ask(asked + "\r\n").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(Ask(asked + "Authorization: Bearer secret\r\n\r\n").starts_with("HTTP/1.1 403 "));
  RawClient client(server_->port());
  client.Send(asked + "Authorization: Bearer secret\r\nX-Let-Me-In: please\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(Has(client.Ask("123456789"), "201 Created"));
  RawClient chatty(server_->port());
  chatty.Send(
      "POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
      "41\r\n\r\nGET "
      "/v1/gangs/smuggled "
      "HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string answers = chatty.ReadAll();
  EXPECT_TRUE(answers.starts_with("HTTP/1.1 401 ")) << answers;
  EXPECT_EQ(answers.find("HTTP/1.1", 1), std::string::npos) << answers;
}

TEST_F(ServerTest, AHandlerKnowsWhomTheGateLetIn) {
  Serve();
  server_->Route("GET", "/v1/me", [](const Request& request) {
    return Response::Text(200, request.identity->name + " of " + request.identity->groups.front());
  });
  server_->SetGate([](Request& head) -> std::optional<Response> {
    head.identity = std::make_shared<Identity>(Identity{.name = "ada", .groups = {"engineers"}});
    return std::nullopt;
  });
  Start();
  EXPECT_TRUE(Has(Get("/v1/me"), "\r\n\r\nada of engineers"));
}

TEST_F(ServerTest, HeadHasNoBody) {
  Serve();
  Start();
  RawClient client(server_->port());
  client.Send("HEAD /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(Has(client.ReadUntil("\r\n\r\n"), "Content-Length: 6"));
  EXPECT_TRUE(Has(client.Ask("GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\n\r\n"), "gang a"));
}

TEST_F(ServerTest, AClientMayAskToClose) {
  Serve();
  Start();
  RawClient client(server_->port());
  client.Send("GET /v1/gangs/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(Has(client.ReadAll(), "Connection: close"));
}

TEST_F(ServerTest, APortInUseIsNamed) {
  Serve();
  Start();
  Metrics metrics;
  Server second({.address = server_->address()}, metrics);
  EXPECT_EQ(second.Start(), Unavailable("{} is in use by another program", server_->address()));
  for (const char* address :
       {"", "nowhere", "127.0.0.1:x", "127.0.0.1:70000", "no.such.host.invalid:1"}) {
    Server bad({.address = address}, metrics);
    EXPECT_EQ(bad.Start().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST_F(ServerTest, AMissingCertificateIsNamed) {
  Serve({.tls = {.cert_file = "/nonexistent.pem", .key_file = "/nonexistent.key"}});
  EXPECT_TRUE(Has(std::string(Message(server_->Start())), "/nonexistent.pem"));
}

}  // namespace
}  // namespace tahoma::rest
