// The HTTP transport against a real server on loopback: TLS, tokens, streams, and broken answers.

#include "lib/kube/http_transport.h"

#include <absl/cleanup/cleanup.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "lib/base/status.h"
#include "lib/rest/server.h"
#include "tests/unit/lib/kube/test_certificates.h"

namespace tahoma::kube {
namespace {

using std::chrono::milliseconds;
using testing::Certificate;
using testing::MakeCertificate;

const Request kRoot{.target = "/"};

class HttpTransportTest : public ::testing::Test {
 protected:
  HttpTransportTest() {
    std::signal(SIGPIPE, SIG_IGN);  // as in every program that uses a transport
    std::string pattern = (std::filesystem::temp_directory_path() / "transport-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~HttpTransportTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
    return path;
  }
  void Serve(rest::ServerOptions options, rest::Handler handler) {
    server_ = std::make_unique<rest::Server>(std::move(options), metrics_);
    server_->Raw(std::move(handler));
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }
  std::unique_ptr<HttpTransport> Connect(ServerAccess access = {}, HttpLimits limits = {}) {
    access.server = server_->url();
    auto transport = HttpTransport::Create(std::move(access), limits);
    EXPECT_TRUE(transport.ok()) << transport.status();
    return transport.ok() ? *std::move(transport) : nullptr;
  }

  std::string folder_;
  rest::Metrics metrics_;
  std::unique_ptr<rest::Server> server_;
};

// The side that ends a connection. A Go server over TLS sends an alert first (RFC 8446, 6.1).
enum class Ends { kServer, kServerByAlert, kClient };

// Accepts connections in sequence, reads a request and answers with fixed bytes, a few at a time;
// then ends the connection, or waits for the client to end it.
class RudeServer {
 public:
  // Speaks TLS when given a certificate.
  explicit RudeServer(std::string answer, Ends ends = Ends::kServer,
                      const Certificate* certificate = nullptr, std::size_t piece = SIZE_MAX)
      : answer_(std::move(answer)), ends_(ends), piece_(piece) {
    if (certificate != nullptr) {
      tls_.reset(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
      SSL_CTX_use_certificate(tls_.get(), certificate->x509.get());
      SSL_CTX_use_PrivateKey(tls_.get(), certificate->key.get());
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~RudeServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  const std::string& url() const { return url_; }
  // Returns the bytes of the last request that came at once. Call it after the answer.
  const std::string& first_read() const { return first_read_; }
  void AwaitEnd(int connections) const {
    while (ended_ < connections) std::this_thread::yield();
  }

 private:
  void Run() {
    for (int fd = -1; (fd = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      std::unique_ptr<SSL, decltype(&SSL_free)> ssl(tls_ ? SSL_new(tls_.get()) : nullptr, SSL_free);
      if (ssl) SSL_set_fd(ssl.get(), fd);
      if (!ssl || SSL_accept(ssl.get()) == 1) Serve(fd, ssl.get());
      if (ssl && ends_ == Ends::kServerByAlert) SSL_shutdown(ssl.get());
      ::shutdown(fd, SHUT_WR);
      ::close(fd);
      ++ended_;
    }
  }
  void Serve(int fd, SSL* ssl) {
    std::string request(4096, '\0');
    const auto receive = [&] {
      return ssl != nullptr ? SSL_read(ssl, request.data(), 4096)
                            : static_cast<int>(::recv(fd, request.data(), request.size(), 0));
    };
    if (const int count = receive(); count > 0) {
      first_read_ = request.substr(0, static_cast<std::size_t>(count));
      for (std::string_view rest = answer_; !rest.empty();) {
        const std::string_view piece = rest.substr(0, piece_);
        rest.remove_prefix(piece.size());
        if (ssl != nullptr) {
          SSL_write(ssl, piece.data(), static_cast<int>(piece.size()));
        } else {
          (void)::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL);
        }
      }
    }
    while (ends_ == Ends::kClient && receive() > 0) continue;
  }

  const std::string answer_;
  const Ends ends_;
  const std::size_t piece_;
  std::shared_ptr<SSL_CTX> tls_;
  std::string first_read_;
  std::atomic<int> ended_ = 0;
  int listener_ = -1;
  std::string url_;
  std::thread thread_;
};

enum class Wire { kPlain, kTls };

// Tests for both wires. A server of Serve() is an authority of its own, and Connect() trusts it.
class BothWiresTest : public HttpTransportTest, public ::testing::WithParamInterface<Wire> {
 protected:
  void Serve(rest::ServerOptions options, rest::Handler handler) {
    if (GetParam() == Wire::kTls) {
      options.tls = {.cert_file = Write("cert", own_.Pem()),
                     .key_file = Write("key", own_.KeyPem())};
    }
    HttpTransportTest::Serve(std::move(options), std::move(handler));
  }
  std::unique_ptr<HttpTransport> Connect(HttpLimits limits = {}) {
    return HttpTransportTest::Connect({.ca_pem = own_.Pem()}, limits);
  }
  const Certificate* certificate() const { return GetParam() == Wire::kTls ? &own_ : nullptr; }
  // Returns the answer of a server that sends these bytes, `piece` bytes at a time.
  absl::StatusOr<Response> Ask(const std::string& answer, std::size_t piece = SIZE_MAX) const {
    const RudeServer server(answer, Ends::kServer, certificate(), piece);
    return (*HttpTransport::Create({.server = server.url(), .ca_pem = own_.Pem()}))->Send(kRoot);
  }

  const Certificate own_ = MakeCertificate("server", "", "IP:127.0.0.1", nullptr);
};

INSTANTIATE_TEST_SUITE_P(Wires, BothWiresTest, ::testing::Values(Wire::kPlain, Wire::kTls),
                         [](const auto& wire) {
                           return wire.param == Wire::kTls ? "Tls" : "Plain";
                         });

TEST_P(BothWiresTest, RequestsAndAnswersPassUnchanged) {
  Serve({}, [](const rest::Request& request) {
    return rest::Response::Text(418, request.method + " " + request.target + " " + request.body)
        .With("X-Type", std::string(request.header("Content-Type")));
  });
  const auto transport = Connect();
  const auto answer = transport->Send({.method = "PATCH",
                                       .target = "/a%2Fb?c=%20d",
                                       .headers = {{"Content-Type", "application/x"}},
                                       .body = "text"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 418);
  EXPECT_EQ(answer->body, "PATCH /a%2Fb?c=%20d text");
  EXPECT_EQ(answer->header("x-type"), "application/x");
}

TEST_P(BothWiresTest, ConnectionsAreUsedAgain) {
  std::string peers;
  Serve({}, [&](const rest::Request& request) {
    if (peers.find(request.peer + ";") == std::string::npos) peers += request.peer + ";";
    return rest::Response::Text(200, "");
  });
  const auto transport = Connect();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(transport->Send({.target = "/"}).ok());
  EXPECT_EQ(std::count(peers.begin(), peers.end(), ';'), 1) << peers;
}

// As an API server ends idle connections.
TEST_P(BothWiresTest, AConnectionThatTheServerHasEndedIsNotUsedAgain) {
  for (const Ends ends : {Ends::kServer, Ends::kServerByAlert}) {
    const RudeServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ends, certificate());
    const auto transport = *HttpTransport::Create({.server = server.url(), .ca_pem = own_.Pem()});
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(transport->Send(kRoot).status(), absl::OkStatus()) << "request " << i;
      server.AwaitEnd(i + 1);
    }
  }
}

// httplib frees the connection while it still reads such an answer: seen by a sanitizer.
TEST_P(BothWiresTest, AnAnswerMayCloseTheConnection) {
  const RudeServer server("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
                          Ends::kClient, certificate());
  const auto transport = *HttpTransport::Create({.server = server.url(), .ca_pem = own_.Pem()});
  for (int i = 0; i < 3; ++i) {
    const auto answer = transport->Send(kRoot);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body, "ok");
    server.AwaitEnd(i + 1);
  }
}

TEST_P(BothWiresTest, ManyThreadsMaySendAtOnce) {
  Serve({}, [](const rest::Request& request) { return rest::Response::Text(200, request.target); });
  const auto transport = Connect();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string target = fmt::format("/{}/{}", t, i);
        const auto answer = transport->Send({.target = target});
        if (answer.ok() && answer->body == target) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST_P(BothWiresTest, StreamsAreCutIntoLines) {
  Serve({}, [](const rest::Request&) {
    auto parts = std::make_shared<std::vector<std::string>>(std::vector<std::string>{
        "three\n", "tw", "o\n\nlong" + std::string(100'000, 'x'), "\none"});
    return rest::Response::Stream("application/json", [parts](std::string& out, milliseconds) {
      out = parts->front() + (parts->size() == 1 ? "\n" : "");
      parts->erase(parts->begin());
      return !parts->empty();
    });
  });
  const auto transport = Connect();
  std::vector<std::size_t> sizes;
  const auto answer = transport->Stream(
      {.target = "/"},
      [&](std::string_view line) {
        sizes.push_back(line.size());
        return true;
      },
      std::chrono::seconds(5));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{5, 3, 0, 100'004, 3}));
}

TEST_P(BothWiresTest, AStreamEndsByItsSinkOrByIdleness) {
  Serve({.stream_wait = milliseconds(10)}, [](const rest::Request&) {
    return rest::Response::Stream("x", [sent = false](std::string& out, milliseconds) mutable {
      if (!std::exchange(sent, true)) out = "a\nb\n";
      return true;
    });
  });
  const auto transport = Connect();
  int lines = 0;
  EXPECT_TRUE(transport
                  ->Stream(
                      kRoot, [&](std::string_view) { return ++lines < 1; }, std::chrono::seconds(5))
                  .ok());
  EXPECT_EQ(lines, 1);
  EXPECT_TRUE(transport
                  ->Stream(
                      kRoot,
                      [&](std::string_view) {
                        ++lines;
                        return true;
                      },
                      milliseconds(100))
                  .ok());
  EXPECT_EQ(lines, 3);
}

TEST_P(BothWiresTest, AnErrorInPlaceOfAStreamIsItsBody) {
  Serve({}, [](const rest::Request&) { return rest::Response::Text(410, "gone"); });
  const auto answer = Connect()->Stream(
      kRoot, [](std::string_view) { return true; }, milliseconds(1000));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 410);
  EXPECT_EQ(answer->body, "gone");
}

TEST_P(BothWiresTest, TooMuchIsRefused) {
  Serve({}, [](const rest::Request&) { return rest::Response::Text(200, std::string(5000, 'x')); });
  const auto transport = Connect({.max_body_bytes = 1000, .max_line_bytes = 1000});
  EXPECT_TRUE(absl::IsResourceExhausted(transport->Send(kRoot).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      transport
          ->Stream(
              kRoot, [](std::string_view) { return true; }, milliseconds(1000))
          .status()));
}

// Much more than the sockets of both ends hold is sent, and no more read than is taken.
TEST_P(BothWiresTest, ADownloadTakesAnswersOfAnyLengthPieceByPiece) {
  constexpr std::size_t kBytes = std::size_t{64} << 20U;
  std::atomic<std::size_t> made = 0;
  Serve({}, [&made](const rest::Request&) {
    return rest::Response::Stream("text/html", [&made](std::string& out, milliseconds) {
      out += std::string(std::size_t{1} << 20U, 'x');
      return (made += std::size_t{1} << 20U) < kBytes;
    });
  });
  std::size_t taken = 0;
  std::size_t largest = 0;
  int status = 0;
  const auto answer = Connect({.max_body_bytes = 1000, .max_framing_bytes = 100'000})
                          ->Download(
                              kRoot, [&](int head) { status = head; },
                              [&](std::string_view piece) {
                                EXPECT_EQ(status, 200) << "the head comes first";
                                taken += piece.size();
                                largest = std::max(largest, piece.size());
                                return true;
                              },
                              milliseconds(20'000));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->header("Content-Type"), "text/html");
  EXPECT_EQ(taken, kBytes);
  EXPECT_LE(largest, std::size_t{16} << 10U);
}

TEST_P(BothWiresTest, ADownloadEndsWhenItsPiecesAreNotWantedAnyMore) {
  Serve({}, [](const rest::Request&) {
    return rest::Response::Stream("text/plain", [](std::string& out, milliseconds) {
      out += "again and again ";
      return true;
    });
  });
  const auto transport = Connect();
  const auto ended = transport->Download(
      kRoot, [](int) {}, [](std::string_view) { return false; }, milliseconds(20'000));
  EXPECT_TRUE(ended.ok()) << ended.status();
}

TEST_P(BothWiresTest, ADownloadThatIsRefusedHasABody) {
  Serve({}, [](const rest::Request&) { return rest::Response::Text(404, "no such log"); });
  const auto answer = Connect()->Download(
      kRoot, [](int) {}, [](std::string_view) { return true; }, milliseconds(20'000));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "no such log");
}

TEST_P(BothWiresTest, AHeadOrAChunkSizeWithoutEndIsRefused) {
  const std::string endless(100'000, '1');
  std::string many_headers;
  for (int i = 0; i < 10'000; ++i) many_headers += "a: 1\r\n";
  for (const std::string& answer :
       {"HTTP/1.1 200 " + endless, "HTTP/1.1 200 OK\r\nA: " + endless,
        "HTTP/1.1 200 OK\r\n" + many_headers,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + endless}) {
    const RudeServer server(answer, Ends::kClient, certificate());
    const auto transport = *HttpTransport::Create({.server = server.url(), .ca_pem = own_.Pem()},
                                                  {.max_framing_bytes = 50'000});
    EXPECT_TRUE(absl::IsResourceExhausted(transport->Send(kRoot).status())) << answer.substr(0, 40);
  }
}

TEST_P(BothWiresTest, HalfAnAnswerIsUnavailable) {
  const auto send_to = [&](const std::string& answer) { return Ask(answer).status(); };
  for (const char* answer :
       {"", "HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "nonsense\r\n\r\n"}) {
    EXPECT_TRUE(absl::IsUnavailable(send_to(answer))) << answer;
  }
  EXPECT_EQ(send_to("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), absl::OkStatus());
}

TEST_P(BothWiresTest, AnAnswerMayComeInAnyPieces) {
  const std::string body = std::string(40'000, 'x') + "end";
  const std::string answers[] = {
      fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body),
      fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n3\r\nend\r\n"
                  "0\r\n\r\n",
                  body.size() - 3, body.substr(3))};
  for (const std::string& answer : answers) {
    for (const std::size_t piece : {1UL, 7UL, 1000UL, 16'384UL, 20'000UL, SIZE_MAX}) {
      const auto got = Ask(answer, piece);
      ASSERT_TRUE(got.ok()) << got.status() << " in pieces of " << piece;
      EXPECT_EQ(got->body.size(), body.size()) << "in pieces of " << piece;
    }
  }
}

// Head and body in one record: the server wakes once.
TEST_F(HttpTransportTest, ARequestOverTlsIsSentAtOnce) {
  const Certificate own = MakeCertificate("server", "", "IP:127.0.0.1", nullptr);
  const RudeServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Ends::kServer, &own);
  const auto transport = *HttpTransport::Create({.server = server.url(), .ca_pem = own.Pem()});
  ASSERT_TRUE(transport->Send({.method = "POST", .target = "/x", .body = "the body"}).ok());
  EXPECT_TRUE(server.first_read().starts_with("POST /x HTTP/1.1\r\n")) << server.first_read();
  EXPECT_TRUE(server.first_read().ends_with("the body")) << server.first_read();
}

TEST_F(HttpTransportTest, BytesAfterAnAnswerAreNotTheNextAnswer) {
  const Certificate own = MakeCertificate("server", "", "IP:127.0.0.1", nullptr);
  const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
  const RudeServer server(one + "mine" + one + "evil", Ends::kClient, &own);
  const auto transport = *HttpTransport::Create({.server = server.url(), .ca_pem = own.Pem()});
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = transport->Send(kRoot).status();
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_TRUE(Message(status).ends_with("the server sent more than its answer")) << status;
  }
}

TEST_F(HttpTransportTest, AServerThatIsNotThereIsUnavailable) {
  std::string url;
  {
    const RudeServer gone("");
    url = gone.url();
  }
  auto transport = HttpTransport::Create({.server = url});
  const absl::Status status = (*transport)->Send(kRoot).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(Message(status).find(url), std::string::npos);
}

TEST_P(BothWiresTest, AServerThatStaysSilentIsADeadline) {
  Serve({}, [](const rest::Request&) {
    return rest::Response::Stream("x", [](std::string&, milliseconds) { return true; });
  });
  const auto transport = Connect({.request_timeout = milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(transport->Send(kRoot).status()));
}

TEST_P(BothWiresTest, ShutdownEndsAStream) {
  Serve({.stream_wait = milliseconds(20)}, [](const rest::Request&) {
    return rest::Response::Stream("x", [sent = false](std::string& out, milliseconds) mutable {
      if (!std::exchange(sent, true)) out = "a\n";
      return true;
    });
  });
  const auto transport = Connect();
  std::thread ender;
  const absl::Status status = transport
                                  ->Stream(
                                      kRoot,
                                      [&](std::string_view) {
                                        ender = std::thread([&] { transport->Shutdown(); });
                                        return true;
                                      },
                                      std::chrono::seconds(60))
                                  .status();
  ender.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsUnavailable(transport->Send(kRoot).status()));
}

// During any act of the client: connecting, sending or waiting for the answer.
TEST_P(BothWiresTest, ShutdownEndsAStreamThatIsJustBeginning) {
  const RudeServer server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Ends::kClient,
                          certificate());
  for (int attempt = 0; attempt < 500; ++attempt) {
    const auto transport = *HttpTransport::Create({.server = server.url(), .ca_pem = own_.Pem()});
    std::atomic<int> spin = -1;
    std::thread ender([&] {
      while (spin < 0) continue;
      while (spin > 0) --spin;
      transport->Shutdown();
    });
    const auto sink = [](std::string_view) { return true; };
    spin = attempt;
    const auto answer = transport->Stream(kRoot, sink, std::chrono::seconds(2));
    ender.join();
    ASSERT_TRUE(absl::IsUnavailable(answer.status())) << "attempt " << attempt;
  }
}

TEST_F(HttpTransportTest, AnImpersonatedUserAndItsGroupsAreNamedInEveryRequest) {
  rest::Headers seen;
  Serve({}, [&](const rest::Request& request) {
    seen = request.headers;
    return rest::Response::Text(200, "");
  });
  const auto transport = Connect({.impersonate_user = "jane", .impersonate_groups = {"a", "b"}});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(transport->Send(kRoot).ok());
    std::multimap<std::string, std::string> names;
    for (const auto& [name, value] : seen) {
      if (name.starts_with("Impersonate-")) names.emplace(name, value);
    }
    EXPECT_EQ(names, (std::multimap<std::string, std::string>{{"Impersonate-User", "jane"},
                                                              {"Impersonate-Group", "a"},
                                                              {"Impersonate-Group", "b"}}));
  }
}

TEST(HttpTransportCreateTest, AnImpersonatedNameThatMakesNoHeaderIsRefused) {
  const auto said = [](ServerAccess access) {
    access.server = "http://127.0.0.1:1";
    return std::string(Message(HttpTransport::Create(std::move(access)).status()));
  };
  EXPECT_EQ(said({.impersonate_user = "jane\r\nX: y"}),
            "the impersonated name \"jane\\r\\nX: y\" has a control character");
  EXPECT_NE(said({.impersonate_user = "jane", .impersonate_groups = {"a\n"}}), "");
  EXPECT_EQ(said({.impersonate_groups = {"admins"}}),
            "groups, uid and extra are impersonated only together with a user");
}

TEST_F(HttpTransportTest, ATokenFileIsReadAgainWhenItChanges) {
  std::string seen;
  Serve({}, [&](const rest::Request& request) {
    seen = std::string(request.header("Authorization"));
    return rest::Response::Text(200, "");
  });
  const std::string file = Write("token", "first\n");
  const auto transport = Connect({.token_file = file});
  ASSERT_TRUE(transport->Send(kRoot).ok());
  EXPECT_EQ(seen, "Bearer first");
  Write("token", "second");
  ASSERT_TRUE(transport->Send(kRoot).ok());
  EXPECT_EQ(seen, "Bearer second");
  std::filesystem::remove(file);
  EXPECT_TRUE(absl::IsUnauthenticated(transport->Send(kRoot).status()));
}

TEST_F(HttpTransportTest, ATokenFileThatIsBeingRewrittenLeavesTheLastToken) {
  std::string seen;
  Serve({}, [&](const rest::Request& request) {
    seen = std::string(request.header("Authorization"));
    return rest::Response::Text(200, "");
  });
  const std::string file = Write("token", "first");
  const auto transport = Connect({.token_file = file});
  for (const char* nothing : {"", "\n", "  \n"}) {
    Write("token", nothing);
    seen.clear();
    ASSERT_TRUE(transport->Send(kRoot).ok());
    EXPECT_EQ(seen, "Bearer first");
  }
  Write("token", "second\nand more");
  ASSERT_TRUE(transport->Send(kRoot).ok());
  EXPECT_EQ(seen, "Bearer second");
}

TEST_F(HttpTransportTest, TlsNeedsATrustedServerAndShowsTheClient) {
  const Certificate ca = MakeCertificate("ca", "", "", nullptr);
  const Certificate other_ca = MakeCertificate("other", "", "", nullptr);
  const Certificate server = MakeCertificate("server", "", "IP:127.0.0.1,DNS:api.test", &ca);
  const Certificate client = MakeCertificate("ada", "engineers", "", &ca);
  Serve({.tls = {.cert_file = Write("cert", server.Pem()),
                 .key_file = Write("key", server.KeyPem()),
                 .client_ca_file = Write("ca", ca.Pem())}},
        [](const rest::Request& request) {
          return rest::Response::Text(200, !request.client
                                               ? "nobody"
                                               : request.client->common_name + " of " +
                                                     request.client->organizations.at(0));
        });
  const auto ask = [&](ServerAccess access) { return Connect(std::move(access))->Send(kRoot); };
  EXPECT_EQ(ask({.ca_pem = ca.Pem()})->body, "nobody");
  EXPECT_EQ(
      ask({.ca_pem = ca.Pem(), .client_cert_pem = client.Pem(), .client_key_pem = client.KeyPem()})
          ->body,
      "ada of engineers");
  EXPECT_EQ(ask({.ca_pem = ca.Pem(), .tls_server_name = "api.test"})->body, "nobody");
  EXPECT_TRUE(absl::IsUnavailable(ask({.ca_pem = ca.Pem(), .tls_server_name = "b.test"}).status()));
  EXPECT_TRUE(absl::IsUnavailable(ask({.ca_pem = other_ca.Pem()}).status()));
  EXPECT_EQ(ask({.insecure_skip_tls_verify = true})->body, "nobody");
  const Certificate stranger = MakeCertificate("eve", "", "", &other_ca);
  EXPECT_FALSE(ask({.ca_pem = ca.Pem(),
                    .client_cert_pem = stranger.Pem(),
                    .client_key_pem = stranger.KeyPem()})
                   .ok());
}

// The defect: the HTTP library adds the machine's authorities to the store of a new connection, and
// all connections shared a store.
TEST_F(HttpTransportTest, AGivenAuthorityIsTrustedInPlaceOfTheMachines) {
  const Certificate ca = MakeCertificate("test-ca", "", "", nullptr);
  const Certificate machines_ca = MakeCertificate("machines-ca", "", "", nullptr);
  ASSERT_EQ(setenv("SSL_CERT_FILE", Write("machines-ca", machines_ca.Pem()).c_str(), 1), 0);
  const absl::Cleanup unset = [] { unsetenv("SSL_CERT_FILE"); };
  const Certificate server = MakeCertificate("server", "", "IP:127.0.0.1", &machines_ca);
  Serve({.tls = {.cert_file = Write("cert", server.Pem()),
                 .key_file = Write("key", server.KeyPem())}},
        [](const rest::Request&) { return rest::Response::Text(200, "here"); });
  EXPECT_TRUE(absl::IsUnavailable(Connect({.ca_pem = ca.Pem()})->Send(kRoot).status()));
  // A client without an authority trusts the machine's authorities.
  const auto answer = Connect()->Send(kRoot);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "here");
}

// The defect: 1 of 150 starting controllers ended by SIGSEGV, because its watches began at once and
// wrote to a shared store of certificates.
TEST_F(HttpTransportTest, ManyConnectionsMayBeginAtOnce) {
  const Certificate ca = MakeCertificate("test-ca", "", "", nullptr);
  const Certificate server = MakeCertificate("server", "", "IP:127.0.0.1", &ca);
  Serve({.tls = {.cert_file = Write("cert", server.Pem()),
                 .key_file = Write("key", server.KeyPem())}},
        [](const rest::Request&) { return rest::Response::Text(200, "here"); });
  constexpr int kThreads = 8;
  for (int round = 0; round < 20; ++round) {
    const auto transport = Connect({.ca_pem = ca.Pem()});
    std::barrier together(kThreads);
    std::atomic<int> answers = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        together.arrive_and_wait();
        if (transport->Send(kRoot).ok()) ++answers;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(answers, kThreads);
  }
}

TEST_F(HttpTransportTest, AccessThatCannotWorkIsRefused) {
  const Certificate a = MakeCertificate("a", "", "", nullptr);
  const Certificate b = MakeCertificate("b", "", "", nullptr);
  const std::vector<ServerAccess> bad{
      {.server = ""},
      {.server = "127.0.0.1:1"},
      {.server = "ftp://a"},
      {.server = "http://a:x"},
      {.server = "http://a:70000"},
      {.server = "http://::1"},  // the defect: taken for the host ":" and the port 1
      {.server = "http://fd00::1:8001"},
      {.server = "http://:8001"},
      {.server = "http://a/path"},
      {.server = "https://"},
      {.server = "https://a", .ca_pem = "nonsense"},
      {.server = "https://a", .client_cert_pem = a.Pem()},
      {.server = "https://a", .client_cert_pem = a.Pem(), .client_key_pem = b.KeyPem()},
      {.server = "https://a", .client_cert_pem = "x", .client_key_pem = a.KeyPem()}};
  for (const ServerAccess& access : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(HttpTransport::Create(access).status())) << access.server;
  }
  EXPECT_FALSE(HttpTransport::Create({.server = "http://a", .token_file = "/nonexistent"}).ok());
}

TEST_F(HttpTransportTest, ATokenThatWouldCrossANetworkInTheClearIsSaid) {
  const std::string file = Write("token", "secret\n");
  const auto said = [](ServerAccess access) {
    std::vector<std::string> lines;
    const auto made = HttpTransport::Create(
        std::move(access), {}, [&](const std::string& line) { lines.push_back(line); });
    EXPECT_TRUE(made.ok()) << made.status();
    return lines;
  };
  for (const ServerAccess& access :
       {ServerAccess{.server = "http://10.0.0.5:8001", .token = "secret"},
        ServerAccess{.server = "http://10.0.0.5:8001", .token_file = file},
        ServerAccess{.server = "http://[fd00::1]:8001", .token = "secret"},
        ServerAccess{.server = "http://127.example.com", .token = "secret"}}) {
    EXPECT_EQ(said(access),
              (std::vector{fmt::format("the token for {} is sent without TLS: whoever is on the "
                                       "way there can read and use it; call the server by https",
                                       access.server)}));
  }
  for (const ServerAccess& access :
       {ServerAccess{.server = "http://10.0.0.5:8001"},
        ServerAccess{.server = "https://10.0.0.5:8001", .token = "secret"},
        ServerAccess{.server = "http://127.0.0.1:8001", .token = "secret"},
        ServerAccess{.server = "http://[::1]:8001", .token = "secret"},
        ServerAccess{.server = "http://localhost:8001", .token_file = file}}) {
    EXPECT_TRUE(said(access).empty()) << access.server;
  }
}

}  // namespace
}  // namespace tahoma::kube
