// The callers that a browser may let through: names, origins, and requests that a page can send
// without asking.

#include "lib/rest/site_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

using ::testing::StartsWith;

// The status of the refusal; 0: none.
int Ask(const SiteCheck& check, Headers headers, const std::string& method = "GET",
        bool tls = false) {
  Request head;
  head.method = method;
  head.headers = std::move(headers);
  head.tls = tls;
  const auto refusal = check.Refuse(head);
  return refusal ? refusal->status : 0;
}

TEST(SiteCheckTest, OnLoopbackOnlyItsNamesAreTheServers) {
  const SiteCheck check({.address_host = "127.0.0.1"});
  for (const char* host : {"localhost", "LOCALHOST:8001", "localhost.", "127.0.0.1:1", "127.9.9.9",
                           "[::1]", "[::1]:8001"}) {
    EXPECT_EQ(Ask(check, {{"Host", host}}), 0) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "10.0.0.1", "[::2]:80", "127.evil", "xlocalhost"}) {
    EXPECT_EQ(Ask(check, {{"Host", host}}), 403) << host;
  }
  for (const char* host : {"[::1", ":80", "a:b", "a:0", "a:70000", "a:1:2", "[::1]x"}) {
    EXPECT_EQ(Ask(check, {{"Host", host}}), 400) << host;
  }
  EXPECT_EQ(Ask(check, {}), 0) << "no browser leaves it out";
}

TEST(SiteCheckTest, ElsewhereAddressesAndConfiguredNamesAre) {
  const SiteCheck check(
      {.address_host = "0.0.0.0",
       .loopback = false,
       .allowed_hosts = {"Tahoma.svc.cluster.local"},
       .certificate_names = [](const std::string& host) { return host == "cert.example"; }});
  for (const char* host : {"10.1.2.3:8002", "[fd00::1]:8002", "tahoma.SVC.cluster.local:8002",
                           "cert.example", "localhost"}) {
    EXPECT_EQ(Ask(check, {{"Host", host}}), 0) << host;
  }
  EXPECT_EQ(Ask(check, {{"Host", "evil.example"}}), 403);
  EXPECT_EQ(Ask(check, {{"Host", "0.0.0.0"}}), 0);
}

TEST(SiteCheckTest, AnAddressIsTheSameInWhateverWayItIsWritten) {
  const SiteCheck check(
      {.address_host = "127.0.0.1", .allowed_hosts = {"FD00:0:0::1", "10.0.0.5"}});
  for (const char* host : {"[fd00::1]:8002", "[FD00::0:1]", "10.0.0.5:8002", "[0:0:0:0:0:0:0:1]"}) {
    EXPECT_EQ(Ask(check, {{"Host", host}}), 0) << host;
  }
  EXPECT_EQ(Ask(check, {{"Host", "[fd00::2]"}}), 403);
  EXPECT_EQ(Ask(check, {{"Host", "10.0.0.6"}}), 403);
}

TEST(AllowedHostsTest, AreNamesAndAddressesWithoutPort) {
  EXPECT_EQ(CheckAllowedHosts({}), absl::OkStatus());
  EXPECT_EQ(CheckAllowedHosts({"tahoma.example.com", "Tahoma", "my_service", "xn--bcher-kva.de",
                               "10.0.0.5", "fd00::1", "::1", "3com.com", std::string(63, 'a')}),
            absl::OkStatus());
  for (const std::string wrong : {"",
                                  "a:8001",
                                  "10.0.0.5:8001",
                                  "[::1]",
                                  "[::1]:80",
                                  "http://a",
                                  "a/b",
                                  "*",
                                  "*.example.com",
                                  ".example.com",
                                  "a..b",
                                  "a.",
                                  "a b",
                                  "bücher.de",
                                  "10.0.0",
                                  "10.0.0.300",
                                  "1",
                                  "-a",
                                  "a-",
                                  "fd00::1%eth0",
                                  "fd00:::1"}) {
    EXPECT_EQ(CheckAllowedHosts({"right", wrong}),
              InvalidArgument("\"{}\" is not a host; expected a name or an address without port, "
                              "for example tahoma.example.com, 10.0.0.5 or fd00::1",
                              wrong));
  }
  for (const std::string& wrong : {std::string(64, 'a'), std::string(254, 'a')}) {
    EXPECT_THAT(Message(CheckAllowedHosts({wrong})), StartsWith("\"aaa"));
  }
  EXPECT_THAT(Message(CheckAllowedHosts(std::vector<std::string>(101, "a"))),
              StartsWith("101 hosts; at most 100"));
}

TEST(SiteCheckTest, OnlyItsOwnPagesMayCall) {
  const SiteCheck check({.address_host = "127.0.0.1", .allowed_hosts = {"ui.example"}});
  const auto from = [&](const char* origin, bool tls = false) {
    return Ask(check, {{"Host", "localhost:8001"}, {"Origin", origin}}, "GET", tls);
  };
  EXPECT_EQ(from("http://localhost:8001"), 0);
  EXPECT_EQ(from("https://localhost:8001", true), 0);
  EXPECT_EQ(from("https://ui.example"), 0);
  EXPECT_EQ(from("http://ui.example:3000"), 0);
  for (const char* origin : {"null", "http://localhost:3000", "http://localhost",
                             "https://localhost:8001", "http://127.0.0.1:8001",
                             "https://evil.example", "file://", "x", "chrome-extension://abc"}) {
    EXPECT_EQ(from(origin), 403) << origin;
  }
  EXPECT_EQ(Ask(check, {{"Origin", "http://localhost:8001"}}), 403) << "without Host";
  EXPECT_EQ(Ask(check, {{"Host", "localhost"}, {"Origin", "http://localhost:80"}}), 0);
  EXPECT_EQ(Ask(check, {{"Sec-Fetch-Site", "cross-site"}}), 403);
  for (const char* near : {"none", "same-origin", "same-site"}) {
    EXPECT_EQ(Ask(check, {{"Sec-Fetch-Site", near}}), 0) << near;
  }
}

TEST(SiteCheckTest, ABrowserMustSayWhatABodyIs) {
  const SiteCheck check({.address_host = "127.0.0.1"});
  const std::pair<std::string, std::string> host = {"Host", "localhost"};
  const std::pair<std::string, std::string> body = {"Content-Length", "5"};
  for (const std::pair<std::string, std::string>& sign :
       Headers{{"Origin", "http://localhost"},
               {"Referer", "http://localhost/"},
               {"Sec-Fetch-Site", "same-origin"},
               {"User-Agent", "Mozilla/5.0 (X11)"}}) {
    EXPECT_EQ(Ask(check, {host, sign, body}, "POST"), 415) << sign.first;
    EXPECT_EQ(Ask(check, {host, sign, {"Transfer-Encoding", "chunked"}}, "POST"), 415);
    EXPECT_EQ(Ask(check, {host, sign, body, {"Content-Type", "a/b"}}, "POST"), 0);
    EXPECT_EQ(Ask(check, {host, sign, body, {"Authorization", "Bearer a"}}, "POST"), 0);
    EXPECT_EQ(Ask(check, {host, sign, {"Content-Length", "00"}}, "POST"), 0) << "none";
    EXPECT_EQ(Ask(check, {host, sign}, "POST"), 0);
  }
  // As kubectl create --raw and kubectl scale --current-replicas send it.
  EXPECT_EQ(Ask(check, {host, body, {"User-Agent", "kubectl/v1.36"}}, "POST"), 0);
  EXPECT_EQ(Ask(check, {host, body}, "PUT"), 0);
}

}  // namespace
}  // namespace tahoma::rest
