// The HTTP transport against a real server on loopback: TLS, tokens, streams, and answers that
// stop half way.

#include "lib/kube/http_transport.h"

#include <absl/cleanup/cleanup.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
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
    std::signal(SIGPIPE, SIG_IGN);  // as every program that uses one does
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

enum class Ends { kServer, kClient };

// Accepts connections one after the other, reads a request and answers with fixed bytes; then ends
// the connection, or waits until the client does.
class RudeServer {
 public:
  explicit RudeServer(std::string answer, Ends ends = Ends::kServer)
      : answer_(std::move(answer)), ends_(ends) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~RudeServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  const std::string& url() const { return url_; }

 private:
  void Run() const {
    for (int fd = -1; (fd = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      std::string request(4096, '\0');
      if (::recv(fd, request.data(), request.size(), 0) > 0) {
        (void)::send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
      while (ends_ == Ends::kClient && ::recv(fd, request.data(), request.size(), 0) > 0) continue;
      ::shutdown(fd, SHUT_WR);
      ::close(fd);
    }
  }
  const std::string answer_;
  const Ends ends_;
  int listener_ = -1;
  std::string url_;
  std::thread thread_;
};

absl::Status SendTo(const std::string& answer) {
  const RudeServer server(answer);
  auto transport = HttpTransport::Create({.server = server.url()});
  return (*transport)->Send({.target = "/x"}).status();
}

TEST_F(HttpTransportTest, RequestsAndAnswersPassUnchanged) {
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

TEST_F(HttpTransportTest, ConnectionsAreUsedAgain) {
  std::string peers;
  Serve({}, [&](const rest::Request& request) {
    if (peers.find(request.peer + ";") == std::string::npos) peers += request.peer + ";";
    return rest::Response::Text(200, "");
  });
  const auto transport = Connect();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(transport->Send({.target = "/"}).ok());
  EXPECT_EQ(std::count(peers.begin(), peers.end(), ';'), 1) << peers;
}

TEST_F(HttpTransportTest, ManyThreadsMaySendAtOnce) {
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

TEST_F(HttpTransportTest, StreamsAreCutIntoLines) {
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

TEST_F(HttpTransportTest, AStreamEndsByItsSinkOrByIdleness) {
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

TEST_F(HttpTransportTest, AnErrorInPlaceOfAStreamIsItsBody) {
  Serve({}, [](const rest::Request&) { return rest::Response::Text(410, "gone"); });
  const auto answer = Connect()->Stream(
      kRoot, [](std::string_view) { return true; }, milliseconds(1000));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 410);
  EXPECT_EQ(answer->body, "gone");
}

TEST_F(HttpTransportTest, TooMuchIsRefused) {
  Serve({}, [](const rest::Request&) { return rest::Response::Text(200, std::string(5000, 'x')); });
  const auto transport = Connect({}, {.max_body_bytes = 1000, .max_line_bytes = 1000});
  EXPECT_TRUE(absl::IsResourceExhausted(transport->Send(kRoot).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      transport
          ->Stream(
              kRoot, [](std::string_view) { return true; }, milliseconds(1000))
          .status()));
}

TEST_F(HttpTransportTest, HalfAnAnswerIsUnavailable) {
  for (const char* answer :
       {"", "HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "nonsense\r\n\r\n"}) {
    EXPECT_TRUE(absl::IsUnavailable(SendTo(answer))) << answer;
  }
  EXPECT_EQ(SendTo("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), absl::OkStatus());
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

TEST_F(HttpTransportTest, AServerThatStaysSilentIsADeadline) {
  Serve({}, [](const rest::Request&) {
    return rest::Response::Stream("x", [](std::string&, milliseconds) { return true; });
  });
  const auto transport = Connect({}, {.request_timeout = milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(transport->Send(kRoot).status()));
}

TEST_F(HttpTransportTest, ShutdownEndsAStream) {
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

// Whatever the client is doing at that moment: connecting, sending or waiting for the answer.
TEST_F(HttpTransportTest, ShutdownEndsAStreamThatIsJustBeginning) {
  const RudeServer server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Ends::kClient);
  for (int attempt = 0; attempt < 500; ++attempt) {
    const auto transport = *HttpTransport::Create({.server = server.url()});
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
// all connections had one store.
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
  // Who names no authority trusts the machine's.
  const auto answer = Connect()->Send(kRoot);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "here");
}

// The defect: of 150 controllers that started, one ended by SIGSEGV, because its watches began at
// once and wrote to one store of certificates.
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
