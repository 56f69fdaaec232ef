// Server::Check: whether a server could start, without one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/rest/bearer.h"
#include "lib/rest/server.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/lib/kube/test_certificates.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using ::testing::HasSubstr;
using testing::RawClient;
using ::testing::StartsWith;

class ServerCheckTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  testing::TempDir dir_;
  Metrics metrics_;
};

TEST_F(ServerCheckTest, LeavesTheAddressFreeForTheServer) {
  std::string address;
  {
    Server first({.address = "127.0.0.1:0"}, metrics_);
    ASSERT_EQ(first.Start(), absl::OkStatus());
    address = first.address();
  }
  EXPECT_EQ(Server::Check({.address = address}), absl::OkStatus());
  EXPECT_EQ(Server::Check({.address = address}), absl::OkStatus()) << "and again";
  Server server({.address = address}, metrics_);
  EXPECT_EQ(server.Start(), absl::OkStatus());
}

TEST_F(ServerCheckTest, AnAddressInUseIsSaidAndItsServerGoesOn) {
  Server running({.address = "127.0.0.1:0"}, metrics_);
  running.Route("GET", "/", [](const Request&) { return Response::Text(200, "still here"); });
  ASSERT_EQ(running.Start(), absl::OkStatus());
  EXPECT_EQ(Server::Check({.address = running.address()}),
            Unavailable("{} is in use by another program", running.address()));
  EXPECT_THAT(RawClient(running.port()).Ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              HasSubstr("still here"));
}

TEST_F(ServerCheckTest, AnAddressThatIsNoneIsRefusedWithAnExample) {
  for (const std::string address :
       {"", "nowhere", ":", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1",
        "127.0.0.1: 1", "::1:8001", "[::1:8001", "[127.0.0.1]:1"}) {
    const absl::Status checked = Server::Check({.address = address});
    EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(Message(checked), HasSubstr("for example 127.0.0.1:8001")) << address;
  }
  EXPECT_EQ(Message(Server::Check({.address = "no.such.host.invalid:1"})),
            "cannot listen on no.such.host.invalid:1: the host is not known");
}

TEST_F(ServerCheckTest, AnyPortOfAnyLoopbackAddressWillDo) {
  for (const std::string address : {"127.0.0.1:0", "localhost:0"}) {
    EXPECT_EQ(Server::Check({.address = address}), absl::OkStatus()) << address;
  }
}

TEST_F(ServerCheckTest, ATokenInTheClearIsSaidBeyondLoopback) {
  std::vector<std::string> lines;
  const auto start = [&](const std::string& address, bool asks) {
    Server server(
        {.address = address, .log = [&](const std::string& line) { lines.push_back(line); }},
        metrics_);
    if (asks) server.SetGate(TokenGate("secret"));
    EXPECT_EQ(server.Start(), absl::OkStatus());
  };
  start("127.0.0.1:0", true);
  start("0.0.0.0:0", false);
  EXPECT_TRUE(lines.empty());
  start("0.0.0.0:0", true);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], StartsWith("0.0.0.0:0 is served without TLS"));
}

TEST_F(ServerCheckTest, CertificatesThatCannotBeUsedAreNamed) {
  const auto ca = testing::MakeCertificate("ca", "", "", nullptr);
  const auto one = testing::MakeCertificate("one", "", "IP:127.0.0.1", &ca);
  const auto two = testing::MakeCertificate("two", "", "IP:127.0.0.1", &ca);
  const std::string cert = Write("cert.pem", one.Pem());
  const std::string key = Write("key.pem", one.KeyPem());
  const std::string ca_file = Write("ca.pem", ca.Pem());
  const std::string other_key = Write("other.pem", two.KeyPem());
  const std::string garbage = Write("garbage.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
  const auto check = [](TlsOptions tls) {
    return std::string(Message(Server::Check({.address = "127.0.0.1:0", .tls = std::move(tls)})));
  };
  EXPECT_EQ(check({.cert_file = cert, .key_file = key}), "");
  EXPECT_EQ(check({.cert_file = cert, .key_file = key, .client_ca_file = ca_file}), "");
  EXPECT_THAT(check({.cert_file = garbage, .key_file = key}),
              StartsWith("TLS certificate " + garbage + ": "));
  EXPECT_THAT(check({.cert_file = cert, .key_file = dir_.path() + "/none"}),
              StartsWith("TLS key " + dir_.path() + "/none"));
  EXPECT_THAT(check({.cert_file = cert, .key_file = other_key}),
              StartsWith("TLS key " + other_key + " (for " + cert + "): "));
  EXPECT_THAT(check({.cert_file = cert, .key_file = key, .client_ca_file = garbage}),
              StartsWith("client CA " + garbage + ": "));
}

}  // namespace
}  // namespace tahoma::rest
